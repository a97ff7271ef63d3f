//! Limits on what runs cost, and models that replace others, with a local server that imitates two providers.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use patter::drive::{Budget, Driver, RunEvent, RunEventKind, StreamedReplies, Tally, now_ms};
use patter::library::Layer;
use patter::model::{Model, ModelResolver, ScriptedModel, model_resolver};
use patter::project::{Environment, Project};
use patter::provider::price::{Cost, Prices};
use patter::run::{FailureKind, Run, RunFailure, RunOutcome};
use patter::session::{LogEntry, Playback};
use patter::tool::{CancellationToken, Workspace, merge};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does for requests to OpenAI. Anthropic always answers.
#[derive(Clone, Copy, PartialEq)]
enum Outage {
    Status(u16),
    /// The connection breaks before or after a piece of the reply.
    BreaksBefore,
    BreaksAfter,
}

/// Starts a server. Returns the models, and counts of requests to each provider.
async fn providers(outage: Outage) -> (ModelResolver, Arc<Mutex<HashMap<String, usize>>>) {
    let counts = Arc::new(Mutex::new(HashMap::new()));
    let counted = Arc::clone(&counts);
    let router = Router::new().fallback(move |uri: Uri| async move {
        *counted.lock().unwrap().entry(uri.path().to_owned()).or_default() += 1;
        if uri.path().ends_with("/messages") { anthropic() } else { openai(outage) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let variables = [
        ("OPENAI_API_KEY", "k3y-s3cret"),
        ("OPENAI_BASE_URL", base.as_str()),
        ("ANTHROPIC_API_KEY", "k3y-s3cret"),
        ("ANTHROPIC_BASE_URL", base.as_str()),
    ];
    (model_resolver(&Environment::from_variables(variables)), counts)
}

fn openai(outage: Outage) -> Response {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "Once upon"}}]});
    let start = format!("data: {piece}\n\n");
    let first = match outage {
        Outage::Status(status) => {
            let body = json!({"error": {"message": "not now", "type": "overloaded_error"}}).to_string();
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            response.headers_mut().insert("retry-after-ms", "1".parse().unwrap());
            return response;
        }
        Outage::BreaksBefore => ": hello\n\n".to_owned(),
        Outage::BreaksAfter => start,
    };
    let broken = futures_util::stream::unfold(Some(first), async |piece| match piece {
        Some(piece) => Some((Ok(Bytes::from(piece)), None)),
        None => {
            // The piece arrives first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            Some((Err(std::io::Error::new(std::io::ErrorKind::ConnectionReset, "gone")), None))
        }
    });
    Body::from_stream(broken).into_response()
}

