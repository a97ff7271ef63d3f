//! How spans are sent: batches, retries, limits.

use super::receiver::{Answer, Receiver, settings};
use patter::trace::{Compression, Span, SpanId, SpanKind, SpanStatus, TraceId, Tracer};
use std::time::{Duration, Instant};

fn spans(count: u8) -> Vec<Span> {
    let span = |number| Span {
        trace_id: TraceId([1; 16]),
        span_id: SpanId([number; 8]),
        parent: None,
        name: format!("span {number}"),
        kind: SpanKind::Internal,
        start_ms: 5,
        end_ms: 7,
        attributes: Vec::new(),
        events: Vec::new(),
        links: Vec::new(),
        status: SpanStatus::Unset,
    };
    (1..=count).map(span).collect()
}

/// Sends ten spans, and checks how many arrive and how many are dropped, and the last error.
async fn check(answer: impl Fn(usize) -> Answer + Send + Sync + 'static, expected: (usize, u64, u64), error: &str) {
    let receiver = Receiver::start(answer).await;
    let tracer = receiver.tracer();
    tracer.send(&spans(10));
    let report = tracer.flush().await;
    assert_eq!((receiver.count(), report.exported, report.dropped), expected);
    let found = report.error.unwrap_or_default().replace(receiver.base.strip_prefix("http://").unwrap(), "HOST");
    assert_eq!(found, error);
}

#[tokio::test]
async fn receiver_decides_about_retries() {
    let accept = || Answer::Accept(Vec::new());
    check(move |_| accept(), (1, 10, 0), "").await;
    for status in [429, 502, 503, 504] {
        let again = move |number| match number {
            1 | 2 => Answer::Status(status, vec![("retry-after", "0")]),
            _ => Answer::Accept(Vec::new()),
        };
        check(again, (3, 10, 0), "").await;
    }
    for status in [400, 401, 404, 415, 500] {
        let refuse = move |_| Answer::Status(status, vec![("retry-after", "0")]);
        check(refuse, (1, 0, 10), &format!("`HOST` responded with status {status}")).await;
    }
    // A program that ends does not wait for a receiver that does not say when to come back, or only later.
    let busy = |_| Answer::Status(503, vec![]);
    check(busy, (1, 0, 10), "`HOST` responded with status 503").await;
    let later = |_| Answer::Status(503, vec![("retry-after", "3600")]);
    check(later, (1, 0, 10), "`HOST` responded with status 503").await;
    // What is sent is meant for one address.
    let elsewhere = |_| Answer::Status(307, vec![("location", "http://127.0.0.1:1/v1/traces")]);
    check(elsewhere, (1, 0, 10), "`HOST` redirects to `127.0.0.1:1`").await;
    // A receiver may accept a part.
    let partly = |_| Answer::Accept(vec![0x0a, 11, 0x08, 4, 0x12, 7, b't', b'o', b'o', b' ', b'o', b'l', b'd']);
    check(partly, (1, 6, 4), "too old").await;
    check(|_| Answer::Accept(b"<html>hello</html>".to_vec()), (1, 10, 0), "").await;
}

#[tokio::test]
async fn retry_happens_without_a_flush() {
    let receiver = Receiver::start(|number| match number {
        1 => Answer::Status(503, vec![("retry-after", "1")]),
        _ => Answer::Accept(Vec::new()),
    })
    .await;
    let tracer = Tracer::new(receiver.settings(|settings| settings.delay = Duration::from_millis(1)), |_| None);
    tracer.send(&spans(3));
    let start = Instant::now();
    while receiver.count() < 2 {
        assert!(start.elapsed() < Duration::from_secs(10), "no retry");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(start.elapsed() >= Duration::from_millis(900), "the receiver asked for more time");
    assert_eq!(tracer.flush().await.exported, 3);
    assert_eq!(receiver.body(0), receiver.body(1));
}

#[tokio::test]
async fn spans_are_sent_in_batches() {
    let receiver = Receiver::accepting().await;
    let tracer = Tracer::new(receiver.settings(|settings| settings.max_batch = 4), |_| None);
    tracer.send(&spans(10));
    assert_eq!(tracer.flush().await.exported, 10);
    assert_eq!(receiver.count(), 3);
    // After a while, spans are sent even if there are few.
    let tracer = Tracer::new(receiver.settings(|settings| settings.delay = Duration::from_millis(30)), |_| None);
    tracer.send(&spans(1));
    while receiver.count() < 4 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A tracer that is dropped sends what it has.
    let tracer = receiver.tracer();
    tracer.send(&spans(1));
    drop(tracer);
    while receiver.count() < 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn slow_receiver_costs_spans_and_no_time() {
    let receiver = Receiver::start(|_| Answer::Silence).await;
    let limited = receiver.settings(|settings| {
        settings.max_queue = 4;
        settings.max_batch = 2;
        settings.timeout = Duration::from_millis(300);
    });
    let tracer = Tracer::new(limited, |_| None);
    let start = Instant::now();
    for _ in 0..100 {
        tracer.send(&spans(10));
    }
    assert!(start.elapsed() < Duration::from_millis(200), "sending took {:?}", start.elapsed());
    let report = tracer.flush().await;
    assert!(start.elapsed() < Duration::from_secs(2), "the flush took {:?}", start.elapsed());
    assert_eq!((report.exported, report.dropped), (0, 1000));
    assert!(report.error.is_some());
}

#[tokio::test]
async fn missing_receiver_delays_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let tracer = Tracer::new(settings(&base, |_| {}), |_| None);
    tracer.send(&spans(3));
    let start = Instant::now();
    let report = tracer.flush().await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!((report.exported, report.dropped), (0, 3));
    assert!(report.error.unwrap().contains("the connection was refused"));
}

#[tokio::test]
async fn requests_are_compressed_and_have_headers() {
    let receiver = Receiver::accepting().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.base.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20c2VjcmV0,x-langfuse-ingestion-version=4"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
    ];
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let tracer = Tracer::from_variables(find).unwrap().unwrap();
    assert_eq!(tracer.settings().compression, Compression::Gzip);
    assert!(!format!("{tracer:?}").contains("c2VjcmV0"));
    tracer.send(&spans(2));
    assert_eq!(tracer.flush().await.exported, 2);
    let headers = receiver.headers(0);
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["content-encoding"], "gzip");
    assert_eq!(headers["authorization"], "Basic c2VjcmV0");
    assert_eq!(headers["x-langfuse-ingestion-version"], "4");
    assert!(receiver.body(0).windows(6).any(|bytes| bytes == b"span 2"));
}
