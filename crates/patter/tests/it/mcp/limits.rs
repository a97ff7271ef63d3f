//! Servers that send too much, or something that is not what the protocol prescribes.

use super::{FILES, SOON, call, installed, node, server, tool};
use axum::body::{Body, Bytes};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use patter::library::Layer;
use patter::permission::{Permissions, Rule};
use patter::tool::mcp::McpServer;
use patter::tool::{CallError, CallRequest, Executor, Tool, ToolContext, Workspace, merge};
use serde_json::{Map, Value as Json, json};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that responds to calls with the result of a function, which gets the name of the tool and the id of the request.
/// For a stream of events, the name is `GET`.
async fn respond(respond: impl Fn(&str, &Json) -> Response + Clone + Send + Sync + 'static) -> (McpServer, Requests) {
    let requests = Requests::default();
    let log = requests.clone();
    let handle = move |method: Method, body: Bytes| {
        let message: Json = serde_json::from_slice(&body).unwrap_or_default();
        log.lock().unwrap().push(format!("{method} {}", message["method"].as_str().unwrap_or_default()));
        let id = &message["id"];
        let result = |result: Json| {
            let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            ([("content-type", "application/json")], body).into_response()
        };
        let response = match message["method"].as_str() {
            Some("initialize") => {
                let version = &message["params"]["protocolVersion"];
                let info = json!({"name": "demo", "version": "1"});
                let started = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info});
                let mut response = result(started);
                response.headers_mut().insert("mcp-session-id", "s1".parse().unwrap());
                response
            }
            Some("tools/list") => {
                let names = ["json", "zipped", "event", "events", "error", "hang"];
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                result(json!({"tools": names.map(tool)}))
            }
            Some("tools/call") => respond(message["params"]["name"].as_str().unwrap_or_default(), id),
            _ if method == Method::GET => respond("GET", id),
            _ => StatusCode::ACCEPTED.into_response(),
        };
        std::future::ready(response)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = axum::Router::new().route("/mcp", axum::routing::any(handle));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (server(&format!("url = 'http://127.0.0.1:{port}/mcp'\ntimeout = '60s'")), requests)
}

type Requests = Arc<Mutex<Vec<String>>>;

/// Returns a body that starts like a response and then never ends.
fn endless(start: &str, chunk: impl Into<Vec<u8>>) -> Body {
    let start = Bytes::from(start.to_owned());
    let chunks = stream::repeat(Bytes::from(chunk.into()));
    Body::from_stream(futures_util::StreamExt::map(
        futures_util::StreamExt::chain(stream::iter([start]), chunks),
        Ok::<_, std::io::Error>,
    ))
}

/// More whitespace than a response may have, compressed to a thousandth. In JSON it is not an error.
fn zipped_whitespace() -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let blank = [b' '; 1 << 16];
    for _ in 0..(20 << 20) / blank.len() {
        encoder.write_all(&blank).unwrap();
    }
    encoder.finish().unwrap().into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_the_size_of_a_response() {
    const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
    const EVENTS: [(&str, &str); 1] = [("content-type", "text/event-stream")];
    // Compressed before the time limit of a call applies: without optimisation that takes seconds.
    let zipped = zipped_whitespace();
    let (server, requests) = respond(move |tool, id| {
        let text = format!("{{\"jsonrpc\": \"2.0\", \"id\": {id}, \"result\": {{\"content\": [], \"x\": \"");
        match tool {
            "json" => (JSON, endless(&text, [b'x'; 8192])).into_response(),
            "zipped" => {
                ([("content-type", "application/json"), ("content-encoding", "gzip")], zipped.clone()).into_response()
            }
            "event" => (EVENTS, endless(&format!("data: {text}"), [b'x'; 8192])).into_response(),
            "events" => {
                (EVENTS, endless("", format!("data: {{\"x\": \"{}\"}}\n\n", "x".repeat(16_000)))).into_response()
            }
            "error" => (StatusCode::BAD_REQUEST, JSON, endless(&text, [b'x'; 8192])).into_response(),
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        }
    })
    .await;
    for name in ["json", "zipped", "event", "events"] {
        let failure = tokio::time::timeout(SOON, call(&server, name, json!({}))).await.expect("it hangs").unwrap_err();
        assert_eq!(failure.message(), "the MCP server `demo` responded with more than 16 MiB", "{name}");
    }
    let failure = tokio::time::timeout(SOON, call(&server, "error", json!({}))).await.expect("it hangs").unwrap_err();
    assert!(failure.message().starts_with("lost the connection to the MCP server `demo`"), "{failure:?}");
    // The session is deleted with the last handle.
    drop(server);
    let is_deleted = || requests.lock().unwrap().iter().any(|request| request == "DELETE ").then_some(());
    super::until("the end of the session", is_deleted).await;
}

