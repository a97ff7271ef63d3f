//! Attachments in sessions: they reach the model, and are stored beside the log.

use crate::store::{TestStore, id};
use axum::Router;
use axum::body::Bytes;
use patter::live::LiveProject;
use patter::message::attachment::{AttachmentContents, UserInput};
use patter::model::{HttpModel, Model};
use patter::project::Environment;
use patter::provider::ModelRef;
use patter::session::{Recorder, Recording, Session, with_media};
use patter::store::SessionState;
use patter::tool::CancellationToken;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";
const PNG_URL: &str = "data:image/png;base64,iVBORw0KGgouLi4u";

/// A provider that keeps the requests that it receives.
#[derive(Clone, Default)]
struct Provider {
    requests: Arc<Mutex<Vec<Json>>>,
}

impl Provider {
    async fn start(&self) -> String {
        let requests = Arc::clone(&self.requests);
        let app = Router::new().fallback(move |body: Bytes| {
            requests.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            let reply = json!({"choices": [{"message": {"content": "A photo."}, "finish_reason": "stop"}]});
            async move { ([("content-type", "application/json")], reply.to_string()) }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        format!("http://{address}/v1")
    }

    /// Returns the content of a message of the last request.
    fn content(&self, message: usize) -> Json {
        self.requests.lock().unwrap().last().unwrap()["messages"][message]["content"].clone()
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn project(folder: &tempfile::TempDir, model: &str, provider: &Provider) -> Arc<LiveProject> {
    let path = folder.path().join("a.gram");
    std::fs::write(&path, format!("[a:Agent {{instruction: 'Look.', model: '{model}'}}]")).unwrap();
    let address = provider.start().await;
    let environment = Environment::from_variables([("OPENAI_API_KEY", "k3y"), ("OPENAI_BASE_URL", &address)]);
    Arc::new(LiveProject::open(path).with_environment(environment).read().await.unwrap())
}

fn photo(text: &str) -> (UserInput, AttachmentContents) {
    let mut contents = AttachmentContents::default();
    let attachments = vec![contents.attach("photo.png", PNG.to_vec()).unwrap()];
    (UserInput { text: text.into(), attachments }, contents)
}

async fn say(session: &mut Session, text: &str) {
    let run = session.say(text, &CancellationToken::new()).await.unwrap();
    assert_eq!(run.response().content, "A photo.");
}

async fn show(session: &mut Session, text: &str) {
    let (input, contents) = photo(text);
    session.add_contents(&contents);
    let run = session.say(input, &CancellationToken::new()).await.unwrap();
    assert_eq!(run.response().content, "A photo.");
}

fn shown(text: &str) -> Json {
    json!([{"type": "image_url", "image_url": {"url": PNG_URL}}, {"type": "text", "text": text}])
}

#[tokio::test]
async fn attachments_are_sent_and_stored_beside_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::default();
    let project = project(&folder, "OpenAI/gpt-4o", &provider).await;
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    let mut session = Session::create(Arc::clone(&project), Arc::clone(&store), id("a"));
    show(&mut session, "What is this?").await;
    assert_eq!(provider.content(1), shown("What is this?"));
    // The second time, the store has the session, and the content.
    show(&mut session, "And this?").await;
    drop(session);
    let stored = store.read(&id("a")).await.unwrap();
    let log = stored.entries.join("\n");
    assert!(log.contains(r#""attachments":[{"name":"photo.png","media_type":"image/png","bytes":12,"#), "{log}");
    assert!(!log.contains("iVBORw0KGgo"), "the log has no content: {log}");
    assert_eq!(store.attachments(&id("a")).await.unwrap().len(), 1);

    // Another process continues.
    let mut session = Session::open(Arc::clone(&project), test_store.open().await, &id("a")).await.unwrap();
    say(&mut session, "Are you sure?").await;
    assert_eq!((provider.content(1), provider.content(3)), (shown("What is this?"), shown("And this?")));

    // A fork has its own copy.
    let mut fork = session.fork(2, Some((Arc::clone(&store), id("fork")))).unwrap();
    drop(session);
    say(&mut fork, "Once more").await;
    drop(fork);
    store.remove(&id("a")).await.unwrap();
    let mut fork = Session::open(project, store, &id("fork")).await.unwrap();
    say(&mut fork, "And again").await;
    assert_eq!(provider.content(1), shown("What is this?"));
}

#[tokio::test]
async fn a_session_that_is_not_saved_has_attachments() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::default();
    let mut session = Session::new(project(&folder, "OpenAI/my-own-model", &provider).await);
    show(&mut session, "").await;
    assert_eq!(provider.content(1), json!([{"type": "image_url", "image_url": {"url": PNG_URL}}]));
    let mut fork = session.fork(2, None).unwrap();
    say(&mut fork, "And?").await;
    assert_eq!(provider.content(1), json!([{"type": "image_url", "image_url": {"url": PNG_URL}}]));
}

#[tokio::test]
async fn models_that_do_not_read_them_are_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::default();
    let project = project(&folder, "OpenAI/gpt-4", &provider).await;
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    let mut session = Session::create(project, Arc::clone(&store), id("a"));
    let (input, contents) = photo("What is this?");
    session.add_contents(&contents);
    let error = session.say(input, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "`OpenAI/gpt-4` does not read images, so `photo.png` cannot be sent to it");
    assert_eq!(provider.count(), 0);
    assert!(store.list(1).await.unwrap().is_empty(), "nothing is stored");
    // The content that was not sent is not stored later either.
    say(&mut session, "Hello").await;
    assert!(store.attachments(&id("a")).await.unwrap().is_empty());
}

#[test]
fn models_read_what_nobody_says_they_do_not() {
    let text = "[models.OpenAI]\nwindow = 9\n[models.OpenAI.models.blind]\nimages = false\n[models.OpenAI.models.'gpt-4']\nimages = true";
    let models = patter::project::Config::parse(text).unwrap().models;
    let environment = Environment::from_variables([("OPENAI_API_KEY", "k3y")]);
    let (input, _) = photo("");
    for (name, is_read) in [("new", true), ("blind", false), ("gpt-4", true), ("gpt-3.5-turbo", false)] {
        let model: ModelRef = format!("OpenAI/{name}").parse().unwrap();
        let http = HttpModel::with_config(&model, &environment, &models).unwrap();
        let checked = http.check_attachments(&model, &[&input.attachments[0]]);
        assert_eq!(checked.is_ok(), is_read, "{name}");
    }
}

#[tokio::test]
async fn a_content_that_is_gone_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::default();
    let project = project(&folder, "OpenAI/gpt-4o", &provider).await;
    let mut session = Session::new(project);
    let (input, _) = photo("What is this?");
    let run = session.say(input, &CancellationToken::new()).await.unwrap();
    let failure = format!("{:?}", run.outcome().unwrap());
    assert!(
        failure.contains("the content of the attachment `photo.png` is not available; attach it again"),
        "{failure}"
    );
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn a_crash_before_the_first_reply_loses_no_attachment() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::default();
    let project = project(&folder, "OpenAI/gpt-4o", &provider).await;
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    let mut session = Session::create(Arc::clone(&project), Arc::clone(&store), id("a"));
    let (input, contents) = photo("What is this?");
    session.add_contents(&contents);
    let stop = CancellationToken::new();
    {
        let mut turn = Box::pin(session.say(input, &stop));
        // Dropped as soon as the session is stored.
        while store.list(1).await.unwrap().is_empty() {
            let _ = tokio::time::timeout(std::time::Duration::from_millis(1), &mut turn).await;
        }
    }
    drop(session);
    if store.read(&id("a")).await.unwrap().summary.state == SessionState::Running {
        let mut session = Session::open(project, store, &id("a")).await.unwrap();
        let run = session.resume(&stop).await.unwrap();
        assert_eq!(run.response().content, "A photo.");
    }
    assert_eq!(provider.content(1), shown("What is this?"));
}

#[tokio::test]
async fn a_recording_names_attachments_without_their_contents() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::default();
    let mut session = Session::new(project(&folder, "OpenAI/gpt-4o", &provider).await);
    let path = folder.path().join("run.jsonl");
    session.record(Recorder::create(&path).unwrap());
    show(&mut session, "What is this?").await;
    drop(session);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("photo.png") && !text.contains("iVBORw0KGgo"), "{text}");
    assert!(!Recording::parse(&text).unwrap().entries.is_empty());
}

