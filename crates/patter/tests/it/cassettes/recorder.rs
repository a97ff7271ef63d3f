//! The recorder: a server between a model and its provider that writes cassettes of what passes.
//!
//! `PATTER_RECORD=FOLDER cargo test -p patter --test it cassettes::recorder` records the provider that `PATTER_RECORD_API`,
//! `PATTER_RECORD_URL`, `PATTER_RECORD_MODEL` and `PATTER_RECORD_KEY` describe.

use super::player::play;
use super::{Form, Question, ask, check};
use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use patter::http::{HttpClient, HttpRequest, NetworkPolicy, Url};
use patter::message::request::Reply;
use patter::model::ModelError;
use patter_core::text::mask_secrets;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// What replaces a secret.
const REMOVED: &str = "REMOVED";
/// Members whose values say who made a request.
const PRIVATE: [&str; 8] =
    ["organization", "organization_id", "org_id", "project_id", "user", "user_id", "safety_identifier", "request_id"];
/// The largest body that is recorded.
const MAX_BODY: usize = 16 << 20;

/// A provider to record.
struct Provider {
    wire: String,
    url: String,
    model: String,
    key: String,
}

/// A request and the response to it.
#[derive(Debug, Clone, Default)]
struct Exchange {
    request: Json,
    status: u16,
    response: String,
}

/// Passes requests on to a provider, and keeps the exchanges.
async fn listen(url: String) -> (String, Arc<Mutex<Vec<Exchange>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let exchanges = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&exchanges);
    let host = Url::parse(&url).unwrap().host_str().map(str::to_owned);
    let client = HttpClient::new(NetworkPolicy::from_allow_list(host.as_deref()).unwrap(), |_| None);
    let app = axum::Router::new().fallback(move |request: Request| {
        let client = client.clone();
        let kept = Arc::clone(&kept);
        let url = url.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, MAX_BODY).await.unwrap();
            let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
            let mut passed = HttpRequest::get(Url::parse(&format!("{}{path}", url.trim_end_matches('/'))).unwrap());
            passed.method = parts.method.clone();
            passed.headers = parts.headers.clone();
            for name in ["host", "content-length", "accept-encoding", "connection"] {
                passed.headers.remove(name);
            }
            passed.body = Some(body.clone());
            let response = client.send(passed).await.unwrap();
            let status = response.status().as_u16();
            let content_type = response.header("content-type").unwrap_or("application/json").to_owned();
            let bytes = response.read(MAX_BODY).await.unwrap();
            kept.lock().unwrap().push(Exchange {
                request: serde_json::from_slice(&body).unwrap_or_default(),
                status,
                response: String::from_utf8_lossy(&bytes).into_owned(),
            });
            Response::builder().status(status).header("content-type", content_type).body(Body::from(bytes)).unwrap()
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (base, exchanges)
}

/// Asks a question whole and streamed, and returns the cassette.
async fn record(provider: &Provider, question: &Question) -> Json {
    let Provider { wire, url, model, key } = provider;
    let (base, exchanges) = listen(url.clone()).await;
    let whole = ask(wire, &base, model, key, question, Form::Whole).await;
    // Failed requests are repeated; the last one counts.
    let first = exchanges.lock().unwrap().drain(..).next_back().expect("a request was sent");
    let _ = ask(wire, &base, model, key, question, Form::Streamed).await;
    let second = exchanges.lock().unwrap().drain(..).next_back().expect("a request was sent");
    let body = serde_json::from_str(&first.response).unwrap_or(Json::String(first.response));
    let events = if second.status < 300 { events(&second.response) } else { Vec::new() };
    let cassette = json!({
        "case": question.case,
        "status": first.status,
        "requests": [first.request, second.request],
        "whole": body,
        "events": events,
        "expected": expected(&whole),
    });
    without_secrets(cassette, key)
}

/// Returns the events of a stream: lines of JSON, or server-sent events.
fn events(stream: &str) -> Vec<Json> {
    let data = |line: &str| line.strip_prefix("data:").unwrap_or(line).trim().to_owned();
    stream.lines().filter_map(|line| serde_json::from_str(&data(line)).ok()).filter(Json::is_object).collect()
}

/// Returns what a cassette expects: what the reply means now, to be reviewed by a person.
fn expected(found: &Result<Reply, ModelError>) -> Json {
    match found {
        Ok(reply) => {
            let calls = reply.calls.iter().map(|call| {
                json!({"id": call.id, "tool": call.tool, "arguments": call.parse_arguments().unwrap_or_default()})
            });
            json!({
                "text": reply.text,
                "calls": calls.collect::<Vec<_>>(),
                "finish": reply.finish.name(),
                "thought": reply.thought,
                "usage": reply.usage,
            })
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Removes the key, what looks like a secret, and who made the request. Headers are not recorded at all.
fn without_secrets(value: Json, key: &str) -> Json {
    match value {
        Json::String(text) => {
            let text = if key.is_empty() { text } else { text.replace(key, REMOVED) };
            Json::String(mask_secrets(&text).into_owned())
        }
        Json::Array(items) => items.into_iter().map(|item| without_secrets(item, key)).collect(),
        Json::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let is_private = PRIVATE.contains(&name.as_str()) && value.is_string();
                let value = if is_private { Json::from(REMOVED) } else { without_secrets(value, key) };
                (name, value)
            });
            Json::Object(members.collect())
        }
        other => other,
    }
}

