//! The handle that spans are sent with.

use super::queue::{ExportReport, SpanQueue};
use super::session_tracer::SessionTracer;
use super::settings::{TraceSettings, TraceSettingsError};
use super::worker::Worker;
use patter_core::trace::{MessageContent, Sampler, Span, TraceParent, encode_span};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The longest time that a flush takes.
const MAX_FLUSH: Duration = Duration::from_secs(5);

/// Exports spans to a receiver. Cheap to clone.
///
/// Spans are sent by one task in the background, which starts on the current runtime with the first span. [`Tracer::flush`]
/// should be called before the program ends.
#[derive(Clone)]
pub struct Tracer {
    inner: Arc<Inner>,
}

struct Inner {
    settings: TraceSettings,
    queue: Arc<SpanQueue>,
    /// The task, until it starts.
    worker: Mutex<Option<Worker>>,
    dropped: CancellationToken,
    /// Ends the task.
    _guard: DropGuard,
}

/// The span of a call, in the state that the tool of the call shares with the driver.
pub(crate) struct CallTrace(pub(crate) TraceParent);

tokio::task_local! {
    /// The span of the model call in progress.
    static MODEL_PARENT: TraceParent;
}

/// Makes a span known to requests to models.
pub(crate) async fn with_model_parent<T>(parent: Option<TraceParent>, call: impl Future<Output = T>) -> T {
    match parent {
        Some(parent) => MODEL_PARENT.scope(parent, call).await,
        None => call.await,
    }
}

/// Returns the span that a request to a model belongs to, if that is to be passed on.
pub(crate) fn current_model_parent() -> Option<TraceParent> {
    MODEL_PARENT.try_with(|parent| *parent).ok()
}

impl Tracer {
    /// Returns a tracer with the settings of the standard `OTEL_*` variables; `None` if nothing is to be exported. See
    /// [`TraceSettings::from_variables`].
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, TraceSettingsError> {
        let settings = TraceSettings::from_variables(&variable)?;
        Ok(settings.map(|settings| Self::new(settings, variable)))
    }

    /// Returns a tracer with settings. `variable` looks up what the HTTP client reads, such as proxies.
    pub fn new(settings: TraceSettings, variable: impl Fn(&str) -> Option<String>) -> Self {
        let queue = Arc::new(SpanQueue::new(settings.max_queue, settings.max_batch));
        let worker = Worker::new(&settings, Arc::clone(&queue), variable);
        let dropped = CancellationToken::new();
        let guard = dropped.clone().drop_guard();
        let worker = Mutex::new(Some(worker));
        Self { inner: Arc::new(Inner { settings, queue, worker, dropped, _guard: guard }) }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &TraceSettings {
        &self.inner.settings
    }

    /// Returns the tracer of a session. `runs` is the number of runs that its log has: see
    /// [`Log::run_count`](patter_core::session::Log::run_count).
    pub fn session(&self, id: &str, runs: u64) -> SessionTracer {
        SessionTracer::new(self.clone(), id, runs)
    }

    /// Sends spans, for example of requests that a server answers. Returns at once; spans for which there is no room are
    /// dropped.
    pub fn send(&self, spans: &[Span]) {
        if spans.is_empty() {
            return;
        }
        self.inner.queue.push(spans.iter().map(encode_span));
        self.start_worker();
    }

    /// Waits until all spans are sent, for a few seconds at most. Returns how many were exported and dropped so far; those
    /// that are still waiting count as dropped.
    pub async fn flush(&self) -> ExportReport {
        let queue = &self.inner.queue;
        self.start_worker();
        let limit = self.inner.settings.timeout.min(MAX_FLUSH);
        queue.start_flush(Instant::now() + limit);
        let idle = async {
            loop {
                let notified = queue.idle.notified();
                if queue.is_idle() {
                    return;
                }
                notified.await;
            }
        };
        // A little longer than requests may take, so that their end is counted.
        let _ = tokio::time::timeout(limit + Duration::from_millis(200), idle).await;
        queue.end_flush();
        let mut report = queue.report();
        let pending = queue.pending();
        if pending > 0 {
            report.dropped += pending;
            report.error.get_or_insert_with(|| "there was no time to send them".to_owned());
        }
        report
    }

    pub(crate) fn content(&self) -> MessageContent {
        self.inner.settings.content
    }

    pub(crate) fn sampler(&self) -> Sampler {
        self.inner.settings.sampler
    }

    /// Starts the task, if there is a runtime.
    fn start_worker(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let worker = self.inner.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            runtime.spawn(worker.run(self.inner.dropped.clone()));
        }
    }
}

/// Shows no settings, since they may be secret.
impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}
