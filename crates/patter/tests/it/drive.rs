//! Runs, driven with scripted models and real tools, and providers over a real HTTP server.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use futures_util::{StreamExt, stream};
use patter::drive::{Answer, Approver, Driver, RunEvent, RunEventKind, now};
use patter::library::Layer;
use patter::message::conversation::Message;
use patter::model::{HttpModel, Model, ModelError, ScriptedModel, models};
use patter::permission::Rule;
use patter::project::{Environment, Project};
use patter::run::{PendingCall, Run, RunOutcome};
use patter::tool::{BoxFuture, CancellationToken, Failure, Kit, Tool, Workspace, merge, standard::standard};
use serde_json::{Value as Json, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AGENT: &str = "[greeter:Agent {instruction: 'Greet with `sayHello`.', model: 'OpenAI/gpt-4o-mini'} |
  [sayHello:Tool {description: 'Greets'} | (personName::Text {default: 'world'})==>(::Text)]]";

/// What a run was, for comparing.
struct Ran {
    run: Run,
    events: Vec<String>,
}

impl Ran {
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
    let internal = standard(&Kit::new(".", Environment::default()));
    let library = merge([(Layer::Internal, internal), (Layer::Project, ours)]).unwrap();
    Driver::new(Arc::new(Project::read([("a.gram", agents)])), library.into(), Arc::new(move |_| model()))
}

fn scripted(agents: &str, tools: Vec<Tool>, script: &Json) -> Driver {
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::parse("script", &script.to_string()).unwrap());
    driver(agents, tools, move || Ok(Arc::clone(&model)))
}

async fn run(driver: Driver, before: Vec<Message>, input: &str, cancellation: &CancellationToken) -> Ran {
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    let driver = driver.with_listener(move |event: &RunEvent| {
        let text = match &event.kind {
            RunEventKind::Text { text } => format!("text {text}"),
            RunEventKind::ToolStarted { tool, .. } => format!("call {tool}"),
            RunEventKind::ToolFinished { tool, .. } => format!("done {tool}"),
            RunEventKind::Asked { tool, .. } => format!("ask {tool}"),
            _ => return,
        };
        heard.lock().unwrap().push(format!("{}{text}", "  ".repeat(event.depth as usize)));
    });
    let compiled = driver.compile(&driver.agent("greeter").unwrap()).unwrap();
    let begun = Run::start(compiled.spec().clone(), before, input, now()).unwrap();
    let run = driver.drive(&compiled, begun, cancellation).await;
    let events = events.lock().unwrap().clone();
    Ran { run, events }
}

async fn plays(agents: &str, tools: Vec<Tool>, script: Json) -> Ran {
    run(scripted(agents, tools, &script), Vec::new(), "Hello! My name is Alice.", &CancellationToken::new()).await
}

fn call(tool: &str, arguments: Json) -> Json {
    json!({"calls": [{"tool": tool, "arguments": arguments}]})
}

#[tokio::test]
async fn a_greeting_calls_the_tool_and_its_result_reaches_the_answer() {
    let script = json!([
        {"calls": [{"tool": "sayHello", "arguments": {"personName": "Alice"}}], "expect": {"user": ["Alice"], "tools": ["sayHello"]}},
        {"text": "Hello, Alice! Nice to meet you.", "expect": {"results": ["Hello, Alice!"]}},
    ]);
    let ran = plays(AGENT, vec![], script).await;
    assert_eq!(ran.answer(), "Hello, Alice! Nice to meet you.");
    assert_eq!(ran.events.first().map(String::as_str), Some("call sayHello"));
    let response = serde_json::to_value(ran.run.response()).unwrap();
    assert_eq!(
        response["tools_used"][0],
        json!({"tool_name": "sayHello", "args": {"personName": "Alice"}, "result": {"success": "Hello, Alice!"}})
    );
}

#[tokio::test]
async fn what_goes_wrong_with_a_call_goes_back_to_the_model() {
    let fails = Tool::native("fails", "Fails", "()==>(::Text)", |_, _| async { Err(Failure::new("no luck")) }).unwrap();
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
    let ran = plays(&agent, vec![fails], script).await;
    let results = ran.results();
    let expected = [
        "did you mean `sayHello`?",
        "JSON",
        "`personName`: expected a Text, found 5",
        "`sayHello` takes no `name`",
        "no luck",
        "Hello, world!",
    ];
    for (result, expected) in results.iter().zip(expected) {
        assert!(result.contains(expected), "{result} has no {expected}");
    }
    assert_eq!((results.len(), ran.answer()), (6, "done"));
}

