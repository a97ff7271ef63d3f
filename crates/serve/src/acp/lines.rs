//! Lines of a stream, up to a length.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Text(Vec<u8>),
    /// A line that was too long, and was skipped.
    TooLong,
}

/// Reads the next line; `None` at the end. No more than `max` bytes are kept. A last line without an end counts too.
pub(super) async fn next_line(reader: &mut (impl AsyncBufRead + Unpin), max: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    let mut is_empty = true;
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            return Ok((!is_empty).then(|| finished(line, is_too_long)));
        }
        is_empty = false;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        if line.len() + part.len() > max {
            is_too_long = true;
            line = Vec::new();
        } else if !is_too_long {
            line.extend_from_slice(part);
        }
        let read = part.len() + usize::from(end.is_some());
        reader.consume(read);
        if end.is_some() {
            return Ok(Some(finished(line, is_too_long)));
        }
    }
}

fn finished(line: Vec<u8>, is_too_long: bool) -> Line {
    if is_too_long { Line::TooLong } else { Line::Text(line) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{Line, next_line};
    use tokio::io::BufReader;

    #[tokio::test]
    async fn lines_are_bounded() {
        let text: &[u8] = b"one\n\nfar too long\ntwo\r\nlast";
        let mut reader = BufReader::with_capacity(2, text);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader, 5).await.unwrap() {
            lines.push(line);
        }
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        assert_eq!(lines, [text("one"), text(""), Line::TooLong, text("two\r"), text("last")]);
    }
}
