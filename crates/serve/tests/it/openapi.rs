//! `/openapi.json` and the routes say the same.

use crate::lab::Lab;
use serde_json::{Value as Json, json};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Returns a path with values for its parameters. There is nothing of that name.
fn filled(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "none" } else { part }).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn routes_are_described() {
    let lab = Lab::new().await;
    let document = lab.get("/openapi.json").await.json();
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            let response =
                lab.request(&method.to_uppercase(), &filled(path), &[("Content-Type", "application/json")], "{}").await;
            let is_known = response.status != 405 && !response.body.contains("see /openapi.json");
            // The protocol of `/mcp` decides itself, and says so with the same status.
            let is_described = !item[method].is_null();
            assert!(is_known == is_described || path == "/mcp", "{method} {path}: {response:?}");
        }
    }
    // The other direction: each route in the source is there.
    let source = include_str!("../../src/api/mod.rs");
    let routes =
        source.lines().filter_map(|line| line.trim().strip_prefix(".route")).filter_map(|line| line.split('"').nth(1));
    let mut known: Vec<_> = document["paths"].as_object().unwrap().keys().map(|path| filled(path)).collect();
    let mut routes: Vec<_> = routes.map(filled).collect();
    known.sort();
    routes.sort();
    assert_eq!(known, routes);
}

/// Checks a response against its description.
fn check(document: &Json, path: &str, method: &str, status: &str, body: &Json) {
    let response = &document["paths"][path][method]["responses"][status];
    let response = if response.is_null() { &document["components"]["responses"]["Error"] } else { response };
    let mut schema = response["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> =
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{method} {path}: {errors:?}\n{body}");
}

#[tokio::test]
async fn responses_are_as_described() {
    let lab = Lab::new().await;
    let document = lab.get("/openapi.json").await.json();
    let started = lab.post("/api/sessions", &json!({"agent": "greeter", "message": "Hi", "session": "a"})).await;
    check(&document, "/api/sessions", "post", "202", &started.json());
    let ended =
        lab.post("/api/sessions?wait=true", &json!({"agent": "counter", "message": "Hi", "session": "b"})).await;
    check(&document, "/api/sessions", "post", "200", &ended.json());
    let waiting = lab.post("/api/sessions?wait=true", &json!({"agent": "boss", "message": "Hi", "session": "c"})).await;
    assert_eq!(waiting.json()["status"], "waiting");
    check(&document, "/api/sessions", "post", "200", &waiting.json());
    let failed =
        lab.post("/api/sessions?wait=true", &json!({"agent": "broken", "message": "Hi", "session": "d"})).await;
    check(&document, "/api/sessions", "post", "200", &failed.json());
    let fork = lab.post("/api/sessions/b/fork", &json!({})).await;
    check(&document, "/api/sessions/{session}/fork", "post", "201", &fork.json());
    for (path, real) in [
        ("/v1/models", "/v1/models"),
        ("/v1/models/{name}", "/v1/models/greeter"),
        ("/api/agents", "/api/agents"),
        ("/api/agents/{name}", "/api/agents/counter"),
        ("/api/sessions", "/api/sessions"),
        ("/api/sessions/{session}", "/api/sessions/c"),
        ("/api/approvals", "/api/approvals"),
        ("/api/fleet", "/api/fleet"),
        ("/api/experiments", "/api/experiments"),
        ("/healthz", "/healthz"),
        ("/readyz", "/readyz"),
    ] {
        check(&document, path, "get", "200", &lab.get(real).await.json());
    }
    let approvals = lab.get("/api/approvals").await.json();
    assert_eq!(approvals["approvals"][0]["run"].as_array().unwrap().len(), 1);
    let missing = lab.get("/api/sessions/none").await;
    check(&document, "/api/sessions/{session}", "get", "404", &missing.json());
    let cancelled = lab.post("/api/sessions/c/cancel", &json!({})).await;
    check(&document, "/api/sessions/{session}/cancel", "post", "200", &cancelled.json());
}
