//! Responses that are endless, slow, or larger than they seem.

use super::server::{Server, call, failure, raw, reply, tool, write_endlessly};
use serde_json::{Value as Json, json};
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LARGE: &str = "the response is larger than 16777216 bytes";

/// Asserts that a result is the start of a text, with a note.
fn assert_cut(result: &Json, length: usize) {
    let shown = result.as_str().unwrap();
    let note = format!("\n\n[cut: these are 1000 of {length} bytes; read on with `text/read`, kept: \"kept-");
    assert!(shown.starts_with(&format!("{}{note}", "x".repeat(1000))), "{shown}");
}

#[tokio::test]
async fn cuts_a_large_body() {
    for length in [1001, 10_000_000] {
        let server = Server::start(move |_, _| reply(200, &[], "x".repeat(length))).await;
        for (options, returns) in [("", "Text"), ("", "Any"), (", result: 'text'", "Text")] {
            let options = format!("url: 'BASE', maxBytes: 1000{options}");
            let result = call(&tool(&server.base, &options, &format!("()==>(::{returns})")), json!({})).await;
            assert_cut(&result.unwrap(), length);
        }
        // Other values cannot be cut.
        let message = failure(&tool(&server.base, "url: 'BASE', maxBytes: 1000", "()==>(::Int)"), json!({})).await;
        let expected = format!("the result has {length} bytes, more than the 1000 that are returned at once; read it");
        assert!(message.starts_with(&expected), "{message}");
    }
    for (length, is_large) in [(1000, false), (20_000_000, true)] {
        let server = Server::start(move |_, _| reply(200, &[], "x".repeat(length))).await;
        let tool = tool(&server.base, "url: 'BASE', maxBytes: 1000", "()==>(::Text)");
        let result = call(&tool, json!({})).await;
        let expected = is_large.then_some(LARGE);
        assert_eq!(result.as_ref().err().map(patter::tool::ToolFailure::message), expected, "{length}");
    }
}

#[tokio::test]
async fn limits_an_endless_body() {
    for status in ["200 OK", "404 Not Found"] {
        let base = raw(move |stream| async move {
            write_endlessly(stream, &format!("HTTP/1.1 {status}\r\n\r\n"), &[b'x'; 4096]).await;
        })
        .await;
        let message = failure(&tool(&base, "url: 'BASE', maxBytes: 1000", "()==>(::Text)"), json!({})).await;
        let expected = if status == "200 OK" { LARGE } else { "the server responded with 404 Not Found: xxx" };
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn limits_the_decompressed_size() {
    let zipped = |length: usize| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b'x'; length]).unwrap();
        encoder.finish().unwrap()
    };
    let bomb = zipped(100_000_000);
    assert!(bomb.len() < 200_000);
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
async fn limits_the_time_of_a_request() {
    for sent in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345"] {
        let base = raw(move |mut stream| async move {
            stream.write_all(sent.as_bytes()).await.unwrap();
            // The connection stays open without more data until the client closes it.
            while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
        })
        .await;
        let message = failure(&tool(&base, "url: 'BASE', timeout: 50ms", "()==>(::Text)"), json!({})).await;
        assert_eq!(message, "the server did not respond within 50 ms", "{sent}");
    }
}

#[tokio::test]
async fn reports_broken_connections() {
    let closed = "the server closed it too early; try again; if it happens often, look into the log of the server";
    let not_http = "the server does not speak HTTP; check the port, and whether the server uses `https`";
    let cases = [
        ("", closed),
        ("nonsense\r\n\r\n", not_http),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345", closed),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n", closed),
    ];
    for (sent, problem) in cases {
        let base = raw(move |mut stream| async move { stream.write_all(sent.as_bytes()).await.unwrap() }).await;
        let message = failure(&tool(&base, "url: 'BASE', retries: 0", "()==>(::Text)"), json!({})).await;
        assert_eq!(message, format!("lost the connection to `{}`: {problem}", host(&base)), "{sent}");
    }
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let message = failure(&tool(&closed, "url: 'BASE', retries: 1", "()==>(::Text)"), json!({})).await;
    let refused = "the connection was refused; is the server running, and is the port right?";
    assert_eq!(message, format!("cannot connect to `{}`: {refused}", host(&closed)));
    let unknown = "http://no-such-host.invalid:81/secret/path?key=sesame";
    let message = failure(&tool(unknown, "url: 'BASE', retries: 0", "()==>(::Text)"), json!({})).await;
    let expected = "the host name was not found; check the host name and the network connection";
    assert_eq!(message, format!("cannot connect to `no-such-host.invalid:81`: {expected}"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad\r\n\r\n").await.unwrap();
        while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
    });
    let url = base.replace("http://", "https://");
    let message = failure(&tool(&url, "url: 'BASE', retries: 0", "()==>(::Text)"), json!({})).await;
    let expected = "the server does not speak TLS; if the server does not use TLS, write `http` instead of `https`";
    assert_eq!(message, format!("cannot connect to `{}`: {expected}", host(&base)));
}

fn host(base: &str) -> &str {
    base.strip_prefix("http://").unwrap()
}