fn anthropic() -> Response {
    let usage = json!({"input_tokens": 1000, "cache_read_input_tokens": 0, "output_tokens": 1});
    let events = [
        json!({"type": "message_start", "message": {"usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 100}}),
        json!({"type": "message_stop"}),
    ];
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect::<String>()
        .into_response()
}

const AGENT: &str =
    "[a:Agent {instruction: 'Be kind.', model: 'OpenAI/gpt-4o-mini', fallback: ['Anthropic/claude-sonnet-4-6']}]";

/// Runs an agent. Returns the run, its events and its log.
async fn run(
    agent: &str,
    models: ModelResolver,
    streamed: StreamedReplies,
) -> (Run, Vec<RunEvent>, Arc<super::recorder::Recorded>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let library = merge([(Layer::Project, Workspace::default())]).unwrap();
    let journal = Arc::new(super::recorder::Recorded::default());
    let driver = Driver::new(Arc::new(Project::read([("a.gram", agent)])), library.into(), models)
        .with_streamed_replies(streamed)
        .with_journal(Arc::clone(&journal) as _)
        .with_listener(move |event| seen.lock().unwrap().push(event.clone()));
    let compiled = driver.compile(&driver.project().find_agent("a").unwrap()).unwrap();
    let run = Run::start(compiled.spec().clone(), Vec::new(), "hi", now_ms()).unwrap();
    let run = driver.drive(&compiled, run, &CancellationToken::new()).await;
    let events = events.lock().unwrap().clone();
    (run, events, journal)
}

fn failure(run: &Run) -> RunFailure {
    match run.outcome() {
        Some(RunOutcome::Failed(failure)) => failure.clone(),
        other => panic!("{other:?}"),
    }
}

fn cost(events: &[RunEvent]) -> String {
    let tally = Tally::new(Prices::builtin());
    events.iter().for_each(|event| tally.record(event));
    tally.bill().to_string()
}

#[tokio::test]
async fn an_overloaded_model_is_replaced() {
    for status in [529, 503, 429, 500] {
        let (models, counts) = providers(Outage::Status(status)).await;
        let (run, events, journal) = run(AGENT, models, StreamedReplies::All).await;
        assert_eq!(run.response().content, "Hello");
        let found = events.iter().find_map(|event| match &event.kind {
            RunEventKind::FellBack { from, to, because } => Some((from.as_str(), to.as_str(), because.as_str())),
            _ => None,
        });
        let because = format!("the provider answered {status} `overloaded_error`: not now");
        assert_eq!(found, Some(("OpenAI/gpt-4o-mini", "Anthropic/claude-sonnet-4-6", because.as_str())));
        assert_eq!(counts.lock().unwrap()["/chat/completions"], 3, "retries come first");
        // The reply is priced by the model that answered: 1000 tokens at $3 and 100 at $15 per million.
        assert_eq!(cost(&events), "$0.0045");
        assert_eq!(run.spent().to_string(), "$0.0045");
        assert_eq!(run.fallback(), Some("Anthropic/claude-sonnet-4-6"));
        // The log tells the same story.
        let mut playback = Playback::default();
        let entries: Vec<LogEntry> = journal.entries();
        let played: Vec<_> = entries.into_iter().flat_map(|entry| playback.play(entry).unwrap()).collect();
        assert_eq!(cost(&played), "$0.0045");
        assert_eq!(playback.log().turns()[0].model, "Anthropic/claude-sonnet-4-6");
        assert!(played.iter().any(|event| matches!(&event.kind, RunEventKind::FellBack { .. })));
    }
}

#[tokio::test]
async fn a_broken_connection_is_replaced_only_if_nobody_saw_a_part() {
    let (models, _) = providers(Outage::BreaksBefore).await;
    let (replaced, _, _) = run(AGENT, models, StreamedReplies::All).await;
    assert_eq!(replaced.response().content, "Hello");

    let (models, counts) = providers(Outage::BreaksAfter).await;
    let (failed, events, _) = run(AGENT, models, StreamedReplies::All).await;
    let RunFailure { kind, message } = failure(&failed);
    assert_eq!(kind, FailureKind::Model);
    assert!(
        message.ends_with("; a part of the reply was shown, so `Anthropic/claude-sonnet-4-6` is not asked instead"),
        "{message}"
    );
    assert!(!counts.lock().unwrap().contains_key("/v1/messages"));
    assert_eq!(cost(&events), "cost unknown");
    assert_eq!(failed.spent().to_string(), "cost unknown");

    // Whoever does not show pieces loses nothing.
    let (models, _) = providers(Outage::BreaksAfter).await;
    let (replaced, _, _) = run(AGENT, models, StreamedReplies::None).await;
    assert_eq!(replaced.response().content, "Hello");
}

#[tokio::test]
async fn mistakes_are_not_outages() {
    for status in [400, 401, 403, 404, 413, 422] {
        let (models, counts) = providers(Outage::Status(status)).await;
        let (failed, events, _) = run(AGENT, models, StreamedReplies::All).await;
        failure(&failed);
        assert!(!counts.lock().unwrap().contains_key("/v1/messages"), "{status}");
        assert_eq!(cost(&events), "$0", "a request that is rejected is not charged");
    }
}

#[tokio::test]
async fn a_fallback_without_a_key_is_explained() {
    let environment = Environment::from_variables([("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://127.0.0.1:1")]);
    let (failed, _, _) = run(AGENT, model_resolver(&environment), StreamedReplies::All).await;
    let message = failure(&failed).message;
    assert!(message.starts_with("cannot connect to `127.0.0.1:1`"), "{message}");
    let expected = "; the fallback `Anthropic/claude-sonnet-4-6` cannot be used: there is no key for Anthropic";
    assert!(message.contains(expected), "{message}");
}

/// A model that counts the requests in progress.
struct Slow {
    inner: ScriptedModel,
    now: AtomicUsize,
    most: AtomicUsize,
    calls: AtomicUsize,
}

impl Model for Slow {
    fn provider(&self) -> patter::provider::Provider {
        self.inner.provider()
    }

    fn call<'a>(
        &'a self,
        request: &'a patter::message::request::Request<'a>,
        sink: Option<&'a patter::model::DeltaSink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> patter::tool::BoxFuture<'a, Result<patter::message::request::Reply, patter::model::ModelError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            let reply = self.inner.call(request, sink, cancellation).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            reply
        })
    }
}

