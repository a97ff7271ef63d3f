//! The end of a process's output.

use crate::tool::redact::Redactor;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The size of the buffer that a pipe is read into.
const CHUNK: usize = 16 * 1024;

/// The last bytes of a stream.
pub(crate) struct OutputTail {
    bytes: Vec<u8>,
    limit: usize,
    is_truncated: bool,
}

impl OutputTail {
    /// Creates an empty tail that keeps the last `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, is_truncated: false }
    }

    /// Adds bytes, and drops the oldest ones above the limit.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.is_truncated |= self.bytes.len() > self.limit;
        // Moving the bytes pays off once there are many to drop.
        if self.surplus() > self.limit {
            self.bytes.drain(..self.surplus());
        }
    }

    /// Returns whether bytes were dropped.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the last bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.surplus()..).unwrap_or_default()
    }

    /// Returns the last bytes as text, without secrets and surrounding white space.
    pub(crate) fn text(&self, redactor: &Redactor) -> String {
        let text = String::from_utf8_lossy(self.bytes());
        let text = if self.is_truncated { redactor.redact_tail(&text) } else { redactor.redact(&text) };
        text.trim().to_owned()
    }

    fn surplus(&self) -> usize {
        self.bytes.len().saturating_sub(self.limit)
    }
}

/// Passes everything that can be read from a pipe to a function. A pipe that cannot be read counts as closed.
pub(crate) async fn read_chunks(pipe: &mut (impl AsyncRead + Unpin), mut push: impl FnMut(&[u8])) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        push(buffer.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_bytes() {
        let mut tail = OutputTail::new(4);
        tail.push(b"abcd");
        assert_eq!((tail.bytes(), tail.is_truncated()), (b"abcd".as_slice(), false));
        for byte in b"efghijklmnop" {
            tail.push(&[*byte]);
            assert!(tail.bytes.len() <= 8);
        }
        assert_eq!((tail.bytes(), tail.is_truncated()), (b"mnop".as_slice(), true));
        tail.push(b"0123456789");
        assert_eq!(tail.bytes(), b"6789");
    }

    #[test]
    fn redacts_secrets_that_the_limit_cuts() {
        let redactor = Redactor::new(&["sesame-open".to_owned()]);
        let mut tail = OutputTail::new(4 + redactor.margin());
        tail.push(b"the key is sesame-open, keep it");
        let text = tail.text(&redactor);
        assert!(!text.contains("open") && text.ends_with("p it"), "{text}");
    }
}
