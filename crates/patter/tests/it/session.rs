//! Conversations, turn after turn.

use crate::store::{Place, id};
use patter::drive::now;
use patter::live::LiveProject;
use patter::message::conversation::Message;
use patter::project::Environment;
use patter::run::{FailureKind, RunOutcome};
use patter::session::{Entry, Log, Recorder, Recording, Session, SessionError};
use patter::store::{Claim, NewSession, SessionId, SessionState, Store, StoreError, Stored, Summary};
use patter::tool::{BoxFuture, CancellationToken, Tool};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

    async fn agents(&self, tools: Vec<Tool>) -> Arc<LiveProject> {
        let opening = LiveProject::open(self.path()).with_tools(tools).with_environment(Environment::default());
        Arc::new(opening.read().await.unwrap())
    }
}

async fn said(session: &mut Session, text: &str) -> String {
    let run = session.say(text, &CancellationToken::new()).await.unwrap();
    run.response().content
}

#[tokio::test]
async fn a_name_is_remembered() {
    let folder = Folder::new(HELLO);
    let mut session = Session::new(folder.agents(vec![]).await);
    assert_eq!(said(&mut session, "Hello! My name is Bob.").await, "Hello, Bob!");
    assert!(!said(&mut session, "What is the weather like?").await.contains("Hello, "));
    assert_eq!(said(&mut session, "Please greet me again").await, "Hello, Bob!");
    assert_eq!(session.turns(), 3);
}

#[tokio::test]
async fn an_edited_agent_is_used_by_the_next_turn_and_an_unedited_one_is_not_made_again() {
    let folder = Folder::new(HELLO);
    let mut session = Session::new(folder.agents(vec![]).await);
    let mut frame = || session.ready(None).map(|(_, compiled)| Arc::clone(compiled.frame()));
    let first = frame().unwrap();
    // Written again, but the same.
    folder.write(HELLO);
    assert!(Arc::ptr_eq(&first, &frame().unwrap()));
    folder.write(&HELLO.replace("Greet with", "Welcome with"));
    assert_eq!(frame().unwrap().instruction, "Welcome with `sayHello`.");
    // What is broken is told, and the agent from before is not used in its place.
    folder.write("[greeter:Agent {instruction: 'Greet.', model: 'demo'} | sayNothing]");
    assert!(matches!(frame(), Err(SessionError::Compile(_))));
    std::fs::remove_file(folder.path()).unwrap();
    assert!(frame().is_err());
    folder.write(HELLO);
    assert_eq!(frame().unwrap(), first);
}

#[tokio::test]
async fn what_was_said_is_taken_back_and_forked() {
    let (folder, place) = (Folder::new(HELLO), Place::sqlite());
    let store = place.open().await;
    let agents = folder.agents(vec![]).await;
    let mut session = Session::keep(Arc::clone(&agents), Arc::clone(&store), id("talk"));
    assert_eq!(session.undo().await.unwrap(), None);
    said(&mut session, "Hello! My name is Bob.").await;
    said(&mut session, "Hello! My name is Eve.").await;
    let mut fork = session.fork(4, Some((Arc::clone(&store), id("fork")))).unwrap();
    assert_eq!(session.undo().await.unwrap().unwrap(), "Hello! My name is Eve.");
    assert_eq!(said(&mut session, "Please greet me").await, "Hello, Bob!");
    assert_eq!(said(&mut fork, "Please greet me").await, "Hello, Bob!");
    assert!(matches!(session.fork(9, None), Err(SessionError::NoMessage { number: 9, count: 8 })));
    // All of it is as it was when it is opened again, and nobody else can meanwhile.
    let (conversation, id) = (session.conversation(), session.id().unwrap());
    let busy = Session::open(Arc::clone(&agents), Arc::clone(&store), &id).await.err().unwrap();
    assert!(matches!(busy, SessionError::Store(StoreError::Busy { .. })), "{busy}");
    drop(session);
    let mut again = Session::open(agents, Arc::clone(&store), &id).await.unwrap();
    assert_eq!((again.conversation(), again.turns()), (conversation, 2));
    assert_eq!(again.undo().await.unwrap().unwrap(), "Please greet me");
    let forked = store.read(&crate::store::id("fork")).await.unwrap();
    assert_eq!(forked.summary.forked_from, Some(id));
}

#[tokio::test]
async fn a_dropped_turn_has_not_ended() {
    let folder = Folder::new("[greeter:Agent {instruction: 'Wait with `wait`.', model: 'scripted/SCRIPT'} | wait]");
    let script = json!([{"calls": [{"tool": "wait"}]}, {"text": "I waited."}]);
    let path = folder.0.path().join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    folder.write(&std::fs::read_to_string(folder.path()).unwrap().replace("SCRIPT", path.to_str().unwrap()));
    let calls = Arc::new(AtomicUsize::new(0));
    let (begun, counted) = (Arc::new(Notify::new()), Arc::clone(&calls));
    let told = Arc::clone(&begun);
    let wait = Tool::native("wait", "Waits", "()==>(::Text)", move |_, _| {
        let (told, first) = (Arc::clone(&told), counted.fetch_add(1, Ordering::SeqCst) == 0);
        async move {
            told.notify_one();
            if first {
                std::future::pending::<()>().await;
            }
            Ok(json!("waited"))
        }
    });
    let mut session = Session::new(folder.agents(vec![wait.unwrap()]).await);
    let stop = CancellationToken::new();
    tokio::select! {
        _ = session.say("Go", &stop) => panic!("it does not end"),
        () = begun.notified() => {}
    }
    assert!(matches!(session.say("And?", &stop).await, Err(SessionError::Unfinished)));
    assert!(matches!(session.undo().await, Err(SessionError::Unfinished)));
    let run = session.resume(&stop).await.unwrap();
    // Nobody was asked whether it may be called again, so it was not.
    assert_eq!((calls.load(Ordering::SeqCst), run.response().content.as_str()), (1, "I waited."));
    assert!(matches!(session.resume(&stop).await, Err(SessionError::Finished)));
    assert!(matches!(session.abandon().await, Err(SessionError::Finished)));
}

