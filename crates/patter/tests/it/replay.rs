//! Recorded runs, and their playback: it emits the same events.

use patter::drive::{ApprovalAnswer, Approver, RefusingApprover, RunEvent, RunEventKind, Tally};
use patter::live::LiveProject;
use patter::model::{ModelResolver, ReplayMode, ReplayModel};
use patter::permission::{Decision, Rule};
use patter::project::{Environment, PermissionConfig};
use patter::provider::price::Prices;
use patter::run::{PendingCall, Run, RunOutcome};
use patter::session::replay::OnDifference;
use patter::session::{LogEntry, Playback, Recorder, Recording, RecordingError, Session};
use patter::tool::{BoxFuture, CancellationToken, Tool, ToolFailure};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const AGENTS: &str = "
[lead:Agent {instruction: 'Do it.', model: 'scripted/FOLDER/lead.json'} | work, fail, risky, helper]
[helper:Agent {description: 'Helps', instruction: 'Help.', model: 'scripted/FOLDER/helper.json'} | work]
";

/// A folder with agents and the scripts of their models.
struct Scene {
    folder: tempfile::TempDir,
    events: Arc<Mutex<Vec<RunEvent>>>,
}

fn tools() -> Vec<Tool> {
    let work = Tool::native("work", "Works", "(n::Int)==>(::Int)", |arguments: Json, context| async move {
        context.progress(Some(0.5), "halfway");
        tokio::task::yield_now().await;
        context.progress(None, "nearly there");
        Ok(arguments["n"].clone())
    });
    let fail = Tool::native("fail", "Fails", "()==>(::Int)", |_, _| async { Err(ToolFailure::new("no luck")) });
    let risky = Tool::native("risky", "Dares", "()==>(::Text)", |_, _| async { Ok(json!("dared")) });
    [work, fail, risky].into_iter().map(Result::unwrap).collect()
}

impl Scene {
    fn new(lead: &Json, helper: &Json) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agents = AGENTS.replace("FOLDER", &folder.path().display().to_string());
        for (name, text) in [("a.gram", agents), ("lead.json", lead.to_string()), ("helper.json", helper.to_string())] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder, events: Arc::default() }
    }

    /// Two helpers and two tools at once, invalid calls, one that needs approval, and an answer.
    fn busy() -> Self {
        let ask = |input: &str| json!({"tool": "helper", "arguments": {"input": input}});
        let lead = json!([
            {"text": "Let me see.", "calls": [ask("one"), {"tool": "work", "arguments": {"n": 1}}, ask("two"), {"tool": "fail"}]},
            {"calls": [{"tool": "risky"}, {"tool": "risk"}, {"tool": "work", "arguments": "{"}, {"tool": "work", "arguments": {"n": 2}}]},
            {"finish": "malformed"},
        ]);
        let helper = json!([
            {"text": "I do my best.", "calls": [{"tool": "work", "arguments": {"n": 3}}], "usage": {"inputTokens": 5}},
            {"text": "It is done as well as I can."},
        ]);
        Self::new(&lead, &helper)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("recording.jsonl")
    }

    fn recording(&self) -> Recording {
        Recording::read(&self.path()).unwrap()
    }

    async fn project(&self, tools: Vec<Tool>) -> Arc<LiveProject> {
        let builder = LiveProject::open(self.folder.path().join("a.gram")).with_tools(tools);
        builder.with_environment(Environment::default()).read().await.unwrap().into()
    }

    async fn session(&self, tools: Vec<Tool>, approver: impl Approver + Clone + 'static) -> Session {
        let events = Arc::clone(&self.events);
        Session::new(self.project(tools).await).with_driver(move |driver| {
            let events = Arc::clone(&events);
            let driver = driver.with_rules(rules("risky")).with_approver(approver.clone());
            driver.with_listener(move |event: &RunEvent| events.lock().unwrap().push(event.clone()))
        })
    }

    /// Asserts that playing the recording emits the events of the live run.
    fn assert_same(&self) {
        let live = self.events.lock().unwrap();
        let played = play(self.recording().entries);
        for (index, (live, played)) in live.iter().zip(&played).enumerate() {
            assert_eq!(played, live, "event {index}");
        }
        assert_eq!(played.len(), live.len());
    }
}

fn rules(ask: &str) -> Vec<Rule> {
    let config = PermissionConfig { ask: vec![ask.to_owned()], ..PermissionConfig::default() };
    config.rules_with_origin(|decision: Decision| format!("--{}", decision.name())).unwrap()
}

fn play(entries: Vec<LogEntry>) -> Vec<RunEvent> {
    let mut playback = Playback::default();
    entries.into_iter().flat_map(|entry| playback.play(entry).unwrap()).collect()
}

#[derive(Clone)]
struct ApproveAll;

impl Approver for ApproveAll {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Approve })
    }

    fn repeat<'a>(&'a self, _: &'a str, _: &'a PendingCall) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Approve })
    }
}

#[tokio::test]
async fn playback_emits_the_same_events() {
    async fn check(approver: impl Approver + Clone + 'static, stop: &CancellationToken) {
        let scene = Scene::busy();
        let mut session = scene.session(tools(), approver).await;
        session.record(Recorder::create(scene.path()).unwrap());
        session.say("Go", stop).await.unwrap();
        scene.assert_same();
        if stop.is_cancelled() {
            return;
        }
        let events = scene.events.lock().unwrap();
        let count = |is: fn(&RunEventKind) -> bool| events.iter().filter(|event| is(&event.kind)).count();
        assert_eq!(count(|kind| matches!(kind, RunEventKind::ToolProgress { .. })), 8);
        assert_eq!(count(|kind| matches!(kind, RunEventKind::Asked { .. })), 1);
        assert_eq!(count(|kind| matches!(kind, RunEventKind::Started { .. })), 3);
        assert_eq!(count(|kind| matches!(kind, RunEventKind::Finished { .. })), 3);
        assert!(count(|kind| matches!(kind, RunEventKind::Text { .. })) > 20);
    }
    check(RefusingApprover, &CancellationToken::new()).await;
    check(ApproveAll, &CancellationToken::new()).await;
    let stopped = CancellationToken::new();
    stopped.cancel();
    check(ApproveAll, &stopped).await;
}

