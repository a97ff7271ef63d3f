//! The standard tools that access the web, against a local server.

use super::server::{self, Server, call, reply};
use patter::check::{Options, check};
use patter::declare::{HttpSpec, Toolbox};
use patter::gram::{format, parse};
use patter::http::{HttpClient, NetworkPolicy};
use patter::library::Layer;
use patter::permission::{Permissions, Rule};
use patter::project::Project;
use patter::tool::standard::{TOOLBOXES, fetch};
use patter::tool::{CallRequest, Executor, Tool, Workspace, http_tool, merge};
use patter::types::signature::Records;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Returns a tool of a standard toolbox, with another server.
fn standard(toolbox: &str, name: &str, host: &str, base: &str) -> Tool {
    let (_, text) = TOOLBOXES.into_iter().find(|(known, _)| *known == toolbox).unwrap();
    assert!(text.contains(host));
    let (tree, diagnostics) = parse(&text.replace(host, base));
    assert!(diagnostics.is_empty());
    let toolbox = Toolbox::cast(tree.patterns().next().unwrap()).unwrap();
    let spec = toolbox.tools().find(|tool| tool.name().as_deref() == Some(name)).unwrap();
    let definition = spec.definition(&Arc::new(Records::default())).unwrap();
    let http = HttpSpec::read(spec.pattern().unwrap(), &definition.signature).unwrap();
    http_tool(definition, http, &server::client(), Arc::new(|_| None))
}

/// Checks the request of a tool, and that its result matches the signature.
async fn check_tool(
    toolbox: &str,
    name: &str,
    host: &str,
    arguments: Json,
    target: &str,
    answer: Json,
    expected: Json,
) {
    let server =
        Server::start(move |_, _| reply(200, &[("content-type", "application/json")], answer.to_string())).await;
    let tool = standard(toolbox, name, host, &server.base);
    let arguments = tool.definition.signature.validate_arguments(arguments, &tool.definition.records).unwrap();
    let result = call(&tool, arguments).await.unwrap();
    assert_eq!(server.request(0)["target"], target);
    assert_eq!(result, expected);
    tool.definition.signature.returns.check(&result, &tool.definition.records).unwrap();
}

#[test]
fn standard_toolboxes_are_valid() {
    for (name, text) in TOOLBOXES {
        let file = format!("{name}.gram");
        let findings = check(&Project::read([(file.as_str(), text)]), &Options::default());
        assert!(findings.is_empty(), "{name}: {findings:?}");
        assert_eq!(format(text).unwrap(), text, "{name}");
    }
}

#[tokio::test]
async fn wikipedia() {
    let host = "https://en.wikipedia.org";
    let page = json!({
        "id": 38930, "key": "Jupiter", "title": "Jupiter", "excerpt": "<span class=\"searchmatch\">Jupiter</span> is",
        "matched_title": null, "description": null, "thumbnail": null
    });
    let arguments = json!({"query": "big & red planet"});
    let target = "/w/rest.php/v1/search/page?q=big%20%26%20red%20planet&limit=5";
    check_tool("wikipedia", "search", host, arguments, target, json!({"pages": [page]}), json!([page])).await;
    let summary = json!({
        "type": "standard", "title": "AC/DC", "extract": "AC/DC are a band.", "description": "Band",
        "timestamp": "2026-01-01T00:00:00Z", "content_urls": {"desktop": {"page": "https://en.wikipedia.org/wiki/AC/DC"}}
    });
    let target = "/api/rest_v1/page/summary/AC%2FDC";
    check_tool("wikipedia", "summary", host, json!({"title": "AC/DC"}), target, summary.clone(), summary).await;
    let server = Server::start(|_, _| reply(404, &[], "{}")).await;
    let tool = standard("wikipedia", "summary", host, &server.base);
    let message = call(&tool, json!({"title": "Nope"})).await.unwrap_err().message().to_owned();
    assert_eq!(message, "Wikipedia has no page `Nope`; use search to find the title");
}

