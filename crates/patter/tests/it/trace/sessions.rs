//! Spans of sessions and experiments.

use super::receiver::{Answer, Receiver};
use crate::pypi;
use crate::store::{TestStore, id};
use patter::case::{CaseFormat, read};
use patter::drive::{ApprovalAnswer, Approver};
use patter::experiment::{Arm, CommandChecks, Plan, ReportKind, Series, SeriesProgress, StoredTrials, Throttle};
use patter::live::LiveProject;
use patter::project::Environment;
use patter::run::PendingCall;
use patter::session::Session;
use patter::tool::{BoxFuture, CancellationToken, Tool};
use patter::trace::{SessionTrace, TraceParent, Tracer};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

const AGENTS: &str = "
[lead:Agent {instruction: 'Do it.', model: 'scripted/FOLDER/lead.json'} | sayHello, remember, helper]
[helper:Agent {instruction: 'Help.', model: 'scripted/FOLDER/helper.json'} | sayHello]
";
const LEAD: &str = r#"[
  {"calls": [{"tool": "sayHello", "arguments": {"personName": "Ada"}}]},
  {"calls": [{"tool": "remember", "arguments": {"what": "Ada"}}]},
  {"calls": [{"tool": "helper", "arguments": {"input": "Please help"}}]},
  {"text": "Everything is done.", "usage": {"inputTokens": 11, "outputTokens": 4}}
]"#;
const HELPER: &str = r#"[
  {"calls": [{"tool": "sayHello", "arguments": {"personName": "Bob"}}]},
  {"text": "Helped.", "usage": {"inputTokens": 5, "outputTokens": 2}}
]"#;

/// Remembers something
#[patter::tool(effect = "writes")]
fn remember(what: String) -> String {
    what
}

/// Approves after a while.
#[derive(Clone)]
struct Slowly;

impl Approver for Slowly {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            ApprovalAnswer::Approve
        })
    }
}

/// Never answers, and reports that it was asked.
#[derive(Clone)]
struct Never(Arc<Notify>);