/// Calls of one reply run at the same time, and their results stand in the order of the calls.
#[tokio::test]
async fn calls_of_one_reply_run_together() {
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let meets = Tool::native("meets", "Waits for the others", "(n::Int)==>(::Int)", move |arguments: Json, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(arguments["n"].clone())
        }
    });
    let calls: Vec<_> = (1..=3).map(|n| json!({"tool": "meets", "arguments": {"n": n}})).collect();
    let agent = AGENT.replace("]]", "], meets]");
    let ran =
        plays(&agent, vec![meets.unwrap().timeout(Duration::from_secs(20))], json!([{"calls": calls}, {"text": "ok"}]))
            .await;
    assert_eq!(ran.results(), ["1", "2", "3"]);
}

#[tokio::test]
async fn a_run_ends_after_ten_calls_of_the_model() {
    let ran = plays(AGENT, vec![], vec![call("sayHello", json!({})); 12].into()).await;
    let Some(RunOutcome::Failed(failure)) = ran.run.outcome() else { panic!() };
    assert_eq!((failure.kind.name(), ran.run.model_calls(), ran.results().len()), ("ToolError", 10, 10));
}

struct Answers(&'static str, AtomicUsize);

impl Approver for Answers {
    fn ask<'a>(&'a self, _: &'a str, call: &'a PendingCall, _: &'a str) -> BoxFuture<'a, Answer> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let is_it = call.arguments["personName"] == self.0;
        Box::pin(async move { if is_it { Answer::Approve } else { Answer::Refuse("not that one".to_owned()) } })
    }
}

#[tokio::test]
async fn approvals_are_asked_for_each_call() {
    let calls: Vec<_> =
        ["Ann", "Bob"].iter().map(|name| json!({"tool": "sayHello", "arguments": {"personName": name}})).collect();
    let script = json!([{"calls": calls}, {"text": "ok"}]);
    let rule = || Rule::parse("ask sayHello", "the test").unwrap();
    let asked =
        scripted(AGENT, vec![], &script).with_rules([rule()]).with_approver(Answers("Bob", AtomicUsize::new(0)));
    let ran = run(asked, Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!(ran.results(), ["not permitted: not that one", "Hello, Bob!"]);
    let nobody =
        run(scripted(AGENT, vec![], &script).with_rules([rule()]), Vec::new(), "hi", &CancellationToken::new()).await;
    assert!(nobody.results().iter().all(|result| result.contains("nobody to ask")), "{:?}", nobody.results());
    let denied = Rule::parse("deny sayHello", "the test").unwrap();
    let denied =
        run(scripted(AGENT, vec![], &script).with_rules([denied]), Vec::new(), "hi", &CancellationToken::new()).await;
    assert!(denied.results()[0].contains("`deny sayHello` in the test"), "{:?}", denied.results());
}

#[tokio::test]
async fn cancellation_reaches_the_tools_and_keeps_what_finished() {
    let begun = Arc::new(tokio::sync::Notify::new());
    let (told, heard) = (Arc::clone(&begun), Arc::new(Mutex::new(None)));
    let seen = Arc::clone(&heard);
    let hangs = Tool::native("hangs", "Hangs", "()==>(::Text)", move |_, context| {
        *seen.lock().unwrap() = Some(context.cancellation().clone());
        told.notify_one();
        std::future::pending()
    });
    let agent = AGENT.replace("]]", "], hangs]");
    let script = json!([{"calls": [{"tool": "sayHello", "arguments": {}}, {"tool": "hangs", "arguments": {}}]}]);
    let cancellation = CancellationToken::new();
    let driver = scripted(&agent, vec![hangs.unwrap()], &script);
    let (ran, ()) = tokio::join!(run(driver, Vec::new(), "hi", &cancellation), async {
        begun.notified().await;
        tokio::task::yield_now().await;
        cancellation.cancel();
    });
    assert_eq!(ran.run.outcome(), Some(&RunOutcome::Cancelled));
    assert_eq!(ran.results(), ["Hello, world!", "cancelled"]);
    assert!(heard.lock().unwrap().as_ref().unwrap().is_cancelled());
}

#[tokio::test]
async fn a_deadline_ends_model_and_tools() {
    let agent = AGENT.replace("model:", "timeout: 50ms, model:");
    let ran = plays(&agent, vec![], json!([{"text": "late", "delayMs": 60_000}])).await;
    let Some(RunOutcome::Failed(failure)) = ran.run.outcome() else { panic!("{:?}", ran.run.outcome()) };
    assert!(failure.to_string().contains("50 ms") || failure.to_string().contains("0.05"), "{failure}");
}

#[tokio::test]
async fn agents_call_agents() {
    let agents = "[greeter:Agent {instruction: 'Ask `helper`.', model: 'demo'} | helper]
        [helper:Agent {description: 'Helps', instruction: 'Greet.', model: 'demo'} | sayHello]";
    // One script plays both: the outer conversation and the inner one count their own replies.
    let outer = json!([{"calls": [{"tool": "helper", "arguments": {"input": "greet Ann"}}]}, {"text": "helped"}]);
    let inner = json!([call("sayHello", json!({"personName": "Ann"})), {"text": "Ann is greeted"}]);
    let parse =
        |script: &Json| -> Arc<dyn Model> { Arc::new(ScriptedModel::parse("script", &script.to_string()).unwrap()) };
    let (outer, inner, turn) = (parse(&outer), parse(&inner), AtomicUsize::new(0));
    let driver = driver(agents, vec![], move || {
        // Outer, inner, inner, outer.
        Ok(Arc::clone(if matches!(turn.fetch_add(1, Ordering::Relaxed), 1 | 2) { &inner } else { &outer }))
    });
    let ran = run(driver, Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!((ran.answer(), ran.results()), ("helped", vec!["Ann is greeted".to_owned()]));
    assert_eq!(
        ran.events[..4],
        ["call helper", "  call sayHello", "  done sayHello", "  text Ann "],
        "{:?}",
        ran.events
    );
}

#[tokio::test]
async fn a_conversation_goes_on() {
    let first = plays(AGENT, vec![], json!([{"text": "Hello Bob"}])).await;
    let script = json!([{"text": "unused"}, {"text": "You are Bob", "expect": {"user": ["who am I"]}}]);
    let before = first.run.conversation().to_vec();
    let second = run(scripted(AGENT, vec![], &script), before, "who am I?", &CancellationToken::new()).await;
    assert_eq!((second.answer(), second.run.conversation().len()), ("You are Bob", 4));
}

#[tokio::test]
async fn what_cannot_be_bound_stops_before_the_model() {
    let called = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&called);
    let agent = AGENT.replace("]]", "], nothing, nowhere]");
    let driver = driver(&agent, vec![], move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(ModelError::Cancelled)
    });
    let error = driver.compile(&driver.agent("greeter").unwrap()).unwrap_err().to_string();
    assert!(error.contains("`nothing`") && error.contains("`nowhere`"), "{error}");
    assert_eq!(called.load(Ordering::Relaxed), 0);
}

