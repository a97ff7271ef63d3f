//! Sessions, turn by turn.

use crate::store::{TestStore, id};
use patter::drive::{RunEventKind, now_ms};
use patter::live::LiveProject;
use patter::message::conversation::Message;
use patter::project::Environment;
use patter::run::{FailureKind, RunOutcome};
use patter::session::{Log, LogEntry, Recorder, Recording, Session, SessionError};
use patter::store::{Claim, NewSession, SessionId, SessionState, SessionSummary, Store, StoreError, StoredSession};
use patter::tool::{BoxFuture, CancellationToken, Tool};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

const HELLO: &str = "[greeter:Agent {instruction: 'Greet with `sayHello`.', model: 'demo'} | sayHello]";

/// A folder with an agent.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(text: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write(text);
        folder
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("a.gram")
    }

    async fn project(&self, tools: Vec<Tool>) -> Arc<LiveProject> {
        let builder = LiveProject::open(self.path()).with_tools(tools).with_environment(Environment::default());
        Arc::new(builder.read().await.unwrap())
    }
}

async fn say(session: &mut Session, text: &str) -> String {
    let run = session.say(text, &CancellationToken::new()).await.unwrap();
    run.response().content
}

#[tokio::test]
async fn session_remembers_a_name() {
    let folder = Folder::new(HELLO);
    let mut session = Session::new(folder.project(vec![]).await);
    assert_eq!(say(&mut session, "Hello! My name is Bob.").await, "Hello, Bob!");
    assert!(!say(&mut session, "What is the weather like?").await.contains("Hello, "));
    assert_eq!(say(&mut session, "Please greet me again").await, "Hello, Bob!");
    assert_eq!(session.turns(), 3);
}

#[tokio::test]
async fn edited_agent_is_reloaded_and_unchanged_one_is_reused() {
    let folder = Folder::new(HELLO);
    let project = folder.project(vec![]).await;
    let mut session = Session::new(Arc::clone(&project));
    let mut frame = || session.prepare(None).map(|(_, compiled)| Arc::clone(compiled.frame()));
    let accept = async || drop(project.accept(project.changes().unwrap().unwrap()).await.unwrap());
    let first = frame().unwrap();
    // Rewritten without a change.
    folder.write(HELLO);
    assert!(project.changes().unwrap().is_none() && Arc::ptr_eq(&first, &frame().unwrap()));
    folder.write(&HELLO.replace("Greet with", "Welcome with"));
    assert!(Arc::ptr_eq(&first, &frame().unwrap()), "a change is not used before it is accepted");
    accept().await;
    assert_eq!(frame().unwrap().instruction, "Welcome with `sayHello`.");
    // A broken agent is an error; the previous version is not used instead.
    folder.write("[greeter:Agent {instruction: 'Greet.', model: 'demo'} | sayNothing]");
    accept().await;
    assert!(matches!(frame(), Err(SessionError::Compile(_))));
    std::fs::remove_file(folder.path()).unwrap();
    assert!(project.changes().is_err());
    folder.write(HELLO);
    accept().await;
    assert_eq!(frame().unwrap(), first);
}

