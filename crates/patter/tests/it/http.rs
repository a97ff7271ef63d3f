//! HTTP tools: requests and results.

mod bounds;
mod policy;
mod redirects;
mod secrets;
pub(crate) mod server;
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
async fn writes_lists_and_objects_in_their_style() {
    let signature = "(a::Any {optional: true})==>(b::Text {optional: true})==>(::Any)";
    let record = json!({"color": "r&g", "size": {"min": 1}, "none": null, "tags": ["x", "y"]});
    let lines = json!([{"price": 5}, {"price": 6}]);
    for (style, argument, expected) in [
        ("repeat", json!(["x", "y z"]), "?a=x&a=y%20z"),
        ("comma", json!(["x,", "y z", null]), "?a=x%2C,y%20z"),
        ("comma", json!({"x": 1, "y": "&"}), "?a=x,1,y,%26"),
        ("comma", json!([]), ""),
        ("comma", json!("x"), "?a=x"),
        ("space", json!(["x", "y"]), "?a=x%20y"),
        ("pipe", json!(["x", "y"]), "?a=x%7Cy"),
        ("tab", json!(["x", "y"]), "?a=x%09y"),
        (
            "brackets",
            record.clone(),
            "?a%5Bcolor%5D=r%26g&a%5Bsize%5D%5Bmin%5D=1&a%5Btags%5D%5B%5D=x&a%5Btags%5D%5B%5D=y",
        ),
        ("brackets", lines.clone(), "?a%5B0%5D%5Bprice%5D=5&a%5B1%5D%5Bprice%5D=6"),
        ("brackets", json!("x"), "?a=x"),
        ("fields", record, "?color=r%26g&size=%7B%22min%22%3A1%7D&tags=x&tags=y"),
        ("json", json!(["x"]), "?a=%5B%22x%22%5D"),
        ("json", json!("x"), "?a=%22x%22"),
        ("json", Json::Null, ""),
    ] {
        let record = format!("url: 'BASE/x', styles: {{a: {style}}}");
        check(&record, signature, json!({ "a": argument }), &format!("GET /x{expected}")).await;
    }
    for (record, argument, expected) in [
        ("url: 'BASE/x/{a}', styles: {a: comma}", json!(["a/b", "c"]), "GET /x/a%2Fb,c"),
        ("url: 'BASE/x/;a={a}', styles: {a: comma}", json!(["b", "c"]), "GET /x/;a=b,c"),
        (
            "url: 'BASE/x/{a}', styles: {a: comma}",
            json!([".."]),
            "failed: `a` must not be empty, `.` or `..`, since it is part of a path",
        ),
        ("url: 'BASE/x', headers: {`x-a`: '{a}'}, styles: {a: comma}", json!(["b", "c"]), "GET /x\nx-a: b,c"),
        ("url: 'BASE/x', cookies: {a: '{a}', b: '{b}', c: 'v-{a}'}", json!("1"), "GET /x\ncookie: a=1; c=v-1"),
        ("url: 'BASE/x', cookies: {b: '{b}'}, query: {a: '{a}'}", json!(1), "GET /x?a=1"),
        (
            "url: 'BASE/x', cookies: {a: '{a}'}",
            json!("1; admin=1"),
            "failed: `a` contains a character that is not allowed in a cookie",
        ),
        (
            "url: 'BASE/x', cookies: {a: '{a}'}, styles: {a: comma}",
            json!(["1;x=2"]),
            "failed: `a` contains a character that is not allowed in a cookie",
        ),
    ] {
        check(record, signature, json!({ "a": argument }), expected).await;
    }
    let form = "url: 'BASE/x', method: POST, headers: {`Content-Type`: 'application/x-www-form-urlencoded'}";
    let head = "POST /x\ncontent-type: application/x-www-form-urlencoded";
    for (more, arguments, expected) in [
        ("", json!({"a": "x y&z", "b": "é"}), "\n\na=x%20y%26z&b=%C3%A9"),
        ("", json!({"a": [1, true], "b": ""}), "\n\na=1&a=true&b="),
        ("", json!({"a": {"k": 1}}), "\n\na=%7B%22k%22%3A1%7D"),
        ("", json!({"a": null}), ""),
        (", styles: {a: brackets}", json!({"a": lines}), "\n\na%5B0%5D%5Bprice%5D=5&a%5B1%5D%5Bprice%5D=6"),
        (", body: {`a-b`: '{a}', c: 'v-{b}', d: 5}", json!({"a": 1, "b": "&"}), "\n\na-b=1&c=v-%26&d=5"),
        (", body: '{a}'", json!({"a": {"x": 1, "y": ["1", "2"]}}), "?\n\nx=1&y=1&y=2"),
        (", body: '{a}'", json!({"a": [1]}), "failed: a form must be an object"),
    ] {
        let expected = match expected.strip_prefix("failed") {
            Some(_) => expected.to_owned(),
            None => format!("{head}{}", expected.trim_start_matches('?')),
        };
        check(&format!("{form}{more}"), signature, arguments, &expected).await;
    }
}

