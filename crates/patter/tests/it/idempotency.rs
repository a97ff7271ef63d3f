//! Keys by which services recognise a call that is repeated.

use crate::command::tool_in;
use crate::http::server::tool;
use crate::store::{TestStore, id};
use axum::http::{HeaderMap, Method};
use patter::live::LiveProject;
use patter::project::Environment;
use patter::session::Session;
use patter::tool::{CancellationToken, SharedState, Tool, ToolContext};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// The keys of the calls of a tool.
type Keys = Arc<Mutex<Vec<Option<String>>>>;

fn note(keys: &Keys) -> Tool {
    let keys = Arc::clone(keys);
    let tool = Tool::native("note", "Notes", "()==>(::Text)", move |_, context| {
        keys.lock().unwrap().push(context.idempotency_key().map(|key| key.to_string()));
        async { Ok(json!("noted")) }
    });
    tool.unwrap()
}

#[tokio::test]
async fn keys_name_the_session_the_run_and_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let script = json!([{"calls": [{"tool": "note"}]}, {"text": "Done."}]);
    std::fs::write(folder.path().join("script.json"), script.to_string()).unwrap();
    let model = folder.path().join("script.json");
    let path = folder.path().join("a.gram");
    let agent = format!("[a:Agent {{instruction: 'Note.', model: 'scripted/{}'}} | note]", model.display());
    std::fs::write(&path, agent).unwrap();
    let keys = Keys::default();
    let project = LiveProject::open(&path).with_tools([note(&keys)]).with_environment(Environment::default());
    let project = Arc::new(project.read().await.unwrap());
    let database = TestStore::sqlite();
    let store = database.open().await;
    let stop = CancellationToken::new();
    let mut session = Session::create(Arc::clone(&project), store, id("noting"));
    session.say("Note it", &stop).await.unwrap();
    // Another call, which has the same id.
    session.undo().await.unwrap();
    session.say("Note it", &stop).await.unwrap();
    let seen: Vec<_> = keys.lock().unwrap().drain(..).flatten().collect();
    let calls: Vec<_> = ["1", "2"].map(|run| format!("{}/{run}/", id("noting"))).into_iter().collect();
    let rests: Vec<_> = seen.iter().zip(&calls).map(|(key, start)| key.strip_prefix(start.as_str())).collect();
    assert!(rests.len() == 2 && rests[0].is_some() && rests[0] == rests[1], "{seen:?}");

    let mut unsaved = Session::new(project);
    unsaved.say("Note it", &stop).await.unwrap();
    assert_eq!(*keys.lock().unwrap(), [None]);
}

fn context() -> ToolContext {
    ToolContext::new("one").with_state(SharedState::default().with_idempotency_key("s/1/one"))
}

#[tokio::test]
async fn requests_that_change_something_have_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(|method: Method, headers: HeaderMap| async move {
        let key = headers.get("idempotency-key").map_or("none", |key| key.to_str().unwrap());
        format!("{method} {key}")
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    for (record, expected) in [
        ("url: 'BASE/x', method: 'POST'", "POST s/1/one"),
        ("url: 'BASE/x', method: 'DELETE'", "DELETE s/1/one"),
        ("url: 'BASE/x'", "GET none"),
        ("url: 'BASE/x', method: 'POST', headers: {`Idempotency-Key`: 'own'}", "POST own"),
    ] {
        let called = tool(&base, record, "()==>(::Text)").implementation.call(json!({}), &context()).await;
        assert_eq!(called.unwrap(), json!(expected), "{record}");
    }
}

#[tokio::test]
async fn commands_find_the_key_in_a_variable() {
    let print = tool_in(Path::new("/"), &["printenv", "PATTER_IDEMPOTENCY_KEY"], "", "()==>(::Text)");
    let printed = print.implementation.call(json!({}), &context()).await.unwrap();
    assert_eq!(printed, json!("s/1/one"));
    assert!(print.implementation.call(json!({}), &ToolContext::new("one")).await.is_err());
}