#[tokio::test]
async fn a_changed_definition_is_used_only_after_somebody_agreed() {
    let folder = Folder::new(HELLO);
    let project = folder.project(vec![]).await;
    let command = "[t:Toolbox | [run:Command {description: 'Runs', run: ['sh', '-c', 'true']} | ()==>(::Text)]]";
    let rewritten = format!("{}\n{command}", HELLO.replace("| sayHello", "| sayHello, run"));
    folder.write(&rewritten);
    let changes = project.changes().unwrap().unwrap();
    let definitions: Vec<_> = changes.definitions().iter().map(ToString::to_string).collect();
    assert_eq!(definitions, ["command `t/run`: sh -c true"]);
    let files: Vec<_> = changes.files().map(|(path, change)| (path.ends_with("a.gram"), change.name())).collect();
    assert_eq!(files, [(true, "changed")]);
    let tools = |project: &LiveProject| {
        let compiled = project.driver().compile_named("greeter").unwrap().unwrap();
        compiled.spec().tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(tools(&project), ["sayHello"]);
    // What is accepted is what was shown, even if the file has changed again.
    folder.write(&rewritten.replace("'true'", "'false'"));
    project.decline(changes);
    let changes = project.changes().unwrap().unwrap();
    assert_eq!(changes.definitions()[0].detail, "sh -c false");
    folder.write(&rewritten);
    project.accept(changes).await.unwrap();
    assert_eq!(tools(&project), ["sayHello", "run"]);
    let again = project.changes().unwrap().unwrap();
    assert_eq!(again.definitions()[0].detail, "sh -c true");
    // What is declined is not reported again.
    project.decline(again);
    folder.write(&rewritten);
    assert!(project.changes().unwrap().is_none());
    let refused = LiveProject::open(folder.path()).with_trust(<[_]>::is_empty).read().await.err().unwrap();
    let expected = "the project is not trusted, so nothing was started: it defines command `t/run`: sh -c true";
    assert_eq!(refused.to_string(), expected);
}

#[tokio::test]
async fn undo_and_fork() {
    let folder = Folder::new(HELLO);
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    let project = folder.project(vec![]).await;
    let mut session = Session::create(Arc::clone(&project), Arc::clone(&store), id("talk"));
    assert_eq!(session.undo().await.unwrap(), None);
    say(&mut session, "Hello! My name is Bob.").await;
    say(&mut session, "Hello! My name is Eve.").await;
    let mut fork = session.fork(4, Some((Arc::clone(&store), id("fork")))).unwrap();
    assert_eq!(session.undo().await.unwrap().unwrap(), "Hello! My name is Eve.");
    assert_eq!(say(&mut session, "Please greet me").await, "Hello, Bob!");
    assert_eq!(say(&mut fork, "Please greet me").await, "Hello, Bob!");
    assert!(matches!(session.fork(9, None), Err(SessionError::NoMessage { number: 9, count: 8 })));
    // A reopened session is unchanged, and cannot be opened twice.
    let conversation = session.conversation();
    let id = session.id().unwrap();
    let busy = Session::open(Arc::clone(&project), Arc::clone(&store), &id).await.err().unwrap();
    assert!(matches!(busy, SessionError::Store(StoreError::Busy { .. })), "{busy}");
    drop(session);
    let mut again = Session::open(project, Arc::clone(&store), &id).await.unwrap();
    assert_eq!((again.conversation(), again.turns()), (conversation, 2));
    assert_eq!(again.undo().await.unwrap().unwrap(), "Please greet me");
    let forked = store.read(&crate::store::id("fork")).await.unwrap();
    assert_eq!(forked.summary.forked_from, Some(id));
}

#[tokio::test]
async fn dropped_turn_is_unfinished() {
    let folder = Folder::new("[greeter:Agent {instruction: 'Wait with `wait`.', model: 'scripted/SCRIPT'} | wait]");
    let script = json!([{"calls": [{"tool": "wait"}]}, {"text": "I waited."}]);
    let path = folder.0.path().join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    folder.write(&std::fs::read_to_string(folder.path()).unwrap().replace("SCRIPT", path.to_str().unwrap()));
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let started = Arc::new(Notify::new());
    let notify = Arc::clone(&started);
    let wait = Tool::native("wait", "Waits", "()==>(::Text)", move |_, _| {
        let notify = Arc::clone(&notify);
        let is_first = counter.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            notify.notify_one();
            if is_first {
                std::future::pending::<()>().await;
            }
            Ok(json!("waited"))
        }
    });
    let mut session = Session::new(folder.project(vec![wait.unwrap()]).await);
    let stop = CancellationToken::new();
    tokio::select! {
        _ = session.say("Go", &stop) => panic!("the turn ended"),
        () = started.notified() => {}
    }
    assert!(matches!(session.say("And?", &stop).await, Err(SessionError::UnfinishedRun)));
    assert!(matches!(session.undo().await, Err(SessionError::UnfinishedRun)));
    let run = session.resume(&stop).await.unwrap();
    // Nobody approved repeating the call, so it was not repeated.
    assert_eq!((calls.load(Ordering::SeqCst), run.response().content.as_str()), (1, "I waited."));
    assert!(matches!(session.resume(&stop).await, Err(SessionError::NoUnfinishedRun)));
    assert!(matches!(session.abandon().await, Err(SessionError::NoUnfinishedRun)));
}

