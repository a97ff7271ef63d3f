//! Runs whose process is killed at every step: they resume, and completed calls are not repeated.

use crate::store::{TestStore, id};
use patter::drive::{ApprovalAnswer, Approver, OUTCOME_UNKNOWN};
use patter::live::LiveProject;
use patter::message::conversation::{self, Message};
use patter::run::{PendingCall, RunInput, RunOutcome};
use patter::session::{Log, LogEntry, Session, SessionError};
use patter::store::{
    self, Claim, NewSession, SessionId, SessionState, SessionSummary, Store, StoreError, StoreLocation, StoredSession,
};
use patter::tool::{BoxFuture, CancellationToken};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The store and the folder that the killed process works with.
const STORE: &str = "PATTER_CRASH_STORE";
const FOLDER: &str = "PATTER_CRASH_FOLDER";
/// When it dies: `before 3` or `after 3` for the third append, or `never`.
const WHEN: &str = "PATTER_CRASH_WHEN";
/// The file with the agent.
const FILE: &str = "PATTER_CRASH_FILE";
/// Whether to repeat calls with an unknown outcome.
const REPEAT: &str = "PATTER_CRASH_REPEAT";

const AGENTS: &str = "
[lead:Agent {instruction: 'Do it.', model: 'scripted/lead.json'} | writeOnce, writeAgain, helper]
[helper:Agent {instruction: 'Help.', model: 'scripted/helper.json'} | writeOnce]
";
/// A workflow of the same tools: branches that join, a hand-off, a list and a cycle.
const FLOW: &str = "
[flow:Workflow |
  (a:writeOnce {with: {what: 'a'}})-->(b:writeAgain {with: {what: 'b'}})-->(z),
  (helper)-[:Handoff]->(closer)-->(z),
  (list:lister)-->(all:Each:writeOnce {of: '{list.items}', width: 1, with: {what: '{item}'}})-->(z),
  (judge {ask: 'first'})-[:When {verdict: 'again', atMost: 2, ask: 'second'}]->(judge)-[:Otherwise]->(z),
  (z:Give {value: '{b} {closer} {all} {judge.verdict}'})
]
[helper:Agent {instruction: 'Help.', model: 'scripted/helper.json'} | writeOnce]
[closer:Agent {instruction: 'Close.', model: 'scripted/closer.json'}]
[lister:Agent {instruction: 'List.', model: 'scripted/lister.json', returns: 'List'}]
[judge:Agent {instruction: 'Judge.', model: 'scripted/judge.json', returns: 'Verdict'}]
[List:Object | (items::Array {elementType: 'Text'})]
[Verdict:Object | (verdict::Text {enum: ['good', 'again']})]
";
const CLOSER: &str = r#"[{}, {}, {"text": "It is closed.", "expect": {"user": ["Go"]}}]"#;
const LISTER: &str = r#"[{"text": "{\"items\": [\"d\", \"e\"]}"}]"#;
const JUDGE: &str = r#"[[
  {"expect": {"user": ["first"]}, "text": "{\"verdict\": \"again\"}"},
  {"expect": {"user": ["second"]}, "text": "{\"verdict\": \"good\"}"}
]]"#;
const LEAD: &str = r#"[
  {"calls": [{"tool": "writeOnce", "arguments": {"what": "a"}}, {"tool": "writeAgain", "arguments": {"what": "b"}}]},
  {"calls": [{"tool": "helper", "arguments": {"input": "Please help"}}]},
  {"text": "Everything is done.", "expect": {"results": ["It is written."]}}
]"#;
const HELPER: &str = r#"[
  {"calls": [{"tool": "writeOnce", "arguments": {"what": "c"}}]},
  {"text": "It is written.", "usage": {"inputTokens": 5, "outputTokens": 2}}
]"#;

fn append_line(what: &str) -> String {
    let path = Path::new(&std::env::var(FOLDER).unwrap()).join("written");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{what}").unwrap();
    what.to_owned()
}

/// Writes once
#[patter::tool(effect = "writes")]
fn write_once(what: String) -> String {
    append_line(&what)
}

/// Writes again
#[patter::tool(effect = "writes", idempotent)]
fn write_again(what: String) -> String {
    append_line(&what)
}

