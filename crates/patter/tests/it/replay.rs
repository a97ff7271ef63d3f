//! Runs that are recorded, and played again: what was heard is heard again, and nothing else.

use patter::drive::{Answer, Approver, Models, Nobody, RunEvent, RunEventKind, Tally};
use patter::live::LiveProject;
use patter::model::{Checking, RecordedModel};
use patter::permission::{Decision, Rule};
use patter::project::{Environment, PermissionConfig};
use patter::provider::price::Prices;
use patter::run::{PendingCall, Run, RunOutcome};
use patter::session::replay::After;
use patter::session::{Entry, Playback, Recorder, Recording, RecordingError, Session};
use patter::tool::{BoxFuture, CancellationToken, Failure, Tool};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const AGENTS: &str = "
[lead:Agent {instruction: 'Do it.', model: 'scripted/FOLDER/lead.json'} | work, fail, risky, helper]
[helper:Agent {description: 'Helps', instruction: 'Help.', model: 'scripted/FOLDER/helper.json'} | work]
";

/// A folder with agents and what their models say.
struct Scene {
    folder: tempfile::TempDir,
    heard: Arc<Mutex<Vec<RunEvent>>>,
}

fn tools() -> Vec<Tool> {
    let work = Tool::native("work", "Works", "(n::Int)==>(::Int)", |arguments: Json, context| async move {
        context.progress(Some(0.5), "half way");
        tokio::task::yield_now().await;
        context.progress(None, "nearly there");
        Ok(arguments["n"].clone())
    });
    let fail = Tool::native("fail", "Fails", "()==>(::Int)", |_, _| async { Err(Failure::new("no luck")) });
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
        Self { folder, heard: Arc::default() }
    }

    /// Two helpers and two tools at once, calls that cannot be made, one that someone is asked about, and an answer.
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

    async fn agents(&self, tools: Vec<Tool>) -> Arc<LiveProject> {
        let opening = LiveProject::open(self.folder.path().join("a.gram")).with_tools(tools);
        opening.with_environment(Environment::default()).read().await.unwrap().into()
    }

    async fn session(&self, tools: Vec<Tool>, approver: impl Approver + Clone + 'static) -> Session {
        let heard = Arc::clone(&self.heard);
        Session::new(self.agents(tools).await).with_driver(move |driver| {
            let heard = Arc::clone(&heard);
            let driver = driver.with_rules(rules("risky")).with_approver(approver.clone());
            driver.with_listener(move |event: &RunEvent| heard.lock().unwrap().push(event.clone()))
        })
    }

    /// Asserts that what was heard is what the recording gives.
    fn assert_same(&self) {
        let heard = self.heard.lock().unwrap();
        let played = played(self.recording().entries);
        for (index, (heard, played)) in heard.iter().zip(&played).enumerate() {
            assert_eq!(played, heard, "event {index}");
        }
        assert_eq!(played.len(), heard.len());
    }
}

fn rules(ask: &str) -> Vec<Rule> {
    let config = PermissionConfig { ask: vec![ask.to_owned()], ..PermissionConfig::default() };
    config.rules_of(|decision: Decision| format!("--{}", decision.name())).unwrap()
}

fn played(entries: Vec<Entry>) -> Vec<RunEvent> {
    let mut playback = Playback::default();
    entries.into_iter().flat_map(|entry| playback.play(entry).unwrap()).collect()
}

#[derive(Clone)]
struct Everyone;

impl Approver for Everyone {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Approve })
    }

    fn repeat<'a>(&'a self, _: &'a str, _: &'a PendingCall) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Approve })
    }
}

#[tokio::test]
async fn what_was_heard_is_heard_again() {
    async fn check(approver: impl Approver + Clone + 'static, stop: &CancellationToken) {
        let scene = Scene::busy();
        let mut session = scene.session(tools(), approver).await;
        session.record(Recorder::create(scene.path()).unwrap());
        session.say("Go", stop).await.unwrap();
        scene.assert_same();
        if stop.is_cancelled() {
            return;
        }
        let heard = scene.heard.lock().unwrap();
        let count = |is: fn(&RunEventKind) -> bool| heard.iter().filter(|event| is(&event.kind)).count();
        assert_eq!(count(|happened| matches!(happened, RunEventKind::ToolProgress { .. })), 8);
        assert_eq!(count(|happened| matches!(happened, RunEventKind::Asked { .. })), 1);
        assert_eq!(count(|happened| matches!(happened, RunEventKind::Started { .. })), 3);
        assert_eq!(count(|happened| matches!(happened, RunEventKind::Finished { .. })), 3);
        assert!(count(|happened| matches!(happened, RunEventKind::Text { .. })) > 20);
    }
    check(Nobody, &CancellationToken::new()).await;
    check(Everyone, &CancellationToken::new()).await;
    let stopped = CancellationToken::new();
    stopped.cancel();
    check(Everyone, &stopped).await;
}