#[tokio::test]
async fn recording_is_complete() {
    let folder = Folder::new(HELLO);
    let path = folder.0.path().join("recording.jsonl");
    let mut session = Session::new(folder.project(vec![]).await);
    say(&mut session, "Hello! My name is Bob.").await;
    session.record(Recorder::create(&path).unwrap());
    say(&mut session, "Please greet me").await;
    let recording = Recording::read(&path).unwrap();
    let mut log = Log::default();
    recording.entries.iter().cloned().for_each(|entry| log.apply(entry).unwrap());
    assert_eq!(*log.conversation(), session.conversation());
    assert!(recording.entries.iter().any(|entry| matches!(entry, LogEntry::ReplyStreamed { .. })));
}

/// A store with a fault at the nth append. The first one creates the session.
struct FaultyStore {
    inner: Arc<dyn Store>,
    at: usize,
    fault: Fault,
}

#[derive(Clone)]
enum Fault {
    Fail,
    /// Fails to sync.
    FailToSync,
    /// Notifies that the append starts, and waits for permission to continue.
    Wait(Arc<[Notify; 2]>),
}

struct FaultyClaim {
    inner: Box<dyn Claim>,
    left: usize,
    fault: Fault,
}

impl Store for FaultyStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(async move {
            self.fault.happen(self.at - 1).await?;
            let inner = self.inner.create(new, now_ms).await?;
            Ok(Box::new(FaultyClaim { inner, left: self.at - 1, fault: self.fault.clone() }) as Box<dyn Claim>)
        })
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        self.inner.claim(id)
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

impl Claim for FaultyClaim {
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
        self.left = self.left.wrapping_sub(1);
        Box::pin(async move {
            self.fault.happen(self.left).await?;
            self.inner.append(entries, state, now_ms).await
        })
    }

    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        let fails = matches!(self.fault, Fault::FailToSync);
        Box::pin(async move {
            if fails { Err(StoreError::Failed { message: "the disk is gone".to_owned() }) } else { Ok(()) }
        })
    }
}

impl Fault {
    async fn happen(&self, left: usize) -> Result<(), StoreError> {
        match (left, self) {
            (0, Fault::Fail) => return Err(StoreError::Failed { message: "the disk is full".to_owned() }),
            (0, Fault::Wait(signals)) => {
                signals[0].notify_one();
                signals[1].notified().await;
            }
            _ => {}
        }
        Ok(())
    }
}

#[tokio::test]
async fn nothing_is_done_that_cannot_be_saved() {
    let folder = Folder::new("[greeter:Agent {instruction: 'Greet with `greet`.', model: 'demo'} | greet]");
    let mut ends = Vec::new();
    for at in 2..5 {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let greet = Tool::native("greet", "Greets a person", "(name::Text)==>(::Text)", move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!("Hello!")) }
        });
        let test_store = TestStore::sqlite();
        let store = Arc::new(FaultyStore { inner: test_store.open().await, at, fault: Fault::Fail });
        let mut session = Session::create(folder.project(vec![greet.unwrap()]).await, store, SessionId::new(now_ms()));
        let run = session.say("Please greet Bob", &CancellationToken::new()).await.unwrap();
        let end = match run.outcome() {
            Some(RunOutcome::Failed(failure)) if failure.kind == FailureKind::Store => failure.message.clone(),
            other => format!("{other:?}"),
        };
        let saved = test_store.open().await.list(1).await.unwrap()[0].entries;
        ends.push((calls.load(Ordering::SeqCst), saved, end.contains("the disk is full")));
        assert!(session.save_error().unwrap().to_string().contains("the disk is full"));
        // A session that cannot be saved does not continue.
        let again = session.say("And?", &CancellationToken::new()).await;
        assert!(!matches!(again, Ok(run) if matches!(run.outcome(), Some(RunOutcome::Answer { .. }))), "{at}");
    }
    // The tool is called only after its start is saved. An answer that cannot be saved is an error.
    assert_eq!(ends, [(0, 2, true), (1, 4, true), (1, 5, true)]);
}

