//! The executor: its order, outcomes and events.

use patter::library::Layer;
use patter::permission::{Permissions, Rule};
use patter::tool::{
    Approval, BoxFuture, CallError, CallOutcome, CallRequest, CancellationToken, Definition, Executor, Implementation,
    SharedState, Tool, ToolContext, ToolEvent, ToolEventKind, ToolFailure, ToolKind, Workspace, merge,
};
use serde_json::{Value as Json, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Work = dyn Fn(Json, ToolContext) -> BoxFuture<'static, Result<Json, ToolFailure>> + Send + Sync;

struct Function(Box<Work>);

impl Implementation for Function {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        (self.0)(arguments, context.clone())
    }
}

fn tool<F>(name: &str, signature: &str, work: impl Fn(Json, ToolContext) -> F + Send + Sync + 'static) -> Tool
where
    F: Future<Output = Result<Json, ToolFailure>> + Send + 'static,
{
    let definition = Definition::new(name, "Does it", signature).unwrap();
    Tool::new(
        definition,
        ToolKind::Native,
        Function(Box::new(move |arguments, context| Box::pin(work(arguments, context)))),
    )
}

fn executor(tools: impl IntoIterator<Item = Tool>, rules: &[&str]) -> Executor {
    let workspace = Workspace::builder()
        .toolbox("t", |toolbox| toolbox.tools(tools).tool(both()))
        .toolbox("u", |toolbox| toolbox.tool(both()))
        .build()
        .unwrap();
    let rules = rules.iter().map(|rule| Rule::parse(rule, "the test").unwrap());
    Executor::new(merge([(Layer::Project, workspace)]).unwrap().into(), Permissions::default().with_all(rules))
}

/// A tool in two toolboxes.
fn both() -> Tool {
    tool("both", "()==>(::Text)", |_, _| async { Ok(json!("")) })
}

fn echo() -> Tool {
    tool("echo", "(text::Text)==>(times::Int {default: 1})==>(::Text)", |arguments, _| async move {
        Ok(json!(arguments["text"].as_str().unwrap().repeat(arguments["times"].as_u64().unwrap() as usize)))
    })
}

/// Makes a call, and describes its outcome.
async fn outcome(executor: &Executor, call: CallRequest) -> String {
    match executor.call(call).await {
        Ok(value) => value.to_string(),
        Err(error) => format!("{}: {error}", error.kind()),
    }
}

#[tokio::test]
async fn reports_each_outcome() {
    let tools = [
        echo(),
        tool("fails", "()==>(::Text)", |_, _| async { Err(ToolFailure::new("no luck").with_detail("password=x")) }),
        tool("leaks", "()==>(::Text)", |_, _| async { Ok(json!(std::fs::read_to_string("/no/such/file")?)) }),
        tool("panics", "()==>(::Text)", |_, _| async { panic!("at the disco") }),
        tool("lies", "()==>(::Int)", |_, _| async { Ok(json!("seven")) }),
        tool("hangs", "()==>(::Text)", |_, _| std::future::pending()).timeout(Duration::from_millis(20)),
    ];
    let executor = executor(tools, &["allow t/*", "ask t/echo when text is 'careful'", "deny t/echo when times > 3"]);
    let check = async |name: &str, arguments: Json, expected: &str| {
        assert_eq!(outcome(&executor, CallRequest::new(name, arguments)).await, expected, "{name}");
    };
    check("t/echo", json!({"text": "a"}), "\"a\"").await;
    check("echo", json!({"text": "a", "times": 2}), "\"aa\"").await;
    check(
        "both",
        json!({}),
        "not_found: `both` is ambiguous in the project layer: it may be `t/both` or `u/both`; use the full name",
    )
    .await;
    check("t/ecko", json!({}), "not_found: there is no tool `t/ecko`; did you mean `t/echo`?").await;
    let denied = "permission_denied: the call to `t/echo` is not permitted: ";
    let because = "`deny t/echo when times > 3` in the test";
    check("t/echo", json!({"text": "a", "times": 4}), &format!("{denied}{because}")).await;
    let because = "it requires approval (`ask t/echo when text is \"careful\"` in the test)";
    check("t/echo", json!({"text": "careful"}), &format!("{denied}{because}")).await;
    let invalid = "invalid_input: invalid arguments for `t/echo`: ";
    check("t/echo", json!({}), &format!("{invalid}`text`: expected a Text, found nothing")).await;
    check("t/echo", json!([1]), &format!("{invalid}expected an object with the arguments, found [1]")).await;
    check("t/fails", json!({}), "failed: `t/fails` failed: no luck").await;
    check("t/leaks", json!({}), "failed: `t/leaks` failed: the tool failed").await;
    check("t/panics", json!({}), "failed: `t/panics` failed: the tool panicked").await;
    let lies = "invalid_output: `t/lies` returned a result that does not match its declaration: expected an Int, found \"seven\"";
    check("t/lies", json!({}), lies).await;
    check("t/hangs", json!({}), "timed_out: `t/hangs` did not finish within 20 ms").await;

    // Details are for the operator.
    let detail = async |name: &str| {
        executor.call(CallRequest::new(name, json!({}))).await.unwrap_err().detail().map(str::to_owned)
    };
    assert_eq!(detail("t/fails").await.as_deref(), Some("password=x"));
    assert!(detail("t/leaks").await.unwrap().contains("No such file"));
    assert_eq!(detail("t/panics").await.as_deref(), Some("at the disco"));

    let approved = CallRequest { approval: Approval::Given, ..CallRequest::new("t/echo", json!({"text": "careful"})) };
    assert_eq!(outcome(&executor, approved).await, "\"careful\"");
    let approved =
        CallRequest { approval: Approval::Given, ..CallRequest::new("t/echo", json!({"text": "careful", "times": 9})) };
    assert!(
        outcome(&executor, approved).await.starts_with("permission_denied"),
        "an approval does not override a denial"
    );
}

#[tokio::test]
async fn denies_calls_by_default() {
    let executor = executor([echo()], &[]);
    let error = outcome(&executor, CallRequest::new("t/echo", json!({"text": "a"}))).await;
    assert_eq!(error, "permission_denied: the call to `t/echo` is not permitted: no rule allows it");
}

/// Lookup comes before permission, permission before validation, validation before the call.
#[tokio::test]
async fn checks_in_order() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let counts = tool("counts", "(n::Int)==>(::Int)", move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(json!(1)) }
    });
    let denied = executor([counts.clone()], &["deny *"]);
    let kind = async |executor: &Executor, name: &str, arguments: Json| {
        executor.call(CallRequest::new(name, arguments)).await.map_or_else(|error| error.kind(), |_| "ok")
    };
    assert_eq!(kind(&denied, "t/unknown", json!({"n": "wrong"})).await, "not_found");
    assert_eq!(kind(&denied, "t/counts", json!({"n": "wrong"})).await, "permission_denied");
    let allowed = executor([counts], &["allow *"]);
    assert_eq!(kind(&allowed, "t/counts", json!({"n": "wrong"})).await, "invalid_input");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(kind(&allowed, "t/counts", json!({"n": 1})).await, "ok");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn conditions_apply_to_defaults() {
    let executor = executor([echo()], &["allow t/echo when times > 1"]);
    assert!(outcome(&executor, CallRequest::new("echo", json!({"text": "a"}))).await.starts_with("permission_denied"));
    assert_eq!(outcome(&executor, CallRequest::new("echo", json!({"text": "a", "times": 2}))).await, "\"aa\"");
    assert_eq!(outcome(&executor, CallRequest::new("echo", json!({"text": "a", "times": 2.0}))).await, "\"aa\"");
    let verdict = executor.verdict("echo", &json!({"text": "a"})).unwrap();
    assert_eq!(verdict.reason.to_string(), "no rule allows it");
}

