//! Bodies of responses of MCP servers, read within limits.

use super::failures::{MAX_MESSAGE_BYTES, TransportFailures};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// The number of bytes of all events of a response. A stream of notifications has no end, and no such limit.
pub(super) const MAX_RESPONSE_BYTES: usize = 4 * MAX_MESSAGE_BYTES;

/// Reads a body, and returns whether that is all of it.
///
/// A few compressed bytes may be gigabytes that are all there at once, so time limits get their turn between chunks.
pub(super) async fn read_body(response: &mut reqwest::Response, limit: usize) -> reqwest::Result<(Vec<u8>, bool)> {
    let mut body = Vec::new();
    loop {
        tokio::task::consume_budget().await;
        let Some(chunk) = response.chunk().await? else { return Ok((body, true)) };
        let room = limit.saturating_sub(body.len());
        body.extend(chunk.iter().take(room));
        if chunk.len() > room {
            return Ok((body, false));
        }
    }
}

/// Returns the error for a request whose response is too large, as if the server had sent it.
pub(super) fn too_large(request: Option<RequestId>) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, "the response is too large", None), request)
}

/// Returns the events of a response. If one of them is too large, or all of them together exceed a limit, the stream ends
/// with an error for the request.
pub(super) fn events(
    response: reqwest::Response,
    limit: Option<usize>,
    request: Option<RequestId>,
    failures: &TransportFailures,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let limits = EventLimits { remaining: limit.unwrap_or(usize::MAX), ..EventLimits::default() };
    let bytes = stream::try_unfold((response, limits), |(mut response, mut limits)| async move {
        tokio::task::consume_budget().await;
        let chunk = response.chunk().await.map_err(|error| io::Error::other(error.without_url()))?;
        let Some(chunk) = chunk else { return Ok(None) };
        match limits.add(&chunk) {
            Ok(()) => Ok(Some((chunk, (response, limits)))),
            Err(TooLarge) => Err(io::Error::new(io::ErrorKind::FileTooLarge, "the response is too large")),
        }
    });
    let failures = failures.clone();
    let events = SseStream::from_bytes_stream(Box::pin(bytes)).map(move |event| match event {
        Err(SseError::Body(error)) if is_too_large(&*error) => {
            failures.set_too_large();
            match &request {
                Some(request) => {
                    let answer = serde_json::to_string(&too_large(Some(request.clone())));
                    Ok(Sse::default().data(answer.unwrap_or_default()))
                }
                None => Err(SseError::Body(error)),
            }
        }
        event => event,
    });
    events.boxed()
}

fn is_too_large(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::FileTooLarge)
}

/// A message is too large.
#[derive(Debug, PartialEq, Eq)]
struct TooLarge;

/// Counts the bytes of server-sent events.
#[derive(Default)]
struct EventLimits {
    /// The number of bytes that may follow.
    remaining: usize,
    /// The number of bytes of the current event, without its comments.
    event: usize,
    /// The number of bytes of the current line.
    line: usize,
    is_comment: bool,
    is_after_return: bool,
}

impl EventLimits {
    fn add(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.remaining = self.remaining.checked_sub(bytes.len()).ok_or(TooLarge)?;
        for byte in bytes {
            let is_after_return = std::mem::replace(&mut self.is_after_return, *byte == b'\r');
            match byte {
                b'\n' if is_after_return => {}
                b'\n' | b'\r' => {
                    self.event = match (self.line, self.is_comment) {
                        (0, _) => 0,
                        (line, true) => self.event.saturating_sub(line),
                        (_, false) => self.event,
                    };
                    self.line = 0;
                }
                _ => {
                    if self.line == 0 {
                        self.is_comment = *byte == b':';
                    }
                    self.line += 1;
                    self.event += 1;
                    if self.event > MAX_MESSAGE_BYTES {
                        return Err(TooLarge);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The stdout of a server, which ends with an error after a line that is too long.
pub(super) struct Lines<R> {
    inner: R,
    line: usize,
    failures: TransportFailures,
}

impl<R> Lines<R> {
    pub(super) fn new(inner: R, failures: &TransportFailures) -> Self {
        Self { inner, line: 0, failures: failures.clone() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = result {
            let read = buffer.filled().get(before..).unwrap_or_default();
            // The longest line within the bytes does not matter: they are fewer than the limit.
            self.line = match read.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => read.len() - end - 1,
                None => self.line + read.len(),
            };
            if self.line > MAX_MESSAGE_BYTES {
                self.failures.set_too_large();
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::FileTooLarge, "a line is too long")));
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::{EventLimits, MAX_MESSAGE_BYTES, TooLarge};

    fn check(pieces: &[&str], count: usize, expected: &Result<(), TooLarge>) {
        let mut limits = EventLimits { remaining: usize::MAX, ..EventLimits::default() };
        let mut all = pieces.iter().cycle().take(pieces.len() * count);
        assert_eq!(all.try_for_each(|piece| limits.add(piece.as_bytes())), *expected, "{pieces:?}");
    }

    #[test]
    fn events_are_counted_one_by_one() {
        let piece = "x".repeat(1 << 20);
        let many = 3 * MAX_MESSAGE_BYTES / piece.len();
        check(&["data: ", &piece, "\n\n"], many, &Ok(()));
        check(&["data: ", &piece, "\r\n\r\n"], many, &Ok(()));
        check(&["data: ", &piece, "\r", "\n", "\r\n"], many, &Ok(()));
        check(&["data: ", &piece, "\r\r"], many, &Ok(()));
        check(&[": ", &piece, "\n"], many, &Ok(()));
        check(&["data: ", &piece, "\n"], many, &Err(TooLarge));
        check(&["data: ", &piece, "\r\n"], many, &Err(TooLarge));
        check(&["data: ", &piece, "\r", "\n"], many, &Err(TooLarge));
        check(&[&piece], many, &Err(TooLarge));
        check(&[":", &piece], many, &Err(TooLarge));
    }
}
