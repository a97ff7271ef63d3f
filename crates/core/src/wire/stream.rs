//! Decoding streamed replies.

use super::error::{EXCERPT_BYTES, WireError};
use super::framing::{Frame, FrameDecoder, Framing};
use super::json::{MAX_REPLY_BYTES, is_json, strip_start, too_large};
use super::reply::{ReplyBuilder, ReplyParser};
use crate::message::request::{Delta, Reply};
use crate::provider::Wire;

/// The fields of server-sent events, one of which starts a stream. A comment has an empty name, and `error` is an extension.
const FIELDS: [&[u8]; 6] = [b":", b"data", b"event", b"id", b"retry", b"error"];
/// The number of bytes that are needed to recognise a field.
const LONGEST_FIELD: usize = 5;

/// A decoder for a streamed reply.
///
/// The deltas and the reply are the same however the bytes are split. An error is returned after the deltas that precede
/// it, and nothing follows it. Servers that do not support streaming send a whole reply, which is decoded as well.
///
/// ```
/// use patter_core::message::attachment::AttachmentContents;
/// use patter_core::message::conversation::Conversation;
/// use patter_core::message::request::{Delta, Request, Settings};
/// use patter_core::wire::{Wire, WireError};
///
/// let model = "OpenAI/gpt-4o-mini".parse().unwrap();
/// let settings = Settings::default();
/// let messages = Conversation::default();
/// let request = Request {
///     model: &model,
///     instruction: "",
///     messages: &messages,
///     contents: AttachmentContents::NONE,
///     tools: &[],
///     settings: &settings,
///     returns: None,
/// };
/// let mut decoder = Wire::Chat.stream_decoder(&request);
/// assert_eq!(decoder.push(b"data: {\"choices\": [{\"delta\": {\"content\": \"H").unwrap(), []);
/// assert_eq!(decoder.push(b"i\"}}]}\n\n").unwrap(), [Delta::Text { text: "Hi".into() }]);
/// assert_eq!(decoder.finish(), Err(WireError::Truncated));
/// ```
#[derive(Debug)]
pub struct StreamDecoder<'r> {
    wire: Wire,
    framing: Framing,
    frames: FrameDecoder,
    parser: Box<dyn ReplyParser>,
    builder: ReplyBuilder<'r>,
    /// The number of bytes that may still follow.
    remaining: usize,
    kind: Option<BodyKind>,
    /// The bytes that were not passed to `frames`.
    buffer: Vec<u8>,
    /// Whether the body started with whitespace, which is not buffered.
    is_indented: bool,
    error: Option<WireError>,
}

/// What a body turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    /// A stream, as requested.
    Stream,
    /// A whole reply.
    Whole,
    /// Not a reply.
    Unexpected,
}

impl<'r> StreamDecoder<'r> {
    pub(super) fn new(wire: Wire, framing: Framing, parser: Box<dyn ReplyParser>, builder: ReplyBuilder<'r>) -> Self {
        Self {
            wire,
            framing,
            frames: FrameDecoder::new(framing),
            parser,
            builder,
            remaining: MAX_REPLY_BYTES,
            kind: None,
            buffer: Vec::new(),
            is_indented: false,
            error: None,
        }
    }