#[tokio::test]
async fn cancellation_ends_the_call_and_notifies_the_tool() {
    let token = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&token);
    let waits = tool("waits", "()==>(::Text)", move |_, context| {
        *slot.lock().unwrap() = Some(context.cancellation().clone());
        std::future::pending()
    });
    let executor = executor([waits], &["allow *"]);
    let cancellation = CancellationToken::new();
    let call = CallRequest { cancellation: cancellation.clone(), ..CallRequest::new("t/waits", json!({})) };
    let running = tokio::spawn(async move { executor.call(call).await });
    let inside = loop {
        let received = token.lock().unwrap().clone();
        match received {
            Some(received) => break received,
            None => tokio::task::yield_now().await,
        }
    };
    cancellation.cancel();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the call to `t/waits` was cancelled");
    assert!(inside.is_cancelled());
}

#[tokio::test]
async fn a_time_limit_notifies_the_tool() {
    let token = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&token);
    let hangs = tool("hangs", "()==>(::Text)", move |_, context| {
        *slot.lock().unwrap() = Some(context.cancellation().clone());
        std::future::pending()
    });
    let executor = executor([hangs.timeout(Duration::from_millis(10))], &["allow *"]);
    assert!(matches!(executor.call(CallRequest::new("hangs", json!({}))).await, Err(CallError::TimedOut { .. })));
    assert!(token.lock().unwrap().as_ref().unwrap().is_cancelled());
}

