//! Runs with scripted models and real tools, and with providers behind a real HTTP server.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use futures_util::{StreamExt, stream};
use patter::drive::{ApprovalAnswer, Approver, Driver, RunEvent, RunEventKind, StreamedReplies, now_ms};
use patter::library::Layer;
use patter::message::conversation::{Conversation, Message};
use patter::model::{HttpModel, Model, ModelError, ScriptedModel, model_resolver};
use patter::permission::Rule;
use patter::project::{Environment, Project};
use patter::run::{PendingCall, Run, RunOutcome};
use patter::tool::{
    BoxFuture, CancellationToken, Tool, ToolFailure, ToolResources, Workspace, merge, standard::standard_library,
};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AGENT: &str = "[greeter:Agent {instruction: 'Greet with `sayHello`.', model: 'OpenAI/gpt-4o-mini'} |
  [sayHello:Tool {description: 'Greets'} | (personName::Text {default: 'world'})==>(::Text)]]";

/// A finished run with its events.
struct Finished {
    run: Run,
    events: Vec<String>,
}

impl Finished {
    fn answer(&self) -> &str {
        match self.run.outcome() {
            Some(RunOutcome::Answer { text, .. }) => text,
            other => panic!("{other:?}"),
        }
    }

    fn results(&self) -> Vec<String> {
        let results = self.run.conversation().iter().filter_map(|message| match message {
            Message::Tool { outcome, .. } => Some(outcome.text()),
            _ => None,
        });
        results.collect()
    }
}

fn driver(
    agents: &str,
    tools: Vec<Tool>,
    model: impl Fn() -> Result<Arc<dyn Model>, ModelError> + Send + Sync + 'static,
) -> Driver {
    let ours = Workspace::builder().toolbox("ours", |toolbox| toolbox.tools(tools)).build().unwrap();
    let internal = standard_library(&ToolResources::new(".", Environment::default()));
    let library = merge([(Layer::Internal, internal), (Layer::Project, ours)]).unwrap();
    Driver::new(Arc::new(Project::read([("a.gram", agents)])), library.into(), Arc::new(move |_| model()))
}

fn scripted(agents: &str, tools: Vec<Tool>, script: &Json) -> Driver {
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::parse("script", &script.to_string()).unwrap());
    driver(agents, tools, move || Ok(Arc::clone(&model)))
}

async fn run(
    driver: Driver,
    before: impl Into<Conversation>,
    input: &str,
    cancellation: &CancellationToken,
) -> Finished {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let driver = driver.with_listener(move |event: &RunEvent| {
        let text = match &event.kind {
            RunEventKind::Text { text } => format!("text {text}"),
            RunEventKind::ToolStarted { tool, .. } => format!("call {tool}"),
            RunEventKind::ToolFinished { tool, .. } => format!("done {tool}"),
            RunEventKind::Asked { tool, .. } => format!("ask {tool}"),
            _ => return,
        };
        sink.lock().unwrap().push(format!("{}{text}", "  ".repeat(event.depth as usize)));
    });
    let compiled = driver.compile(&driver.project().find_agent("greeter").unwrap()).unwrap();
    let run = Run::start(compiled.spec().clone(), before, input, now_ms()).unwrap();
    let run = driver.drive(&compiled, run, cancellation).await;
    let events = events.lock().unwrap().clone();
    Finished { run, events }
}

async fn play(agents: &str, tools: Vec<Tool>, script: Json) -> Finished {
    run(scripted(agents, tools, &script), Vec::new(), "Hello! My name is Alice.", &CancellationToken::new()).await
}

fn call(tool: &str, arguments: Json) -> Json {
    json!({"calls": [{"tool": tool, "arguments": arguments}]})
}

#[tokio::test]
async fn greeting_calls_the_tool_and_uses_its_result() {
    let script = json!([
        {"calls": [{"tool": "sayHello", "arguments": {"personName": "Alice"}}], "expect": {"user": ["Alice"], "tools": ["sayHello"]}},
        {"text": "Hello, Alice! Nice to meet you.", "expect": {"results": ["Hello, Alice!"]}},
    ]);
    let finished = play(AGENT, vec![], script).await;
    assert_eq!(finished.answer(), "Hello, Alice! Nice to meet you.");
    assert_eq!(finished.events.first().map(String::as_str), Some("call sayHello"));
    let response = serde_json::to_value(finished.run.response()).unwrap();
    assert_eq!(
        response["tools_used"][0],
        json!({"tool_name": "sayHello", "args": {"personName": "Alice"}, "result": {"success": "Hello, Alice!"}})
    );
}

