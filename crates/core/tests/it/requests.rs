//! Tests of HTTP tools: reading their declarations, and the diagnostics of invalid ones.

use patter_core::check::{Options, check};
use patter_core::declare::http::{Body, HttpResult, HttpSpec, Method};
use patter_core::declare::project::Project;
use patter_core::declare::{Effect, ToolSpec};
use patter_core::gram::parse;
use patter_core::types::signature::Records;
use std::time::Duration;

const URL: &str = "url: 'https://api.example.com/v1'";

fn spec(record: &str) -> HttpSpec {
    let (tree, _) = parse(&format!("[t:Http {{{record}}} | (a::Text)==>(b::Int {{optional: true}})==>(::Any)]"));
    let tool = ToolSpec::cast(tree.patterns().next().unwrap()).unwrap();
    let signature = tool.signature(&Records::default()).unwrap();
    HttpSpec::read(tool.pattern().unwrap(), &signature).unwrap()
}

/// Checks the findings of a record, each as code, marked text, message and hint.
fn check_findings(record: &str, expected: &[&str]) {
    for (before, after) in [("[box:Toolbox | ", "]"), ("", "")] {
        let tool = format!("[t:Http {{description: 'x', {record}}} | (a::Text)==>(b::Int)==>(::Any)]");
        let text = format!("{before}{tool}{after}");
        let findings = check(&Project::read([("a.gram", &text)]), &Options::default());
        let found = findings.iter().map(|finding| &finding.diagnostic).filter(|found| found.code != "P044");
        let found: Vec<_> = found
            .map(|found| {
                let hint = found.hint.as_deref().map_or(String::new(), |hint| format!(" ({hint})"));
                format!("{} {}: {}{hint}", found.code, found.span.slice(&text), found.message)
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn properties_and_their_defaults() {
    let plain = spec(URL);
    assert_eq!((plain.method, &plain.body, &plain.result), (Method::Get, &Body::None, &HttpResult::Body));
    assert_eq!((plain.retries, plain.max_bytes, plain.effect()), (2, 1024 * 1024, Effect::Network));
    assert!(plain.is_idempotent());
    let post = spec(&format!("{URL}, method: POST, timeout: 5s, maxBytes: 10, concurrency: 3, sealed: true"));
    assert_eq!((post.method, post.retries, post.max_bytes, post.effect()), (Method::Post, 0, 10, Effect::Writes));
    assert_eq!((post.options.timeout, post.options.concurrency), (Some(Duration::from_secs(5)), Some(3)));
    assert!(post.options.sealed && !post.is_idempotent());
    let explicit = spec(&format!("{URL}, method: 'POST', idempotent: true, effect: reads, retries: 4, result: '/a'"));
    assert_eq!(
        (explicit.retries, explicit.effect(), explicit.result),
        (4, Effect::Reads, HttpResult::Pointer("/a".to_owned()))
    );
}

#[test]
fn urls_are_split() {
    for (url, origin, path, query) in [
        ("https://h/p/{a}?x={b}", "https://h", "/p/{a}", "x={b}"),
        ("HTTP://h:8080", "HTTP://h:8080", "", ""),
        ("https://h?x=1&&y", "https://h", "", "x=1 y="),
        ("https://h/p?x=a%20b+c%7B{a}", "https://h", "/p", "x=a b c{{{a}"),
        ("https://${HOST}:${PORT}/p", "https://${HOST}:${PORT}", "/p", ""),
        ("${BASE}/p/{a}", "${BASE}", "/p/{a}", ""),
        ("${BASE}/{a}", "${BASE}", "/{a}", ""),
        ("${SCHEME}://h/{a}", "${SCHEME}://h", "/{a}", ""),
    ] {
        let spec = spec(&format!("url: '{url}', body: {{a: '{{a}}', b: '{{b}}'}}"));
        let found: Vec<_> = spec.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!((spec.url.origin.to_string().as_str(), spec.url.path.to_string().as_str()), (origin, path), "{url}");
        assert_eq!(found.join(" "), query, "{url}");
    }
}

#[test]
fn invalid_urls() {
    let hint = "(write a URL such as `https://api.example.com/…`)";
    let host = "(use placeholders after the host, in the path or the query)";
    for (url, expected) in [
        ("", format!("P072 '': the URL is empty {hint}")),
        ("/v1", format!("P072 '/v1': the URL has no scheme {hint}")),
        ("ftp://h/x", format!("P072 'ftp://h/x': only `http` and `https` URLs are supported {hint}")),
        ("https:///x", format!("P072 'https:///x': the URL has no host {hint}")),
        ("https://:80/x", format!("P072 'https://:80/x': the URL has no host {hint}")),
        ("https://a b/x", format!("P072 'https://a b/x': the host of the URL is invalid {hint}")),
        ("https://{a}/x", format!("P073 'https://{{a}}/x': `{{a}}` would let the model choose the server {host}")),
        ("https://h:{b}/", format!("P073 'https://h:{{b}}/': `{{b}}` would let the model choose the server {host}")),
        ("https://h{a}", format!("P073 'https://h{{a}}': `{{a}}` would let the model choose the server {host}")),
        ("${U}{a}/x", format!("P073 '${{U}}{{a}}/x': `{{a}}` would let the model choose the server {host}")),
        ("{a}", format!("P073 '{{a}}': `{{a}}` would let the model choose the server {host}")),
        (
            "https://me:x@h/",
            "P072 'https://me:x@h/': the URL contains a user name \
             (use a header: `authorization: \"Basic ${USER}:${PASSWORD}\"`)"
                .to_owned(),
        ),
        (
            "https://h/#{a}",
            "P072 'https://h/#{a}': the fragment after `#` is never sent (remove it, or write `%23` for a literal `#`)"
                .to_owned(),
        ),
        (
            "https://h/?{a}=1",
            "P072 'https://h/?{a}=1': a name in the query contains a placeholder (only values may contain placeholders)"
                .to_owned(),
        ),
    ] {
        check_findings(&format!("url: '{url}'"), &[expected.as_str()]);
    }
}

#[test]
fn other_mistakes() {
    check_findings("method: 'GET'", &["P002 t: the tool `t` has no `url` (add `url: \"https://…\"` to its record)"]);
    check_findings("ulr: 'https://h'", &["P004 ulr: a request has no property `ulr` (did you mean `url`?)"]);
    for (record, expected) in [
        ("url: 3", "P005 3: `url` must be a string, not an integer (put quotes around it)"),
        ("URL, timout: 3s", "P004 timout: a request has no property `timout` (did you mean `timeout`?)"),
        ("URL, method: 'get'", "P006 'get': `method` cannot be `get` (did you mean `GET`?)"),
        (
            "URL, timeout: 3km",
            "P005 3km: `timeout` must be a duration, not a measurement (write a number of seconds, or a number with ms, s, m or h, such as `30s`)",
        ),
        ("URL, retries: 11", "P006 11: `retries` is 11, but must be at most 10"),
        ("URL, maxBytes: 0", "P006 0: `maxBytes` is 0, but must be at least 1"),
        ("URL, query: 'a=1'", "P005 'a=1': `query` must be a map, not a string"),
        ("URL, headers: ['x']", "P005 ['x']: `headers` must be a map, not an array"),
        ("URL, query: {q: [1]}", "P005 [1]: expected a string, found an array (put quotes around it)"),
        (
            "URL, query: {q: '{city}'}",
            "P071 '{city}': `{city}` is not a parameter of this tool (parameters: a, b; write `{{` and `}}` for literal braces)",
        ),
        ("URL, headers: {x: '{'}", "P070 '{': `{` is not closed (write `{{` and `}}` for literal braces)"),
        ("URL, headers: {`x y`: '1'}", "P005 `x y`: `x y` is not a valid header name (remove it)"),
        ("URL, headers: {Host: 'h'}", "P005 Host: the header `Host` is set automatically (remove it)"),
        ("URL, body: 3", "P005 3: `body` must be a string, a map, a list or `\"none\"`, not an integer"),
        ("URL, body: {a: 1..2}", "P005 1..2: `body` must be a value that JSON can represent, not a range"),
        (
            "URL, result: 'all'",
            "P006 'all': `result` cannot be `all` (use `body`, `text`, `status` or a JSON pointer such as `/data/0/temp`)",
        ),
        (
            "URL, errors: {`40`: 'x'}",
            "P005 `40`: `40` is not an HTTP status (write a status, such as `\"404\"`, or a class, such as `\"4xx\"`)",
        ),
        (
            "URL, errors: {`4xx`: '${K}'}",
            "P005 '${K}': the model would see the secret `K` (remove it from the message)",
        ),
        (
            "URL, method: 'POST', retries: 1",
            "P074 1: retrying this request could repeat its effect (remove `retries`, or set `idempotent: true` if the server handles repeated requests)",
        ),
    ] {
        check_findings(&record.replace("URL", URL), &[expected]);
    }
    check_findings(
        &format!("{URL}, sealed: 3, query: {{q: '{{city}}'}}"),
        &[
            "P005 3: `sealed` must be true or false, not an integer",
            "P071 '{city}': `{city}` is not a parameter of this tool (parameters: a, b; write `{{` and `}}` for literal braces)",
        ],
    );
}

#[test]
fn styles_and_cookies() {
    let form = "headers: {`content-type`: 'application/x-www-form-urlencoded; charset=utf-8'}";
    let post = spec(&format!("{URL}, method: POST, {form}, cookies: {{c: '{{a}}'}}, styles: {{b: comma}}"));
    assert!(matches!(post.body, Body::Form(_)), "{post:?}");
    assert_eq!((post.cookies.len(), post.styles.len()), (1, 1));
    let multipart = spec(&format!("{URL}, method: POST, headers: {{`Content-Type`: 'multipart/form-data'}}"));
    assert!(matches!(multipart.body, Body::Multipart(_)), "{multipart:?}");
    let text = spec(&format!("{URL}, method: POST, {form}, body: 'a={{a}}&b={{b}}'"));
    assert!(matches!(text.body, Body::Text(_)), "{text:?}");
    check_findings(
        &format!("{URL}, styles: {{a: coma}}"),
        &["P006 coma: `coma` is not a style (did you mean `comma`?)"],
    );
    check_findings(
        &format!("{URL}, styles: {{c: comma}}"),
        &["P071 c: `{c}` is not a parameter of this tool (did you mean `{a}`?)"],
    );
    check_findings(
        &format!("{URL}, cookies: {{`a b`: 'x'}}"),
        &["P005 `a b`: `a b` is not a valid cookie name (remove it)"],
    );
    check_findings(
        &format!("{URL}, headers: {{Cookie: 'x=1'}}, cookies: {{a: 'x'}}"),
        &["P005 a: the header `Cookie` is given too (remove it)"],
    );
}
