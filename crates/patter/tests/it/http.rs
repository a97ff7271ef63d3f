//! HTTP tools: requests and results.

mod bounds;
mod policy;
mod redirects;
mod secrets;
mod server;
mod standard;

use serde_json::{Value as Json, json};
use server::{Server, call, call_listening, failure, reply, tool};

/// Checks the request that the server receives: method and target, some headers, and the body.
async fn check(record: &str, signature: &str, arguments: Json, expected: &str) {
    let server = Server::echo().await;
    let tool = tool(&server.base, record, signature);
    let seen = match call(&tool, arguments).await {
        Ok(_) => server.request(0),
        Err(failure) => return assert_eq!(format!("failed: {}", failure.message()), expected, "{record}"),
    };
    let mut found = format!("{} {}", seen["method"].as_str().unwrap(), seen["target"].as_str().unwrap());
    for (name, value) in seen["headers"].as_object().unwrap() {
        if name.starts_with("x-") || name == "cookie" || name == "content-type" {
            found += &format!("\n{name}: {}", value.as_str().unwrap());
        }
    }
    let body = seen["body"].as_str().unwrap();
    if !body.is_empty() {
        found += &format!("\n\n{body}");
    }
    assert_eq!(found, expected, "{record}");
}

#[tokio::test]
async fn builds_requests() {
    let one = "(a::Text)==>(::Any)";
    let two = "(a::Text)==>(b::Any {optional: true})==>(::Any)";
    for (record, signature, arguments, expected) in [
        ("url: 'BASE/v1/{a}'", one, json!({"a": "Bern"}), "GET /v1/Bern"),
        ("url: 'BASE'", "()==>(::Any)", json!({}), "GET /"),
        ("url: 'BASE/x?q={a}&flag&z=a%20b'", one, json!({"a": "1&2"}), "GET /x?q=1%262&flag&z=a%20b"),
        (
            "url: 'BASE/x', query: {q: '{a}', n: 3, on: true, t: 'x-{a}'}",
            one,
            json!({"a": "é"}),
            "GET /x?q=%C3%A9&n=3&on=true&t=x-%C3%A9",
        ),
        ("url: 'BASE/x', query: {q: '{a}', b: '{b}'}", two, json!({"a": "1", "b": null}), "GET /x?q=1"),
        (
            "url: 'BASE/x', query: {q: '{b}', a: '{a}'}",
            two,
            json!({"a": "1", "b": ["x", 2, null]}),
            "GET /x?q=x&q=2&a=1",
        ),
        ("url: 'BASE/x'", two, json!({"a": "1", "b": 2}), "GET /x?a=1&b=2"),
        ("url: 'BASE/x', method: 'DELETE'", one, json!({"a": "1"}), "DELETE /x?a=1"),
        (
            "url: 'BASE/x', method: 'POST'",
            two,
            json!({"a": "1", "b": [2]}),
            "POST /x\ncontent-type: application/json\n\n{\"a\":\"1\",\"b\":[2]}",
        ),
        ("url: 'BASE/x', method: 'POST', body: 'none'", one, json!({"a": "1"}), "POST /x?a=1"),
        (
            "url: 'BASE/x', method: 'PUT', body: {k: ['{b}', 'n-{a}', 1], o: {b: '{b}'}}",
            two,
            json!({"a": "1"}),
            "PUT /x\ncontent-type: application/json\n\n{\"k\":[\"n-1\",1],\"o\":{}}",
        ),
        (
            "url: 'BASE/x', method: 'PATCH', body: '{b}'",
            "(b::Object {fields: {x: 'Int'}})==>(::Any)",
            json!({"b": {"x": 1}}),
            "PATCH /x\ncontent-type: application/json\n\n{\"x\":1}",
        ),
        (
            "url: 'BASE/x', method: 'POST', body: 'Dear {a}, {{yes}}'",
            one,
            json!({"a": "Ada"}),
            "POST /x\ncontent-type: text/plain; charset=utf-8\n\nDear Ada, {yes}",
        ),
        (
            "url: 'BASE/x', headers: {`x-a`: '{a}', `x-b`: '{b}', `x-c`: 'v{a}'}",
            two,
            json!({"a": "é"}),
            "GET /x\nx-a: é\nx-c: vé",
        ),
    ] {
        check(record, signature, arguments, expected).await;
    }
}

