//! Redirects: the method, the policy, and secrets.

use super::server;
use super::server::{Server, call, failure, reply, tool, tool_with};
use patter::http::{HttpClient, NetworkPolicy};
use serde_json::json;

/// Starts a server that redirects every request, and responds with `arrived` at `/end`.
async fn redirecting(status: u16, location: &'static str) -> Server {
    Server::start(move |_, seen| match seen["target"].as_str() {
        Some("/end") => reply(200, &[], "arrived"),
        _ => reply(status, &[("location", location)], ""),
    })
    .await
}

#[tokio::test]
async fn changes_the_method_according_to_the_status() {
    for (method, status, then) in [
        ("GET", 301, "GET"),
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("POST", 307, "POST"),
        ("PATCH", 308, "PATCH"),
    ] {
        let server = redirecting(status, "/end").await;
        let record = format!("url: 'BASE/start', method: '{method}', headers: {{`x-k`: '${{KEY}}'}}");
        let tool = tool_with(&server::client(), &server.base, &record, "(a::Text)==>(::Text)", &[("KEY", "hunter2")]);
        assert!(call(&tool, json!({"a": "1"})).await.is_ok(), "{method} {status}");
        let last = server.request(1);
        assert_eq!(last["method"], then, "{method} {status}");
        assert_eq!(last["headers"]["x-k"], "hunter2", "the server is the same");
        let keeps_body = matches!(then, "PUT" | "POST" | "PATCH");
        assert_eq!(last["body"] == "{\"a\":\"1\"}", keeps_body, "{method} {status}");
        assert_eq!(last["headers"].get("content-type").is_some(), keeps_body, "{method} {status}");
    }
}

#[tokio::test]
async fn sends_no_secrets_to_another_server() {
    let other = Server::echo().await;
    let place = format!("{}/end", other.base);
    let first = Server::start(move |_, seen| {
        let status = if seen["method"] == "POST" { 307 } else { 302 };
        reply(status, &[("location", &place)], "")
    })
    .await;
    let headers = "headers: {authorization: 'Bearer {a}', cookie: 'c=1', `x-key`: '${KEY}', `x-plain`: 'yes'}";
    let record = format!("url: 'BASE/', {headers}");
    let variables: &[_] = &[("KEY", "hunter2")];
    let tool = tool_with(&server::client(), &first.base, &record, "(a::Text)==>(::Any)", variables);
    call(&tool, json!({"a": "token"})).await.unwrap();
    assert_eq!(first.request(0)["headers"]["x-key"], "hunter2");
    let headers = &other.request(0)["headers"];
    assert_eq!(headers["x-plain"], "yes");
    for name in ["authorization", "cookie", "x-key"] {
        assert_eq!(headers.get(name), None, "{name}");
    }
    let record = "url: 'BASE/', method: 'POST', body: {key: '${KEY}'}";
    let tool = tool_with(&server::client(), &first.base, record, "()==>(::Any)", variables);
    assert_eq!(
        failure(&tool, json!({})).await,
        "cannot follow the redirect: it leads to another server, and the body contains a secret"
    );
    assert_eq!(other.count(), 1);
}

#[tokio::test]
async fn rejects_invalid_redirects() {
    for (place, expected) in [
        ("/again", "the server redirected more than 5 times"),
        ("http://10.0.0.1/end", "`10.0.0.1` is a private address"),
        ("http://169.254.169.254/latest/meta-data", "`169.254.169.254` is a private address"),
        ("http://localhost:1/end", "`localhost` is a private address"),
        ("http://[::ffff:10.0.0.1]/", "`[::ffff:a00:1]` is a private address"),
        ("file:///etc/passwd", "cannot follow the redirect: the location is not a valid URL"),
        ("ftp://example.com/", "unsupported scheme `ftp`"),
        ("http://me:pass@127.0.0.1/", "cannot follow the redirect: the location contains credentials"),
        ("http://", "cannot follow the redirect: the location is not a valid URL"),
    ] {
        let server = redirecting(302, place).await;
        // Only the address of the server is allowed, not host names that resolve to it.
        let client = HttpClient::new(NetworkPolicy::from_allow_list([server.host()]).unwrap(), |_| None);
        let tool = tool_with(&client, &server.base, "url: 'BASE/start'", "()==>(::Text)", &[]);
        let message = failure(&tool, json!({})).await;
        assert!(message.starts_with(expected), "{place}: {message}");
        assert_eq!(server.count(), if place == "/again" { 6 } else { 1 }, "{place}");
    }
    let server = Server::start(|_, _| reply(302, &[], "")).await;
    let message = failure(&tool(&server.base, "url: 'BASE'", "()==>(::Text)"), json!({})).await;
    assert_eq!(message, "cannot follow the redirect: the server sent no location");
}