#[tokio::test]
async fn call_errors_are_returned_to_the_model() {
    let fails =
        Tool::native("fails", "Fails", "()==>(::Text)", |_, _| async { Err(ToolFailure::new("no luck")) }).unwrap();
    let agent = AGENT.replace("]]", "], fails]");
    let script = json!([
        call("sayHelo", json!({})),
        call("sayHello", json!("{broken")),
        call("sayHello", json!({"personName": 5})),
        call("sayHello", json!({"name": "Alice"})),
        call("fails", json!({})),
        call("sayHello", json!({})),
        {"text": "done"},
    ]);
    let finished = play(&agent, vec![fails], script).await;
    let results = finished.results();
    let expected = [
        "did you mean `sayHello`?",
        "JSON",
        "`personName`: expected a Text, found 5",
        "`sayHello` has no parameter `name`",
        "no luck",
        "Hello, world!",
    ];
    for (result, expected) in results.iter().zip(expected) {
        assert!(result.contains(expected), "{result} does not contain {expected}");
    }
    assert_eq!((results.len(), finished.answer()), (6, "done"));
}

/// Calls of one reply run concurrently, and their results are in the order of the calls.
#[tokio::test]
async fn calls_of_one_reply_run_concurrently() {
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let meet = Tool::native("meet", "Waits for the others", "(n::Int)==>(::Int)", move |arguments: Json, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(arguments["n"].clone())
        }
    });
    let calls: Vec<_> = (1..=3).map(|n| json!({"tool": "meet", "arguments": {"n": n}})).collect();
    let agent = AGENT.replace("]]", "], meet]");
    let finished =
        play(&agent, vec![meet.unwrap().timeout(Duration::from_secs(20))], json!([{"calls": calls}, {"text": "ok"}]))
            .await;
    assert_eq!(finished.results(), ["1", "2", "3"]);
}

#[tokio::test]
async fn run_ends_after_ten_model_calls() {
    let finished = play(AGENT, vec![], vec![call("sayHello", json!({})); 12].into()).await;
    let Some(RunOutcome::Failed(failure)) = finished.run.outcome() else { panic!() };
    assert_eq!((failure.kind.name(), finished.run.model_calls(), finished.results().len()), ("ToolError", 10, 10));
}

/// Approves calls for one person only.
struct ApproveOnly(&'static str);

impl Approver for ApproveOnly {
    fn ask<'a>(&'a self, _: &'a str, call: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        let is_approved = call.arguments["personName"] == self.0;
        Box::pin(async move {
            if is_approved { ApprovalAnswer::Approve } else { ApprovalAnswer::Refuse("not that one".to_owned()) }
        })
    }
}

#[tokio::test]
async fn approval_is_requested_for_each_call() {
    let calls: Vec<_> =
        ["Ann", "Bob"].iter().map(|name| json!({"tool": "sayHello", "arguments": {"personName": name}})).collect();
    let script = json!([{"calls": calls}, {"text": "ok"}]);
    let rule = || Rule::parse("ask sayHello", "the test").unwrap();
    let driver = scripted(AGENT, vec![], &script).with_rules([rule()]).with_approver(ApproveOnly("Bob"));
    let finished = run(driver, Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!(finished.results(), ["not permitted: not that one", "Hello, Bob!"]);
    let unattended =
        run(scripted(AGENT, vec![], &script).with_rules([rule()]), Vec::new(), "hi", &CancellationToken::new()).await;
    assert!(
        unattended.results().iter().all(|result| result.contains("nobody is available to approve it")),
        "{:?}",
        unattended.results()
    );
    let denied = Rule::parse("deny sayHello", "the test").unwrap();
    let denied =
        run(scripted(AGENT, vec![], &script).with_rules([denied]), Vec::new(), "hi", &CancellationToken::new()).await;
    assert!(denied.results()[0].contains("`deny sayHello` in the test"), "{:?}", denied.results());
}

#[tokio::test]
async fn cancellation_reaches_tools_and_keeps_finished_results() {
    let started = Arc::new(tokio::sync::Notify::new());
    let notify = Arc::clone(&started);
    let token = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&token);
    let hang = Tool::native("hang", "Hangs", "()==>(::Text)", move |_, context| {
        *seen.lock().unwrap() = Some(context.cancellation().clone());
        notify.notify_one();
        std::future::pending()
    });
    let agent = AGENT.replace("]]", "], hang]");
    let script = json!([{"calls": [{"tool": "sayHello", "arguments": {}}, {"tool": "hang", "arguments": {}}]}]);
    let cancellation = CancellationToken::new();
    let driver = scripted(&agent, vec![hang.unwrap()], &script);
    let (finished, ()) = tokio::join!(run(driver, Vec::new(), "hi", &cancellation), async {
        started.notified().await;
        tokio::task::yield_now().await;
        cancellation.cancel();
    });
    assert_eq!(finished.run.outcome(), Some(&RunOutcome::Cancelled));
    assert_eq!(finished.results(), ["Hello, world!", "cancelled"]);
    assert!(token.lock().unwrap().as_ref().unwrap().is_cancelled());
}