/// Sends a form of several parts, and returns it with the boundary replaced.
async fn multipart(record: &str, arguments: Json) -> String {
    let server = Server::echo().await;
    let record = format!("url: 'BASE/x', method: POST, headers: {{`Content-Type`: 'multipart/form-data'}}{record}");
    let tool = tool(&server.base, &record, "(a::Any {optional: true})==>(b::Any {optional: true})==>(::Any)");
    if let Err(failure) = call(&tool, arguments).await {
        return format!("failed: {}", failure.message());
    }
    let seen = server.request(0);
    let kind = seen["headers"]["content-type"].as_str().unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    seen["body"].as_str().unwrap().replace(boundary, "B").replace("\r\n", "\n")
}

#[tokio::test]
async fn sends_forms_of_several_parts() {
    let disposition = "Content-Disposition: form-data; name=";
    let text = multipart("", json!({"a": "x\r\n--B", "b": [1, {"k": true}]})).await;
    assert_eq!(
        text,
        format!(
            "--B\n{disposition}\"a\"\n\nx\n--B\n--B\n{disposition}\"b\"\n\n1\n--B\n{disposition}\"b\"\n\
             Content-Type: application/json\n\n{{\"k\":true}}\n--B--\n"
        )
    );
    let files = ", styles: {a: file, b: file}";
    let text = multipart(files, json!({"a": "plain", "b": "data:text/csv;name=a%22b.csv;base64,eCx5"})).await;
    assert_eq!(
        text,
        format!(
            "--B\n{disposition}\"a\"; filename=\"a\"\nContent-Type: application/octet-stream\n\nplain\n\
             --B\n{disposition}\"b\"; filename=\"a%22b.csv\"\nContent-Type: text/csv\n\nx,y\n--B--\n"
        )
    );
    let broken = multipart(files, json!({"a": "data:;base64,***"})).await;
    assert_eq!(broken, "failed: `a` is a `data:` URL with invalid base64");
    let odd = multipart(", body: {`a\"\\r\\nx`: '{a}'}", json!({"a": "1"})).await;
    assert_eq!(odd, format!("--B\n{disposition}\"a%22%0D%0Ax\"\n\n1\n--B--\n"));
    let file = "url: 'BASE/x', method: PUT, body: '{b}', styles: {b: file}";
    let signature = "(b::Text {optional: true})==>(::Any)";
    check(file, signature, json!({"b": "data:text/csv,x%2Cy"}), "PUT /x\ncontent-type: text/csv\n\nx,y").await;
    check(file, signature, json!({"b": "hi"}), "PUT /x\ncontent-type: application/octet-stream\n\nhi").await;
    check(file, signature, json!({}), "PUT /x").await;
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