#[tokio::test]
async fn hacker_news() {
    let host = "https://hacker-news.firebaseio.com";
    let target = "/v0/topstories.json?orderBy=%22%24key%22&limitToFirst=2";
    check_tool("hackerNews", "topStories", host, json!({"limit": 2}), target, json!([9, 8]), json!([9, 8])).await;
    let story = json!({
        "by": "dhouston", "descendants": 71, "id": 8863, "kids": [8952, 9224], "score": 111, "time": 1_175_714_200,
        "title": "My YC app: Dropbox", "type": "story", "url": "http://www.getdropbox.com/u/2/screencast.html"
    });
    check_tool("hackerNews", "item", host, json!({"id": 8863}), "/v0/item/8863.json", story.clone(), story).await;
    check_tool("hackerNews", "item", host, json!({"id": 1}), "/v0/item/1.json", Json::Null, Json::Null).await;
}

/// Checks the result of `fetch` for a page.
async fn check_fetch(
    content_type: &'static str,
    body: String,
    max_chars: usize,
    expected: Result<(Option<&str>, &str, bool), &str>,
) {
    let server = Server::start(move |_, seen| match seen["target"].as_str() {
        Some("/moved") => reply(301, &[("location", "/page")], ""),
        _ => reply(200, &[("content-type", content_type)], body.clone()),
    })
    .await;
    let tool = fetch(&server::client());
    let result = call(&tool, json!({"url": format!("{}/moved", server.base), "maxChars": max_chars})).await;
    let found = match &result {
        Ok(page) => {
            tool.definition.signature.returns.check(page, &tool.definition.records).unwrap();
            assert_eq!((&page["url"], &page["status"]), (&json!(format!("{}/page", server.base)), &json!(200)));
            Ok((page["title"].as_str(), page["text"].as_str().unwrap().trim(), page["truncated"].as_bool().unwrap()))
        }
        Err(failure) => Err(failure.message()),
    };
    assert_eq!(found, expected, "{content_type}");
}

#[tokio::test]
async fn decodes_pages() {
    let pages: [(&str, &[u8], &str); 9] = [
        ("text/plain", "é€".as_bytes(), "é€"),
        ("text/plain; charset=windows-1252", b"\x80 \x93caf\xe9\x94 \x9f", "€ “café” Ÿ"),
        ("text/plain; charset=\"ISO-8859-1\"; x=y", b"\x80\xff", "€ÿ"),
        ("text/plain; charset=iso-8859-15", b"\xa4", "\u{fffd}"),
        ("text/plain; charset=utf-16be", b"\0a \xac\xd8\x34\xdd\x1e", "a€\u{1d11e}"),
        ("text/plain; charset=utf-16", b"a\0\xac ", "a€"),
        ("text/plain", b"\xff\xfea\0\xac ", "a€"),
        ("text/plain; charset=utf-16le", b"\xfe\xff\0a\xd8\0\0", "a\u{fffd}"),
        ("text/plain; charset=latin1", b"\xef\xbb\xbf\xc3\xa9", "é"),
    ];
    for (content_type, body, expected) in pages {
        let server = Server::start(move |_, _| reply(200, &[("content-type", content_type)], body)).await;
        let page = call(&fetch(&server::client()), json!({ "url": server.base })).await.unwrap();
        assert_eq!(page["text"], expected, "{content_type}");
    }
}