/// A provider that reads a file, and then says what it sees. It keeps the requests that it receives.
async fn reader() -> (String, Arc<Mutex<Vec<Json>>>) {
    let requests = Arc::new(Mutex::new(Vec::<Json>::new()));
    let kept = Arc::clone(&requests);
    let app = Router::new().fallback(move |body: Bytes| {
        let request: Json = serde_json::from_slice(&body).unwrap();
        let is_first = request["messages"].as_array().unwrap().len() == 1;
        kept.lock().unwrap().push(request);
        let call = json!({"type": "tool_use", "id": "t1", "name": "fs__readFile", "input": {"path": "photo.png"}});
        let (content, why) = match is_first {
            true => (call, "tool_use"),
            false => (json!({"type": "text", "text": "A photo."}), "end_turn"),
        };
        let reply = json!({"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [content],
            "stop_reason": why, "usage": {"input_tokens": 1, "output_tokens": 1}});
        async move { ([("content-type", "application/json")], reply.to_string()) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (format!("http://{address}"), requests)
}

#[tokio::test]
async fn images_of_tools_are_stored_beside_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let agent = "[a:Agent {instruction: 'Look.', model: 'Anthropic/claude-sonnet-4-5'} | `fs/readFile`]";
    std::fs::write(folder.path().join("a.gram"), agent).unwrap();
    std::fs::write(folder.path().join("patter.toml"), "").unwrap();
    std::fs::write(folder.path().join("photo.png"), PNG).unwrap();
    let (address, requests) = reader().await;
    let environment = Environment::from_variables([("ANTHROPIC_API_KEY", "k3y"), ("ANTHROPIC_BASE_URL", &address)]);
    let project = LiveProject::open(folder.path().join("a.gram")).with_environment(environment);
    let project = Arc::new(project.read().await.unwrap());
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    let mut session = Session::create(Arc::clone(&project), Arc::clone(&store), id("a"));
    say(&mut session, "What is in photo.png?").await;
    let image = requests.lock().unwrap()[1]["messages"][2]["content"][0]["content"].to_string();
    assert!(image.contains("iVBORw0KGgouLi4u"), "{image}");
    drop(session);

    let stored = store.read(&id("a")).await.unwrap().entries;
    let log = stored.join("\n");
    assert!(!log.contains("iVBORw0KGgo"), "the log has no content: {log}");
    let hash = store.attachments(&id("a")).await.unwrap().pop().unwrap();
    assert!(log.contains(&format!(r#""mimeType":"image/png","bytes":12,"sha256":"{hash}""#)), "{log}");
    assert_eq!(store.attachment(&id("a"), &hash).await.unwrap().as_deref(), Some(PNG));
    let whole = with_media(&*store, &id("a"), stored).await.unwrap().join("\n");
    assert!(whole.contains("iVBORw0KGgouLi4u") && !whole.contains(&hash), "{whole}");

    // Another process continues, and so does a fork whose origin is gone.
    let mut session = Session::open(Arc::clone(&project), test_store.open().await, &id("a")).await.unwrap();
    say(&mut session, "Are you sure?").await;
    assert_eq!(requests.lock().unwrap()[2]["messages"][2]["content"][0]["content"].to_string(), image);
    let mut fork = session.fork(4, Some((Arc::clone(&store), id("fork")))).unwrap();
    drop(session);
    say(&mut fork, "Once more").await;
    drop(fork);
    store.remove(&id("a")).await.unwrap();
    let mut fork = Session::open(project, Arc::clone(&store), &id("fork")).await.unwrap();
    say(&mut fork, "And again").await;
    assert_eq!(requests.lock().unwrap()[4]["messages"][2]["content"][0]["content"].to_string(), image);
    let log = store.read(&id("fork")).await.unwrap().entries.join("\n");
    assert!(log.contains(&hash) && !log.contains("iVBORw0KGgo"), "{log}");
}
