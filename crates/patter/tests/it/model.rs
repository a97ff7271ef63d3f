//! Models that need no provider: the demo model and scripts.

use patter::message::attachment::AttachmentContents;
use patter::message::conversation::{Message, ToolCall, ToolOutcome, Usage};
use patter::message::request::{Delta, FinishReason, OfferedTool, Reply, Request, Settings};
use patter::model::{DeltaSink, DemoModel, Model, ModelError, ScriptedModel};
use patter::name::WireName;
use patter::provider::Provider;
use patter::tool::CancellationToken;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Sends a conversation to a model, and returns the reply and the deltas.
async fn call(
    model: &dyn Model,
    messages: &[Message],
    cancellation: &CancellationToken,
) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    let sink = |delta| deltas.lock().unwrap().push(delta);
    let reply = call_with_sink(model, messages, &sink, cancellation).await;
    (reply, deltas.into_inner().unwrap())
}

async fn call_with_sink(
    model: &dyn Model,
    messages: &[Message],
    sink: &DeltaSink<'_>,
    cancellation: &CancellationToken,
) -> Result<Reply, ModelError> {
    let schema = json!({"type": "object", "properties": {"personName": {"type": "string"}}});
    let tools = [OfferedTool {
        name: WireName::from_full_name("greetings/sayHello").unwrap(),
        description: "Greets someone".into(),
        schema: schema.into(),
        strict_schema: None,
    }];
    let id = "demo".parse().unwrap();
    let settings = Settings::default();
    let request = Request {
        model: &id,
        instruction: "Be kind.",
        messages: &messages.into(),
        contents: AttachmentContents::NONE,
        tools: &tools,
        settings: &settings,
        returns: None,
    };
    model.call(&request, Some(sink), cancellation).await
}

/// Joins deltas to text and calls.
fn join(deltas: &[Delta]) -> (String, Vec<(String, String, String)>) {
    let mut whole = String::new();
    let mut calls = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Text { text } => whole.push_str(text),
            Delta::Thought { .. } | Delta::Waiting { .. } => panic!("unexpected {delta:?}"),
            Delta::Call { index, id, tool } => {
                assert_eq!(*index, calls.len());
                calls.push((id.clone(), tool.clone(), String::new()));
            }
            Delta::Arguments { index, text } => calls[*index].2.push_str(text),
        }
    }
    (whole, calls)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(future)
}

fn script(text: &str) -> ScriptedModel {
    ScriptedModel::parse("test.json", text).unwrap()
}

fn result(id: &str, outcome: ToolOutcome) -> Message {
    Message::Tool { call_id: id.into(), tool: "greetings/sayHello".into(), outcome }
}