#[tokio::test]
async fn limits_how_often_a_stream_is_opened() {
    for is_broken in [false, true] {
        let (server, requests) = respond(move |_, _| {
            let event = stream::iter([Ok(Bytes::from("id: 1\nretry: 0\ndata:\n\n"))]);
            let end = stream::once(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                if is_broken { Err(std::io::Error::other("broken")) } else { Ok(Bytes::new()) }
            });
            let body = Body::from_stream(futures_util::StreamExt::chain(event, end));
            ([("content-type", "text/event-stream")], body).into_response()
        })
        .await;
        let call = tokio::time::timeout(Duration::from_secs(2), call(&server, "hang", json!({})));
        let ended = call.await;
        assert!(ended.is_err(), "{is_broken}: {ended:?}");
        let opened = requests.lock().unwrap().iter().filter(|request| *request == "GET ").count();
        // Two streams, each four times a second.
        assert!((4..=20).contains(&opened), "{is_broken}: opened {opened} times");
    }
}

#[tokio::test]
async fn limits_the_size_of_a_line() {
    let script = r#"read a; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}'; read b; read c; yes | tr -d '\n'"#;
    let server = server(&format!("command = 'sh'\nargs = ['-c', {}]", Json::String(script.to_owned())));
    let failure = tokio::time::timeout(SOON, server.tools()).await.expect("it hangs").unwrap_err();
    assert_eq!(failure.message(), "the MCP server `demo` responded with more than 16 MiB");
}

#[tokio::test]
async fn a_call_without_response_is_timed_out() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "timeout = '1500ms'");
    let slow = tool(&server, "trigger-long-running-operation").await;
    let executor = executor(slow);
    let arguments = json!({"duration": 600, "steps": 1});
    let error = executor.call(CallRequest::new("trigger-long-running-operation", arguments)).await.unwrap_err();
    assert_eq!(error.to_string(), "`trigger-long-running-operation` did not finish within 1.5 s");
    assert_eq!(error.kind(), "timed_out");
    assert!(matches!(error, CallError::TimedOut { .. }));
}

fn executor(tool: Tool) -> Executor {
    let workspace = Workspace::builder().tool(tool).build().unwrap();
    let library = merge([(Layer::Project, workspace)]).unwrap();
    Executor::new(library.into(), Permissions::default().with(Rule::parse("allow *", "this test").unwrap()))
}

/// Starts a server with these tools and settings.
fn listing(tools: &Json, settings: &str) -> Option<McpServer> {
    installed("server-everything")?;
    let tools = toml::Value::String(tools.to_string());
    Some(node(&Path::new(FILES).join("listed.mjs"), &format!("env = {{TOOLS = {tools}}}\n{settings}")))
}