    /// Adds bytes, and returns the deltas that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, WireError> {
        if self.error.is_none() {
            self.error = self.decode(bytes).err();
        }
        self.take_deltas()
    }

    /// Returns whether the provider has ended the reply. It is then complete, whatever happens to the connection.
    pub const fn is_done(&self) -> bool {
        self.builder.is_done && self.error.is_none()
    }

    /// Marks the end of the bytes, and returns the deltas that this completes: those of an unterminated last line, and of
    /// a whole reply.
    pub fn end(&mut self) -> Result<Vec<Delta>, WireError> {
        if self.error.is_none() {
            self.error = self.decode_end().err();
        }
        self.take_deltas()
    }

    /// Returns the reply, or [`WireError::Truncated`] if the stream ended too early.
    pub fn finish(mut self) -> Result<Reply, WireError> {
        if self.error.is_none() {
            self.error = self.decode_end().err();
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.builder.is_complete {
            return Err(WireError::Truncated);
        }
        let opaque = self.parser.finish(&mut self.builder);
        Ok(self.builder.build(self.wire, opaque))
    }

    fn take_deltas(&mut self) -> Result<Vec<Delta>, WireError> {
        let deltas = self.builder.take_deltas();
        match &self.error {
            Some(error) if deltas.is_empty() => Err(error.clone()),
            _ => Ok(deltas),
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let accepted = bytes.get(..self.remaining).unwrap_or(bytes);
        self.remaining -= accepted.len();
        if self.kind == Some(BodyKind::Stream) {
            self.decode_frames(accepted)?;
        } else {
            self.buffer.extend_from_slice(accepted);
            if self.kind.is_none() {
                self.strip_buffer();
            }
            if self.kind.is_some() || self.buffer.len() >= LONGEST_FIELD {
                self.decode_buffer()?;
            }
        }
        if accepted.len() < bytes.len() { Err(too_large()) } else { Ok(()) }
    }

    fn decode_end(&mut self) -> Result<(), WireError> {
        self.decode_buffer()?;
        match self.kind {
            Some(BodyKind::Unexpected) if !self.buffer.is_empty() => Err(WireError::unexpected(&self.buffer)),
            Some(BodyKind::Whole) if !self.buffer.is_empty() => {
                let body = std::mem::take(&mut self.buffer);
                self.parser.parse_whole(&body, &mut self.builder)?;
                self.builder.set_done();
                Ok(())
            }
            _ => {
                let parser = &mut self.parser;
                let builder = &mut self.builder;
                match self.frames.finish(&mut |frame| parse_frame(parser.as_mut(), builder, frame)) {
                    // A malformed last frame is one whose end is missing.
                    Ok(()) | Err(WireError::Malformed { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Drops a byte order mark and whitespace from the start of a body, so that a flood of whitespace is neither kept nor
    /// read again with each chunk.
    fn strip_buffer(&mut self) {
        let start = if self.is_indented { self.buffer.trim_ascii_start() } else { strip_start(&self.buffer) };
        let stripped = self.buffer.len() - start.len();
        self.is_indented |= stripped > 0;
        self.buffer.drain(..stripped);
    }

    /// Processes the buffered bytes according to the kind of the body.
    fn decode_buffer(&mut self) -> Result<(), WireError> {
        match *self.kind.get_or_insert_with(|| body_kind(self.framing, &self.buffer)) {
            BodyKind::Stream => {
                let bytes = std::mem::take(&mut self.buffer);
                self.decode_frames(&bytes)
            }
            BodyKind::Unexpected if self.buffer.len() >= EXCERPT_BYTES => {
                self.buffer.truncate(EXCERPT_BYTES);
                Err(WireError::unexpected(&self.buffer))
            }
            BodyKind::Whole | BodyKind::Unexpected => Ok(()),
        }
    }

    fn decode_frames(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let parser = &mut self.parser;
        let builder = &mut self.builder;
        self.frames.push(bytes, &mut |frame| parse_frame(parser.as_mut(), builder, frame))
    }
}

/// Determines the kind of a body from its start.
fn body_kind(framing: Framing, start: &[u8]) -> BodyKind {
    let is_stream = match framing {
        Framing::Lines => start.starts_with(b"{"),
        Framing::Events => FIELDS.iter().any(|field| start.starts_with(field) || field.starts_with(start)),
    };
    // An empty body is a truncated stream.
    if is_stream || start.is_empty() {
        BodyKind::Stream
    } else if is_json(start) {
        BodyKind::Whole
    } else {
        BodyKind::Unexpected
    }
}

fn parse_frame(
    parser: &mut dyn ReplyParser,
    builder: &mut ReplyBuilder<'_>,
    frame: Frame<'_>,
) -> Result<(), WireError> {
    let result = match frame {
        // Some servers keep the connection alive with empty data.
        Frame::Data(data) if data.trim_ascii().is_empty() => Ok(()),
        Frame::Data(data) if data.trim_ascii() == b"[DONE]" => {
            builder.set_done();
            Ok(())
        }
        Frame::Data(data) => parser.parse_event(data, builder),
        Frame::Error(value) => Err(WireError::from_field(value)),
    };
    // Errors after a complete reply do not invalidate it.
    if builder.is_complete { Ok(()) } else { result }
}
