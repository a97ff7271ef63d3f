//! Servers with a URL.

use super::{SOON, call, installed, server};
use axum::http::{HeaderMap, StatusCode};
use axum::response::AppendHeaders;
use serde_json::json;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Defines the global `crypto` that the server expects, which Node.js 18 does not have.
const CRYPTO: &str = "data:text/javascript,import{webcrypto}from'node:crypto';\
    Object.defineProperty(globalThis,'crypto',{value:webcrypto})";

/// A server process.
struct ServerProcess(Child);

impl ServerProcess {
    async fn start(program: &Path, transport: &str, port: u16) -> Self {
        let mut node = Command::new("node");
        node.args(["--import", CRYPTO]).arg(program).arg(transport).env("PORT", port.to_string());
        let running = Self(node.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        super::until("an open port", || TcpStream::connect(("127.0.0.1", port)).ok()).await;
        running
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn connects_to_a_url() {
    let Some(program) = installed("server-everything") else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("url = 'http://127.0.0.1:{port}/mcp'");
    let failure = tokio::time::timeout(SOON, server(&address).tools()).await.expect("it hangs").unwrap_err();
    let refused = "the connection was refused; is the server running, and is the port right?";
    let expected = format!("cannot connect to the MCP server `demo` at `127.0.0.1:{port}`: {refused}");
    assert_eq!((failure.message(), failure.detail()), (expected.as_str(), None));

    let server = server(&address);
    let running = ServerProcess::start(&program, "streamableHttp", port).await;
    assert!(server.tools().await.unwrap().tools.len() > 10);
    assert_eq!(call(&server, "echo", json!({"message": "far"})).await.unwrap(), "Echo: far");

    let echo = super::tool(&server, "echo").await;
    drop(running);
    let context = patter::tool::ToolContext::new("call");
    let failure = echo.implementation.call(json!({"message": "gone"}), &context).await.unwrap_err();
    assert!(failure.message().starts_with("lost the connection to the MCP server `demo`"), "{failure:?}");

    let running = ServerProcess::start(&program, "streamableHttp", port).await;
    assert_eq!(echo.implementation.call(json!({"message": "back"}), &context).await.unwrap(), "Echo: back");

    // A restarted server does not know the session, and says so before it does anything.
    drop(running);
    let _running = ServerProcess::start(&program, "streamableHttp", port).await;
    assert_eq!(echo.implementation.call(json!({"message": "again"}), &context).await.unwrap(), "Echo: again");
}

#[tokio::test]
async fn connects_over_server_sent_events() {
    let Some(program) = installed("server-everything") else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let running = ServerProcess::start(&program, "sse", port).await;
    for settings in ["", "transport = 'sse'"] {
        let server = server(&format!("url = 'http://127.0.0.1:{port}/sse'\n{settings}"));
        assert!(server.tools().await.unwrap().tools.len() > 10, "{settings}");
        assert_eq!(call(&server, "echo", json!({"message": "far"})).await.unwrap(), "Echo: far");
    }
    let strict = server(&format!("url = 'http://127.0.0.1:{port}/sse'\ntransport = 'http'"));
    let failure = strict.tools().await.unwrap_err();
    assert!(failure.message().starts_with("cannot connect to the MCP server `demo`"), "{failure:?}");
    assert!(failure.detail().unwrap().contains("HTTP 404"), "{failure:?}");

    // A server that ends in the middle is noticed, and connected to again.
    let server = server(&format!("url = 'http://127.0.0.1:{port}/sse'"));
    let echo = super::tool(&server, "echo").await;
    drop(running);
    let context = patter::tool::ToolContext::new("call");
    let failure = echo.implementation.call(json!({"message": "gone"}), &context).await.unwrap_err();
    assert!(failure.message().contains("connect"), "{failure:?}");
    let _running = ServerProcess::start(&program, "sse", port).await;
    assert_eq!(echo.implementation.call(json!({"message": "back"}), &context).await.unwrap(), "Echo: back");
}

/// The endpoint for messages is not followed to another server, which would get the headers.
#[tokio::test]
async fn keeps_messages_on_the_server() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream = || async {
        ([("content-type", "text/event-stream")], "event: endpoint\ndata: http://127.0.0.2:1/messages\n\n")
    };
    let router = axum::Router::new().route("/sse", axum::routing::get(stream));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let server = server(&format!("url = 'http://127.0.0.1:{port}/sse'\ntransport = 'sse'"));
    let failure = tokio::time::timeout(SOON, server.tools()).await.expect("it hangs").unwrap_err();
    assert!(failure.detail().unwrap().contains("the endpoint for messages is on another server"), "{failure:?}");
}

#[tokio::test]
async fn sends_headers_and_reports_denied_access() {
    check_denied(StatusCode::UNAUTHORIZED, Some("Bearer")).await;
    check_denied(StatusCode::UNAUTHORIZED, None).await;
    check_denied(StatusCode::FORBIDDEN, None).await;
}

async fn check_denied(status: StatusCode, challenge: Option<&'static str>) {
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let refuse = move |headers: HeaderMap| {
        sender.send(headers.get("x-key").cloned()).unwrap();
        let challenge = challenge.map(|challenge| [("www-authenticate", challenge)]);
        std::future::ready((status, challenge.map(AppendHeaders), "go away"))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = axum::Router::new().route("/mcp", axum::routing::post(refuse));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let server = server(&format!("url = 'http://127.0.0.1:{port}/mcp'\nheaders = {{X-Key = 'key ${{TOKEN}}'}}"));
    let failure = tokio::time::timeout(SOON, server.tools()).await.expect("it hangs").unwrap_err();
    let code = status.as_u16();
    let expected = match challenge {
        Some(_) => {
            "the MCP server `demo` requires a login; run `patter mcp login demo`, or set its `headers`".to_owned()
        }
        None => format!("the MCP server `demo` denied access ({code}); check its `headers`"),
    };
    assert_eq!(failure.message(), expected, "{failure:?}");
    assert!(!failure.detail().unwrap_or_default().contains("::"), "{failure:?}");
    assert_eq!(received.recv().await.unwrap().unwrap(), "key sesame-open");
    assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_one_sentence() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cases = [
        (
            format!("url = 'http://127.0.0.1:{port}/mcp?key=sesame'"),
            format!(
                "cannot connect to the MCP server `demo` at `127.0.0.1:{port}`: the connection was refused; \
                 is the server running, and is the port right?"
            ),
        ),
        (
            "url = 'http://no-such-host.invalid/mcp'".to_owned(),
            "cannot connect to the MCP server `demo` at `no-such-host.invalid:80`: the host name was not found; \
             check the host name and the network connection"
                .to_owned(),
        ),
    ];
    for (settings, expected) in cases {
        let failure = tokio::time::timeout(SOON, server(&settings).tools()).await.expect("it hangs").unwrap_err();
        assert_eq!((failure.message(), failure.detail()), (expected.as_str(), None));
    }
}