#[tokio::test]
async fn confines_arguments_to_their_position() {
    let refused = "failed: `a` must not be empty, `.` or `..`, since it is part of a path";
    let header = "failed: `a` contains a control character, which is not allowed in a header";
    let path = "url: 'BASE/v1/{a}/end'";
    let json = "url: 'BASE/x', method: 'POST', headers: {`content-type`: 'application/json'}";
    let form = "url: 'BASE/x', method: 'POST', headers: {`content-type`: 'application/x-www-form-urlencoded'}";
    for (record, argument, expected) in [
        (path, "../../admin", "GET /v1/..%2F..%2Fadmin/end"),
        (path, "a/b?c#d", "GET /v1/a%2Fb%3Fc%23d/end"),
        (path, "a\\..\\b", "GET /v1/a%5C..%5Cb/end"),
        (path, "%2e%2e", "GET /v1/%252e%252e/end"),
        (path, "x\r\nHost: evil", "GET /v1/x%0D%0AHost%3A%20evil/end"),
        (path, "..", refused),
        (path, ".", refused),
        (path, "", refused),
        ("url: 'BASE/v1/.{a}'", ".", refused),
        ("url: 'BASE/v1/{a}{a}'", ".", refused),
        ("url: 'BASE/v1/%2{a}'", "e", refused),
        ("url: 'BASE/v1/x{a}'", "", "GET /v1/x"),
        ("url: 'BASE/{a}'", "/evil.example.com", "GET /%2Fevil.example.com"),
        ("url: 'BASE/{a}'", "@evil.example.com", "GET /%40evil.example.com"),
        ("url: 'BASE/x?q={a}&k=1'", "1&k=2#x", "GET /x?q=1%26k%3D2%23x&k=1"),
        ("url: 'BASE/x', query: {q: '{a}'}", "1&k=2+3%26", "GET /x?q=1%26k%3D2%2B3%2526"),
        ("url: 'BASE/x', headers: {`x-a`: '{a}'}", "1\r\nx-b: 2", header),
        ("url: 'BASE/x', headers: {`x-a`: 'v {a}'}", "1\n", header),
        ("url: 'BASE/x', headers: {`x-a`: '{a}'}", "1\u{0}", header),
        (
            "url: 'BASE/x', headers: {cookie: 'id={a}'}",
            "1; admin=1",
            "failed: `a` contains a character that is not allowed in a cookie",
        ),
    ] {
        check(record, "(a::Text)==>(::Any)", json!({ "a": argument }), expected).await;
    }
    for (record, body, argument, expected) in [
        (json, r#"{{"q": "{a}"}}"#, r#"x", "admin": "1"#, r#"{"q": "x\", \"admin\": \"1"}"#),
        (json, r#"{{"q": {a}}}"#, r#"1, "admin": true"#, r#"{"q": "1, \"admin\": true"}"#),
        (json, r#"{{"q\\"": "{a}"}}"#, r#"\"#, r#"{"q\"": "\\"}"#),
        (form, "q={a}&k=1", "1&k=2", "q=1%26k%3D2&k=1"),
    ] {
        let content_type = if record == json { "application/json" } else { "application/x-www-form-urlencoded" };
        let expected = format!("POST /x\ncontent-type: {content_type}\n\n{expected}");
        let record = format!("{record}, body: '{body}'");
        check(&record, "(a::Text)==>(::Any)", json!({ "a": argument }), &expected).await;
    }
}

#[tokio::test]
async fn requires_arguments_of_the_path() {
    check(
        "url: 'BASE/{a}'",
        "(a::Text {optional: true})==>(::Any)",
        json!({}),
        "failed: `a` is required, since it is part of the URL",
    )
    .await;
}

/// Checks the result that a tool reads from a response.
async fn check_result(
    record: &str,
    returns: &str,
    status: u16,
    content_type: &str,
    body: &'static str,
    expected: Result<Json, &str>,
) {
    let content_type = content_type.to_owned();
    let server = Server::start(move |_, _| reply(status, &[("content-type", &content_type)], body)).await;
    let record = format!("url: 'BASE', retries: 0{}{record}", if record.is_empty() { "" } else { ", " });
    let tool = tool(&server.base, &record, &format!("(a::Text)==>(::{returns})"));
    let result = call(&tool, json!({"a": "Bern"})).await;
    let found = result.as_ref().map(Json::clone).map_err(patter::tool::ToolFailure::message);
    assert_eq!(found, expected, "{record} {returns} {status} {body}");
}

#[tokio::test]
async fn reads_results_from_responses() {
    let data = r#"{"data": [{"temp": 3}]}"#;
    let json_type = "application/json; charset=utf-8";
    for (record, returns, content_type, body, expected) in [
        ("", "Any", json_type, data, Ok(json!({"data": [{"temp": 3}]}))),
        ("", "Any", "application/problem+json", "1", Ok(json!(1))),
        ("", "Any", "text/plain", "1", Ok(json!("1"))),
        ("", "Int", "text/plain", "1", Ok(json!(1))),
        ("", "Text", "text/plain", "1", Ok(json!("1"))),
        ("", "Text", json_type, "\"x\"", Ok(json!("x"))),
        ("", "Text", json_type, "[1]", Ok(json!("[1]"))),
        ("", "Text", "text/plain", "", Ok(json!(""))),
        ("", "Any", json_type, "", Ok(Json::Null)),
        ("result: 'text'", "Text", json_type, data, Ok(json!(data))),
        ("result: 'status'", "Int", json_type, data, Ok(json!(200))),
        ("result: '/data/0/temp'", "Int", json_type, data, Ok(json!(3))),
        ("result: '/data/1'", "Int", json_type, data, Err("the response has no value at `/data/1`")),
        (
            "",
            "Any",
            json_type,
            "{\"a\": \n nope}",
            Err("the response is not valid JSON: expected ident at line 2 column 3"),
        ),
        ("", "Int", "text/html", "<p>Hi</p>", Err("the response is not valid JSON: expected value at line 1 column 1")),
    ] {
        check_result(record, returns, 200, content_type, body, expected).await;
    }
}

#[tokio::test]
async fn treats_error_statuses_as_failures() {
    let errors = "errors: {`4xx`: 'not for {a}', `404`: 'no city {a}'}";
    for (record, status, content_type, body, expected) in [
        ("", 204, "text/plain", "", Ok(json!(""))),
        ("", 304, "text/plain", "", Err("the server responded with 304 Not Modified")),
        ("", 404, "text/plain", "no\tsuch\u{7}\n city", Err("the server responded with 404 Not Found: no such city")),
        (
            "",
            500,
            "text/html",
            "<h1>Oh</h1><p>no</p>",
            Err("the server responded with 500 Internal Server Error: # Oh no"),
        ),
        (errors, 404, "text/plain", "", Err("no city Bern")),
        (errors, 403, "text/plain", "", Err("not for Bern")),
        (errors, 503, "text/plain", "", Err("the server responded with 503 Service Unavailable")),
        ("result: 'status'", 404, "text/plain", "", Ok(json!(404))),
    ] {
        check_result(record, "Text", status, content_type, body, expected).await;
    }
    let long: &'static str = Box::leak("word ".repeat(1000).into_boxed_str());
    let server = Server::start(move |_, _| reply(400, &[], long)).await;
    let message = failure(&tool(&server.base, "url: 'BASE'", "()==>(::Any)"), json!({})).await;
    assert_eq!(message.chars().count(), "the server responded with 400 Bad Request: ".len() + 300);
    assert!(message.ends_with('…'));
}

/// Checks the number of attempts at a server that responds with some statuses and then with success.
async fn attempts(record: &str, statuses: &'static [u16], expected: Result<usize, (usize, &str)>) {
    let server = Server::start(move |number, _| {
        let status = statuses.get(number).copied().unwrap_or(200);
        reply(status, &[("retry-after", if status == 504 { "3600" } else { "0" })], "done")
    })
    .await;
    let tool = tool(&server.base, &format!("url: 'BASE', {record}"), "()==>(::Text)");
    let (result, messages) = call_listening(&tool, json!({})).await;
    let count = server.count();
    match &result {
        Ok(_) => assert_eq!(Ok(count), expected, "{record} {statuses:?}"),
        Err(failure) => assert_eq!(Err((count, failure.message())), expected, "{record} {statuses:?}"),
    }
    assert_eq!(messages.len(), count - 1, "each retry is reported: {messages:?}");
    if let Some(first) = messages.first() {
        assert!(first.contains("; retrying (attempt 2 of "), "{first}");
    }
}

#[tokio::test]
async fn retries_transient_errors() {
    let busy = "the server responded with 503 Service Unavailable: done";
    attempts("method: 'GET'", &[503, 429], Ok(3)).await;
    attempts("method: 'GET'", &[502, 503, 503], Err((3, busy))).await;
    attempts("method: 'PUT', retries: 1", &[502], Ok(2)).await;
    attempts("retries: 0", &[503], Err((1, busy))).await;
    attempts("method: 'POST'", &[503], Err((1, busy))).await;
    attempts("method: 'POST', idempotent: true", &[503], Ok(2)).await;
    attempts("method: 'GET', idempotent: false", &[503], Err((1, busy))).await;
    attempts("method: 'GET'", &[500], Err((1, "the server responded with 500 Internal Server Error: done"))).await;
    // The server asks for a pause of an hour, so there is no retry.
    attempts("method: 'GET'", &[504], Err((1, "the server responded with 504 Gateway Timeout: done"))).await;
}

#[tokio::test]
async fn retries_soon_without_retry_after() {
    let server = Server::start(|number, _| reply(if number == 0 { 503 } else { 200 }, &[], "done")).await;
    let tool = tool(&server.base, "url: 'BASE'", "()==>(::Text)");
    assert_eq!(call(&tool, json!({})).await.unwrap(), "done");
    assert_eq!(server.count(), 2);
}
