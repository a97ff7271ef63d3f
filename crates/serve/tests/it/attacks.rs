//! Requests that are not meant for the server, or are meant to hurt it.

use crate::lab::{Lab, until};
use patter_serve::{Scope, Scopes, Token, TokenHash};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const BODY: &str = r#"{"agent": "slow", "message": "Go"}"#;

#[tokio::test]
async fn web_pages_cannot_use_the_server() {
    let lab = Lab::with(|settings| {
        settings.hosts = vec!["agents.example.com".into()];
        settings.origins = vec!["https://app.example.com".into()];
    })
    .await;
    let json_type = ("Content-Type", "application/json");
    // DNS rebinding, foreign pages, forms and plain text.
    for (headers, status) in [
        (vec![("Host", "evil.example"), json_type], 403),
        (vec![("Host", "localhost.evil.example:8484"), json_type], 403),
        (vec![("Host", "127.0.0.1.evil.example"), json_type], 403),
        (vec![("Host", ""), json_type], 403),
        (vec![("Host", "agents.example.com.evil.example"), json_type], 403),
        (vec![("Host", "user@localhost"), json_type], 403),
        (vec![("Origin", "https://evil.example"), json_type], 403),
        (vec![("Origin", "null"), json_type], 403),
        (vec![("Host", "evil.example"), ("Origin", "http://evil.example"), json_type], 403),
        (vec![("Host", "localhost:8484"), ("Origin", "http://localhost:8485"), json_type], 403),
        (vec![("Origin", "http://127.0.0.1:8484"), json_type], 403),
        (vec![("Origin", "https://app.example.com.evil.example"), json_type], 403),
        (vec![("Content-Type", "text/plain")], 415),
        (vec![("Content-Type", "application/x-www-form-urlencoded")], 415),
        (vec![("Content-Type", "multipart/form-data; boundary=x")], 415),
        (vec![("Content-Type", "text/plain; application/json")], 415),
        (vec![], 415),
    ] {
        let response = lab.request("POST", "/api/sessions", &headers, BODY).await;
        assert_eq!(response.status, status, "{headers:?}: {response:?}");
        assert!(!response.headers.contains_key("access-control-allow-origin"), "{response:?}");
    }
    assert_eq!(lab.counts().0, 0);
    let twice = format!(
        "POST /api/sessions HTTP/1.1\r\nHost: {}\r\nHost: evil.example\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{BODY}",
        lab.address,
        BODY.len()
    );
    assert!(matches!(lab.raw(&twice).await.status, 400 | 403));
    // What is configured works.
    for headers in [
        vec![("Host", "localhost:8484"), json_type],
        vec![("Host", "[::1]:8484"), json_type],
        vec![("Host", "localhost:8484"), ("Origin", "http://localhost:8484"), json_type],
        vec![("Host", "agents.example.com"), json_type],
        vec![("Host", "agents.example.com:443"), json_type],
    ] {
        let response = lab.request("GET", "/v1/models", &headers, "").await;
        assert_eq!(response.status, 200, "{headers:?}: {response:?}");
    }
    let origin = ("Origin", "https://app.example.com");
    let preflight = [origin, ("Access-Control-Request-Method", "POST")];
    let response = lab.request("OPTIONS", "/v1/chat/completions", &preflight, "").await;
    assert_eq!((response.status, response.header("access-control-allow-origin")), (204, "https://app.example.com"));
    let response = lab.request("GET", "/v1/models", &[origin], "").await;
    assert_eq!(response.header("access-control-allow-origin"), "https://app.example.com");
}