/// A server that speaks like OpenAI: what it says to each request, and what it was asked.
async fn provider(replies: Vec<Response>) -> (String, Arc<Mutex<Vec<(HeaderMap, Json)>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, replies) = (Arc::clone(&asked), Arc::new(Mutex::new(replies.into_iter())));
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
    (address, asked)
}

fn sse(events: &[Json]) -> Response {
    let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    // In pieces, as they come over a network.
    let pieces: Vec<_> = text.as_bytes().chunks(7).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    Response::new(Body::from_stream(stream::iter(pieces)))
}

fn delta(delta: Json, finish: Json) -> Json {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn over_http(base: &str) -> Driver {
    let environment = Environment::of([("OPENAI_API_KEY", "k3y-s3cret"), ("OPENAI_BASE_URL", base)]);
    let models = models(&environment);
    let model = "OpenAI/gpt-4o-mini".parse().unwrap();
    driver(AGENT, vec![], move || models(&model))
}

#[tokio::test]
async fn a_run_over_http() {
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
    let (base, asked) = provider(vec![limited, sse(&calls), sse(&answer)]).await;
    let ran = run(over_http(&base), Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!((ran.answer(), ran.results()), ("Hello, Ålice!", vec!["Hello, Ålice!".to_owned()]));
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3, "the request that was limited is made again");
    assert_eq!(asked[0].0["authorization"], "Bearer k3y-s3cret");
    assert_eq!(asked[0].1, asked[1].1);
    assert_eq!(asked[2].1["messages"].as_array().unwrap().last().unwrap()["content"], "Hello, Ålice!");
}

/// The provider says that a reply is complete, and leaves the connection open.
#[tokio::test]
async fn a_complete_reply_needs_no_end_of_the_connection() {
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
        let models = models(&Environment::of(bases.into_iter().chain(keys)));
        let model = model.parse().unwrap();
        let ran = run(driver(AGENT, vec![], move || models(&model)), Vec::new(), "hi", &CancellationToken::new()).await;
        assert_eq!((ran.answer(), ran.run.usage().input_tokens), ("Hi", 3), "{text}");
    }
}