#[tokio::test]
async fn limits_concurrent_calls() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let peak = Arc::clone(&most);
    let busy = tool("busy", "()==>(::Int)", move |_, _| {
        let running = Arc::clone(&running);
        let peak = Arc::clone(&peak);
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(1))
        }
    });
    let executor = executor([busy.concurrency(3)], &["allow *"]);
    let calls = (0..20).map(|_| executor.call(CallRequest::new("busy", json!({}))));
    let results = futures_util::future::join_all(calls).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn emits_events() {
    let works = tool("works", "(n::Int {default: 5})==>(::Text)", |_, context| async move {
        context.progress(Some(0.5), "halfway");
        Ok(json!(*context.state::<&'static str>().unwrap()))
    });
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let executor = executor([works], &["allow *"]).with_state(SharedState::default().with("shared")).with_listener(
        move |event: &ToolEvent<'_>| {
            let text = match &event.kind {
                ToolEventKind::Started { argument_bytes, defaults } => format!("started {argument_bytes} {defaults}"),
                ToolEventKind::Hook { .. } => event.kind.hook_message().unwrap(),
                ToolEventKind::Progress(progress) => format!("{:?} {}", progress.fraction, progress.message),
                ToolEventKind::Finished { outcome: CallOutcome::Value { bytes }, .. } => format!("value {bytes}"),
                ToolEventKind::Finished { outcome: CallOutcome::Error(error), .. } => error.kind().to_owned(),
            };
            log.lock().unwrap().push(format!("{} {} {text}", event.call_id, event.tool));
        },
    );
    let call = |arguments| CallRequest { id: "7".into(), ..CallRequest::new("works", arguments) };
    assert_eq!(outcome(&executor, call(json!({}))).await, "\"shared\"");
    assert!(outcome(&executor, call(json!({"n": "x"}))).await.starts_with("invalid_input"));
    let expected =
        ["7 t/works started 7 1", "7 t/works Some(0.5) halfway", "7 t/works value 8", "7 t/works invalid_input"];
    assert_eq!(*events.lock().unwrap(), expected);
}

/// Two libraries can have tools with the same names.
#[tokio::test]
async fn uses_its_own_library() {
    let greets = |text: &'static str| tool("greet", "()==>(::Text)", move |_, _| async move { Ok(json!(text)) });
    let a = executor([greets("hello")], &["allow *"]);
    let b = executor([greets("hi")], &["allow *"]);
    assert_eq!(outcome(&a, CallRequest::new("greet", json!({}))).await, "\"hello\"");
    assert_eq!(outcome(&b, CallRequest::new("greet", json!({}))).await, "\"hi\"");
}