#[tokio::test]
async fn a_recording_has_all_that_happened() {
    let folder = Folder::new(HELLO);
    let path = folder.0.path().join("recording.jsonl");
    let mut session = Session::new(folder.agents(vec![]).await);
    said(&mut session, "Hello! My name is Bob.").await;
    session.record(Recorder::create(&path).unwrap());
    said(&mut session, "Please greet me").await;
    let recording = Recording::read(&path).unwrap();
    let mut log = Log::default();
    recording.entries.iter().cloned().for_each(|entry| log.apply(entry).unwrap());
    assert_eq!(log.conversation(), session.conversation());
    assert!(recording.entries.iter().any(|entry| matches!(entry, Entry::Streamed { .. })));
}

/// A store that does something odd when something is added for the nth time.
struct Odd {
    inner: Arc<dyn Store>,
    at: usize,
    oddity: Oddity,
}

#[derive(Clone)]
enum Oddity {
    Fails,
    /// It tells that it begins, and waits to be told to go on.
    Waits(Arc<[Notify; 2]>),
}

struct OddClaim {
    inner: Box<dyn Claim>,
    left: usize,
    oddity: Oddity,
}

impl Store for Odd {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(async move {
            let inner = self.inner.create(new, now_ms).await?;
            Ok(Box::new(OddClaim { inner, left: self.at, oddity: self.oddity.clone() }) as Box<dyn Claim>)
        })
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        self.inner.claim(id)
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

impl Claim for OddClaim {
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
            match (self.left, &self.oddity) {
                (0, Oddity::Fails) => return Err(StoreError::Failed { message: "the disk is full".to_owned() }),
                (0, Oddity::Waits(told)) => {
                    told[0].notify_one();
                    told[1].notified().await;
                }
                _ => {}
            }
            self.inner.append(entries, state, now_ms).await
        })
    }
}

#[tokio::test]
async fn nothing_is_done_that_cannot_be_kept() {
    let folder = Folder::new("[greeter:Agent {instruction: 'Greet with `greet`.', model: 'demo'} | greet]");
    let mut ends = Vec::new();
    for at in 1..6 {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let greet = Tool::native("greet", "Greets a person", "(name::Text)==>(::Text)", move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!("Hello!")) }
        });
        let place = Place::sqlite();
        let store = Arc::new(Odd { inner: place.open().await, at, oddity: Oddity::Fails });
        let mut session = Session::keep(folder.agents(vec![greet.unwrap()]).await, store, SessionId::new(now()));
        let run = session.say("Please greet Bob", &CancellationToken::new()).await.unwrap();
        let end = match run.outcome() {
            Some(RunOutcome::Failed(failure)) if failure.kind == FailureKind::Store => failure.message.clone(),
            other => format!("{other:?}"),
        };
        let kept = place.open().await.list(1).await.unwrap()[0].entries;
        ends.push((calls.load(Ordering::SeqCst), kept, end.contains("the disk is full")));
        assert!(session.broken().await.unwrap().to_string().contains("the disk is full"));
        // A session that cannot be kept does not go on as if it were.
        let again = session.say("And?", &CancellationToken::new()).await;
        assert!(!matches!(again, Ok(run) if matches!(run.outcome(), Some(RunOutcome::Answer { .. }))), "{at}");
    }
    // The tool is called only once it is kept that it is about to be. An answer that is there is an answer.
    assert_eq!(ends, [(0, 0, true), (0, 2, true), (0, 3, true), (1, 4, true), (1, 5, false)]);
}

#[tokio::test]
async fn what_is_being_kept_when_a_turn_is_dropped_is_kept() {
    let folder = Folder::new(HELLO);
    for at in 1..5 {
        let (place, told) = (Place::sqlite(), Arc::new([Notify::new(), Notify::new()]));
        let store = Arc::new(Odd { inner: place.open().await, at, oddity: Oddity::Waits(Arc::clone(&told)) });
        let mut session = Session::keep(folder.agents(vec![]).await, store, id("talk"));
        let stop = CancellationToken::new();
        tokio::select! {
            _ = session.say("Hello! My name is Bob.", &stop) => panic!("it does not end"),
            () = told[0].notified() => {}
        }
        told[1].notify_one();
        if session.with_log(|log| log.run().is_some()) {
            session.resume(&stop).await.unwrap();
        }
        said(&mut session, "Please greet me").await;
        let stored = place.open().await.read(&id("talk")).await.unwrap();
        assert_eq!(Log::read(&stored.entries).unwrap().conversation(), session.conversation(), "{at}");
    }
}

#[tokio::test]
async fn a_conversation_of_another_folder_is_read_whatever_the_current_one_is() {
    let folder = Folder::new(HELLO);
    assert!(folder.path().is_absolute() && !Path::new("a.gram").exists());
    let mut session = Session::new(folder.agents(vec![]).await);
    said(&mut session, "Hello!").await;
    assert!(matches!(session.conversation().last(), Some(Message::Assistant { .. })));
}