#[tokio::test]
async fn deadline_ends_a_model_call() {
    let agent = AGENT.replace("model:", "timeout: 50ms, model:");
    let finished = play(&agent, vec![], json!([{"text": "late", "delayMs": 60_000}])).await;
    let Some(RunOutcome::Failed(failure)) = finished.run.outcome() else { panic!("{:?}", finished.run.outcome()) };
    assert!(failure.to_string().contains("50 ms") || failure.to_string().contains("0.05"), "{failure}");
}

#[tokio::test]
async fn agent_calls_agent() {
    let agents = "[greeter:Agent {instruction: 'Ask `helper`.', model: 'demo'} | helper]
        [helper:Agent {description: 'Helps', instruction: 'Greet.', model: 'demo'} | sayHello]";
    // Each conversation counts its own replies.
    let outer = json!([{"calls": [{"tool": "helper", "arguments": {"input": "greet Ann"}}]}, {"text": "helped"}]);
    let inner = json!([call("sayHello", json!({"personName": "Ann"})), {"text": "Ann is greeted"}]);
    let parse =
        |script: &Json| -> Arc<dyn Model> { Arc::new(ScriptedModel::parse("script", &script.to_string()).unwrap()) };
    let outer = parse(&outer);
    let inner = parse(&inner);
    let turn = AtomicUsize::new(0);
    let driver = driver(agents, vec![], move || {
        // The order of the calls: outer, inner, inner, outer.
        Ok(Arc::clone(if matches!(turn.fetch_add(1, Ordering::Relaxed), 1 | 2) { &inner } else { &outer }))
    });
    let finished = run(driver, Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!((finished.answer(), finished.results()), ("helped", vec!["Ann is greeted".to_owned()]));
    assert_eq!(
        finished.events[..4],
        ["call helper", "  call sayHello", "  done sayHello", "  text Ann "],
        "{:?}",
        finished.events
    );
}

#[tokio::test]
async fn conversation_continues() {
    let first = play(AGENT, vec![], json!([{"text": "Hello Bob"}])).await;
    let script = json!([{"text": "unused"}, {"text": "You are Bob", "expect": {"user": ["who am I"]}}]);
    let before = first.run.conversation().clone();
    let second = run(scripted(AGENT, vec![], &script), before, "who am I?", &CancellationToken::new()).await;
    assert_eq!((second.answer(), second.run.conversation().len()), ("You are Bob", 4));
}

#[tokio::test]
async fn unbound_tools_are_reported_before_the_model_is_called() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let agent = AGENT.replace("]]", "], nothing, nowhere]");
    let driver = driver(&agent, vec![], move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Err(ModelError::Cancelled)
    });
    let error = driver.compile(&driver.project().find_agent("greeter").unwrap()).unwrap_err().to_string();
    assert!(error.contains("`nothing`") && error.contains("`nowhere`"), "{error}");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

