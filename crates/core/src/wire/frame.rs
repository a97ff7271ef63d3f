//! What holds the pieces of a stream: events sent by a server, or lines of JSON.

use super::WireError;

/// How many bytes a line or an event may have.
const MOST_BYTES: usize = 16 << 20;

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What the pieces of a stream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events, of which only the data counts: all providers repeat there what the event is.
    Events,
    /// Lines.
    Lines,
}

/// Puts pieces together from bytes that are split anywhere.
#[derive(Debug)]
pub(super) struct Frames {
    framing: Framing,
    line: Vec<u8>,
    /// The data of the event so far, with a line break before each line but the first.
    data: Option<Vec<u8>>,
    is_after_return: bool,
    is_first_line: bool,
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), data: None, is_after_return: false, is_first_line: true }
    }

    /// Takes more bytes, and hands on each piece that is complete.
    pub(super) fn push(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8]) -> Result<(), WireError>) -> Taken {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.is_after_return)
                && let Some(after) = rest.strip_prefix(b"\n")
            {
                rest = after;
                continue;
            }
            let is_end = |byte: &u8| *byte == b'\n' || (*byte == b'\r' && self.framing == Framing::Events);
            let Some(at) = rest.iter().position(is_end) else {
                return self.add(rest);
            };
            let (line, after) = rest.split_at(at);
            self.add(line)?;
            self.is_after_return = after.first() == Some(&b'\r');
            rest = after.get(1..).unwrap_or_default();
            self.end_line(each)?;
        }
        Ok(())
    }

    /// Hands on what the stream ended in, as some servers do not end their last line.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(&[u8]) -> Result<(), WireError>) -> Taken {
        self.end_line(each)?;
        self.end_line(each)
    }

    fn add(&mut self, bytes: &[u8]) -> Taken {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held + bytes.len() > MOST_BYTES {
            return Err(WireError::malformed("a piece of it is longer than 16 MiB"));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, each: &mut impl FnMut(&[u8]) -> Result<(), WireError>) -> Taken {
        let mut taken = std::mem::take(&mut self.line);
        let is_first = std::mem::take(&mut self.is_first_line);
        let line = taken.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(&taken);
        let outcome = match self.framing {
            Framing::Lines if line.trim_ascii().is_empty() => Ok(()),
            Framing::Lines => each(line.trim_ascii()),
            Framing::Events if line.is_empty() => self.data.take().map_or(Ok(()), |data| each(&data)),
            Framing::Events => {
                self.field(line);
                Ok(())
            }
        };
        // The room is used again.
        taken.clear();
        self.line = taken;
        outcome
    }

    fn field(&mut self, line: &[u8]) {
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

type Taken = Result<(), WireError>;
