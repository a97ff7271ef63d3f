//! Reasoning that a server wants back, with real servers: it returns to where it came from, and nowhere else.

use axum::Router;
use patter::message::attachment::AttachmentContents;
use patter::message::conversation::{Message, ToolOutcome};
use patter::message::request::{Reply, Request, Settings};
use patter::model::model_resolver;
use patter::project::Environment;
use patter::tool::CancellationToken;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};

/// Starts a server that always reasons before a call, and returns its address and the bodies of the requests it received.
async fn start() -> (String, Arc<Mutex<Vec<Json>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&requests);
    let router = Router::new().fallback(move |body: String| async move {
        received.lock().unwrap().push(serde_json::from_str(&body).unwrap());
        let call = json!({"id": "a", "type": "function", "function": {"name": "sayHello", "arguments": "null"}});
        let message = json!({"content": null, "reasoning_content": "She greets.", "tool_calls": [call]});
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).to_string()
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (base_url, requests)
}

async fn call(base_url: &str, messages: &[Message]) -> Reply {
    let name = "OpenAI/some-model".parse().unwrap();
    let settings = Settings { max_tokens: Some(9), ..Settings::default() };
    let request = Request {
        model: &name,
        instruction: "",
        messages: &messages.into(),
        contents: AttachmentContents::NONE,
        tools: &[],
        settings: &settings,
        returns: None,
    };
    let environment = Environment::from_variables([("OPENAI_BASE_URL", base_url)]);
    let model = model_resolver(&environment)(&name).unwrap();
    model.call(&request, None, &CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn reasoning_returns_to_its_server() {
    let (first_url, first) = start().await;
    let (second_url, second) = start().await;
    let mut messages = vec![Message::user("Hi, I am Ada")];
    let reply = call(&first_url, &messages).await;
    assert_eq!(reply.calls[0].parse_arguments().unwrap(), json!({}));
    // A session stores messages as JSON.
    let stored = serde_json::to_string(&reply.into_message()).unwrap();
    messages.push(serde_json::from_str(&stored).unwrap());
    let outcome = ToolOutcome::Value { value: json!("Hello, Ada!") };
    messages.push(Message::Tool { call_id: "a".into(), tool: "sayHello".into(), outcome });
    call(&first_url, &messages).await;
    call(&second_url, &messages).await;
    let first = first.lock().unwrap();
    let second = second.lock().unwrap();
    assert_eq!(first[1]["messages"][1]["reasoning_content"], "She greets.");
    assert_eq!(first[1]["messages"][1]["tool_calls"][0]["function"]["arguments"], "{}");
    assert_eq!(second[0]["messages"][1].get("reasoning_content"), None);
    // Servers that are not OpenAI know the older name of the limit.
    assert_eq!((&first[0]["max_tokens"], first[0].get("max_completion_tokens")), (&json!(9), None));
}
