//! Runs whose process is killed, at every step: they go on where they were, and nothing that finished is done again.

use crate::store::{Place, id};
use patter::drive::{Answer, Approver, IN_DOUBT};
use patter::live::LiveProject;
use patter::message::conversation::{self, Message};
use patter::run::{PendingCall, RunInput, RunOutcome};
use patter::session::{Entry, Log, Session, SessionError};
use patter::store::{self, Claim, Location, NewSession, SessionId, SessionState, Store, StoreError, Stored, Summary};
use patter::tool::{BoxFuture, CancellationToken};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the process that is killed is told.
const STORE: &str = "PATTER_CRASH_STORE";
const FOLDER: &str = "PATTER_CRASH_FOLDER";
/// When it dies: `before 3` the third time that something is kept, or `after 3`; `never`.
const WHEN: &str = "PATTER_CRASH_WHEN";
/// Whether calls are made again of which nobody knows what came of them.
const REPEAT: &str = "PATTER_CRASH_REPEAT";

const AGENTS: &str = "
[lead:Agent {instruction: 'Do it.', model: 'scripted/lead.json'} | writeOnce, writeAgain, helper]
[helper:Agent {instruction: 'Help.', model: 'scripted/helper.json'} | writeOnce]
";
const LEAD: &str = r#"[
  {"calls": [{"tool": "writeOnce", "arguments": {"what": "a"}}, {"tool": "writeAgain", "arguments": {"what": "b"}}]},
  {"calls": [{"tool": "helper", "arguments": {"input": "Please help"}}]},
  {"text": "All is done.", "expect": {"results": ["It is written."]}}
]"#;
const HELPER: &str = r#"[
  {"calls": [{"tool": "writeOnce", "arguments": {"what": "c"}}]},
  {"text": "It is written.", "usage": {"inputTokens": 5, "outputTokens": 2}}
]"#;

fn written(what: &str) -> String {
    let path = Path::new(&std::env::var(FOLDER).unwrap()).join("written");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{what}").unwrap();
    what.to_owned()
}

/// Writes once
#[patter::tool(effect = "writes")]
fn write_once(what: String) -> String {
    written(&what)
}

/// Writes again
#[patter::tool(effect = "writes", idempotent)]
fn write_again(what: String) -> String {
    written(&what)
}

/// A store at which the process dies.
struct Deadly {
    inner: Arc<dyn Store>,
    fate: Arc<Fate>,
}

struct Fate {
    when: String,
    kept: AtomicUsize,
}

struct DeadlyClaim {
    inner: Box<dyn Claim>,
    fate: Arc<Fate>,
}

impl Fate {
    /// Dies if it is time.
    fn meet(&self, moment: &str) {
        if self.when == format!("{moment} {}", self.kept.load(Ordering::SeqCst)) {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
        }
    }
}

impl Deadly {
    fn claimed(&self, claim: Box<dyn Claim>) -> Box<dyn Claim> {
        Box::new(DeadlyClaim { inner: claim, fate: Arc::clone(&self.fate) })
    }
}

impl Store for Deadly {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(async move { Ok(self.claimed(self.inner.create(new, now_ms).await?)) })
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(async move { Ok(self.claimed(self.inner.claim(id).await?)) })
    }

    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Stored, StoreError>> {
        self.inner.read(id)
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Summary>, StoreError>> {
        self.inner.list(limit)
    }

    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        self.inner.ids(prefix, limit)
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.remove(id)
    }
}

impl Claim for DeadlyClaim {
    fn id(&self) -> &SessionId {
        self.inner.id()
    }

    fn entries(&self) -> u64 {
        self.inner.entries()
    }

    fn append<'a>(
        &'a mut self,
        entries: &'a [String],
        state: SessionState,
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.fate.kept.fetch_add(1, Ordering::SeqCst);
            self.fate.meet("before");
            self.inner.append(entries, state, now_ms).await?;
            self.fate.meet("after");
            Ok(())
        })
    }
}

/// Says whether calls in doubt are made again.
struct Repeats;

impl Approver for Repeats {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Approve })
    }

    fn repeat<'a>(&'a self, _: &'a str, _: &'a PendingCall) -> BoxFuture<'a, Answer> {
        let is_wanted = std::env::var(REPEAT).is_ok_and(|repeat| repeat == "yes");
        Box::pin(async move { if is_wanted { Answer::Approve } else { Answer::Refuse(IN_DOUBT.to_owned()) } })
    }
}

