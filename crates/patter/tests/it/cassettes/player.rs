//! A server that plays cassettes.

use super::WIRES;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use serde_json::Value as Json;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Returns a body: JSON, or a text that is not JSON.
fn body_text(body: &Json) -> String {
    body.as_str().map_or_else(|| body.to_string(), str::to_owned)
}

/// Starts a server that plays a cassette: whole, or as a stream if the request asks for one.
pub(super) async fn play(wire: &'static str, cassette: Json) -> (String, Arc<Mutex<Vec<String>>>) {
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
                (false, _) => ("application/json", body_text(&cassette["whole"])),
                (true, _) if cassette["status"].as_u64().is_some_and(|status| status >= 300) && events.is_empty() => {
                    ("application/json", body_text(&cassette["whole"]))
                }
                (true, "ollama") => ("application/x-ndjson", events.iter().map(|event| format!("{event}\n")).collect()),
                (true, _) => {
                    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
                    ("text/event-stream", if wire == "chat" { text + "data: [DONE]\n\n" } else { text })
                }
            };
            // A cassette that was recorded has the requests too, which must be the same.
            let expected = &cassette["requests"][usize::from(is_streamed)];
            if !expected.is_null() && *expected != body {
                log.lock().unwrap().push(format!("the request differs: {body}"));
            }
            // An error is the same whole and streamed; one that was recorded has its status in both.
            let has_status = !is_streamed || cassette["requests"].is_array();
            let status = if has_status { cassette["status"].as_u64().unwrap_or(200) } else { 200 };
            let status = u16::try_from(status).unwrap();
            Response::builder().status(status).header("content-type", content_type).body(Body::from(text)).unwrap()
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (base, wrong)
}