/// Some servers know no pieces, whatever they are asked for.
#[tokio::test]
async fn a_reply_that_comes_whole_is_shown_all_the_same() {
    let body = "\n {\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}],\n\"usage\":{\"prompt_tokens\":3}}";
    let (base, _) = provider(vec![([("content-type", "application/json")], body).into_response()]).await;
    let ran = run(over_http(&base), Vec::new(), "hi", &CancellationToken::new()).await;
    assert_eq!((ran.answer(), ran.run.usage().input_tokens), ("Hi", 3));
    assert_eq!(ran.events, ["text Hi"]);
}

/// Where nobody listens, replies come whole.
#[tokio::test]
async fn a_run_that_nobody_watches() {
    let reply = |message: Json| {
        let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
        Response::new(Body::from(body.to_string()))
    };
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "sayHello", "arguments": "{}"}}]});
    let (base, asked) = provider(vec![reply(call), reply(json!({"role": "assistant", "content": "done"}))]).await;
    let driver = over_http(&base);
    let compiled = driver.compile(&driver.agent("greeter").unwrap()).unwrap();
    let begun = Run::start(compiled.spec().clone(), Vec::new(), "hi", now()).unwrap();
    let run = driver.drive(&compiled, begun, &CancellationToken::new()).await;
    assert_eq!((run.response().content.as_str(), run.response().tools_used.len()), ("done", 1), "{:?}", run.outcome());
    assert_eq!((run.usage().input_tokens, run.usage().output_tokens), (6, 4));
    assert!(asked.lock().unwrap().iter().all(|(_, body)| body["stream"] != true));
}

#[tokio::test]
async fn a_provider_that_misbehaves_is_an_error_and_never_a_hang() {
    let half = |text: &'static str| Response::new(Body::from(text));
    let moved =
        |status, place: &'static str| (StatusCode::from_u16(status).unwrap(), [("location", place)]).into_response();
    let cases: Vec<(Vec<Response>, &str, usize)> = vec![
        (
            vec![
                (StatusCode::UNAUTHORIZED, r#"{"error":{"message":"bad key k3y-s3cret","code":"invalid_api_key"}}"#)
                    .into_response(),
            ],
            "401",
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
        (vec![half(""), half("\n"), half("data: ")], "ended before it was complete", 3),
        // What is no reply is named, and not asked for again.
        (
            vec![([("content-type", "text/html")], "<html>\n\u{1b}[2Jk3y-s3cret</html>").into_response()],
            "OpenAI answered with text/html, which is no reply of a model: <html> [2J",
            1,
        ),
        (vec![half("garbage")], "OpenAI answered with something without a content type, which", 1),
        (vec![half(r#"{"detail": "nothing here"}"#)], "it has no `choices`", 1),
        // A POST does not become a GET, and does not go elsewhere.
        (vec![moved(301, "/v1/elsewhere?q=k3y-s3cret")], "/v1/elsewhere`, and a POST is not sent on to there", 1),
        (vec![moved(302, "https://example.com/")], "the address moved to `https://example.com/`", 1),
        (vec![moved(303, "/v1/chat/completions")], "the address moved to `http://127.0.0.1:", 1),
        // What was shown is not asked for again.
        (
            vec![half("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n"), half("")],
            "ended before it was complete",
            1,
        ),
    ];
    for (replies, expected, requests) in cases {
        let (base, asked) = provider(replies).await;
        let ran = run(over_http(&base), Vec::new(), "hi", &CancellationToken::new()).await;
        let Some(RunOutcome::Failed(failure)) = ran.run.outcome() else { panic!("{:?}", ran.run.outcome()) };
        assert!(failure.to_string().contains(expected), "{failure} has no {expected}");
        assert!(!failure.to_string().contains("k3y-s3cret"), "{failure}");
        assert_eq!(asked.lock().unwrap().len(), requests, "{failure}");
        assert_eq!(ran.run.conversation().last(), Some(&Message::user("hi")), "nothing is lost");
    }
}

#[tokio::test]
async fn without_a_key_the_variable_is_named() {
    let error = HttpModel::new(&"Anthropic/claude".parse().unwrap(), &Environment::default()).err().unwrap();
    assert!(error.to_string().contains("`ANTHROPIC_API_KEY`") && error.hint().unwrap().contains("--model demo"));
}