/// A recording that begins in the middle of a run, whose calls are made again.
#[tokio::test]
async fn a_run_that_goes_on_is_recorded_from_there() {
    let lead = json!([{"calls": [{"tool": "work", "arguments": {"n": 1}}, {"tool": "risky"}]}, {"text": "Done."}]);
    let scene = Scene::new(&lead, &json!([]));
    let (begun, first) = (Arc::new(tokio::sync::Notify::new()), Arc::new(Mutex::new(true)));
    let told = Arc::clone(&begun);
    let slow = Tool::native("work", "Works", "(n::Int)==>(::Int)", move |arguments: Json, _| {
        let (told, is_first) = (Arc::clone(&told), std::mem::take(&mut *first.lock().unwrap()));
        async move {
            if is_first {
                told.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(arguments["n"].clone())
        }
    });
    let tools = tools().into_iter().filter(|tool| tool.name() != "work").chain([slow.unwrap()]).collect();
    let mut session = scene.session(tools, Everyone).await;
    let stop = CancellationToken::new();
    tokio::select! {
        _ = session.say("Go", &stop) => panic!("it does not end"),
        () = begun.notified() => {}
    }
    scene.heard.lock().unwrap().clear();
    session.record(Recorder::create(scene.path()).unwrap());
    let run = session.resume(&stop).await.unwrap();
    assert_eq!(run.response().content, "Done.");
    scene.assert_same();
}

#[tokio::test]
async fn a_recording_answers_in_place_of_the_model() {
    let scene = Scene::busy();
    let mut session = scene.session(tools(), Nobody).await;
    session.record(Recorder::create(scene.path()).unwrap());
    let run = session.say("Go", &CancellationToken::new()).await.unwrap();
    let (driver, compiled) = session.ready(None).unwrap();
    let compared = driver.compare(&compiled, scene.recording().entries, After::GoOn).unwrap();
    assert!(compared.divergences.is_empty() && compared.same >= 7, "{compared:?}");

    let agents = scene.agents(tools()).await;
    // The same agents, asked again, with what was recorded for a model.
    for (checking, said, expected) in [
        (Checking::Strict, "Go", Ok(0)),
        (Checking::Lenient, "Go on", Ok(0)),
        (Checking::Strict, "Go on", Err("the recording has no reply to this request: the conversation is another")),
    ] {
        let model = Arc::new(RecordedModel::new(scene.recording(), checking).unwrap());
        let found: Arc<RecordedModel> = Arc::clone(&model);
        let models: Models = Arc::new(move |_| Ok(Arc::clone(&found) as _));
        let driver = agents.driver().unwrap().with_rules(rules("risky")).with_models(models);
        let begun = Run::start(compiled.spec().clone(), vec![], said, 0).unwrap();
        let again = driver.drive(&compiled, begun, &CancellationToken::new()).await;
        match (expected, again.outcome()) {
            (Ok(left), outcome) => {
                assert_eq!((outcome, model.left()), (run.outcome(), left));
                assert_eq!(again.usage(), run.usage());
            }
            (Err(expected), Some(RunOutcome::Failed(failure))) => assert_eq!(failure.message, expected),
            (Err(_), other) => panic!("{other:?}"),
        }
    }
}

/// Whatever a recording ends with, what stands before is played; a file that is there stays.
#[tokio::test]
async fn recordings_that_are_cut_off_or_damaged() {
    let scene = Scene::busy();
    let mut session = scene.session(tools(), Nobody).await;
    session.record(Recorder::create(scene.path()).unwrap());
    session.say("Go", &CancellationToken::new()).await.unwrap();
    let error = Recorder::create(scene.path()).unwrap_err().to_string();
    assert!(error.contains("recording.jsonl`: ") && error.contains("exists"), "{error}");
    let text = std::fs::read_to_string(scene.path()).unwrap();
    let whole = played(scene.recording().entries);
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(97) {
        match Recording::parse(&text[..end]) {
            Ok(recording) => {
                let is_cut = !text[..end].ends_with('\n') && !text[end..].starts_with('\n');
                assert_eq!(recording.is_cut, is_cut && end > text.find('\n').unwrap(), "{end}");
                assert!(whole.starts_with(&played(recording.entries)), "{end}");
            }
            Err(error) => assert!(matches!(error, RecordingError::NoRecording) && end < 40, "{end}: {error}"),
        }
    }
    let damaged = text.replacen("{\"entry\":\"told\"", "{\"entry\":\"tld\"", 1);
    let line = damaged.lines().position(|line| line.contains("\"tld\"")).unwrap() + 1;
    let error = Recording::parse(&damaged).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("line {line} of the recording cannot be read: unknown variant `tld`")),
        "{error}"
    );
    let newer = text.replacen("\"patter_recording\":1", "\"patter_recording\":2", 1);
    let error = Recording::parse(&newer).unwrap_err().to_string();
    assert_eq!(error, "the recording has version 2, and only version 1 can be read");
    // What it cost follows from what is heard.
    let tally = Tally::new(Prices::builtin());
    whole.iter().for_each(|event| tally.hear(event));
    assert_eq!(tally.cost().unwrap().to_string(), "$0");
}