/// Starts a server with the API of OpenAI. Returns its address, and the requests that it receives.
async fn provider(replies: Vec<Response>) -> (String, Arc<Mutex<Vec<(HeaderMap, Json)>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let replies = Arc::new(Mutex::new(replies.into_iter()));
    let router = Router::new().route(
        "/v1/chat/completions",
        post(move |headers: HeaderMap, body: String| async move {
            seen.lock().unwrap().push((headers, serde_json::from_str(&body).unwrap()));
            replies.lock().unwrap().next().unwrap_or_else(|| StatusCode::IM_A_TEAPOT.into_response())
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, requests)
}

fn sse(events: &[Json]) -> Response {
    let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    // In small chunks, as over a network.
    let pieces: Vec<_> = text.as_bytes().chunks(7).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    Response::new(Body::from_stream(stream::iter(pieces)))
}

fn delta(delta: Json, finish: Json) -> Json {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn over_http(base: &str) -> Driver {
    let environment = Environment::from_variables([("OPENAI_API_KEY", "k3y-s3cret"), ("OPENAI_BASE_URL", base)]);
    let models = model_resolver(&environment);
    let model = "OpenAI/gpt-4o-mini".parse().unwrap();
    driver(AGENT, vec![], move || models(&model))
}

#[tokio::test]
async fn run_over_http() {
    let calls = [
        delta(
            json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "function": {"name": "sayHello", "arguments": ""}}]}),
            Json::Null,
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"personName\":"}}]}), Json::Null),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"Ålice\"}"}}]}), json!("tool_calls")),
    ];
    let answer = [delta(json!({"content": "Hello, "}), Json::Null), delta(json!({"content": "Ålice!"}), json!("stop"))];
    let limited = (StatusCode::TOO_MANY_REQUESTS, [("retry-after-ms", "1")], "slow down").into_response();
    let (base, requests) = provider(vec![limited, sse(&calls), sse(&answer)]).await;
    let finished = run(over_http(&base), Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!((finished.answer(), finished.results()), ("Hello, Ålice!", vec!["Hello, Ålice!".to_owned()]));
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 3, "the rate-limited request is retried");
    assert_eq!(requests[0].0["authorization"], "Bearer k3y-s3cret");
    assert_eq!(requests[0].1, requests[1].1);
    assert_eq!(requests[2].1["messages"].as_array().unwrap().last().unwrap()["content"], "Hello, Ålice!");
}

/// The provider completes a reply but leaves the connection open.
#[tokio::test]
async fn complete_reply_does_not_wait_for_the_connection_to_close() {
    let cases = [
        (
            "OpenAI/m",
            "chat",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n\
          data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n",
        ),
        (
            "OpenAI/m",
            "responses",
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n\
          data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":3}}}\n\n",
        ),
        (
            "Anthropic/m",
            "chat",
            "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n\
          data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"input_tokens\":3}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        (
            "Ollama/m",
            "chat",
            "{\"message\":{\"content\":\"Hi\"}}\n{\"message\":{},\"done\":true,\"prompt_eval_count\":3}\n",
        ),
    ];
    for (model, api, text) in cases {
        let body = move || async move {
            let open = stream::iter([Ok::<_, std::io::Error>(text)]).chain(stream::pending());
            Response::new(Body::from_stream(open))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(body)).await });
        let bases = ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"].map(|name| (name, base.as_str()));
        let keys = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k"), ("PATTER_OPENAI_API", api)];
        let models = model_resolver(&Environment::from_variables(bases.into_iter().chain(keys)));
        let model = model.parse().unwrap();
        let finished =
            run(driver(AGENT, vec![], move || models(&model)), Vec::new(), "hi", &CancellationToken::new()).await;
        assert_eq!((finished.answer(), finished.run.usage().input_tokens), ("Hi", 3), "{text}");
    }
}

/// Some servers do not stream, even if requested.
#[tokio::test]
async fn unstreamed_reply_is_emitted() {
    let body = "\n {\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}],\n\"usage\":{\"prompt_tokens\":3}}";
    let (base, _) = provider(vec![([("content-type", "application/json")], body).into_response()]).await;
    let finished = run(over_http(&base), Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!((finished.answer(), finished.run.usage().input_tokens), ("Hi", 3));
    assert_eq!(finished.events, ["text Hi"]);
}

/// Without a listener, replies are not streamed.
#[tokio::test]
async fn run_without_a_listener_does_not_stream() {
    let reply = |message: Json| {
        let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
        Response::new(Body::from(body.to_string()))
    };
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "sayHello", "arguments": "{}"}}]});
    let (base, requests) = provider(vec![reply(call), reply(json!({"role": "assistant", "content": "done"}))]).await;
    let driver = over_http(&base);
    let compiled = driver.compile(&driver.project().find_agent("greeter").unwrap()).unwrap();
    let run = Run::start(compiled.spec().clone(), Vec::new(), "hi", now_ms()).unwrap();
    let run = driver.drive(&compiled, run, &CancellationToken::new()).await;
    assert_eq!((run.response().content.as_str(), run.response().tools_used.len()), ("done", 1), "{:?}", run.outcome());
    assert_eq!((run.usage().input_tokens, run.usage().output_tokens), (6, 4));
    assert!(requests.lock().unwrap().iter().all(|(_, body)| body["stream"] != true));
}

