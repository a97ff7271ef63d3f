//! The task that sends spans.

use super::queue::SpanQueue;
use super::settings::{Compression, TraceSettings};
use crate::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use crate::http::{Bytes, HttpClient, HttpError, HttpRequest, Method, NetworkPolicy, Url, jittered};
use flate2::write::GzEncoder;
use patter_core::text::truncate;
use patter_core::trace::{ExportRequest, rejected_spans};
use patter_core::wire::retry_advice;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The longest pause before the first retry, which doubles for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a retry, unless the receiver asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How long a request is retried.
const MAX_RETRY_TIME: Duration = Duration::from_secs(60);
/// The largest part of a response that is read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// The number of characters that are shown of a response that refuses spans.
const MAX_MESSAGE_CHARS: usize = 200;

/// Sends the spans of a queue.
pub(super) struct Worker {
    queue: Arc<SpanQueue>,
    client: HttpClient,
    url: Url,
    headers: HeaderMap,
    request: ExportRequest,
    compression: Compression,
    timeout: Duration,
    delay: Duration,
}

/// The error of one attempt.
struct AttemptError {
    message: String,
    may_retry: bool,
    /// The pause that the receiver asks for.
    pause: Option<Duration>,
}

impl AttemptError {
    fn lasting(message: String) -> Self {
        Self { message, may_retry: false, pause: None }
    }
}

impl Worker {
    pub(super) fn new(
        settings: &TraceSettings,
        queue: Arc<SpanQueue>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let mut headers = settings.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if settings.compression == Compression::Gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        // The user chose the address, so it may be a private one.
        let policy = NetworkPolicy::from_allow_list(settings.url.host_str()).unwrap_or_default();
        let certificates = settings.certificates.clone();
        let client = HttpClient::new(policy, |name| match name {
            "SSL_CERT_FILE" => certificates.clone().or_else(|| variable(name)),
            _ => variable(name),
        });
        Self {
            queue,
            client,
            url: settings.url.clone(),
            headers,
            request: ExportRequest::new(&settings.resource, env!("CARGO_PKG_VERSION")),
            compression: settings.compression,
            timeout: settings.timeout,
            delay: settings.delay,
        }
    }

    /// Sends spans until the tracer is dropped and nothing is left.
    pub(super) async fn run(self, dropped: CancellationToken) {
        loop {
            self.wait_for_batch(&dropped).await;
            if self.queue.is_empty() {
                return;
            }
            let batch = self.queue.take_batch();
            let count = batch.len() as u64;
            let body = self.request.encode(batch.iter().map(Vec::as_slice));
            drop(batch);
            match self.send_with_retries(body).await {
                Ok((rejected, message)) => {
                    let dropped = rejected.min(count);
                    let error = Some(message).filter(|message| !message.is_empty());
                    let error = error.map(|message| truncate(&message, MAX_MESSAGE_CHARS));
                    self.queue.complete(count - dropped, dropped, error);
                }
                Err(message) => {
                    tracing::debug!(spans = count, message, "spans were not exported");
                    self.queue.complete(0, count, Some(message));
                }
            }
        }
    }

    /// Waits until spans are to be sent: a batch is full, they waited long enough, or somebody waits for them.
    async fn wait_for_batch(&self, dropped: &CancellationToken) {
        while self.queue.is_empty() {
            tokio::select! {
                () = self.queue.wake.notified() => {}
                () = dropped.cancelled() => return,
            }
        }
        let wait = async {
            while !self.queue.has_batch() {
                self.queue.wake.notified().await;
            }
        };
        tokio::select! {
            () = wait => {}
            _ = self.queue.flush_started() => {}
            () = dropped.cancelled() => {}
            () = sleep(self.delay) => {}
        }
    }

    /// Sends a request until the receiver accepts or refuses it. Returns how many spans it rejected, and why.
    async fn send_with_retries(&self, body: Vec<u8>) -> Result<(u64, String), String> {
        let body = match self.compression {
            Compression::None => body,
            Compression::Gzip => gzip(&body).map_err(|error| error.to_string())?,
        };
        let body = Bytes::from(body);
        let started = Instant::now();
        let mut longest = FIRST_PAUSE;
        loop {
            let AttemptError { message, may_retry, pause } = match self.send(body.clone()).await {
                Ok(rejected) => return Ok(rejected),
                Err(error) => error,
            };
            let backoff = jittered(longest);
            longest = longest.saturating_mul(2).min(MAX_PAUSE);
            let (pause, left) = match self.queue.flush_until() {
                // The program is about to end: a receiver that does not say when to come back is not waited for.
                Some(until) => (pause.unwrap_or(Duration::MAX), until.saturating_duration_since(Instant::now())),
                None => (pause.unwrap_or(backoff), MAX_RETRY_TIME.saturating_sub(started.elapsed())),
            };
            if !may_retry || pause > left {
                return Err(message);
            }
            tracing::debug!(host = self.url.host_str(), message, ?pause, "retrying to export spans");
            match self.queue.flush_until() {
                Some(_) => sleep(pause).await,
                None => drop(timeout(pause, self.queue.flush_started()).await),
            }
        }
    }

    async fn send(&self, body: Bytes) -> Result<(u64, String), AttemptError> {
        let transient = |message: String| AttemptError { message, may_retry: true, pause: None };
        let limit = match self.queue.flush_until() {
            Some(until) => self.timeout.min(until.saturating_duration_since(Instant::now())),
            None => self.timeout,
        };
        let late = || transient(format!("`{}` did not respond in time", self.host()));
        // A flush limits requests that are under way, too.
        let flushed = async { sleep_until(self.queue.flush_started().await.into()).await };
        tokio::select! {
            result = timeout(limit, self.post(body)) => result.unwrap_or_else(|_| Err(late())),
            () = flushed => Err(late()),
        }
    }

    async fn post(&self, body: Bytes) -> Result<(u64, String), AttemptError> {
        let request = HttpRequest {
            method: Method::POST,
            headers: self.headers.clone(),
            body: Some(body),
            is_body_secret: false,
            keeps_method: true,
            ..HttpRequest::get(self.url.clone())
        };
        // What is sent is meant for the address that the user named, and for no other.
        let response = self.client.send_if(request, |_| false).await;
        let mut response = response.map_err(|error| {
            let message = match &error {
                HttpError::ExcludedRedirect { server } => format!("`{}` redirects to `{server}`", self.host()),
                error => error.to_string(),
            };
            AttemptError { message, may_retry: error.is_transient(), pause: None }
        })?;
        let status = response.status();
        let (body, _) = response.read_some(MAX_RESPONSE_BYTES).await.unwrap_or_default();
        if status.is_success() {
            return Ok(rejected_spans(&body));
        }
        let message = format!("`{}` responded with status {}", self.host(), status.as_u16());
        if !matches!(status.as_u16(), 429 | 502 | 503 | 504) {
            return Err(AttemptError::lasting(message));
        }
        let pause = retry_advice(|name| response.header(name), SystemTime::now()).delay;
        Err(AttemptError { message, may_retry: true, pause })
    }

    fn host(&self) -> String {
        crate::http::host_and_port(&self.url)
    }
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}