/// Runs an agent that calls eight others at once, each of which calls its model once, at a cent per call.
async fn crowd(limits: &str, helper: &str, budget: Option<Arc<Budget>>) -> (Run, Arc<Slow>) {
    // A request is at least as long as the tokens that the script says it has.
    let instruction = "Help. ".repeat(700);
    let agents = format!(
        "[a:Agent {{instruction: 'Ask `helper`.', model: 'OpenAI/gpt-4o'{limits}}} | helper]
         [helper:Agent {{description: 'Helps', instruction: '{instruction}', model: 'OpenAI/gpt-4o'{helper}}}]"
    );
    // $2.50 per million tokens of input.
    let usage = json!({"inputTokens": 4000});
    let call = json!({"tool": "helper", "arguments": {"input": "help"}});
    let script = |replies: Json| ScriptedModel::parse("script", &replies.to_string()).unwrap();
    let boss = script(json!([{"calls": vec![call; 8], "usage": usage}, {"text": "done", "usage": usage}]));
    let inner = script(json!([{"text": "helped", "usage": usage}]));
    let counter = AtomicUsize::default;
    let slow = Arc::new(Slow { inner, now: counter(), most: counter(), calls: counter() });
    let helpers = Arc::clone(&slow);
    let boss: Arc<dyn Model> = Arc::new(boss);
    let is_first = AtomicUsize::default();
    let models: ModelResolver = Arc::new(move |_| {
        // The outer agent is asked first, before its helpers, and last.
        let number = is_first.fetch_add(1, Ordering::SeqCst);
        Ok(if number == 0 || helpers.calls.load(Ordering::SeqCst) == 8 { Arc::clone(&boss) } else { helpers.clone() })
    });
    let library = merge([(Layer::Project, Workspace::default())]).unwrap();
    let driver = Driver::new(Arc::new(Project::read([("a.gram", agents)])), library.into(), models).with_budget(budget);
    let compiled = driver.compile(&driver.project().find_agent("a").unwrap()).unwrap();
    let run = Run::start(compiled.spec().clone(), Vec::new(), "hi", now_ms()).unwrap();
    (driver.drive(&compiled, run, &CancellationToken::new()).await, slow)
}

#[tokio::test]
async fn without_limits_agents_are_called_at_once() {
    let (run, slow) = crowd("", "", None).await;
    assert_eq!(run.response().content, "done");
    assert_eq!(slow.most.load(Ordering::SeqCst), 8);
    assert_eq!(run.spent().to_string(), "$0.10");
}

#[tokio::test]
async fn at_most_one_call_exceeds_a_limit() {
    for (limits, helper) in
        [(", maxCost: 0.045", ""), (", maxTotalTokens: 18000", ""), (", maxCost: 0.045", ", maxTokens: 100")]
    {
        let (run, slow) = crowd(limits, helper, None).await;
        let RunFailure { kind, message } = failure(&run);
        assert!(matches!(kind, FailureKind::Cost | FailureKind::Tokens), "{message}");
        assert!(message.contains("without an answer (limit: "), "{message}");
        // One call of the outer agent, and four of the inner one: the fifth cent exceeds the limit.
        assert_eq!(slow.calls.load(Ordering::SeqCst), 4, "{limits} {helper}");
        assert_eq!(run.spent().to_string(), "$0.05");
    }
}

#[tokio::test]
async fn calls_that_certainly_fit_are_made_at_once() {
    let (run, slow) = crowd(", maxCost: 1.0", ", maxTokens: 100", None).await;
    assert_eq!(run.response().content, "done");
    assert_eq!(slow.most.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn a_budget_is_shared_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cents = |cents: f64| Cost::from_dollars(cents / 100.0).unwrap();
    let budget = Arc::new(Budget::new(folder.path(), cents(15.0)));
    let (first, _) = crowd("", "", Some(Arc::clone(&budget))).await;
    assert_eq!(first.response().content, "done");
    assert_eq!(budget.spent(), Ok(cents(10.0)));
    // Another process.
    let budget = Arc::new(Budget::new(folder.path(), cents(15.0)));
    let (second, slow) = crowd("", "", Some(Arc::clone(&budget))).await;
    let RunFailure { kind, message } = failure(&second);
    assert_eq!(kind, FailureKind::Cost);
    assert!(message.starts_with("the project spent $0.15 today (budget: $0.15 per day); raise `day`"), "{message}");
    assert_eq!(slow.calls.load(Ordering::SeqCst), 4);
    assert_eq!(budget.spent(), Ok(cents(15.0)));
}

#[tokio::test]
async fn the_cost_of_a_model_without_a_price_cannot_be_limited() {
    let agent = "[a:Agent {instruction: 'Be kind.', model: 'OpenAI/unheard-of', maxCost: 1}]";
    let (models, counts) = providers(Outage::Status(500)).await;
    let (failed, _, _) = run(agent, models, StreamedReplies::All).await;
    let RunFailure { kind, message } = failure(&failed);
    assert_eq!(kind, FailureKind::Configuration);
    assert_eq!(
        message,
        "the cost is limited, but the price of `OpenAI/unheard-of` is not known; set it in `[prices.\"OpenAI/unheard-of\"]` of patter.toml"
    );
    assert!(counts.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_limit_of_nothing_allows_free_models() {
    let models: ModelResolver = Arc::new(|_| Ok(Arc::new(patter::model::DemoModel) as _));
    let agent = |model: &str| format!("[a:Agent {{instruction: 'Be kind.', model: '{model}', maxCost: 0}}]");
    let (answered, _, _) = run(&agent("demo"), Arc::clone(&models), StreamedReplies::All).await;
    assert!(matches!(answered.outcome(), Some(RunOutcome::Answer { .. })));
    let (failed, _, _) = run(&agent("OpenAI/gpt-4o"), models, StreamedReplies::All).await;
    assert_eq!(failure(&failed).message, "the run may cost $0, and its model is not free");
}
