//! Replies without end, without an end in time, and larger than they look.

use super::server::{Server, call, failure, raw, reply, tool, write_endlessly};
use serde_json::json;
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LARGE: &str = "the reply has more than 1000 bytes";

#[tokio::test]
async fn a_body_ends_at_the_limit() {
    for (length, expected) in [(1000, None), (1001, Some(LARGE)), (10_000_000, Some(LARGE))] {
        let server = Server::start(move |_, _| reply(200, &[], "x".repeat(length))).await;
        let tool = tool(&server.base, "url: 'BASE', maxBytes: 1000", "()==>(::Text)");
        let result = call(&tool, json!({})).await;
        assert_eq!(result.as_ref().err().map(patter::tool::Failure::message), expected, "{length}");
    }
}

#[tokio::test]
async fn an_endless_body_ends_at_the_limit() {
    for status in ["200 OK", "404 Not Found"] {
        let base = raw(move |stream| async move {
            write_endlessly(stream, &format!("HTTP/1.1 {status}\r\n\r\n"), &[b'x'; 4096]).await;
        })
        .await;
        let message = failure(&tool(&base, "url: 'BASE', maxBytes: 1000", "()==>(::Text)"), json!({})).await;
        let expected = if status == "200 OK" { LARGE } else { "the server answered 404 Not Found: xxx" };
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn compressed_bodies_count_as_they_are() {
    let zipped = |length: usize| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b'x'; length]).unwrap();
        encoder.finish().unwrap()
    };
    let bomb = zipped(10_000_000);
    assert!(bomb.len() < 100_000);
    let server = Server::start(move |number, _| {
        let body = if number == 0 { bomb.clone() } else { zipped(900) };
        reply(200, &[("content-encoding", "gzip")], body)
    })
    .await;
    let tool = tool(&server.base, "url: 'BASE', maxBytes: 1000", "()==>(::Text)");
    assert_eq!(failure(&tool, json!({})).await, LARGE);
    assert_eq!(call(&tool, json!({})).await.unwrap(), "x".repeat(900));
}

#[tokio::test]
async fn a_server_that_is_slow_is_left() {
    for said in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345"] {
        let base = raw(move |mut stream| async move {
            stream.write_all(said.as_bytes()).await.unwrap();
            // The connection stays open, and nothing more comes, until the other side goes.
            while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
        })
        .await;
        let message = failure(&tool(&base, "url: 'BASE', timeout: 50ms", "()==>(::Text)"), json!({})).await;
        assert_eq!(message, "the server did not answer within 50ms", "{said}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_failure() {
    for said in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345"] {
        let base = raw(move |mut stream| async move { stream.write_all(said.as_bytes()).await.unwrap() }).await;
        let message = failure(&tool(&base, "url: 'BASE', retries: 0", "()==>(::Text)"), json!({})).await;
        assert_eq!(message, "the connection to `127.0.0.1` broke", "{said}");
    }
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let message = failure(&tool(&closed, "url: 'BASE', retries: 1", "()==>(::Text)"), json!({})).await;
    assert_eq!(message, "there is no connection to `127.0.0.1`");
}