/// A recording that starts in the middle of a run, whose calls are repeated.
#[tokio::test]
async fn resumed_run_is_recorded() {
    let lead = json!([{"calls": [{"tool": "work", "arguments": {"n": 1}}, {"tool": "risky"}]}, {"text": "Done."}]);
    let scene = Scene::new(&lead, &json!([]));
    let started = Arc::new(tokio::sync::Notify::new());
    let notify = Arc::clone(&started);
    let first = Arc::new(Mutex::new(true));
    let slow = Tool::native("work", "Works", "(n::Int)==>(::Int)", move |arguments: Json, _| {
        let notify = Arc::clone(&notify);
        let is_first = std::mem::take(&mut *first.lock().unwrap());
        async move {
            if is_first {
                notify.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(arguments["n"].clone())
        }
    });
    let tools = tools().into_iter().filter(|tool| tool.name() != "work").chain([slow.unwrap()]).collect();
    let mut session = scene.session(tools, ApproveAll).await;
    let stop = CancellationToken::new();
    tokio::select! {
        _ = session.say("Go", &stop) => panic!("the turn ended"),
        () = started.notified() => {}
    }
    scene.events.lock().unwrap().clear();
    session.record(Recorder::create(scene.path()).unwrap());
    let run = session.resume(&stop).await.unwrap();
    assert_eq!(run.response().content, "Done.");
    scene.assert_same();
}

#[tokio::test]
async fn recording_answers_instead_of_the_model() {
    let scene = Scene::busy();
    let mut session = scene.session(tools(), RefusingApprover).await;
    session.record(Recorder::create(scene.path()).unwrap());
    let run = session.say("Go", &CancellationToken::new()).await.unwrap();
    let (driver, compiled) = session.prepare(None).unwrap();
    let comparison = driver.compare(&compiled, scene.recording().entries, OnDifference::Continue).unwrap();
    assert!(comparison.divergences.is_empty() && comparison.identical >= 7, "{comparison:?}");

    let project = scene.project(tools()).await;
    // The same agents again, with the recording as the model.
    for (checking, text, expected) in [
        (ReplayMode::Strict, "Go", Ok(0)),
        (ReplayMode::Lenient, "Go on", Ok(0)),
        (ReplayMode::Strict, "Go on", Err("the recording has no reply to this request: the conversation differs")),
    ] {
        let model = Arc::new(ReplayModel::new(scene.recording(), checking).unwrap());
        let recorded: Arc<ReplayModel> = Arc::clone(&model);
        let models: ModelResolver = Arc::new(move |_| Ok(Arc::clone(&recorded) as _));
        let driver = project.driver().with_rules(rules("risky")).with_models(models);
        let again = Run::start(compiled.spec().clone(), vec![], text, 0).unwrap();
        let again = driver.drive(&compiled, again, &CancellationToken::new()).await;
        match (expected, again.outcome()) {
            (Ok(left), outcome) => {
                assert_eq!((outcome, model.remaining()), (run.outcome(), left));
                assert_eq!(again.usage(), run.usage());
            }
            (Err(expected), Some(RunOutcome::Failed(failure))) => assert_eq!(failure.message, expected),
            (Err(_), other) => panic!("{other:?}"),
        }
    }
}

/// The complete lines of a truncated recording can be played. An existing file is not overwritten.
#[tokio::test]
async fn truncated_and_damaged_recordings() {
    let scene = Scene::busy();
    let mut session = scene.session(tools(), RefusingApprover).await;
    session.record(Recorder::create(scene.path()).unwrap());
    session.say("Go", &CancellationToken::new()).await.unwrap();
    let error = Recorder::create(scene.path()).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot save the run: `") && error.ends_with("recording.jsonl` already exists"),
        "{error}"
    );
    let text = std::fs::read_to_string(scene.path()).unwrap();
    let whole = play(scene.recording().entries);
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(97) {
        match Recording::parse(&text[..end]) {
            Ok(recording) => {
                let is_truncated = !text[..end].ends_with('\n') && !text[end..].starts_with('\n');
                assert_eq!(recording.is_truncated, is_truncated && end > text.find('\n').unwrap(), "{end}");
                assert!(whole.starts_with(&play(recording.entries)), "{end}");
            }
            Err(error) => assert!(matches!(error, RecordingError::NotARecording) && end < 40, "{end}: {error}"),
        }
    }
    let damaged = text.replacen("{\"entry\":\"input\"", "{\"entry\":\"inpt\"", 1);
    let line = damaged.lines().position(|line| line.contains("\"inpt\"")).unwrap() + 1;
    let error = Recording::parse(&damaged).unwrap_err().to_string();
    assert!(error.starts_with(&format!("line {line} of the recording is damaged: unknown variant `inpt`")), "{error}");
    let newer = text.replacen("\"patter_recording\":1", "\"patter_recording\":2", 1);
    let error = Recording::parse(&newer).unwrap_err().to_string();
    assert_eq!(error, "the recording has version 2, but only version 1 is supported");
    // The cost follows from the events.
    let tally = Tally::new(Prices::builtin());
    whole.iter().for_each(|event| tally.record(event));
    assert_eq!(tally.cost().unwrap().to_string(), "$0");
}
