//! Files in the messages of every protocol: they reach the session, and are served safely.

use crate::lab::{Lab, Response};
use base64::Engine;
use patter::store::{self, NewSession, SessionId, SessionState, StoreLocation};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

const PNG: &str = "iVBORw0KGgouLi4u";
const PDF: &str = "JVBERi0xLjcKLi4uLg==";
/// Markup, which must never be shown as a page.
const SVG: &str = "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+";

/// Returns the message of the user in a session, as the log has it.
async fn message(lab: &Lab, session: &str) -> Json {
    lab.get(&format!("/api/sessions/{session}")).await.json()["messages"][0].clone()
}

/// Checks the attachments of the first message of a session: names and types.
async fn check(lab: &Lab, response: &Response, session: &str, expected: &[(&str, &str)]) {
    assert!(response.status < 300, "{response:?}");
    let message = message(lab, session).await;
    let found: Vec<_> = message["attachments"].as_array().unwrap_or_else(|| panic!("{message}")).iter().collect();
    let found: Vec<_> =
        found.iter().map(|one| (one["name"].as_str().unwrap(), one["media_type"].as_str().unwrap())).collect();
    assert_eq!(found, expected);
    assert!(!message.to_string().contains(PNG), "the log has no content");
    for attachment in message["attachments"].as_array().unwrap() {
        let path = format!("/api/sessions/{session}/attachments/{}", attachment["sha256"].as_str().unwrap());
        assert_eq!(lab.get(&path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn every_protocol_accepts_files() {
    let lab = Lab::new().await;
    let image = format!("data:image/png;base64,{PNG}");
    let pdf = format!("data:application/pdf;base64,{PDF}");

    let content = json!([
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": image, "detail": "low"}},
        {"type": "file", "file": {"filename": "report.pdf", "file_data": pdf}},
    ]);
    let body = json!({"model": "greeter", "messages": [{"role": "user", "content": content}], "metadata": {"session": "chat"}});
    let response = lab.post("/v1/chat/completions", &body).await;
    check(&lab, &response, "chat", &[("image", "image/png"), ("report.pdf", "application/pdf")]).await;

    let content = json!([
        {"type": "input_image", "image_url": image},
        {"type": "input_file", "filename": "report.pdf", "file_data": PDF},
    ]);
    let body =
        json!({"model": "greeter", "input": [{"role": "user", "content": content}], "conversation": "responses"});
    let response = lab.post("/v1/responses", &body).await;
    check(&lab, &response, "responses", &[("image", "image/png"), ("report.pdf", "application/pdf")]).await;

    let content = json!([
        {"type": "image", "source": {"type": "data", "value": PNG, "mimeType": "image/png"}, "metadata": {"filename": "a.png"}},
        {"type": "document", "source": {"type": "url", "value": pdf}},
        {"type": "binary", "mimeType": "text/plain", "data": SVG, "filename": "b.svg"},
        {"type": "text", "text": "Look"},
    ]);
    let body = json!({"threadId": "page", "runId": "r", "messages": [{"role": "user", "content": content}]});
    let response = lab.post("/agents/greeter/ag-ui", &body).await;
    let expected = [("a.png", "image/png"), ("document", "application/pdf"), ("b.svg", "text/plain")];
    check(&lab, &response, "page", &expected).await;

    let attachments = json!([{"name": "folder/a.png", "data": PNG}]);
    let body = json!({"agent": "greeter", "message": "Look", "session": "api", "attachments": attachments});
    let response = lab.post("/api/sessions?wait=true", &body).await;
    check(&lab, &response, "api", &[("a.png", "image/png")]).await;

    // A fork has the files of its own.
    let response = lab.post("/api/sessions/api/fork", &json!({"session": "fork"})).await;
    assert_eq!(lab.request("DELETE", "/api/sessions/api", &[], "").await.status, 204);
    check(&lab, &response, "fork", &[("a.png", "image/png")]).await;
}

/// The studio shows the request as it would be sent, with the files.
#[tokio::test]
async fn rebuilt_requests_have_files() {
    let lab = Lab::new().await;
    let attachments = json!([{"name": "a.png", "data": PNG}]);
    let body = json!({"agent": "counter", "message": "Look", "session": "api", "attachments": attachments});
    assert_eq!(lab.post("/api/sessions?wait=true", &body).await.status, 200);
    // The same session with a model whose protocol is known.
    let store = store::open(&StoreLocation::Sqlite(lab.folder.path().join("s.db"))).await.unwrap();
    let session = store.read(&SessionId::parse("api").unwrap()).await.unwrap();
    let model = format!("scripted/{}/counter.json", lab.folder.path().display());
    let entries: Vec<_> = session.entries.iter().map(|entry| entry.replace(&model, "OpenAI/gpt-5")).collect();
    let number = entries.iter().position(|entry| entry.contains("\"what\":\"reply\"")).unwrap();
    let id = SessionId::parse("known").unwrap();
    let mut claim = store
        .create(NewSession::new(id, "counter", "Look").with_entries(entries, SessionState::Idle), 1)
        .await
        .unwrap();
    let image = base64::engine::general_purpose::STANDARD.decode(PNG).unwrap();
    let sha256: String = Sha256::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect();
    claim.attach(&sha256, image.into()).await.unwrap();
    let page = lab.get(&format!("/studio/sessions/known/entries/{number}?part=true")).await;
    assert!(page.body.contains("as it would be sent") && page.body.contains(PNG), "{page:?}");
}

#[tokio::test]
async fn the_history_of_a_client_may_have_files() {
    let lab = Lab::new().await;
    let image = json!([{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}}]);
    let messages = json!([
        {"role": "user", "content": image},
        {"role": "assistant", "content": "A photo."},
        {"role": "user", "content": "Sure?"},
    ]);
    let response = lab.post("/v1/chat/completions", &json!({"model": "greeter", "messages": messages})).await;
    let session = response.header("x-patter-session").to_owned();
    check(&lab, &response, &session, &[("image", "image/png")]).await;
}

#[tokio::test]
async fn files_that_are_not_accepted_are_refused() {
    let lab = Lab::new().await;
    let chat = |url: &str| {
        let content = json!([{"type": "image_url", "image_url": {"url": url}}]);
        json!({"model": "greeter", "messages": [{"role": "user", "content": content}]})
    };
    let elsewhere = "must be a data URL: this server does not fetch files from other addresses";
    for (url, expected) in [
        ("http://169.254.169.254/latest/meta-data", elsewhere),
        ("https://example.com/a.png", elsewhere),
        ("file:///etc/passwd", elsewhere),
        ("data:image/png,raw", "must be a data URL in Base64"),
        ("data:image/png", "is not a data URL"),
        ("data:image/png;base64,!!!", "is not valid Base64"),
        ("data:image/png;base64,", "`image` is empty"),
        (
            "data:image/png;base64,UEsDBAAA",
            "`image` is an archive or an office document, which models do not read; export it",
        ),
    ] {
        let response = lab.post("/v1/chat/completions", &chat(url)).await;
        assert_eq!(response.status, 400, "{response:?}");
        assert_eq!(response.json()["error"]["param"], "messages[0].content[0].image_url.url", "{response:?}");
        assert!(response.error().contains(expected), "{response:?}");
    }
    let many: Vec<_> = (0..21)
        .map(|number| json!({"name": "a", "data": format!("data:;base64,{}", ["YQ==", "Yg=="][number % 2])}))
        .collect();
    let response = lab.post("/api/sessions", &json!({"agent": "greeter", "message": "x", "attachments": many})).await;
    assert!(response.error().contains("a message has more than 20 attachments"), "{response:?}");
    let unknown = json!({"agent": "greeter", "message": "x", "attachments": [{"nme": "a", "data": "YQ=="}]});
    let response = lab.post("/api/sessions", &unknown).await;
    assert!(response.error().contains("unknown field; did you mean `name`?"), "{response:?}");
    let nothing = lab.post("/api/sessions", &json!({"agent": "greeter", "message": " ", "attachments": []})).await;
    assert_eq!(nothing.status, 400);
}

#[tokio::test]
async fn contents_are_served_so_that_nothing_in_them_runs() {
    let lab = Lab::new().await;
    let attachments = json!([
        {"name": "photo.png", "data": PNG},
        {"name": "evil\r\nX-Bad: 1.svg", "data": SVG},
        {"name": "r\u{00e9}sum\u{00e9}.pdf", "data": PDF},
    ]);
    let body = json!({"agent": "greeter", "message": "Look", "session": "a", "attachments": attachments});
    assert_eq!(lab.post("/api/sessions?wait=true", &body).await.status, 200);
    let message = message(&lab, "a").await;
    let path = |index: usize| {
        format!("/api/sessions/a/attachments/{}", message["attachments"][index]["sha256"].as_str().unwrap())
    };
    let expected = [
        ("image/png", "inline; filename*=UTF-8''photo.png"),
        ("text/plain; charset=utf-8", "attachment; filename*=UTF-8''evil%EF%BF%BD%EF%BF%BDX-Bad%3A%201.svg"),
        ("application/pdf", "attachment; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf"),
    ];
    for (index, (media_type, disposition)) in expected.into_iter().enumerate() {
        let response = lab.get(&path(index)).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(
            (response.header("content-type"), response.header("content-disposition")),
            (media_type, disposition)
        );
        assert_eq!(response.header("x-content-type-options"), "nosniff");
        assert_eq!(response.header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!(response.header("cross-origin-resource-policy"), "same-origin");
        assert!(response.header("cache-control").starts_with("private"), "{response:?}");
        assert_eq!(response.header("x-bad"), "");
    }
    // Only what the conversation names is served, and only of that session.
    let other = json!({"agent": "greeter", "message": "Hi", "session": "b"});
    assert_eq!(lab.post("/api/sessions?wait=true", &other).await.status, 200);
    for missing in
        [path(0).replace("/a/", "/b/"), path(0).replace("/a/", "/none/"), "/api/sessions/a/attachments/..".to_owned()]
    {
        assert_eq!(lab.get(&missing).await.status, 404, "{missing}");
    }
    assert_eq!(lab.post("/api/sessions/a/undo", &json!({})).await.status, 200);
    assert_eq!(lab.get(&path(0)).await.status, 404, "what was undone is not part of the conversation");
}