/// A store that kills the process at some append. The first one creates the session.
struct KillingStore {
    inner: Arc<dyn Store>,
    schedule: Arc<KillSchedule>,
}

struct KillSchedule {
    when: String,
    appends: AtomicUsize,
}

struct KillingClaim {
    inner: Box<dyn Claim>,
    schedule: Arc<KillSchedule>,
}

impl KillSchedule {
    /// Kills the process if it is time.
    fn check(&self, moment: &str) {
        if self.when == format!("{moment} {}", self.appends.load(Ordering::SeqCst)) {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
        }
    }
}

impl KillingStore {
    fn wrap(&self, claim: Box<dyn Claim>) -> Box<dyn Claim> {
        Box::new(KillingClaim { inner: claim, schedule: Arc::clone(&self.schedule) })
    }
}

impl Store for KillingStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(async move {
            self.schedule.appends.fetch_add(1, Ordering::SeqCst);
            self.schedule.check("before");
            let claim = self.inner.create(new, now_ms).await?;
            self.schedule.check("after");
            Ok(self.wrap(claim))
        })
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(async move { Ok(self.wrap(self.inner.claim(id).await?)) })
    }

    fn read_from<'a>(&'a self, id: &'a SessionId, first: u64) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        self.inner.read_from(id, first)
    }

    fn list_page<'a>(
        &'a self,
        state: Option<SessionState>,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        self.inner.list_page(state, after, limit)
    }

    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        self.inner.ids(prefix, limit)
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.remove(id)
    }
}

impl Claim for KillingClaim {
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
            self.schedule.appends.fetch_add(1, Ordering::SeqCst);
            self.schedule.check("before");
            self.inner.append(entries, state, now_ms).await?;
            self.schedule.check("after");
            Ok(())
        })
    }
}

/// Approves all calls, and repeats calls with an unknown outcome if asked to.
struct RepeatApprover;

impl Approver for RepeatApprover {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Approve })
    }

    fn repeat<'a>(&'a self, _: &'a str, _: &'a PendingCall) -> BoxFuture<'a, ApprovalAnswer> {
        let is_wanted = std::env::var(REPEAT).is_ok_and(|repeat| repeat == "yes");
        Box::pin(async move {
            if is_wanted { ApprovalAnswer::Approve } else { ApprovalAnswer::Refuse(OUTCOME_UNKNOWN.to_owned()) }
        })
    }
}

#[tokio::test]
#[ignore = "run by the other tests in processes of their own"]
async fn in_another_process() {
    // Without the variables, someone runs all ignored tests.
    let (Ok(location), Ok(folder)) = (std::env::var(STORE), std::env::var(FOLDER)) else { return };
    let inner = store::open(&StoreLocation::parse(&location).unwrap()).await.unwrap();
    let schedule = Arc::new(KillSchedule { when: std::env::var(WHEN).unwrap(), appends: AtomicUsize::new(0) });
    let store = Arc::new(KillingStore { inner, schedule });
    let tools = [write_once::tool(), write_again::tool()];
    let project = LiveProject::open(Path::new(&folder).join(std::env::var(FILE).unwrap()))
        .with_tools(tools)
        .read()
        .await
        .unwrap();
    let session = id("work");
    // A session in the store can always be resumed: it was created together with the start of its run.
    let has_started = !store.list(1).await.unwrap().is_empty();
    let opened = if has_started {
        Session::open(project.into(), store, &session).await.unwrap()
    } else {
        Session::create(project.into(), store, session)
    };
    let mut opened = opened.with_driver(|driver| driver.with_approver(RepeatApprover));
    let stop = CancellationToken::new();
    match if has_started { opened.resume(&stop).await } else { opened.say("Go", &stop).await } {
        Ok(run) => assert!(matches!(run.outcome(), Some(RunOutcome::Answer { .. }))),
        // The process was killed after the run had ended.
        Err(error) => assert!(matches!(error, SessionError::NoUnfinishedRun), "{error}"),
    }
}

/// The session and the files of one test.
struct Workspace {
    file: &'static str,
    test_store: TestStore,
    folder: tempfile::TempDir,
}

