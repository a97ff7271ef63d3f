//! How often a stream of events is opened again. The server can ask for a pause, but not for none.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use rmcp::transport::common::client_side_sse::{ExponentialBackoff, SseRetryPolicy};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The shortest pause before a stream is opened again.
const MIN_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause. A server that asks for more would never be heard again.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The number of attempts after which a stream that cannot be opened is given up.
const MAX_FAILURES: usize = 20;
/// The number of streams in a row without a message after which none is opened any more.
const MAX_EMPTY_STREAMS: u32 = 1000;
/// How long the first call waits until a stream is open.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// The age at which a stream is worth opening again, even if it brought no message: proxies close idle connections.
const LASTING: Duration = Duration::from_secs(10);

/// The streams of events of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct EventStreams {
    /// The number of streams in a row that ended soon and without a message.
    empty: Arc<AtomicU32>,
    /// Cancelled once the server answered the first attempt to open a stream.
    answered: CancellationToken,
}

impl EventStreams {
    /// Notes that a stream is about to be opened. Returns whether it may be.
    pub(super) fn may_open(&self) -> bool {
        self.empty.fetch_add(1, Ordering::Relaxed) < MAX_EMPTY_STREAMS
    }

    /// Notes that the server answered an attempt to open a stream.
    pub(super) fn note_answer(&self) {
        self.answered.cancel();
    }

    /// Waits until the first stream is open, or refused: servers drop the questions that they ask before. Those that take long are
    /// waited for once.
    pub(super) async fn wait_for_answer(&self) {
        let _ = tokio::time::timeout(MAX_WAIT, self.answered.cancelled()).await;
        self.answered.cancel();
    }

    /// Limits the pauses that a stream asks for, and delays an error: the transport opens the stream again at once.
    pub(super) fn pace(
        &self,
        events: BoxStream<'static, Result<Sse, SseError>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let streams = self.clone();
        let opened = Instant::now();
        let paced = stream::unfold((events, streams), move |(mut events, streams)| async move {
            let event = events.next().await;
            if opened.elapsed() >= LASTING {
                streams.empty.store(0, Ordering::Relaxed);
            }
            let event = match event? {
                Ok(mut event) => {
                    event.retry = event.retry.map(limit_pause);
                    if event.data.as_ref().is_some_and(|data| !data.is_empty()) {
                        streams.empty.store(0, Ordering::Relaxed);
                    }
                    Ok(event)
                }
                Err(error) => {
                    sleep(MIN_PAUSE).await;
                    Err(error)
                }
            };
            Some((event, (events, streams)))
        });
        paced.boxed()
    }
}

/// Returns the pauses between attempts to open a stream that the server refuses.
pub(super) fn retry_policy() -> Arc<dyn SseRetryPolicy> {
    let mut policy = ExponentialBackoff::default();
    policy.max_times = Some(MAX_FAILURES);
    policy.max_delay = Some(MAX_PAUSE);
    Arc::new(policy)
}

/// Limits a pause in milliseconds.
fn limit_pause(asked: u64) -> u64 {
    let pause = Duration::from_millis(asked).clamp(MIN_PAUSE, MAX_PAUSE);
    u64::try_from(pause.as_millis()).unwrap_or(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn paced(streams: &EventStreams, event: Result<Sse, SseError>) -> BoxStream<'static, Result<Sse, SseError>> {
        streams.pace(stream::iter([event]).boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_have_a_minimum_and_a_maximum() {
        for (asked, expected) in [(0, 250), (250, 250), (500, 500), (60_000, 30_000), (u64::MAX, 30_000)] {
            let event = paced(&EventStreams::default(), Ok(Sse::default().retry(asked))).next().await;
            assert_eq!(event.unwrap().unwrap().retry, Some(expected));
        }
        let started = Instant::now();
        let broken = Err(SseError::Body(Box::new(io::Error::other("broken"))));
        assert!(paced(&EventStreams::default(), broken).next().await.unwrap().is_err());
        assert_eq!(started.elapsed(), MIN_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn streams_without_a_message_come_to_an_end() {
        let streams = EventStreams::default();
        let all_may_open = |count: u32| (0..count).all(|_| streams.may_open());
        assert!(all_may_open(MAX_EMPTY_STREAMS));
        assert!(!streams.may_open());
        let without_message = paced(&streams, Ok(Sse::default().id("1").data("").retry(0)));
        assert_eq!(without_message.count().await, 1);
        assert!(!streams.may_open());
        assert_eq!(paced(&streams, Ok(Sse::default().data("{}"))).count().await, 1);
        assert!(all_may_open(MAX_EMPTY_STREAMS));
        let lasting = stream::once(sleep(LASTING)).filter_map(|()| std::future::ready(None));
        assert_eq!(streams.pace(lasting.boxed()).count().await, 0);
        assert!(streams.may_open());
    }
}
