//! Replies that come in pieces.

use super::draft::{Draft, Reading};
use super::frame::Frames;
use super::{Wire, WireError};
use crate::request::{Delta, Reply};
use serde::Deserialize;
use serde_json::Value as Json;

/// How many bytes a reply may have.
const MOST_BYTES: usize = 64 << 20;

/// Reads a reply that comes in pieces.
///
/// However the bytes are split, the pieces and the reply are the same. After an error there is nothing more to come;
/// what came before it is handed out first.
///
/// ```
/// use patter_core::request::{Delta, Request, Settings};
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
    failed: Option<WireError>,
}

impl StreamDecoder {
    pub(super) fn new(wire: Wire, reading: Box<dyn Reading>, draft: Draft) -> Self {
        Self { wire, frames: Frames::new(wire.framing()), reading, draft, room: MOST_BYTES, failed: None }
    }

    /// Takes the next bytes, and returns the pieces that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, WireError> {
        if self.failed.is_none() {
            self.failed = self.take(bytes).err();
        }
        let deltas = self.draft.take_deltas();
        match &self.failed {
            Some(error) if deltas.is_empty() => Err(error.clone()),
            _ => Ok(deltas),
        }
    }

    /// Returns the whole reply, or [`WireError::Cut`] where the stream ended too early. It has also what stood in a
    /// last line that was not ended.
    pub fn finish(mut self) -> Result<Reply, WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (reading, draft) = (&mut self.reading, &mut self.draft);
        match self.frames.finish(&mut |frame| event(reading.as_mut(), draft, frame)) {
            // What cannot be read at the very end is the beginning of what did not come.
            Ok(()) | Err(WireError::Malformed { .. }) => {}
            Err(error) => return Err(error),
        }
        if !self.draft.is_complete {
            return Err(WireError::Cut);
        }
        let opaque = self.reading.close(&mut self.draft);
        Ok(self.draft.reply(self.wire, opaque))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let fitting = bytes.get(..self.room).unwrap_or(bytes);
        let (reading, draft) = (&mut self.reading, &mut self.draft);
        self.frames.push(fitting, &mut |frame| event(reading.as_mut(), draft, frame))?;
        self.room -= fitting.len();
        if fitting.len() < bytes.len() { Err(too_long()) } else { Ok(()) }
    }
}

fn event(reading: &mut dyn Reading, draft: &mut Draft, frame: &[u8]) -> Result<(), WireError> {
    if frame.trim_ascii() == b"[DONE]" {
        draft.is_complete = true;
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
