//! Replies that come in pieces.

use super::draft::{Draft, Reading};
use super::error::MOST_FOREIGN_BYTES;
use super::frame::{BYTE_ORDER_MARK, Frames, Framing};
use super::{Wire, WireError};
use crate::message::request::{Delta, Reply};
use serde::Deserialize;
use serde_json::Value as Json;

/// How many bytes a reply may have.
const MOST_BYTES: usize = 64 << 20;

/// Reads a reply that comes in pieces.
///
/// However the bytes are split, the pieces and the reply are the same. After an error there is nothing more to come;
/// what came before it is handed out first. Servers that know no pieces answer with the whole, which is read as well.
///
/// ```
/// use patter_core::message::request::{Delta, Request, Settings};
/// use patter_core::wire::{Wire, WireError};
///
/// let model = "OpenAI/gpt-4o-mini".parse().unwrap();
/// let settings = Settings::default();
/// let request =
///     Request { model: &model, instruction: "", messages: &[], tools: &[], settings: &settings, returns: None };
/// let mut stream = Wire::Chat.stream(&request);
/// assert_eq!(stream.push(b"data: {\"choices\": [{\"delta\": {\"content\": \"H").unwrap(), []);
/// assert_eq!(stream.push(b"i\"}}]}\n\n").unwrap(), [Delta::Text { text: "Hi".into() }]);
/// assert_eq!(stream.finish(), Err(WireError::Cut));
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    wire: Wire,
    frames: Frames,
    reading: Box<dyn Reading>,
    draft: Draft,
    room: usize,
    form: Option<Form>,
    /// What came, while it does not go to the frames.
    held: Vec<u8>,
    failed: Option<WireError>,
}

/// What a body turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Pieces, as they were asked for.
    Pieces,
    /// A whole reply.
    Whole,
    /// No reply.
    Foreign,
}

impl StreamDecoder {
    pub(super) fn new(wire: Wire, reading: Box<dyn Reading>, draft: Draft) -> Self {
        let (frames, form, held) = (Frames::new(wire.framing()), None, Vec::new());
        Self { wire, frames, reading, draft, room: MOST_BYTES, form, held, failed: None }
    }

    /// Takes the next bytes, and returns the pieces that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, WireError> {
        if self.failed.is_none() {
            self.failed = self.take(bytes).err();
        }
        self.pieces()
    }

    /// Tells whether the provider said that the reply ends here: whatever the connection does then, it is complete.
    pub const fn is_over(&self) -> bool {
        self.draft.is_over && self.failed.is_none()
    }

    /// Takes the end of the bytes, and returns the pieces that it completes: those of a last line that was not ended,
    /// and of a reply that came whole.
    pub fn end(&mut self) -> Result<Vec<Delta>, WireError> {
        if self.failed.is_none() {
            self.failed = self.take_end().err();
        }
        self.pieces()
    }

    /// Returns the whole reply, or [`WireError::Cut`] where the stream ended too early.
    pub fn finish(mut self) -> Result<Reply, WireError> {
        if self.failed.is_none() {
            self.failed = self.take_end().err();
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        if !self.draft.is_complete {
            return Err(WireError::Cut);
        }
        let opaque = self.reading.close(&mut self.draft);
        Ok(self.draft.reply(self.wire, opaque))
    }

    fn pieces(&mut self) -> Result<Vec<Delta>, WireError> {
        let deltas = self.draft.take_deltas();
        match &self.failed {
            Some(error) if deltas.is_empty() => Err(error.clone()),
            _ => Ok(deltas),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let fitting = bytes.get(..self.room).unwrap_or(bytes);
        self.room -= fitting.len();
        if self.form == Some(Form::Pieces) {
            self.frame(fitting)?;
        } else {
            self.held.extend_from_slice(fitting);
            let is_decided = self.form.is_some() || opening(&self.held).len() >= LONGEST_FIELD;
            if is_decided {
                self.take_held()?;
            }
        }
        if fitting.len() < bytes.len() { Err(too_long()) } else { Ok(()) }
    }

    fn take_end(&mut self) -> Result<(), WireError> {
        self.take_held()?;
        match self.form {
            Some(Form::Foreign) if !self.held.is_empty() => Err(WireError::foreign(&self.held)),
            Some(Form::Whole) if !self.held.is_empty() => {
                let body = std::mem::take(&mut self.held);
                self.reading.whole(opening(&body), &mut self.draft)?;
                self.draft.end();
                Ok(())
            }
            _ => {
                let (reading, draft) = (&mut self.reading, &mut self.draft);
                match self.frames.finish(&mut |frame| event(reading.as_mut(), draft, frame)) {
                    // What cannot be read at the very end is the beginning of what did not come.
                    Ok(()) | Err(WireError::Malformed { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Does with the bytes so far what is done with such a body.
    fn take_held(&mut self) -> Result<(), WireError> {
        match *self.form.get_or_insert_with(|| form(self.wire.framing(), opening(&self.held))) {
            Form::Pieces => {
                let held = std::mem::take(&mut self.held);
                self.frame(&held)
            }
            Form::Foreign if self.held.len() >= MOST_FOREIGN_BYTES => {
                self.held.truncate(MOST_FOREIGN_BYTES);
                Err(WireError::foreign(&self.held))
            }
            Form::Whole | Form::Foreign => Ok(()),
        }
    }

    fn frame(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let (reading, draft) = (&mut self.reading, &mut self.draft);
        self.frames.push(bytes, &mut |frame| event(reading.as_mut(), draft, frame))
    }
}

/// The fields of an event, with which a stream of them begins; a comment has no name.
const FIELDS: [&[u8]; 5] = [b":", b"data", b"event", b"id", b"retry"];
/// How many bytes tell whether there is one.
const LONGEST_FIELD: usize = 5;

/// Tells what a body is by how it begins.
fn form(framing: Framing, opening: &[u8]) -> Form {
    // A body that is empty so far is a stream that is cut.
    let is_stream = match framing {
        Framing::Lines => opening.starts_with(b"{"),
        Framing::Events => FIELDS.iter().any(|field| opening.starts_with(field) || field.starts_with(opening)),
    };
    match opening {
        [] => Form::Pieces,
        _ if is_stream => Form::Pieces,
        _ if is_json(opening) => Form::Whole,
        _ => Form::Foreign,
    }
}

/// Tells whether a body begins like JSON.
pub(super) fn is_json(body: &[u8]) -> bool {
    matches!(opening(body), [b'{' | b'[', ..])
}

/// Returns a body without what has no meaning before it.
fn opening(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii_start()
}

fn event(reading: &mut dyn Reading, draft: &mut Draft, frame: &[u8]) -> Result<(), WireError> {
    if frame.trim_ascii() == b"[DONE]" {
        draft.end();
        return Ok(());
    }
    let outcome = reading.event(frame, draft);
    // What comes after the end of a reply cannot take it back.
    if draft.is_complete { Ok(()) } else { outcome }
}

/// Reads what must be JSON.
pub(super) fn json(bytes: &[u8]) -> Result<Json, WireError> {
    read(bytes)
}

/// Reads what must be JSON of some form.
pub(super) fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, WireError> {
    if bytes.len() > MOST_BYTES {
        return Err(too_long());
    }
    serde_json::from_slice(bytes).map_err(|error| WireError::malformed(format!("it is no JSON: {error}")))
}

fn too_long() -> WireError {
    WireError::malformed("it is longer than 64 MiB")
}