/// Adds cassettes to those of a folder, as a list for each wire.
fn write(folder: &Path, wire: &str, cassettes: &[Json]) {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join(format!("{wire}.json"));
    let lines: Vec<_> = cassettes.iter().map(|cassette| format!("  {cassette}")).collect();
    std::fs::write(&path, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
}

#[tokio::test]
async fn records_the_provider_that_the_environment_describes() {
    let Ok(folder) = std::env::var("PATTER_RECORD") else { return };
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("set {name}"));
    let provider = Provider {
        wire: variable("PATTER_RECORD_API"),
        url: variable("PATTER_RECORD_URL"),
        model: variable("PATTER_RECORD_MODEL"),
        key: variable("PATTER_RECORD_KEY"),
    };
    let mut cassettes = Vec::new();
    for question in [Question::plain(), Question::calls()] {
        cassettes.push(record(&provider, &question).await);
    }
    write(Path::new(&folder), &provider.wire, &cassettes);
}

/// A provider is played by a cassette that was written by hand; what is recorded of it plays the same.
#[tokio::test]
async fn a_recorded_cassette_can_be_played() {
    for (wire, ..) in super::WIRES {
        let path = format!("{}/../core/tests/wire/cassettes/{wire}.json", env!("CARGO_MANIFEST_DIR"));
        let originals: Vec<Json> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for original in
            originals.into_iter().filter(|one| one["case"] == "parallel calls" || one["case"] == "reasoning")
        {
            let place = format!("{wire} {}", original["case"]);
            let (url, _) = play(wire, original.clone()).await;
            let key = "k3y-secret".to_owned();
            let provider = Provider { wire: wire.to_owned(), url, model: "m".to_owned(), key };
            let question = Question::calls();
            let cassette = record(&provider, &question).await;
            let text = cassette.to_string();
            assert!(!text.contains("k3y-secret"), "{place}: {text}");
            assert_eq!((&cassette["whole"], &cassette["events"]), (&original["whole"], &original["events"]), "{place}");
            let (base, wrong) = play(wire, cassette.clone()).await;
            for form in [Form::Whole, Form::Streamed] {
                let found = ask(wire, &base, "m", "k3y-secret", &question, form).await;
                check(&found, &cassette["expected"], &format!("{place}, {form:?}"));
            }
            assert_eq!(*wrong.lock().unwrap(), [""; 0], "{place}");
            // A request that is not the recorded one is noticed.
            let _ = ask(wire, &base, "m", "k3y-secret", &Question::plain(), Form::Whole).await;
            assert_eq!(wrong.lock().unwrap().len(), 1, "{place}");
        }
    }
}

#[tokio::test]
async fn secrets_are_not_recorded() {
    let key = "sk-proj-0123456789abcdefghijklmnopqrstuv";
    let message = format!("Incorrect API key provided: {key}. Token ghp_0123456789abcdefghijklmnopqrstuvwxyz");
    let error =
        json!({"message": message, "type": "invalid_request_error", "code": "invalid_api_key", "request_id": "req_1"});
    let original = json!({
        "case": "error",
        "status": 401,
        "requests": [null, null],
        "whole": {"error": error, "organization": "org-acme"},
        "events": [],
    });
    let (url, _) = play("chat", original).await;
    let provider = Provider { wire: "chat".to_owned(), url, model: "m".to_owned(), key: key.to_owned() };
    let cassette = record(&provider, &Question::plain()).await;
    let text = cassette.to_string();
    for secret in [key, "ghp_0123456789", "org-acme", "req_1", "0123456789abcdef"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert_eq!(
        (cassette["status"].as_u64(), &cassette["whole"]["error"]["code"]),
        (Some(401), &json!("invalid_api_key"))
    );
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "chat", std::slice::from_ref(&cassette));
    let read: Vec<Json> = serde_json::from_slice(&std::fs::read(folder.path().join("chat.json")).unwrap()).unwrap();
    let (base, wrong) = play("chat", read.into_iter().next().unwrap()).await;
    for form in [Form::Whole, Form::Streamed] {
        let found = ask("chat", &base, "m", "k3y-secret", &Question::plain(), form).await;
        assert!(found.unwrap_err().to_string().contains("invalid_api_key"), "{form:?}");
    }
    assert_eq!(*wrong.lock().unwrap(), [""; 0]);
}