async fn names_and_warnings(server: &McpServer) -> (Vec<String>, Vec<String>) {
    let listing = server.tools().await.unwrap();
    let names = listing.tools.iter().map(|tool| tool.name().to_owned()).collect();
    (names, listing.warnings.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn a_malformed_tool_does_not_affect_the_others() {
    let schema = json!({"type": "object"});
    let tools = json!([
        {"name": "first", "inputSchema": schema},
        {"name": "bare"},
        null,
        {"name": 7, "inputSchema": schema},
        {"name": "numbered", "description": 7, "inputSchema": schema},
        {"name": "odd", "annotations": "x", "inputSchema": schema},
        {"name": "last", "inputSchema": schema},
    ]);
    let Some(server) = listing(&tools, "") else { return };
    let (names, warnings) = names_and_warnings(&server).await;
    assert_eq!(names, ["first", "last"]);
    insta::assert_snapshot!(warnings.join("\n"));
    let last = tool(&server, "last").await;
    assert_eq!(last.implementation.call(json!({}), &ToolContext::new("call")).await.unwrap(), "last");
}

#[tokio::test]
async fn names_are_made_acceptable() {
    let schema = json!({"type": "object"});
    let names = ["plain", "files.read", "a/b", "a/b/c", "two__lines", "a_b_c", "größe", "x.y", "x/y"];
    let tools = names.map(|name| json!({"name": name, "inputSchema": schema}));
    let Some(server) = listing(&json!(tools), "") else { return };
    let (names, warnings) = names_and_warnings(&server).await;
    assert_eq!(names, ["plain", "files_read", "a_b", "two_lines", "a_b_c", "gr_e", "x_y"]);
    assert_eq!(
        warnings,
        [
            "the tool `a/b/c` is skipped: it would be named `a_b_c`, as another tool is",
            "the tool `x/y` is skipped: it would be named `x_y`, as another tool is",
        ]
    );
    assert_eq!(call(&server, "files_read", json!({})).await.unwrap(), "files.read");
}

#[tokio::test]
async fn filters_tools() {
    let schema = json!({"type": "object"});
    let tools = ["read", "read_all", "write", "files.read"].map(|name| json!({"name": name, "inputSchema": schema}));
    let cases = [
        ("", vec!["read", "read_all", "write", "files_read"], vec![]),
        ("only = ['read*']", vec!["read", "read_all"], vec![]),
        ("only = ['files.*', 'write']", vec!["write", "files_read"], vec![]),
        ("only = []", vec![], vec![]),
        ("except = ['*read*']", vec!["write"], vec![]),
        ("only = ['read*']\nexcept = ['*_all']", vec!["read"], vec![]),
        ("except = ['wirte']", vec!["read", "read_all", "write", "files_read"], vec!["wirte"]),
    ];
    for (settings, expected, unused) in cases {
        let Some(server) = listing(&json!(tools), settings) else { return };
        let (names, warnings) = names_and_warnings(&server).await;
        assert_eq!(names, expected, "{settings}");
        let unused: Vec<_> =
            unused.iter().map(|pattern| format!("`{pattern}` in `only` or `except` names no tool")).collect();
        assert_eq!(warnings, unused, "{settings}");
    }
}

#[tokio::test]
async fn reading_schemas_takes_limited_time() {
    let folder = tempfile::tempdir().unwrap();
    // Each reference is read by itself, so that a short schema becomes a large one.
    let property = |level: usize| json!({"$ref": format!("#/$defs/d{}", level + 1)});
    let properties =
        |level: usize| (0..10).map(|number| (format!("p{number}"), property(level))).collect::<Map<_, _>>();
    let level = |level: usize| (format!("d{level}"), json!({"type": "object", "properties": properties(level)}));
    let mut definitions: Map<_, _> = (0..30).map(level).collect();
    definitions.insert("d30".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let tools: Vec<_> = (0..20).map(|number| json!({"name": format!("t{number}"), "inputSchema": schema})).collect();
    std::fs::write(folder.path().join("list"), json!({"tools": tools}).to_string()).unwrap();
    let script = r#"while read -r line; do case "$line" in
        *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}';;
        *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":1,"result":%s}\n' "$(cat list)";;
    esac; done"#;
    let settings = json!({"command": "sh", "args": ["-c", script], "cwd": folder.path(), "start-timeout": "3s"});
    let server = server(&toml::to_string(&settings).unwrap());
    let Err(failure) = server.tools().await else { panic!("the schemas were read") };
    assert!(failure.message().contains("took longer than 3"), "{failure:?}");
}
