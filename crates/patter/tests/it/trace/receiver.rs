//! A receiver of spans.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use patter::trace::{TraceSettings, Tracer};
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// How a receiver answers a request.
#[derive(Clone)]
pub(super) enum Answer {
    Status(u16, Vec<(&'static str, &'static str)>),
    /// A body of a response with status 200.
    Accept(Vec<u8>),
    /// Never.
    Silence,
}

/// The headers and bodies of requests.
type Requests = Arc<Mutex<Vec<(HeaderMap, Vec<u8>)>>>;

/// A receiver, and the requests that it got.
pub(super) struct Receiver {
    pub(super) base: String,
    requests: Requests,
}

impl Receiver {
    pub(super) async fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Requests::default();
        let log = Arc::clone(&requests);
        let answer = Arc::new(answer);
        let app = axum::Router::new().fallback(move |request: Request| {
            let log = Arc::clone(&log);
            let answer = Arc::clone(&answer);
            async move {
                let (head, body) = request.into_parts();
                assert_eq!((head.method.as_str(), head.uri.path()), ("POST", "/v1/traces"));
                let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push((head.headers, body));
                    log.len()
                };
                match answer(number) {
                    Answer::Accept(body) => Response::new(Body::from(body)),
                    Answer::Status(status, headers) => {
                        let mut builder = Response::builder().status(status);
                        for (name, value) in headers {
                            builder = builder.header(name, value);
                        }
                        builder.body(Body::empty()).unwrap()
                    }
                    Answer::Silence => std::future::pending().await,
                }
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { base, requests }
    }

    /// Starts a receiver that accepts everything.
    pub(super) async fn accepting() -> Self {
        Self::start(|_| Answer::Accept(Vec::new())).await
    }

    pub(super) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub(super) fn headers(&self, number: usize) -> HeaderMap {
        self.requests.lock().unwrap()[number].0.clone()
    }

    /// Returns the body of a request, decompressed.
    pub(super) fn body(&self, number: usize) -> Vec<u8> {
        let (headers, body) = self.requests.lock().unwrap()[number].clone();
        if headers.get("content-encoding").is_none() {
            return body;
        }
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&*body).read_to_end(&mut plain).unwrap();
        plain
    }

    pub(super) fn settings(&self, change: impl FnOnce(&mut TraceSettings)) -> TraceSettings {
        settings(&self.base, change)
    }

    pub(super) fn tracer(&self) -> Tracer {
        Tracer::new(self.settings(|_| {}), |_| None)
    }
}

/// Returns the settings of an exporter for which tests need not wait.
pub(super) fn settings(base: &str, change: impl FnOnce(&mut TraceSettings)) -> TraceSettings {
    let endpoint = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| base.to_owned());
    let mut settings = TraceSettings::from_variables(endpoint).unwrap().unwrap();
    settings.timeout = Duration::from_secs(3);
    change(&mut settings);
    settings
}
