//! The cassettes of protocols, replayed over HTTP by a server that checks the requests.

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use patter::message::attachment::AttachmentContents;
use patter::message::conversation::Message;
use patter::message::request::{Request as ModelRequest, Settings};
use patter::model::{HttpModel, Model};
use patter::project::{Config, Environment};
use patter::provider::ModelRef;
use patter::tool::CancellationToken;
use serde_json::Value as Json;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// The wires, with the header of their keys and the paths of their requests.
const WIRES: [(&str, &str, &str); 5] = [
    ("chat", "authorization", "/chat/completions"),
    ("responses", "authorization", "/responses"),
    ("anthropic", "x-api-key", "/v1/messages"),
    ("gemini", "x-goog-api-key", "/v1beta/models/m:"),
    ("ollama", "authorization", "/api/chat"),
];

/// Starts a server that plays a cassette: whole, or as a stream if the request asks for one.
async fn play(wire: &'static str, cassette: Json) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&wrong);
    let app = axum::Router::new().fallback(move |request: Request| {
        let cassette = cassette.clone();
        let log = Arc::clone(&log);
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let body: Json = serde_json::from_slice(&body).unwrap_or_default();
            let (_, header, path) = WIRES.into_iter().find(|(name, ..)| *name == wire).unwrap();
            let key = parts.headers.get(header).and_then(|key| key.to_str().ok()).unwrap_or_default();
            if !key.ends_with("k3y-secret") || !parts.uri.path().starts_with(path) || !body.is_object() {
                log.lock().unwrap().push(format!("{} {header}: {key} {body}", parts.uri));
            }
            let is_streamed = body["stream"] == true || parts.uri.path().contains(":stream");
            let events: Vec<&Json> = cassette["events"].as_array().unwrap().iter().collect();
            let (content_type, text) = match (is_streamed, wire) {
                (false, _) => ("application/json", cassette["whole"].to_string()),
                (true, "ollama") => ("application/x-ndjson", events.iter().map(|event| format!("{event}\n")).collect()),
                (true, _) => {
                    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
                    ("text/event-stream", if wire == "chat" { text + "data: [DONE]\n\n" } else { text })
                }
            };
            let status = if is_streamed { 200 } else { cassette["status"].as_u64().unwrap_or(200) };
            let status = u16::try_from(status).unwrap();
            Response::builder().status(status).header("content-type", content_type).body(Body::from(text)).unwrap()
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (base, wrong)
}

#[tokio::test]
async fn declared_providers_of_every_wire_play_all_cassettes() {
    for (wire, ..) in WIRES {
        let path = format!("{}/../core/tests/wire/cassettes/{wire}.json", env!("CARGO_MANIFEST_DIR"));
        let cassettes: Vec<Json> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(cassettes.len() > 5, "{wire}");
        for cassette in cassettes {
            let expected = cassette["expected"].clone();
            let place = format!("{wire} {}", cassette["case"]);
            let (base, wrong) = play(wire, cassette).await;
            let text =
                format!("[models.tape-{wire}]\napi = '{wire}'\nurl = '{base}'\nkey = 'TAPE_KEY'\ntimeout = 30\n");
            let config = Config::parse(&text).unwrap();
            let environment = Environment::from_variables([("TAPE_KEY", "k3y-secret")]);
            let id: ModelRef = format!("tape-{wire}/m").parse().unwrap();
            let model = HttpModel::with_config(&id, &environment, &config.models).unwrap();
            let messages = vec![Message::user("Hello")].into();
            let settings = Settings::default();
            let request = ModelRequest {
                model: &id,
                instruction: "Be kind.",
                messages: &messages,
                contents: AttachmentContents::NONE,
                tools: &[],
                settings: &settings,
                returns: None,
            };
            let cancellation = CancellationToken::new();
            let pieces = Mutex::new(0);
            let sink = |_| *pieces.lock().unwrap() += 1;
            for (form, sink) in [("whole", None), ("streamed", Some(&sink as &patter::model::DeltaSink<'_>))] {
                match model.call(&request, sink, &cancellation).await {
                    Ok(reply) => {
                        let found = (reply.text.as_str(), reply.finish.name(), reply.thought.as_str());
                        let text = |name: &str| expected[name].as_str().unwrap_or_default();
                        assert_eq!(found, (text("text"), text("finish"), text("thought")), "{place}, {form}");
                        assert_eq!(reply.calls.len(), expected["calls"].as_array().unwrap().len(), "{place}, {form}");
                    }
                    Err(error) => {
                        let message = expected["error"].as_str().unwrap_or_else(|| panic!("{place}, {form}: {error}"));
                        let shown = format!("{error} {error:?}");
                        assert!(shown.contains(message) && !shown.contains("k3y-secret"), "{place}, {form}: {shown}");
                    }
                }
            }
            assert_eq!(*wrong.lock().unwrap(), [""; 0], "{place}");
        }
    }
}