impl Workspace {
    fn new(file: &'static str, test_store: TestStore) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("lead.gram", AGENTS),
            ("flow.gram", FLOW),
            ("lead.json", LEAD),
            ("helper.json", HELPER),
            ("closer.json", CLOSER),
            ("lister.json", LISTER),
            ("judge.json", JUDGE),
        ];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { file, test_store, folder }
    }

    /// Runs the session in a process of its own, which may be killed.
    fn run_process(&self, when: &str, repeat: &str) -> ExitStatus {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "crash::in_another_process", "--ignored", "--nocapture"]);
        command.env(STORE, self.test_store.location.to_string()).env(FOLDER, self.folder.path());
        command.env(FILE, self.file).env(WHEN, when).env(REPEAT, repeat).current_dir(self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::inherit()).status().unwrap()
    }

    /// Returns how many times each line was written.
    fn line_counts(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.folder.path().join("written")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
        counts
    }

    async fn entries(&self) -> Vec<String> {
        let store = self.test_store.open().await;
        store.read(&id("work")).await.map(|stored| stored.entries).unwrap_or_default()
    }

    async fn conversation(&self) -> Vec<Message> {
        Log::read(self.entries().await).unwrap().conversation().to_vec()
    }

    /// Returns the results of calls whose end was saved.
    async fn finished_calls(&self) -> Vec<String> {
        let entries = self.entries().await;
        let finished = entries.iter().filter_map(|entry| match serde_json::from_str(entry).unwrap() {
            LogEntry::InputReceived {
                input: RunInput::CallFinished { outcome: conversation::ToolOutcome::Value { value }, .. },
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

async fn kill_at_every_step(file: &'static str, test_store: impl AsyncFn() -> Option<TestStore>) {
    let Some(undisturbed) = test_store().await.map(|test_store| Workspace::new(file, test_store)) else { return };
    assert!(!is_killed(undisturbed.run_process("never", "no")));
    let expected = undisturbed.conversation().await;
    let counts = undisturbed.line_counts();
    assert!(counts.len() >= 3 && counts.values().all(|count| *count == 1), "{counts:?}");
    let mut kills = 0;
    for moment in ["before", "after"] {
        for number in 1.. {
            let workspace = Workspace::new(file, test_store().await.unwrap());
            let when = format!("{moment} {number}");
            if !is_killed(workspace.run_process(&when, "no")) {
                break;
            }
            kills += 1;
            let finished = workspace.finished_calls().await;
            assert!(!is_killed(workspace.run_process("never", "yes")), "{when}");
            assert_eq!(workspace.conversation().await, expected, "{when}");
            for (what, times) in workspace.line_counts() {
                let is_finished = finished.contains(&what);
                assert!(times == 1 || (!is_finished && times == 2), "{when}: {what} {times} times, {finished:?}");
            }
        }
    }
    assert!(kills >= 14, "only {kills} kills");
}

/// Kills the process each time it has saved something new, until the run is done.
async fn kill_repeatedly(test_store: TestStore) {
    let workspace = Workspace::new("lead.gram", test_store);
    let mut kills = 0;
    while is_killed(workspace.run_process("after 2", "no")) {
        kills += 1;
        assert!(kills < 50, "the run makes no progress");
    }
    assert!(kills >= 5, "only {kills} kills");
    // Calls that are not idempotent were made once, and each call has a result.
    let log = Log::read(workspace.entries().await).unwrap();
    assert!(log.open_run().is_none() && matches!(log.turns()[0].outcome, RunOutcome::Answer { .. }));
    let counts = workspace.line_counts();
    assert!(counts.iter().all(|(what, times)| *times == 1 || what == "b"), "{counts:?}");
}

#[tokio::test]
async fn killed_at_every_step_in_sqlite() {
    kill_at_every_step("lead.gram", async || Some(TestStore::sqlite())).await;
}

#[tokio::test]
async fn a_workflow_killed_at_every_step_in_sqlite() {
    kill_at_every_step("flow.gram", async || Some(TestStore::sqlite())).await;
}

#[tokio::test]
async fn killed_at_every_step_in_postgres() {
    kill_at_every_step("lead.gram", TestStore::postgres).await;
}

#[tokio::test]
async fn killed_repeatedly_in_sqlite() {
    kill_repeatedly(TestStore::sqlite()).await;
}

#[tokio::test]
async fn killed_repeatedly_in_postgres() {
    if let Some(test_store) = TestStore::postgres().await {
        kill_repeatedly(test_store).await;
    }
}
