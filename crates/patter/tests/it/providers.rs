//! Providers that a project declares: where requests go, with which key, headers and parameters.

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use patter::message::attachment::AttachmentContents;
use patter::message::conversation::Message;
use patter::message::request::{Reply, Request as ModelRequest, Settings};
use patter::model::{HttpModel, ModelError, ModelResolver, model_resolver_with_config};
use patter::project::{Config, Environment};
use patter::provider::ModelRef;
use patter::tool::CancellationToken;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Starts a server that accepts one key in one header, and keeps the requests.
async fn serve(header: &'static str, accepted: &'static str) -> (String, Arc<Mutex<Vec<Json>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&requests);
    let app = axum::Router::new().fallback(move |request: Request| {
        let log = Arc::clone(&log);
        async move {
            let (parts, body) = request.into_parts();
            let value = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            let seen = json!({ "uri": parts.uri.to_string(), "key": value(header), "team": value("x-team") });
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let body: Json = serde_json::from_slice(&body).unwrap_or_default();
            log.lock().unwrap().push(json!({ "request": seen, "body": body }));
            let (status, text) = if seen["key"] == accepted {
                (200, json!({ "choices": [{ "message": { "content": "Hi" }, "finish_reason": "stop" }] }))
            } else {
                (401, json!({ "error": { "message": format!("no access with {}", seen["key"]) } }))
            };
            Response::builder()
                .status(status)
                .header("content-type", "application/json")
                .body(Body::from(text.to_string()))
                .unwrap()
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (base, requests)
}

async fn call(models: &ModelResolver, name: &str) -> Result<Reply, ModelError> {
    let id: ModelRef = name.parse().unwrap();
    let model = models(&id)?;
    let messages = vec![Message::user("Hello")].into();
    let settings = Settings { max_tokens: Some(9), ..Settings::default() };
    let request = ModelRequest {
        model: &id,
        instruction: "Be kind.",
        messages: &messages,
        contents: AttachmentContents::NONE,
        tools: &[],
        settings: &settings,
        returns: None,
    };
    model.call(&request, None, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_declared_provider_is_called_as_it_says() {
    let (base, requests) = serve("api-key", "t0p-secret").await;
    let text = format!(
        "[models.mint]\napi = 'chat'\nurl = '{base}/deployments/{{model}}'\nkey = 'MINT_KEY'\nkey-header = 'api-key'\n\
         headers = {{ X-Team = '${{TEAM:-none}}' }}\nquery = {{ api-version = '2024-10-21' }}\n\
         system-role = 'developer'\nmax-tokens-field = 'max_completion_tokens'\n"
    );
    let config = Config::parse(&text).unwrap();
    let environment = Environment::from_variables([("MINT_KEY", "t0p-secret"), ("TEAM", "blue")]);
    let models = model_resolver_with_config(&environment, &config.models);
    assert_eq!(call(&models, "Mint/my model").await.unwrap().text, "Hi");
    let expected = json!({
        "request": {
            "uri": "/deployments/my%20model/chat/completions?api-version=2024-10-21",
            "key": "t0p-secret",
            "team": "blue"
        },
        "body": {
            "model": "my model",
            "messages": [{ "role": "developer", "content": "Be kind." }, { "role": "user", "content": "Hello" }],
            "max_completion_tokens": 9
        }
    });
    assert_eq!(requests.lock().unwrap()[0], expected);
    // The key is required, because the project names its variable.
    let models = model_resolver_with_config(&Environment::default(), &config.models);
    let error = call(&models, "mint/m").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no key for mint: `MINT_KEY` is not set");
    // A wrong key is not repeated.
    let environment = Environment::from_variables([("MINT_KEY", "wr0ng-secret")]);
    let error = call(&model_resolver_with_config(&environment, &config.models), "mint/m").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("wr0ng-secret"), "{error}");
    assert_eq!(error.hint(), Some("check the key in `MINT_KEY`"));
}

#[tokio::test]
async fn a_command_prints_the_key_once_until_it_is_rejected() {
    let (base, requests) = serve("authorization", "Bearer fresh-token").await;
    let folder = tempfile::tempdir().unwrap();
    // The first token has expired.
    std::fs::write(folder.path().join("tokens"), "stale-token\nfresh-token\n").unwrap();
    let script = "echo run >> runs; n=$(wc -l < runs); sed -n \"${n}p\" tokens";
    let text =
        format!("[models.vault]\napi = 'chat'\nurl = '{base}/v1'\nkey = {{ command = ['sh', '-c', '{script}'] }}\n");
    std::fs::write(folder.path().join("patter.toml"), &text).unwrap();
    let config = Config::read(Some(folder.path())).unwrap();
    let environment = Environment::from_process();
    let models = model_resolver_with_config(&environment, &config.models);
    for model in ["vault/a", "vault/a", "vault/b"] {
        assert_eq!(call(&models, model).await.unwrap().text, "Hi");
    }
    let keys: Vec<Json> = requests.lock().unwrap().iter().map(|seen| seen["request"]["key"].clone()).collect();
    let fresh = "Bearer fresh-token";
    assert_eq!(keys, ["Bearer stale-token", fresh, fresh, fresh]);
    assert_eq!(std::fs::read_to_string(folder.path().join("runs")).unwrap(), "run\nrun\n");
}

#[tokio::test]
async fn a_command_without_a_key_is_an_error_that_shows_nothing() {
    for (command, reason) in [
        ("['sh', '-c', 'echo t0p-secret; exit 3']", "exited with code 3"),
        ("['true']", "printed nothing"),
        ("['/nowhere/at-all']", "cannot be started"),
    ] {
        let text =
            format!("[models.mute]\napi = 'chat'\nurl = 'http://127.0.0.1:1'\nkey = {{ command = {command} }}\n");
        let config = Config::parse(&text).unwrap();
        let model = "mute/m".parse().unwrap();
        let model = HttpModel::with_config(&model, &Environment::from_process(), &config.models).unwrap();
        let error = model.probe().await.unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("the command that prints the key of mute "), "{message}");
        assert!(message.contains(reason) && !message.contains("t0p-secret"), "{message}");
        assert_eq!(error.kind(), "configuration");
        assert!(error.hint().unwrap().ends_with("yourself to see why"), "{error:?}");
    }
}