impl Approver for Never {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

async fn project(folder: &tempfile::TempDir, tools: Vec<Tool>) -> Arc<LiveProject> {
    let agents = AGENTS.replace("FOLDER", folder.path().to_str().unwrap());
    for (name, text) in [("a.gram", agents.as_str()), ("lead.json", LEAD), ("helper.json", HELPER)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let builder = LiveProject::open(folder.path().join("a.gram"));
    Arc::new(builder.with_tools(tools).with_environment(Environment::default()).read().await.unwrap())
}

fn with_approvals(session: Session) -> Session {
    with_approver(session, Slowly)
}

fn with_approver(session: Session, approver: impl Approver + Clone + 'static) -> Session {
    let ask = patter::permission::Rule::parse("ask remember", "this test").unwrap();
    session.with_driver(move |driver| driver.with_approver(approver.clone()).with_rules([ask.clone()]))
}

/// What is exported while a session runs is what can be exported from its log later.
#[tokio::test]
async fn live_and_later_exports_are_the_same() {
    let receiver = Receiver::accepting().await;
    let tracer = receiver.tracer();
    let folder = tempfile::tempdir().unwrap();
    let database = TestStore::sqlite();
    let store = database.open().await;
    let project = project(&folder, vec![remember::tool()]).await;
    let session = Session::create(project, Arc::clone(&store), id("traced")).with_tracer(Some(tracer.clone()));
    let mut session = with_approvals(session);
    let parent: TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
    session.set_trace_parent(Some(parent));
    let run = session.say("Greet Ada", &CancellationToken::new()).await.unwrap();
    assert_eq!(run.response().content, "Everything is done.");
    let report = tracer.flush().await;
    assert_eq!(report.dropped, 0);
    let stored = store.read(&id("traced")).await.unwrap();
    let later = SessionTrace::new("traced", &stored.entries, |_| None).unwrap();
    assert_eq!(receiver.count(), 1);
    assert_eq!(receiver.body(0), later.to_protobuf());

    let prefix = format!("{}/", folder.path().display());
    let names: Vec<_> = later.spans.iter().map(|span| span.name.replace(&prefix, "")).collect();
    assert_eq!(
        names,
        [
            "chat lead.json",
            "execute_tool sayHello",
            "chat lead.json",
            "await_approval remember",
            "execute_tool remember",
            "chat lead.json",
            "chat helper.json",
            "execute_tool sayHello",
            "chat helper.json",
            "invoke_agent helper",
            "execute_tool helper",
            "chat lead.json",
            "invoke_agent lead",
        ]
    );
    let root = later.spans.last().unwrap();
    assert_eq!((root.trace_id, root.parent), (parent.trace_id, Some(parent.span_id)));
    let waited = &later.spans[3];
    assert!(waited.end_ms - waited.start_ms >= 60, "the wait is shown, and is not a part of the call");
    assert!(later.spans[4].start_ms >= waited.end_ms);
    check_with_opentelemetry(&receiver.body(0), &later);
}

/// Compares with what the official classes of OpenTelemetry read.
fn check_with_opentelemetry(bytes: &[u8], trace: &SessionTrace) {
    let Some(python) = pypi::installed("otlp") else { return };
    let mut decoder = Command::new(python);
    decoder.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp/decode.py"));
    let mut decoder = decoder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    decoder.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = decoder.wait_with_output().unwrap();
    assert!(output.status.success());
    let decoded: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(decoded, trace.to_json());
}

/// A run that is interrupted at any point exports each span once, with the ids that it would have had.
#[tokio::test]
async fn resumed_run_continues_its_trace() {
    let receiver = Receiver::accepting().await;
    let folder = tempfile::tempdir().unwrap();
    let database = TestStore::sqlite();
    let store = database.open().await;
    let project = project(&folder, vec![remember::tool()]).await;
    let tracer = receiver.tracer();
    let session = Session::create(Arc::clone(&project), Arc::clone(&store), id("killed"));
    let asked = Arc::new(Notify::new());
    let mut session = with_approver(session.with_tracer(Some(tracer.clone())), Never(Arc::clone(&asked)));
    // Dropped while the approval is awaited, like a process that ends.
    let stop = CancellationToken::new();
    tokio::select! {
        run = session.say("Greet Ada", &stop) => panic!("it did not wait for the approval: {run:?}"),
        () = asked.notified() => {}
    }
    let _ = session.wait_until_saved().await;
    drop(session);
    let before = tracer.flush().await.exported;
    assert_eq!(before, 3);

    let tracer = receiver.tracer();
    let session = Session::open(project, Arc::clone(&store), &id("killed")).await.unwrap();
    let mut session = with_approvals(session.with_tracer(Some(tracer.clone())));
    session.resume(&stop).await.unwrap();
    let after = tracer.flush().await.exported;
    let stored = store.read(&id("killed")).await.unwrap();
    let later = SessionTrace::new("killed", &stored.entries, |_| None).unwrap();
    assert_eq!(before + after, later.spans.len() as u64);
    let whole = later.to_protobuf();
    for (number, part) in [(0, &later.spans[..3]), (1, &later.spans[3..])] {
        let part = SessionTrace { resource: later.resource.clone(), spans: part.to_vec() };
        assert_eq!(receiver.body(number), part.to_protobuf());
    }
    assert!(whole.len() > receiver.body(0).len());
    let root = later.spans.last().unwrap();
    assert_eq!(root.events.iter().map(|event| event.name).collect::<Vec<_>>(), ["patter.run.resumed"]);
}

/// Neither a receiver that never answers nor one that refuses delays a run.
#[tokio::test]
async fn run_does_not_wait_for_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(&folder, vec![remember::tool()]).await;
    for answer in [Answer::Silence, Answer::Status(503, vec![]), Answer::Status(400, vec![])] {
        let receiver = Receiver::start(move |_| answer.clone()).await;
        let settings = receiver.settings(|settings| {
            settings.max_batch = 1;
            settings.delay = Duration::ZERO;
            settings.timeout = Duration::from_millis(200);
        });
        let tracer = Tracer::new(settings, |_| None);
        let mut session = Session::new(Arc::clone(&project)).with_tracer(Some(tracer.clone()));
        let start = Instant::now();
        for _ in 0..5 {
            session.say("Greet Ada", &CancellationToken::new()).await.unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        let report = tracer.flush().await;
        assert!(report.dropped >= 20 && report.exported == 0, "{report:?}");
    }
}

/// Trials are spans with the results of their checks, and arms are linked.
#[tokio::test]
async fn trials_have_evaluations_and_links() {
    let Some(python) = pypi::installed("otlp") else { return };
    let receiver = Receiver::accepting().await;
    let tracer = receiver.tracer();
    let folder = tempfile::tempdir().unwrap();
    let project = project(&folder, vec![remember::tool()]).await;
    let driver = project.driver();
    let compiled = driver.compile_named("helper").unwrap().unwrap();
    let arm = |name: &str| Arm::new(name, driver.clone(), compiled.clone(), Default::default());
    let line = r#"{"id": "one", "input": "Help", "checks": [{"contains": "Helped"}]}"#;
    let (cases, problems) = read("a.jsonl", CaseFormat::JsonLines, line.as_bytes());
    assert_eq!(problems, []);
    let command_checks = CommandChecks::new(folder.path(), Environment::default());
    let arms = vec![arm("a"), arm("b")];
    let infos = arms.iter().map(Arm::info).collect();
    let series = Arc::new(Series { arms, cases, judges: Vec::new(), command_checks, tracer: Some(tracer.clone()) });
    let (cases, cases_hash) = series.case_infos();
    let plan = Plan { arms: infos, cases, cases_hash, repeats: 1, ..Plan::new("test", ReportKind::Ab) };
    let database = TestStore::sqlite();
    let mut stored = StoredTrials::create(database.open().await, plan, None).await.unwrap();
    let look = |_: &[_]| SeriesProgress::Continue;
    series.run(&mut stored, Throttle::default(), look, &CancellationToken::new()).await.unwrap();
    assert_eq!(tracer.flush().await.dropped, 0);

    let mut decoder = Command::new(python);
    decoder.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp/decode.py"));
    let mut decoder = decoder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    decoder.stdin.take().unwrap().write_all(&receiver.body(0)).unwrap();
    let decoded: Json = serde_json::from_slice(&decoder.wait_with_output().unwrap().stdout).unwrap();
    let spans = decoded["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let trials: BTreeMap<_, _> =
        spans.iter().filter(|span| span["name"] == "trial one").map(|span| (attribute(span, ARM), span)).collect();
    assert_eq!(trials.keys().map(String::as_str).collect::<Vec<_>>(), ["a", "b"]);
    for (arm, trial) in &trials {
        let events = trial["events"].as_array().unwrap();
        let results: Vec<_> = events.iter().map(|event| attribute(event, "gen_ai.evaluation.score.label")).collect();
        assert_eq!(results, ["pass", "pass"], "a check and the case");
        assert!(
            events.iter().all(|event| event["name"] == "gen_ai.evaluation.result" && attribute(event, ARM) == *arm)
        );
        let runs: Vec<_> = spans.iter().filter(|span| span["parentSpanId"] == trial["spanId"]).collect();
        assert_eq!(runs.iter().map(|run| &run["name"]).collect::<Vec<_>>(), [&json!("invoke_agent helper")]);
        assert_eq!(runs[0]["traceId"], trial["traceId"]);
    }
    assert!(trials["a"].get("links").is_none());
    assert_eq!(trials["b"]["links"].as_array().unwrap().len(), 1);
}

const ARM: &str = "patter.experiment.arm";

fn attribute(holder: &Json, name: &str) -> String {
    let attributes = holder["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name).unwrap_or(&Json::Null);
    found["value"]["stringValue"].as_str().unwrap_or_default().to_owned()
}
