//! What the declarations of HTTP tools say, and everything that can be wrong with them.

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

/// Checks what is found in a record, as code, marked text, message and hint.
fn finds(record: &str, expected: &[&str]) {
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
fn what_is_said_and_what_follows() {
    let plain = spec(URL);
    assert_eq!((plain.method, &plain.body, &plain.result), (Method::Get, &Body::None, &HttpResult::Body));
    assert_eq!((plain.retries, plain.max_bytes, plain.effect()), (2, 1024 * 1024, Effect::Network));
    assert!(plain.is_idempotent());
    let post = spec(&format!("{URL}, method: POST, timeout: 5s, maxBytes: 10, concurrency: 3, sealed: true"));
    assert_eq!((post.method, post.retries, post.max_bytes, post.effect()), (Method::Post, 0, 10, Effect::Writes));
    assert_eq!((post.conduct.timeout, post.conduct.concurrency), (Some(Duration::from_secs(5)), Some(3)));
    assert!(post.conduct.sealed && !post.is_idempotent());
    let said = spec(&format!("{URL}, method: 'POST', idempotent: true, effect: reads, retries: 4, result: '/a'"));
    assert_eq!((said.retries, said.effect(), said.result), (4, Effect::Reads, HttpResult::Pointer("/a".to_owned())));
}

#[test]
fn addresses_are_taken_apart() {
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
fn addresses_that_cannot_be_called() {
    let hint = "(write it as in `https://api.example.com/…`)";
    let host = "(arguments may stand after the host, in the path and the query)";
    for (url, expected) in [
        ("", format!("P072 '': this address is empty {hint}")),
        ("/v1", format!("P072 '/v1': this address has no scheme {hint}")),
        ("ftp://h/x", format!("P072 'ftp://h/x': only `http` and `https` can be called {hint}")),
        ("https:///x", format!("P072 'https:///x': this address has no host {hint}")),
        ("https://:80/x", format!("P072 'https://:80/x': this address has no host {hint}")),
        ("https://a b/x", format!("P072 'https://a b/x': the host of this address is none {hint}")),
        ("https://{a}/x", format!("P073 'https://{{a}}/x': `{{a}}` would choose the server that is called {host}")),
        ("https://h:{b}/", format!("P073 'https://h:{{b}}/': `{{b}}` would choose the server that is called {host}")),
        ("https://h{a}", format!("P073 'https://h{{a}}': `{{a}}` would choose the server that is called {host}")),
        ("${U}{a}/x", format!("P073 '${{U}}{{a}}/x': `{{a}}` would choose the server that is called {host}")),
        ("{a}", format!("P073 '{{a}}': `{{a}}` would choose the server that is called {host}")),
        (
            "https://me:x@h/",
            "P072 'https://me:x@h/': this address holds a user \
             (write a header: `authorization: \"Basic ${USER}:${PASSWORD}\"`)"
                .to_owned(),
        ),
        (
            "https://h/#{a}",
            "P072 'https://h/#{a}': what follows `#` is never sent (remove it, or write `%23` for the character)"
                .to_owned(),
        ),
        (
            "https://h/?{a}=1",
            "P072 'https://h/?{a}=1': a name in the query has a hole (write the name out; only values may have holes)"
                .to_owned(),
        ),
    ] {
        finds(&format!("url: '{url}'"), &[expected.as_str()]);
    }
}

#[test]
fn what_can_be_wrong_beside_the_address() {
    finds("method: 'GET'", &["P002 t: the tool `t` has no `url` (add `url: \"https://…\"` to its record)"]);
    finds("ulr: 'https://h'", &["P004 ulr: a request has no property `ulr` (did you mean `url`?)"]);
    for (record, expected) in [
        ("url: 3", "P005 3: `url` takes a text, not an integer (put quotes around it)"),
        ("URL, timout: 3s", "P004 timout: a request has no property `timout` (did you mean `timeout`?)"),
        ("URL, method: 'get'", "P006 'get': `method` cannot be `get` (did you mean `GET`?)"),
        (
            "URL, timeout: 3km",
            "P005 3km: `timeout` takes a time, not a measurement (write seconds, or a number with ms, s, m or h: `30s`)",
        ),
        ("URL, retries: 11", "P006 11: `retries` is 11, but must be at most 10"),
        ("URL, maxBytes: 0", "P006 0: `maxBytes` is 0, but must be at least 1"),
        ("URL, query: 'a=1'", "P005 'a=1': `query` takes a map, not a string"),
        ("URL, headers: ['x']", "P005 ['x']: `headers` takes a map, not an array"),
        ("URL, query: {q: [1]}", "P005 [1]: a text goes here, not an array (put quotes around it)"),
        ("URL, query: {q: '{city}'}", "P071 '{city}': `{city}` is no parameter of this tool (it has a, b)"),
        (
            "URL, headers: {x: '{'}",
            "P070 '{': `{` has no `}` (write `{{` and `}}` for braces that stand for themselves)",
        ),
        ("URL, headers: {`x y`: '1'}", "P005 `x y`: `x y` is not the name of a header (remove it)"),
        ("URL, headers: {Host: 'h'}", "P005 Host: the header `Host` follows from the request (remove it)"),
        ("URL, body: 3", "P005 3: `body` takes a text, a map, a list or `\"none\"`, not an integer"),
        ("URL, body: {a: 1..2}", "P005 1..2: `body` takes what JSON can say, not a range"),
        (
            "URL, result: 'all'",
            "P006 'all': `result` cannot be `all` (it is `body`, `text`, `status` or a JSON pointer such as `/data/0/temp`)",
        ),
        (
            "URL, errors: {`40`: 'x'}",
            "P005 `40`: `40` is no status (write one, `\"404\"`, or a class of them, `\"4xx\"`)",
        ),
        (
            "URL, errors: {`4xx`: '${K}'}",
            "P005 '${K}': a model would read the secret `K` (leave it out of the message)",
        ),
        (
            "URL, method: 'POST', retries: 1",
            "P074 1: this request may not be made again: it could do its work twice (remove `retries`, or say `idempotent: true` if the server takes care)",
        ),
    ] {
        finds(&record.replace("URL", URL), &[expected]);
    }
    finds(
        &format!("{URL}, sealed: 3, query: {{q: '{{city}}'}}"),
        &[
            "P005 3: `sealed` takes true or false, not an integer",
            "P071 '{city}': `{city}` is no parameter of this tool (it has a, b)",
        ],
    );
}
