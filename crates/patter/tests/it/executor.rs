//! The executor: its order, each way to end, and what it tells.

use patter::library::Layer;
use patter::permission::{Permissions, Rule};
use patter::tool::{
    Approval, BoxFuture, Call, CallError, CancellationToken, Definition, Ended, Executor, Failure, Implementation,
    Kind, State, Tool, ToolContext, ToolEvent, ToolEventKind, Workspace, merge,
};
use serde_json::{Value as Json, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Work = dyn Fn(Json, ToolContext) -> BoxFuture<'static, Result<Json, Failure>> + Send + Sync;

struct Function(Box<Work>);

impl Implementation for Function {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>> {
        (self.0)(arguments, context.clone())
    }
}

fn tool<F>(name: &str, signature: &str, work: impl Fn(Json, ToolContext) -> F + Send + Sync + 'static) -> Tool
where
    F: Future<Output = Result<Json, Failure>> + Send + 'static,
{
    let definition = Definition::new(name, "Does it", signature).unwrap();
    Tool::new(
        definition,
        Kind::Native,
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

/// A tool that two toolboxes have.
fn both() -> Tool {
    tool("both", "()==>(::Text)", |_, _| async { Ok(json!("")) })
}

fn echo() -> Tool {
    tool("echo", "(text::Text)==>(times::Int {default: 1})==>(::Text)", |arguments, _| async move {
        Ok(json!(arguments["text"].as_str().unwrap().repeat(arguments["times"].as_u64().unwrap() as usize)))
    })
}

/// Makes a call and writes how it ended.
async fn ended(executor: &Executor, call: Call) -> String {
    match executor.call(call).await {
        Ok(value) => value.to_string(),
        Err(error) => format!("{}: {error}", error.kind()),
    }
}

#[tokio::test]
async fn each_way_to_end() {
    let tools = [
        echo(),
        tool("fails", "()==>(::Text)", |_, _| async { Err(Failure::new("no luck").with_detail("password=x")) }),
        tool("leaks", "()==>(::Text)", |_, _| async { Ok(json!(std::fs::read_to_string("/no/such/file")?)) }),
        tool("panics", "()==>(::Text)", |_, _| async { panic!("at the disco") }),
        tool("lies", "()==>(::Int)", |_, _| async { Ok(json!("seven")) }),
        tool("hangs", "()==>(::Text)", |_, _| std::future::pending()).timeout(Duration::from_millis(20)),
    ];
    let executor = executor(tools, &["allow t/*", "ask t/echo when text is 'careful'", "deny t/echo when times > 3"]);
    let check = async |name: &str, arguments: Json, expected: &str| {
        assert_eq!(ended(&executor, Call::new(name, arguments)).await, expected, "{name}");
    };
    check("t/echo", json!({"text": "a"}), "\"a\"").await;
    check("echo", json!({"text": "a", "times": 2}), "\"aa\"").await;
    check("both", json!({}), "not_found: `both` may be `t/both` or `u/both` of the project layer; write the full name")
        .await;
    check("t/ecko", json!({}), "not_found: there is no tool `t/ecko`; did you mean `t/echo`?").await;
    let denied = "permission_denied: the call of `t/echo` is not permitted: ";
    let because = "`deny t/echo when times > 3` in the test";
    check("t/echo", json!({"text": "a", "times": 4}), &format!("{denied}{because}")).await;
    let because = "it needs an approval (`ask t/echo when text is \"careful\"` in the test)";
    check("t/echo", json!({"text": "careful"}), &format!("{denied}{because}")).await;
    let invalid = "invalid_input: the arguments of `t/echo` are wrong: ";
    check("t/echo", json!({}), &format!("{invalid}`text`: expected a Text, found nothing")).await;
    check("t/echo", json!([1]), &format!("{invalid}expected an object with the arguments, found [1]")).await;
    check("t/fails", json!({}), "failed: `t/fails` failed: no luck").await;
    check("t/leaks", json!({}), "failed: `t/leaks` failed: the tool failed").await;
    check("t/panics", json!({}), "failed: `t/panics` failed: the tool panicked").await;
    let lies = "invalid_output: `t/lies` gave something else than it promises: expected an Int, found \"seven\"";
    check("t/lies", json!({}), lies).await;
    check("t/hangs", json!({}), "timed_out: `t/hangs` did not end within 0.02 s").await;

    // What the model may not read is there for the operator.
    let detail =
        async |name: &str| executor.call(Call::new(name, json!({}))).await.unwrap_err().detail().map(str::to_owned);
    assert_eq!(detail("t/fails").await.as_deref(), Some("password=x"));
    assert!(detail("t/leaks").await.unwrap().contains("No such file"));
    assert_eq!(detail("t/panics").await.as_deref(), Some("at the disco"));

    let approved = Call { approval: Approval::Given, ..Call::new("t/echo", json!({"text": "careful"})) };
    assert_eq!(ended(&executor, approved).await, "\"careful\"");
    let approved = Call { approval: Approval::Given, ..Call::new("t/echo", json!({"text": "careful", "times": 9})) };
    assert!(ended(&executor, approved).await.starts_with("permission_denied"), "an approval does not lift a denial");
}

#[tokio::test]
async fn nothing_is_allowed_by_default() {
    let executor = executor([echo()], &[]);
    let error = ended(&executor, Call::new("t/echo", json!({"text": "a"}))).await;
    assert_eq!(error, "permission_denied: the call of `t/echo` is not permitted: no rule allows it");
}

/// Lookup comes before permission, permission before validation, validation before the call.
#[tokio::test]
async fn the_order() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let counts = tool("counts", "(n::Int)==>(::Int)", move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(json!(1)) }
    });
    let denied = executor([counts.clone()], &["deny *"]);
    let kind = async |executor: &Executor, name: &str, arguments: Json| {
        executor.call(Call::new(name, arguments)).await.map_or_else(|error| error.kind(), |_| "ok")
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
async fn conditions_see_defaults() {
    let executor = executor([echo()], &["allow t/echo when times > 1"]);
    assert!(ended(&executor, Call::new("echo", json!({"text": "a"}))).await.starts_with("permission_denied"));
    assert_eq!(ended(&executor, Call::new("echo", json!({"text": "a", "times": 2}))).await, "\"aa\"");
    assert_eq!(ended(&executor, Call::new("echo", json!({"text": "a", "times": 2.0}))).await, "\"aa\"");
    let verdict = executor.verdict("echo", &json!({"text": "a"})).unwrap();
    assert_eq!(verdict.because.to_string(), "no rule allows it");
}

#[tokio::test]
async fn cancellation_ends_the_call_and_tells_the_tool() {
    let heard = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&heard);
    let waits = tool("waits", "()==>(::Text)", move |_, context| {
        *seen.lock().unwrap() = Some(context.cancellation().clone());
        std::future::pending()
    });
    let executor = executor([waits], &["allow *"]);
    let cancellation = CancellationToken::new();
    let call = Call { cancellation: cancellation.clone(), ..Call::new("t/waits", json!({})) };
    let running = tokio::spawn(async move { executor.call(call).await });
    let inside = loop {
        let token = heard.lock().unwrap().clone();
        match token {
            Some(token) => break token,
            None => tokio::task::yield_now().await,
        }
    };
    cancellation.cancel();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the call of `t/waits` was cancelled");
    assert!(inside.is_cancelled());
}

#[tokio::test]
async fn a_time_limit_also_tells_the_tool() {
    let heard = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&heard);
    let hangs = tool("hangs", "()==>(::Text)", move |_, context| {
        *seen.lock().unwrap() = Some(context.cancellation().clone());
        std::future::pending()
    });
    let executor = executor([hangs.timeout(Duration::from_millis(10))], &["allow *"]);
    assert!(matches!(executor.call(Call::new("hangs", json!({}))).await, Err(CallError::TimedOut { .. })));
    assert!(heard.lock().unwrap().as_ref().unwrap().is_cancelled());
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_a_tool_allows() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let busy = tool("busy", "()==>(::Int)", move |_, _| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(1))
        }
    });
    let executor = executor([busy.concurrency(3)], &["allow *"]);
    let calls = (0..20).map(|_| executor.call(Call::new("busy", json!({}))));
    let results = futures_util::future::join_all(calls).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn what_happens_is_told() {
    let works = tool("works", "(n::Int {default: 5})==>(::Text)", |_, context| async move {
        context.progress(Some(0.5), "half way");
        Ok(json!(*context.state::<&'static str>().unwrap()))
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let executor = executor([works], &["allow *"]).with_state(State::default().with("shared")).with_listener(
        move |event: &ToolEvent<'_>| {
            let text = match &event.kind {
                ToolEventKind::Started { argument_bytes, defaults } => format!("started {argument_bytes} {defaults}"),
                ToolEventKind::Progress(progress) => format!("{:?} {}", progress.fraction, progress.message),
                ToolEventKind::Finished { ended: Ended::Value { bytes }, .. } => format!("value {bytes}"),
                ToolEventKind::Finished { ended: Ended::Error(error), .. } => error.kind().to_owned(),
            };
            heard.lock().unwrap().push(format!("{} {} {text}", event.call_id, event.tool));
        },
    );
    let call = |arguments| Call { id: "7".into(), ..Call::new("works", arguments) };
    assert_eq!(ended(&executor, call(json!({}))).await, "\"shared\"");
    assert!(ended(&executor, call(json!({"n": "x"}))).await.starts_with("invalid_input"));
    let expected =
        ["7 t/works started 7 1", "7 t/works Some(0.5) half way", "7 t/works value 8", "7 t/works invalid_input"];
    assert_eq!(*told.lock().unwrap(), expected);
}

/// One agent, two libraries with the same names.
#[tokio::test]
async fn two_libraries_side_by_side() {
    let greets = |text: &'static str| tool("greet", "()==>(::Text)", move |_, _| async move { Ok(json!(text)) });
    let (a, b) = (executor([greets("hello")], &["allow *"]), executor([greets("hi")], &["allow *"]));
    assert_eq!(ended(&a, Call::new("greet", json!({}))).await, "\"hello\"");
    assert_eq!(ended(&b, Call::new("greet", json!({}))).await, "\"hi\"");
}
