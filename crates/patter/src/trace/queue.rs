//! The spans that wait to be sent.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{Notify, watch};

/// The size in bytes up to which spans wait to be sent.
const MAX_QUEUE_BYTES: usize = 64 * 1024 * 1024;
/// The size in bytes up to which spans are sent together. Receivers limit requests, some to 4 MiB.
const MAX_BATCH_BYTES: usize = 2 * 1024 * 1024;

/// How many spans were exported and dropped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ExportReport {
    /// The number of spans that the receiver accepted.
    pub exported: u64,
    /// The number of spans that were dropped: the queue was full, or they could not be sent.
    pub dropped: u64,
    /// Why spans were dropped last.
    pub error: Option<String>,
}

/// Encoded spans that wait to be sent, up to a limit.
pub(super) struct SpanQueue {
    state: Mutex<State>,
    max_spans: usize,
    max_batch: usize,
    /// Wakes the worker.
    pub(super) wake: Notify,
    /// Wakes those who wait for the queue to be empty.
    pub(super) idle: Notify,
    /// Until when everything has to be sent, if somebody waits for that.
    flush: watch::Sender<Option<Instant>>,
}

#[derive(Default)]
struct State {
    spans: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The number of spans that are being sent.
    in_flight: usize,
    report: ExportReport,
}

impl SpanQueue {
    pub(super) fn new(max_spans: usize, max_batch: usize) -> Self {
        Self {
            state: Mutex::default(),
            max_spans,
            max_batch,
            wake: Notify::new(),
            idle: Notify::new(),
            flush: watch::Sender::new(None),
        }
    }

    /// Adds spans. Those for which there is no room are dropped.
    pub(super) fn push(&self, spans: impl IntoIterator<Item = Vec<u8>>) {
        let mut state = self.state();
        let was_empty = state.spans.is_empty();
        for span in spans {
            if state.spans.len() >= self.max_spans || state.bytes + span.len() > MAX_QUEUE_BYTES {
                state.report.dropped += 1;
                state.report.error.get_or_insert_with(|| "too many spans were waiting to be sent".to_owned());
                continue;
            }
            state.bytes += span.len();
            state.spans.push_back(span);
        }
        // The worker sleeps only while the queue is empty, or until a batch is full.
        if (was_empty && !state.spans.is_empty()) || state.spans.len() >= self.max_batch {
            self.wake.notify_one();
        }
    }

    /// Takes the spans of the next request.
    pub(super) fn take_batch(&self) -> Vec<Vec<u8>> {
        let mut state = self.state();
        let mut size = 0;
        let mut count = 0;
        for span in state.spans.iter().take(self.max_batch) {
            size += span.len();
            if count > 0 && size > MAX_BATCH_BYTES {
                break;
            }
            count += 1;
        }
        let batch: Vec<_> = state.spans.drain(..count).collect();
        state.bytes -= batch.iter().map(Vec::len).sum::<usize>();
        state.in_flight = batch.len();
        batch
    }

    /// Records the result of a request.
    pub(super) fn complete(&self, exported: u64, dropped: u64, error: Option<String>) {
        let mut state = self.state();
        state.in_flight = 0;
        state.report.exported += exported;
        state.report.dropped += dropped;
        if dropped > 0 {
            state.report.error = error;
        }
        let is_idle = state.spans.is_empty();
        drop(state);
        if is_idle {
            self.idle.notify_waiters();
        }
    }

    /// Returns whether a batch is full.
    pub(super) fn has_batch(&self) -> bool {
        self.state().spans.len() >= self.max_batch
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().spans.is_empty()
    }

    /// Returns whether nothing waits and nothing is being sent.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.spans.is_empty() && state.in_flight == 0
    }

    /// Asks for everything to be sent soon.
    pub(super) fn start_flush(&self, until: Instant) {
        self.flush.send_replace(Some(until));
    }

    /// Ends a flush. What is left after its time waits for the next.
    pub(super) fn end_flush(&self) {
        self.flush.send_replace(None);
    }

    /// Returns until when everything has to be sent, if somebody waits for that.
    pub(super) fn flush_until(&self) -> Option<Instant> {
        *self.flush.borrow()
    }

    /// Waits until somebody waits for everything to be sent, and returns until when.
    pub(super) async fn flush_started(&self) -> Instant {
        let mut flush = self.flush.subscribe();
        loop {
            if let Some(until) = *flush.borrow_and_update() {
                return until;
            }
            if flush.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns how many spans were exported and dropped so far. What waits or is being sent is not counted.
    pub(super) fn report(&self) -> ExportReport {
        self.state().report.clone()
    }

    /// Returns the number of spans that were not sent yet.
    pub(super) fn pending(&self) -> u64 {
        let state = self.state();
        (state.spans.len() + state.in_flight) as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