#[tokio::test]
async fn tokens_decide_who_may_do_what() {
    let token = |name: &str, scopes: &[Scope]| {
        Token::new(name, TokenHash::of(&format!("{name}-secret")))
            .with_scopes(scopes.iter().copied().collect::<Scopes>())
    };
    let lab = Lab::with(|settings| {
        settings.tokens = vec![
            token("reader", &[Scope::Read]),
            token("runner", &[Scope::Read, Scope::Run]).with_agents(vec!["clerk".into()]),
            token("approver", &[Scope::Read, Scope::Approve]),
            token("admin", &[Scope::Admin]),
        ];
    })
    .await;
    let json_type = ("Content-Type", "application/json");
    let send = async |name: &str, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {name}-secret");
        lab.request(method, path, &[("Authorization", &bearer), json_type], body).await
    };
    for headers in [
        vec![],
        vec![("Authorization", "Bearer ")],
        vec![("Authorization", "Bearer admin-secre")],
        vec![("Authorization", "Bearer admin-secret ")],
        vec![("Authorization", "bearer  reader-secret")],
    ] {
        let response = lab.request("GET", "/v1/models", &headers, "").await;
        let is_spaced = headers.first().is_some_and(|(_, value)| value.trim().ends_with("-secret"));
        // Spaces around a token are not part of it.
        assert_eq!(response.status, if is_spaced { 200 } else { 401 }, "{headers:?}");
    }
    assert_eq!(lab.get("/healthz").await.status, 200);
    assert_eq!(lab.get("/metrics").await.status, 401);
    assert_eq!(lab.get("/v1/models").await.header("www-authenticate"), "Bearer");
    let pay = r#"{"agent": "clerk", "message": "Pay", "session": "one"}"#;
    assert_eq!(send("reader", "POST", "/api/sessions", pay).await.status, 403);
    assert_eq!(send("approver", "POST", "/api/sessions", pay).await.status, 403);
    assert_eq!(send("runner", "POST", "/api/sessions?wait=true", pay).await.json()["status"], "waiting");
    // An agent out of reach does not exist.
    let other = pay.replace("clerk", "greeter");
    assert_eq!(send("runner", "POST", "/api/sessions", &other).await.error(), "404 there is no agent `greeter`");
    let list = send("runner", "GET", "/v1/models", "").await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert_eq!(send("runner", "GET", "/api/agents/greeter", "").await.status, 404);
    // Who runs must not approve.
    let call = send("reader", "GET", "/api/approvals", "").await.json()["approvals"][0].clone();
    let approve = json!({"call_id": call["call_id"], "decision": "approve", "hash": call["hash"]}).to_string();
    for (name, status) in [("reader", 403), ("runner", 403), ("approver", 202)] {
        assert_eq!(send(name, "POST", "/api/sessions/one/answers", &approve).await.status, status, "{name}");
    }
    assert_eq!(send("runner", "DELETE", "/api/sessions/one", "").await.status, 403);
    let greeting = r#"{"agent": "greeter", "message": "Hi", "session": "other"}"#;
    assert_eq!(send("admin", "POST", "/api/sessions?wait=true", greeting).await.status, 200);
    assert_eq!(send("runner", "GET", "/api/sessions/other", "").await.status, 404);
    // Nor can it be reached under the name of another agent, by any protocol.
    let say = json!({"role": "user", "content": "What was said?"});
    let stolen = json!({"model": "clerk", "messages": [say], "metadata": {"session": "other"}}).to_string();
    assert_eq!(
        send("runner", "POST", "/v1/chat/completions", &stolen).await.error(),
        "404 there is no session `other`"
    );
    let stolen = json!({"model": "clerk", "input": "What was said?", "conversation": "other"}).to_string();
    assert_eq!(send("runner", "POST", "/v1/responses", &stolen).await.status, 404);
    let call = json!({"id": "other:c1", "type": "function", "function": {"name": "x", "arguments": "{}"}});
    let result = json!({"role": "tool", "tool_call_id": "other:c1", "content": "x"});
    let messages = [say, json!({"role": "assistant", "tool_calls": [call]}), result];
    let stolen = json!({"model": "clerk", "messages": messages}).to_string();
    assert_eq!(
        send("runner", "POST", "/v1/chat/completions", &stolen).await.error(),
        "404 there is no session `other`"
    );
    assert_eq!(send("runner", "GET", "/api/sessions", "").await.json()["sessions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn large_and_slow_requests_are_bounded() {
    let lab = Lab::with(|settings| {
        settings.limits.max_body = 1000;
        settings.limits.head_timeout = Duration::from_millis(300);
        settings.limits.body_timeout = Duration::from_millis(300);
        settings.limits.max_connections = 50;
    })
    .await;
    let json_type = ("Content-Type", "application/json");
    let large = format!("{{\"agent\": \"slow\", \"message\": \"{}\"}}", "x".repeat(2000));
    assert_eq!(lab.request("POST", "/api/sessions", &[json_type], &large).await.status, 413);
    // The end of a body never comes.
    let head = format!(
        "POST /api/sessions HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 500\r\n\r\n{{",
        lab.address
    );
    assert_eq!(lab.raw(&head).await.error(), "400 the body did not arrive in time");
    // Neither does the end of a head.
    let start = Instant::now();
    let response = lab.raw("GET /v1/models HTTP/1.1\r\nHost: ").await;
    assert!(matches!(response.status, 0 | 408), "{response:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
    // Too many headers, and too large ones.
    let many: Vec<_> = (0..200).map(|index| format!("X-{index}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "x")).collect();
    assert!(matches!(lab.request("GET", "/v1/models", &many, "").await.status, 0 | 431));
    let huge = "x".repeat(200_000);
    assert!(matches!(lab.request("GET", "/v1/models", &[("X-Huge", &huge)], "").await.status, 0 | 431));
    let path = format!("/{}", "../".repeat(30_000));
    assert!(matches!(lab.get(&path).await.status, 0 | 404 | 414 | 431));
    // Connections that say nothing make room for others.
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(TcpStream::connect(lab.address).await.unwrap());
    }
    assert_eq!(lab.get("/healthz").await.status, 200);
    drop(idle);
    // A websocket is not offered.
    let upgrade = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", "x"),
        ("Sec-WebSocket-Version", "13"),
    ];
    assert_ne!(lab.request("GET", "/v1/models", &upgrade, "").await.status, 101);
    for path in [
        "/v1/../v1/models",
        "//v1/models",
        "/v1/models/%2e%2e%2fetc",
        "/api/sessions/..%2f..%2fetc%2fpasswd",
        "/api/sessions/%00",
    ] {
        assert!(matches!(lab.get(path).await.status, 400 | 404), "{path}");
    }
    assert_eq!(lab.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn slow_readers_are_cut_off() {
    let lab = Lab::with(|settings| settings.limits.write_timeout = Duration::from_millis(300)).await;
    // More than the buffers of the system hold.
    let long = "x".repeat(8 << 20);
    let script = json!([{"text": long}]).to_string();
    std::fs::write(lab.folder.path().join("broken.json"), script).unwrap();
    let request = json!({"model": "broken", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(lab.address).await.unwrap();
    let head = lab.head("POST", "/v1/chat/completions", &[("Content-Type", "application/json")], &request.to_string());
    stream.write_all(head.as_bytes()).await.unwrap();
    until(async || lab.get("/metrics").await.body.contains("patter_turns_total{outcome=\"answered\"} 1")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // What was not read in time is lost: the connection is closed before the end.
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    assert!(!String::from_utf8_lossy(&bytes).contains("[DONE]"), "{}", bytes.len());
    assert_eq!(lab.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn too_many_turns_are_refused_before_they_run() {
    let lab = Lab::with(|settings| settings.limits.max_turns = 1).await;
    let start = json!({"agent": "slow", "message": "Go"});
    assert_eq!(lab.post("/api/sessions", &start).await.status, 202);
    let response = lab.post("/api/sessions", &start).await;
    assert_eq!((response.status, response.header("x-should-retry")), (429, ""), "it may be sent again");
}