#[tokio::test]
async fn misbehaving_provider_is_an_error_and_never_a_hang() {
    let partial = |text: &'static str| Response::new(Body::from(text));
    let moved = |status, location: &'static str| {
        (StatusCode::from_u16(status).unwrap(), [("location", location)]).into_response()
    };
    let cases: Vec<(Vec<Response>, &str, usize)> = vec![
        (
            vec![
                (StatusCode::UNAUTHORIZED, r#"{"error":{"message":"bad key k3y-s3cret","code":"invalid_api_key"}}"#)
                    .into_response(),
            ],
            "401 `invalid_api_key`: bad key [redacted]; check the key in `OPENAI_API_KEY`",
            1,
        ),
        // Nothing is there, or something else than a provider.
        (
            vec![(StatusCode::NOT_FOUND, "<html>Not found</html>").into_response()],
            "404: <html>Not found</html>; check the address of OpenAI in `OPENAI_BASE_URL`",
            1,
        ),
        (
            vec![
                (StatusCode::NOT_FOUND, r#"{"error":{"message":"no such model","code":"model_not_found"}}"#)
                    .into_response(),
            ],
            "404 `model_not_found`: no such model",
            1,
        ),
        (
            vec![
                StatusCode::BAD_GATEWAY.into_response(),
                StatusCode::BAD_GATEWAY.into_response(),
                StatusCode::BAD_GATEWAY.into_response(),
            ],
            "502",
            3,
        ),
        (vec![partial(""), partial("\n"), partial("data: ")], "ended before it was complete", 3),
        // A response that is not a reply is described, and not retried.
        (
            vec![([("content-type", "text/html")], "<html>\n\u{1b}[2Jk3y-s3cret</html>").into_response()],
            "the response of OpenAI is not a model reply (text/html): <html> [2J",
            1,
        ),
        (vec![partial("garbage")], "the response of OpenAI is not a model reply (no content type): garbage", 1),
        (vec![partial(r#"{"detail": "nothing here"}"#)], "malformed reply: missing `choices`", 1),
        // A POST neither becomes a GET nor follows redirects.
        (vec![moved(301, "/v1/elsewhere?q=k3y-s3cret")], "/v1/elsewhere`, and POST requests are not redirected", 1),
        (vec![moved(302, "https://example.com/")], "the endpoint moved to `https://example.com/`", 1),
        (vec![moved(303, "/v1/chat/completions")], "the endpoint moved to `http://127.0.0.1:", 1),
        // A reply that was partly shown is not retried.
        (
            vec![partial("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n"), partial("")],
            "ended before it was complete",
            1,
        ),
    ];
    for (replies, expected, count) in cases {
        let (base, requests) = provider(replies).await;
        let finished = run(over_http(&base), Vec::new(), "hi", &CancellationToken::new()).await;
        let Some(RunOutcome::Failed(failure)) = finished.run.outcome() else { panic!("{:?}", finished.run.outcome()) };
        assert!(failure.to_string().contains(expected), "{failure} does not contain {expected}");
        assert!(!failure.to_string().contains("k3y-s3cret"), "{failure}");
        assert_eq!(requests.lock().unwrap().len(), count, "{failure}");
        assert_eq!(finished.run.conversation().first(), Some(&Message::user("hi")), "the message is kept");
    }
}

/// A few kilobytes of a response may be gigabytes of whitespace, which are all there at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_whitespace_can_be_cancelled() {
    let cancellation = CancellationToken::new();
    let stop = cancellation.clone();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let chunks = (0..1000).map(move |count| {
        if count == 4 {
            stop.cancel();
        }
        encoder.write_all(&[b' '; 1 << 20]).unwrap();
        encoder.flush().unwrap();
        Ok::<_, std::io::Error>(std::mem::take(encoder.get_mut()))
    });
    let headers = [("content-encoding", "gzip"), ("content-type", "text/event-stream")];
    let flood = (headers, Body::from_stream(stream::iter(chunks))).into_response();
    let (base, _) = provider(vec![flood]).await;
    let running = run(over_http(&base), Vec::new(), "hi", &cancellation);
    let finished = tokio::time::timeout(Duration::from_secs(30), running).await.expect("it cannot be cancelled");
    assert!(matches!(finished.run.outcome(), Some(RunOutcome::Cancelled)), "{:?}", finished.run.outcome());
}

#[tokio::test]
async fn missing_key_error_names_the_variable() {
    let error = HttpModel::new(&"Anthropic/claude".parse().unwrap(), &Environment::default()).err().unwrap();
    assert!(error.to_string().contains("`ANTHROPIC_API_KEY`") && error.hint().unwrap().contains("--model demo"));
}

/// Returns a stream that breaks after its first piece.
fn broken(text: &str) -> Response {
    let event = format!("data: {}\n\n", delta(json!({"content": text}), Json::Null));
    let pieces = stream::iter([Ok(event.into_bytes()), Err(std::io::Error::other("broken"))]);
    // The server sends what it has while it waits for more.
    let slow = pieces.then(|piece| async {
        if piece.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        piece
    });
    Response::new(Body::from_stream(slow))
}

/// A reply that nobody has seen a part of is requested again.
#[tokio::test]
async fn unseen_broken_streams_are_repeated() {
    let answer = || sse(&[delta(json!({"content": "Hello!"}), json!("stop"))]);
    for streamed in [StreamedReplies::None, StreamedReplies::Outermost, StreamedReplies::All] {
        let (base, requests) = provider(vec![broken("Hel"), answer()]).await;
        let driver = over_http(&base).with_streamed_replies(streamed);
        let finished = run(driver, Vec::new(), "hi", &CancellationToken::new()).await;
        let requests = requests.lock().unwrap();
        if streamed == StreamedReplies::None {
            assert_eq!((finished.answer(), requests.len()), ("Hello!", 2));
            assert!(finished.events.iter().any(|event| event == "text Hello!"), "{:?}", finished.events);
            assert!(!finished.events.iter().any(|event| event == "text Hel"), "{:?}", finished.events);
            assert!(requests.iter().all(|(_, body)| body["stream"] == true), "slow replies would time out otherwise");
        } else {
            assert_eq!(requests.len(), 1);
            let Some(RunOutcome::Failed(failure)) = finished.run.outcome() else { panic!("{:?}", finished.run) };
            assert!(failure.message.starts_with("lost the connection to `127.0.0.1:"), "{failure}");
            let last = finished.run.conversation().last();
            assert_eq!(last, Some(&Message::assistant("Hel", vec![])), "what was seen is kept");
        }
    }
}

/// An agent that is called by another learns that the answer is only a part.
#[tokio::test]
async fn incomplete_answers_of_agents_are_marked() {
    let inner = r#"[{"text": "Half of", "finish": "length"}]"#;
    let outer = r#"[{"calls": [{"tool": "helper", "arguments": {"input": "go"}}]},
        {"text": "I see.", "expect": {"results": ["Half of\n\n(incomplete: the reply was cut off at its length limit)"]}}]"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("inner.json"), inner).unwrap();
    std::fs::write(folder.path().join("outer.json"), outer).unwrap();
    let model = |name: &str| format!("scripted/{}", folder.path().join(name).display());
    let agents = format!(
        "[boss:Agent {{instruction: 'Ask `helper`.', model: '{}'}} | helper]\n\
         [helper:Agent {{description: 'Helps', instruction: 'Help.', model: '{}'}}]",
        model("outer.json"),
        model("inner.json")
    );
    let path = folder.path().join("a.gram");
    std::fs::write(&path, agents).unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let project = patter::live::LiveProject::open(&path).read().await.unwrap();
    let mut session = patter::session::Session::new(project.into()).with_driver(move |driver| {
        let seen = Arc::clone(&seen);
        driver.with_listener(move |event| seen.lock().unwrap().push(event.clone()))
    });
    let run = session.say("Hi", &CancellationToken::new()).await.unwrap();
    assert_eq!(run.response().content, "I see.", "{:?}", run.outcome());
    assert_eq!(run.response().finish, Some(patter::message::request::FinishReason::Stop));
    let events = events.lock().unwrap();
    let incomplete: Vec<_> =
        events.iter().filter(|event| matches!(event.kind, RunEventKind::Incomplete { .. })).collect();
    assert_eq!(incomplete.len(), 1);
    assert_eq!((incomplete[0].agent.as_str(), incomplete[0].depth), ("helper", 1));
}
