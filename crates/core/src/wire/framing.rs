//! Splitting a stream of bytes into frames: server-sent events, or lines of JSON.

use super::error::WireError;
use super::json::BYTE_ORDER_MARK;
use memchr::{memchr, memchr2};

/// The largest line or event, in bytes.
const MAX_FRAME_BYTES: usize = 16 << 20;

/// Whether a reply is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// The reply is sent as a whole.
    Off,
    /// The reply is sent in pieces.
    On,
}

/// The format of the frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events. Only their data is used, because all providers repeat the type of the event there.
    Events,
    /// Lines.
    Lines,
}

/// A frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame<'b> {
    /// The data of an event, or a line.
    Data(&'b [u8]),
    /// The value of a field `error`, which some servers send instead of an event.
    Error(&'b [u8]),
}

/// Assembles frames from bytes that are split anywhere.
#[derive(Debug)]
pub(super) struct FrameDecoder {
    framing: Framing,
    line: Vec<u8>,
    /// The data of the current event, with a line break before each line but the first.
    data: Option<Vec<u8>>,
    is_after_return: bool,
    is_first_line: bool,
}

impl FrameDecoder {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), data: None, is_after_return: false, is_first_line: true }
    }

    /// Adds bytes, and passes each complete frame to `handle`.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        handle: &mut impl FnMut(Frame<'_>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.is_after_return)
                && let Some(after) = rest.strip_prefix(b"\n")
            {
                rest = after;
                continue;
            }
            let end = match self.framing {
                Framing::Events => memchr2(b'\n', b'\r', rest),
                Framing::Lines => memchr(b'\n', rest),
            };
            let Some(at) = end else {
                return self.push_line(rest);
            };
            let (line, after) = rest.split_at(at);
            self.push_line(line)?;
            self.is_after_return = after.first() == Some(&b'\r');
            rest = after.get(1..).unwrap_or_default();
            self.end_line(handle)?;
        }
        Ok(())
    }

    /// Passes on what is left at the end of the stream, because some servers do not terminate their last line.
    pub(super) fn finish(
        &mut self,
        handle: &mut impl FnMut(Frame<'_>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        self.end_line(handle)?;
        self.end_line(handle)
    }

    fn push_line(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let buffered = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if buffered + bytes.len() > MAX_FRAME_BYTES {
            return Err(WireError::malformed("an event is larger than 16 MiB"));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, handle: &mut impl FnMut(Frame<'_>) -> Result<(), WireError>) -> Result<(), WireError> {
        let mut buffer = std::mem::take(&mut self.line);
        let is_first = std::mem::take(&mut self.is_first_line);
        let line = buffer.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(&buffer);
        let result = match self.framing {
            Framing::Lines if line.trim_ascii().is_empty() => Ok(()),
            Framing::Lines => handle(Frame::Data(line.trim_ascii())),
            Framing::Events if line.is_empty() => self.data.take().map_or(Ok(()), |data| handle(Frame::Data(&data))),
            Framing::Events => match line.strip_prefix(b"error:") {
                Some(value) => handle(Frame::Error(value.trim_ascii())),
                None => {
                    self.push_field(line);
                    Ok(())
                }
            },
        };
        // Keep the allocation for the next line.
        buffer.clear();
        self.line = buffer;
        result
    }

    fn push_field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        if name != b"data" {
            return;
        }
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            none => *none = Some(value.to_vec()),
        }
    }
}