#[tokio::test]
async fn converts_html_to_text() {
    let html = "<html><head><title>A &amp; <b></title><script>no()</script></head>\
                <body><h1>Hello</h1><p>to <a href='/x'>you</a></p></body></html>";
    let text = "# Hello\n\nto [you][1]\n\n[1]: /x";
    check_fetch("text/html; charset=utf-8", html.to_owned(), 1000, Ok((Some("A & <b>"), text, false))).await;
    check_fetch("text/html", html.to_owned(), 7, Ok((Some("A & <b>"), "# Hello", true))).await;
    check_fetch("text/plain", "a<b>".to_owned(), 1000, Ok((None, "a<b>", false))).await;
    check_fetch("application/ld+json", "{}".to_owned(), 1000, Ok((None, "{}", false))).await;
    check_fetch("text/plain", "äöü".to_owned(), 2, Ok((None, "äö", true))).await;
    check_fetch("image/png", String::new(), 2, Err("the page is `image/png`, which is not text")).await;
    // In deeply nested pages the text is kept, but not the nesting.
    for tag in ["<div>", "<b>", "<ul><li>", "<blockquote>", "<div><!--</div>-->", "<b></i>", "<table><tr><td>"] {
        let deep = format!("{}end<script>no()</script>", tag.repeat(1_500));
        let tool = fetch(&server::client());
        let server = Server::start(move |_, _| reply(200, &[("content-type", "text/html")], deep.clone())).await;
        let page = call(&tool, json!({"url": server.base, "maxChars": 1_000_000})).await.unwrap();
        let text = page["text"].as_str().unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest < 1_000, "{tag}: {widest}");
        // Text next to the cells of a table is not shown.
        let is_kept = text.contains('e') && text.contains('d');
        assert!((is_kept || tag == "<table><tr><td>") && !text.contains("no()"), "{tag}: {text}");
    }
}

#[tokio::test]
async fn rejects_blocked_and_invalid_urls() {
    let tool = fetch(&HttpClient::new(NetworkPolicy::default(), |_| None));
    for (url, expected) in [
        ("http://127.0.0.1/", "`127.0.0.1` is a private address"),
        ("http://localhost:8080/", "`localhost` is a private address"),
        ("http://169.254.169.254/latest/", "`169.254.169.254` is a private address"),
        ("file:///etc/passwd", "unsupported scheme `file`"),
        ("http://me:pass@example.com/", "`url` must not contain credentials"),
        ("example.com", "`url` is not a valid URL"),
    ] {
        let message = call(&tool, json!({ "url": url })).await.unwrap_err().message().to_owned();
        assert!(message.starts_with(expected), "{url}: {message}");
    }
}

/// Rules over URLs apply to what a call reads: however the URL is written, and wherever it is redirected.
#[tokio::test]
async fn rules_apply_to_the_pages_that_a_call_reads() {
    let private = Server::start(|_, _| reply(200, &[("content-type", "text/plain")], "private")).await;
    let target = format!("{}/page", private.base);
    let location = target.clone();
    let public = Server::start(move |_, _| reply(302, &[("location", &location)], "")).await;
    let workspace = Workspace::builder().toolbox("", |it| it.tool(fetch(&server::client()))).build().unwrap();
    let library = Arc::new(merge([(Layer::Internal, workspace)]).unwrap());
    let read = async |rule: &str, url: &str| {
        let rules = ["allow fetch", rule].map(|rule| Rule::parse(rule, "the test").unwrap());
        let executor = Executor::new(Arc::clone(&library), Permissions::default().with_all(rules));
        executor.call(CallRequest::new("fetch", json!({ "url": url }))).await.map_err(|error| error.to_string())
    };
    let deny = format!("deny fetch when url matches '{}/*'", private.base);
    let spelled = target.replace("http://127.0.0.1", "HTTP://0x7f.1");
    for url in [&target, &spelled] {
        let error = read(&deny, url).await.unwrap_err();
        assert!(error.contains("is not permitted"), "{url}: {error}");
    }
    let escaped = target.replace("/page", "/%70%61g%65?%2F");
    let error = read("deny fetch when url matches '*/page*'", &escaped).await.unwrap_err();
    assert!(error.contains("is not permitted"), "{error}");
    let error = read(&deny, &public.base).await.unwrap_err();
    assert!(error.ends_with("which permission rules exclude"), "{error}");
    assert_eq!(private.count(), 0);
    let page = read("deny fetch when url is 'http://example.com/'", &public.base).await.unwrap();
    assert_eq!(page["text"], "private");
}