#[tokio::test]
async fn answer_that_cannot_be_saved_is_an_error() {
    let folder = Folder::new(HELLO);
    let test_store = TestStore::sqlite();
    // The start, the reply with a call that starts, its result, the answer.
    let store = Arc::new(FaultyStore { inner: test_store.open().await, at: 4, fault: Fault::Fail });
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let session = Session::create(folder.project(vec![]).await, store, id("talk"));
    let mut session = session.with_driver(move |driver| {
        let seen = Arc::clone(&seen);
        driver.with_listener(move |event| seen.lock().unwrap().push(event.kind.clone()))
    });
    let run = session.say("Hello! My name is Bob.", &CancellationToken::new()).await.unwrap();
    let Some(RunOutcome::Failed(failure)) = run.outcome() else { panic!("{:?}", run.outcome()) };
    assert_eq!(failure.message, "the answer was not saved: the session store failed: the disk is full");
    // The conversation has it, but no event says that the run succeeded.
    assert!(matches!(run.conversation().last(), Some(Message::Assistant { text, .. }) if text.contains("Bob")));
    let events = std::mem::take(&mut *events.lock().unwrap());
    let finished: Vec<_> = events.iter().filter(|event| matches!(event, RunEventKind::Finished { .. })).collect();
    let [RunEventKind::Finished { error: Some(_), .. }] = finished.as_slice() else { panic!("{finished:?}") };
    // What was saved can be resumed.
    let stored = test_store.open().await.read(&id("talk")).await.unwrap();
    assert!(Log::read(&stored.entries).unwrap().open_run().is_some());
}

#[tokio::test]
async fn calls_that_must_not_be_repeated_wait_for_the_disk() {
    let folder = Folder::new("[greeter:Agent {instruction: 'Greet with `greet`.', model: 'demo'} | greet]");
    for (is_idempotent, expected) in [(true, 1), (false, 0)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let greet = Tool::native("greet", "Greets a person", "(name::Text)==>(::Text)", move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!("Hello!")) }
        });
        let greet = greet.unwrap().idempotent(is_idempotent);
        let test_store = TestStore::sqlite();
        let store = Arc::new(FaultyStore { inner: test_store.open().await, at: 100, fault: Fault::FailToSync });
        let mut session = Session::create(folder.project(vec![greet]).await, store, id("talk"));
        let run = session.say("Please greet Bob", &CancellationToken::new()).await.unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), expected);
        assert_eq!(matches!(run.outcome(), Some(RunOutcome::Answer { .. })), is_idempotent, "{:?}", run.outcome());
    }
}

#[tokio::test]
async fn session_that_cannot_be_created_can_be_tried_again() {
    let folder = Folder::new(HELLO);
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    drop(store.create(NewSession::new(id("talk"), "other", "Hi"), 1).await.unwrap());
    let mut session = Session::create(folder.project(vec![]).await, Arc::clone(&store), id("talk"));
    let stop = CancellationToken::new();
    for _ in 0..2 {
        let error = session.say("Hello! My name is Bob.", &stop).await.unwrap_err();
        assert!(matches!(&error, SessionError::Store(StoreError::Exists { .. })), "{error}");
        assert!(session.conversation().is_empty());
    }
    store.remove(&id("talk")).await.unwrap();
    assert_eq!(say(&mut session, "Hello! My name is Bob.").await, "Hello, Bob!");
    let stored = store.read(&id("talk")).await.unwrap();
    assert_eq!((stored.summary.agent.as_str(), stored.summary.title.as_str()), ("greeter", "Hello! My name is Bob."));
    assert_eq!(*Log::read(&stored.entries).unwrap().conversation(), session.conversation());
}

#[tokio::test]
async fn append_completes_when_its_turn_is_dropped() {
    let folder = Folder::new(HELLO);
    for at in 1..5 {
        let test_store = TestStore::sqlite();
        let signals = Arc::new([Notify::new(), Notify::new()]);
        let store =
            Arc::new(FaultyStore { inner: test_store.open().await, at, fault: Fault::Wait(Arc::clone(&signals)) });
        let mut session = Session::create(folder.project(vec![]).await, store, id("talk"));
        let stop = CancellationToken::new();
        tokio::select! {
            _ = session.say("Hello! My name is Bob.", &stop) => panic!("the turn ended"),
            () = signals[0].notified() => {}
        }
        signals[1].notify_one();
        if session.read_log(|log| log.open_run().is_some()) {
            session.resume(&stop).await.unwrap();
        }
        say(&mut session, "Please greet me").await;
        let stored = test_store.open().await.read(&id("talk")).await.unwrap();
        assert_eq!(*Log::read(&stored.entries).unwrap().conversation(), session.conversation(), "{at}");
    }
}

#[tokio::test]
async fn session_does_not_depend_on_the_current_folder() {
    let folder = Folder::new(HELLO);
    assert!(folder.path().is_absolute() && !Path::new("a.gram").exists());
    let mut session = Session::new(folder.project(vec![]).await);
    say(&mut session, "Hello!").await;
    assert!(matches!(session.conversation().last(), Some(Message::Assistant { .. })));
}
