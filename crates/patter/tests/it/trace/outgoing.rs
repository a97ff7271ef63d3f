//! References to spans in requests that tools and models make.

use super::receiver::Receiver;
use crate::store::{TestStore, id};
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use patter::live::LiveProject;
use patter::project::Environment;
use patter::session::Session;
use patter::tool::mcp::{McpServer, ServerConfig, http_client};
use patter::tool::{CancellationToken, Tool};
use patter::trace::{SessionTrace, Span, Tracer};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// The references that requests had, by path: the header, and that in the metadata of an MCP request.
type Seen = Arc<Mutex<Vec<(String, Option<String>, Option<String>)>>>;

/// Starts a server that is a tool, an MCP server and a model.
async fn start() -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let app = axum::Router::new().fallback(move |request: Request| {
        let log = Arc::clone(&log);
        async move {
            let (head, body) = request.into_parts();
            let body: Json = serde_json::from_slice(&to_bytes(body, usize::MAX).await.unwrap()).unwrap_or_default();
            let header = head.headers.get("traceparent").map(|value| value.to_str().unwrap().to_owned());
            let path = head.uri.path().to_owned();
            let meta = body["params"]["_meta"]["traceparent"].as_str().map(str::to_owned);
            let is_call = body["method"] == "tools/call";
            if is_call {
                assert_eq!(body["params"]["_meta"]["patter/idempotencyKey"], format!("{}/1/b", id("out")));
            }
            if path != "/mcp" || is_call {
                log.lock().unwrap().push((path.clone(), header, meta));
            }
            match path.as_str() {
                "/mcp" => mcp(&head.method, &body),
                "/v1/chat/completions" => {
                    let is_first = body["messages"].as_array().is_some_and(|messages| messages.len() <= 2);
                    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
                    let message = match is_first {
                        true => json!({"role": "assistant", "tool_calls": [call("a", "t"), call("b", "pong")]}),
                        false => json!({"role": "assistant", "content": "Done."}),
                    };
                    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
                    reply(&json!({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}))
                }
                _ => reply(&json!("ok")),
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (base, seen)
}

fn reply(body: &Json) -> axum::response::Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

fn mcp(method: &axum::http::Method, body: &Json) -> axum::response::Response {
    if method != axum::http::Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let tool = json!({"name": "pong", "description": "Pongs", "inputSchema": {"type": "object", "properties": {}}});
    let result = match body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "pong", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "pong"}]}),
        _ if body.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return reply(&json!({"jsonrpc": "2.0", "id": body["id"], "error": error}));
        }
    };
    reply(&json!({"jsonrpc": "2.0", "id": body["id"], "result": result}))
}

async fn tools(base: &str) -> Vec<Tool> {
    let config: ServerConfig = toml::from_str(&format!("url = '{base}/mcp'\ntransport = 'http'")).unwrap();
    let settings = config.settings("demo", Path::new("patter.toml"), &|_| None).unwrap();
    let server = McpServer::new(settings, http_client().unwrap());
    let pong = server.tools().await.unwrap().tools;
    pong.into_iter().chain([crate::http::server::tool(base, "url: 'BASE/ping'", "()==>(::Any)")]).collect()
}

/// Runs an agent, and returns what requests referred to, and the spans.
async fn check(change: impl FnOnce(&mut patter::trace::TraceSettings)) -> (Seen, Vec<Span>) {
    let (base, seen) = start().await;
    let receiver = Receiver::accepting().await;
    let tracer = Tracer::new(receiver.settings(change), |_| None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gram");
    std::fs::write(&path, "[a:Agent {instruction: 'Go.', model: 'OpenAI/gpt-4o-mini'} | t, pong]").unwrap();
    let environment =
        Environment::from_variables([("OPENAI_API_KEY", "k3y"), ("OPENAI_BASE_URL", &format!("{base}/v1"))]);
    let project = LiveProject::open(&path).with_tools(tools(&base).await).with_environment(environment);
    let project = Arc::new(project.read().await.unwrap());
    let database = TestStore::sqlite();
    let store = database.open().await;
    let allow = ["allow t", "allow pong"].map(|rule| patter::permission::Rule::parse(rule, "this test").unwrap());
    let mut session = Session::create(project, Arc::clone(&store), id("out"))
        .with_driver(move |driver| driver.with_rules(allow.clone()))
        .with_tracer(Some(tracer.clone()));
    let run = session.say("Go", &CancellationToken::new()).await.unwrap();
    assert_eq!(run.response().content, "Done.", "{:?}", run.conversation());
    tracer.flush().await;
    let stored = store.read(&id("out")).await.unwrap();
    (seen, SessionTrace::new("out", &stored.entries, |_| None).unwrap().spans)
}

#[tokio::test]
async fn tools_learn_which_span_called_them() {
    let (seen, spans) = check(|_| {}).await;
    let seen = seen.lock().unwrap();
    let find = |path: &str| seen.iter().find(|(found, ..)| found == path).unwrap();
    let parent = |name: &str| {
        let span = spans.iter().find(|span| span.name == name).unwrap();
        Some(format!("00-{}-{}-01", span.trace_id, span.span_id))
    };
    let ping = find("/ping");
    assert_eq!(ping.1, parent("execute_tool t"));
    let pong = find("/mcp");
    assert_eq!((&pong.1, &pong.2), (&parent("execute_tool pong"), &parent("execute_tool pong")));
    // Providers receive the header only on request.
    assert_eq!(find("/v1/chat/completions").1, None);
}

#[tokio::test]
async fn models_learn_which_span_called_them_on_request() {
    let (seen, spans) = check(|settings| settings.has_model_header = true).await;
    let expected: Vec<_> = spans
        .iter()
        .filter(|span| span.name == "chat gpt-4o-mini")
        .map(|span| Some(format!("00-{}-{}-01", span.trace_id, span.span_id)))
        .collect();
    let seen = seen.lock().unwrap();
    let found: Vec<_> =
        seen.iter().filter(|(path, ..)| path == "/v1/chat/completions").map(|(_, header, _)| header.clone()).collect();
    assert_eq!((found.len(), &found), (2, &expected));
}