#[test]
fn replies_are_streamed() {
    let token = CancellationToken::new();
    let scripted = script(r#"[{"text": "Two  things\n", "calls": [{"tool": "a"}, {"tool": "b", "arguments": [1]}]}]"#);
    let models: [(&dyn Model, &str); 3] = [(&DemoModel, "What now?"), (&DemoModel, "Hello Ann"), (&scripted, "x")];
    for (model, prompt) in models {
        let (reply, deltas) = run(call(model, &[Message::user(prompt)], &token));
        let reply = reply.unwrap();
        let (text, calls) = join(&deltas);
        assert_eq!(text, reply.text);
        let expected: Vec<_> = reply.calls.into_iter().map(|call| (call.id, call.tool, call.arguments)).collect();
        assert_eq!(calls, expected);
        assert!(deltas.len() > 1, "{deltas:?}");
    }
    assert_eq!((DemoModel.provider(), scripted.provider()), (Provider::DEMO, Provider::SCRIPTED));
    assert_eq!(DemoModel.notice(), Some(patter_core::demo::NOTICE));
    assert_eq!(scripted.notice(), None);
}

#[test]
fn cancellation_interrupts_a_reply() {
    run(async {
        // Before the first piece.
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let (reply, deltas) = call(&DemoModel, &[Message::user("What now?")], &cancelled).await;
        assert_eq!((reply, deltas), (Err(ModelError::Cancelled), Vec::new()));
        // After the first piece.
        let token = CancellationToken::new();
        let count = Mutex::new(0);
        let sink = |_| {
            *count.lock().unwrap() += 1;
            token.cancel();
        };
        let reply = call_with_sink(&DemoModel, &[Message::user("What now?")], &sink, &token).await;
        assert_eq!((reply, *count.lock().unwrap()), (Err(ModelError::Cancelled), 1));
        // During a delay of a day.
        let slow = script(r#"[{"text": "late", "delayMs": 86400000}]"#);
        let token = CancellationToken::new();
        let messages = [Message::user("x")];
        let ((reply, _), ()) = tokio::join!(call(&slow, &messages, &token), async { token.cancel() });
        assert_eq!(reply, Err(ModelError::Cancelled));
    });
}

#[test]
fn conversations_share_a_script() {
    let model = Arc::new(script(
        r#"[
          {"calls": [{"tool": "greetings/sayHello", "arguments": {"personName": "Ada"}},
                     {"tool": "greetings/sayHello", "arguments": "{broken"}],
           "expect": {"user": ["Hi", "Ada"], "instruction": ["kind"], "tools": ["greetings/sayHello"]},
           "usage": {"inputTokens": 7, "outputTokens": 2}},
          {"text": "Done.", "finish": "length", "expect": {"results": ["Hello, Ada!", "error: not JSON"]}, "delayMs": 1}
        ]"#,
    ));
    let conversation = |model: Arc<ScriptedModel>| async move {
        let token = CancellationToken::new();
        let mut messages = vec![Message::user("Hi, I am Ada")];
        let first = call(&*model, &messages, &token).await.0.unwrap();
        assert_eq!(first.calls[0].arguments, r#"{"personName":"Ada"}"#);
        assert_eq!((first.calls[1].arguments.as_str(), first.calls[1].id.as_str()), ("{broken", "scripted_1_2"));
        assert_eq!(first.usage, Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() });
        messages.push(first.into_message());
        messages.push(result("scripted_1_1", ToolOutcome::Value { value: json!("Hello, Ada!") }));
        messages.push(result("scripted_1_2", ToolOutcome::Error { message: "not JSON".into() }));
        let second = call(&*model, &messages, &token).await.0.unwrap();
        assert_eq!((second.text.as_str(), second.finish.clone()), ("Done.", FinishReason::Length));
        messages.push(second.into_message());
        messages.push(Message::user("And now?"));
        let error = call(&*model, &messages, &token).await.0.unwrap_err();
        assert_eq!(error.to_string(), "the script `test.json` has 2 replies, but this is request 3");
    };
    run(async {
        let runs: Vec<_> = (0..16).map(|_| tokio::spawn(conversation(Arc::clone(&model)))).collect();
        for run in runs {
            run.await.unwrap();
        }
    });
}

#[test]
fn unexpected_requests_are_reported() {
    let with_results = || {
        let call = ToolCall { id: "1".into(), tool: "t".into(), arguments: String::new() };
        let value = |value| ToolOutcome::Value { value };
        vec![
            Message::user("Hi"),
            Message::assistant("", vec![call]),
            result("1", value(json!({"a": 1}))),
            result("2", value(json!("text"))),
        ]
    };
    for (step, messages, expected) in [
        (
            r#"{"expect": {"user": ["Ada"]}}"#,
            vec![Message::user("Hi")],
            "request 1: expected `Ada` in the message of the user, found `Hi`",
        ),
        (
            r#"{"expect": {"instruction": ["be rude"]}}"#,
            vec![Message::user("Hi")],
            "request 1: expected `be rude` in the instruction",
        ),
        (
            r#"{"expect": {"tools": ["fetch"]}}"#,
            vec![Message::user("Hi")],
            "request 1: expected the tool `fetch`, found `greetings/sayHello`",
        ),
        (
            r#"{}, {"expect": {"results": ["\"a\":1"]}}"#,
            with_results(),
            "request 2: expected the results `\"a\":1`, found `{\"a\":1}`, `text`",
        ),
        (
            r#"{"expect": {"results": ["x"]}}"#,
            vec![Message::user("Hi")],
            "request 1: expected the results `x`, found none",
        ),
    ] {
        let error = run(call(&script(&format!("[{step}]")), &messages, &CancellationToken::new())).0.unwrap_err();
        assert_eq!(error.to_string(), format!("the script `test.json`, {expected}"));
        assert!(!error.is_transient());
    }
}

#[test]
fn scripts_are_read_from_files_and_contain_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    std::fs::write(&path, r#"[{"error": {"message": "slow down", "status": 429}}]"#).unwrap();
    run(async {
        let model = ScriptedModel::read(&path).await.unwrap();
        let error = call(&model, &[Message::user("x")], &CancellationToken::new()).await.0.unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.kind(), error.is_transient()),
            ("status 429: slow down", "api", true)
        );
        let missing = ScriptedModel::read(&folder.path().join("none.json")).await.unwrap_err().to_string();
        assert!(missing.starts_with("cannot read the script `") && missing.contains("none.json"), "{missing}");
    });
    let error = ScriptedModel::parse("x.json", r#"[{"calls": [{"tool": "t", "args": 1}]}]"#).unwrap_err();
    assert!(error.to_string().starts_with("cannot read the script `x.json`: unknown field `args`"), "{error}");
}

#[test]
fn errors_have_hints_and_kinds() {
    let missing = ModelError::missing_key(Provider::OPENAI, &["OPENAI_API_KEY"]);
    assert_eq!(missing.to_string(), "there is no key for OpenAI: `OPENAI_API_KEY` is not set");
    assert_eq!(
        missing.hint(),
        Some("set `OPENAI_API_KEY` in the environment or in `.env`, or try the built-in model with `--model demo`")
    );
    let api = |status| ModelError::Api { status, message: "no".into() };
    for (error, text, kind, is_transient) in [
        (missing.clone(), missing.to_string(), "configuration", false),
        (api(Some(401)), "status 401: no".to_owned(), "api", false),
        (api(Some(503)), "status 503: no".to_owned(), "api", true),
        (api(None), "no".to_owned(), "api", false),
        (ModelError::Network { message: "no route".into(), hint: None }, "no route".to_owned(), "network", true),
        (ModelError::Cancelled, "the request to the model was cancelled".to_owned(), "cancelled", false),
        (
            ModelError::TimedOut { after: Duration::from_millis(1500) },
            "the model did not reply within 1.5 s".to_owned(),
            "timed_out",
            true,
        ),
        (
            ModelError::Malformed { message: "not JSON".into() },
            "malformed reply: not JSON".to_owned(),
            "malformed",
            false,
        ),
    ] {
        assert_eq!((error.to_string(), error.kind(), error.is_transient()), (text, kind, is_transient));
    }
}