#[tokio::test]
#[ignore = "what the other tests run in processes of their own"]
async fn in_another_process() {
    // Whoever runs all ignored tests has nothing for it to do.
    let (Ok(location), Ok(folder)) = (std::env::var(STORE), std::env::var(FOLDER)) else { return };
    let inner = store::open(&Location::parse(&location).unwrap()).await.unwrap();
    let fate = Arc::new(Fate { when: std::env::var(WHEN).unwrap(), kept: AtomicUsize::new(0) });
    let store = Arc::new(Deadly { inner, fate });
    let tools = [write_once::tool(), write_again::tool()];
    let agents = LiveProject::open(Path::new(&folder).join("lead.gram")).with_tools(tools).read().await.unwrap();
    let session = id("work");
    let is_begun = store.list(1).await.unwrap().iter().any(|summary| summary.entries > 0);
    if !is_begun {
        let _ = store.remove(&session).await;
    }
    let opened = if is_begun {
        Session::open(agents.into(), store, &session).await.unwrap()
    } else {
        Session::keep(agents.into(), store, session)
    };
    let mut opened = opened.with_driver(|driver| driver.with_approver(Repeats));
    let stop = CancellationToken::new();
    match if is_begun { opened.resume(&stop).await } else { opened.say("Go", &stop).await } {
        Ok(run) => assert!(matches!(run.outcome(), Some(RunOutcome::Answer { .. }))),
        // It was killed after all was done.
        Err(error) => assert!(matches!(error, SessionError::Finished), "{error}"),
    }
}

/// A session of a test's own.
struct Work {
    place: Place,
    folder: tempfile::TempDir,
}

impl Work {
    fn new(place: Place) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("lead.gram", AGENTS), ("lead.json", LEAD), ("helper.json", HELPER)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { place, folder }
    }

    /// Works in a process of its own, which may die.
    fn go(&self, when: &str, repeat: &str) -> ExitStatus {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "crash::in_another_process", "--ignored", "--nocapture"]);
        command.env(STORE, self.place.location.to_string()).env(FOLDER, self.folder.path());
        command.env(WHEN, when).env(REPEAT, repeat).current_dir(self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::inherit()).status().unwrap()
    }

    /// Returns how often each was written.
    fn written(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.folder.path().join("written")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
        counts
    }

    async fn entries(&self) -> Vec<String> {
        let store = self.place.open().await;
        store.read(&id("work")).await.map(|stored| stored.entries).unwrap_or_default()
    }

    async fn conversation(&self) -> Vec<Message> {
        Log::read(self.entries().await).unwrap().conversation().to_vec()
    }

    /// Returns what was written by calls whose end was kept.
    async fn finished(&self) -> Vec<String> {
        let entries = self.entries().await;
        let finished = entries.iter().filter_map(|entry| match serde_json::from_str(entry).unwrap() {
            Entry::Input {
                input: RunInput::Finished { outcome: conversation::ToolOutcome::Value { value }, .. },
                ..
            } => value.as_str().map(str::to_owned),
            _ => None,
        });
        finished.collect()
    }
}

fn is_killed(status: ExitStatus) -> bool {
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}

async fn killed_at_every_step(place: impl AsyncFn() -> Option<Place>) {
    let Some(whole) = place().await.map(Work::new) else { return };
    assert!(!is_killed(whole.go("never", "no")));
    let (expected, count) = (whole.conversation().await, whole.written());
    assert_eq!(count.values().copied().collect::<Vec<_>>(), [1, 1, 1], "{count:?}");
    let mut deaths = 0;
    for moment in ["before", "after"] {
        for number in 1.. {
            let work = Work::new(place().await.unwrap());
            let when = format!("{moment} {number}");
            if !is_killed(work.go(&when, "no")) {
                break;
            }
            deaths += 1;
            let finished = work.finished().await;
            assert!(!is_killed(work.go("never", "yes")), "{when}");
            assert_eq!(work.conversation().await, expected, "{when}");
            for (what, times) in work.written() {
                let is_finished = finished.contains(&what);
                assert!(times == 1 || (!is_finished && times == 2), "{when}: {what} {times} times, {finished:?}");
            }
        }
    }
    assert!(deaths >= 14, "only {deaths} deaths");
}

/// Dies each time that something new was kept, until there is nothing left to do.
async fn killed_again_and_again(place: Place) {
    let work = Work::new(place);
    let mut deaths = 0;
    while is_killed(work.go("after 2", "no")) {
        deaths += 1;
        assert!(deaths < 50, "it gets nowhere");
    }
    assert!(deaths >= 5, "only {deaths} deaths");
    // Nothing that may not be done twice was, and each call has its result.
    let log = Log::read(work.entries().await).unwrap();
    assert!(log.run().is_none() && matches!(log.turns()[0].outcome, RunOutcome::Answer { .. }));
    let written = work.written();
    assert!(written.iter().all(|(what, times)| *times == 1 || what == "b"), "{written:?}");
}

#[tokio::test]
async fn killed_at_every_step_in_sqlite() {
    killed_at_every_step(async || Some(Place::sqlite())).await;
}

#[tokio::test]
async fn killed_at_every_step_in_postgres() {
    killed_at_every_step(Place::postgres).await;
}

#[tokio::test]
async fn killed_again_and_again_in_sqlite() {
    killed_again_and_again(Place::sqlite()).await;
}

#[tokio::test]
async fn killed_again_and_again_in_postgres() {
    if let Some(place) = Place::postgres().await {
        killed_again_and_again(place).await;
    }
}
