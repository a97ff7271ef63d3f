//! Sessions whose contents are removed.

use super::cases::suite;
use super::{TestStore, append, id, new, texts};
use patter::live::LiveProject;
use patter::message::attachment::AttachmentContents;
use patter::session::{Log, Session, SessionError};
use patter::store::{self, NewWork, SessionState, Store, StoreError};
use patter::tool::{CancellationToken, Tool};
use std::sync::Arc;

suite! {
    contents_are_gone_and_the_shape_stays,
    sessions_in_use_keep_their_contents,
}

/// What must be nowhere afterwards.
const SECRET: &str = "sesame4711";

/// Runs an agent that calls a tool, with a secret in the message, the arguments and the result.
async fn talk(store: &Arc<dyn Store>, name: &str) -> (tempfile::TempDir, Arc<LiveProject>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gram");
    std::fs::write(&path, "[worker:Agent {instruction: 'Use `work`.', model: 'demo'} | work]").unwrap();
    let work = Tool::native("work", "Works on a topic", "(topic::Text)==>(::Text)", |_, _| async {
        Ok(serde_json::json!(format!("done with {SECRET}")))
    });
    let project: Arc<_> = LiveProject::open(&path).with_tools([work.unwrap()]).read().await.unwrap().into();
    let mut session = Session::create(Arc::clone(&project), Arc::clone(store), id(name));
    let never = CancellationToken::new();
    for _ in 0..3 {
        let run = session.say(format!("Please work on \"{SECRET}\""), &never).await.unwrap();
        assert!(run.outcome().is_some());
    }
    (folder, project)
}

async fn contents_are_gone_and_the_shape_stays(test_store: &TestStore) {
    let store = test_store.open().await;
    let (_folder, project) = talk(&store, "a").await;
    let mut attached = AttachmentContents::default();
    let sha256 = attached.add(SECRET.as_bytes().to_vec());
    let mut claim = loop {
        // The session of the run is released in the background.
        match store.claim(&id("a")).await {
            Ok(claim) => break claim,
            Err(error) => assert!(matches!(error, StoreError::Busy { .. }), "{error}"),
        }
    };
    claim.attach(&sha256, attached.iter().next().unwrap().1.clone()).await.unwrap();
    drop(claim);
    let before = store.read(&id("a")).await.unwrap();
    assert!(before.entries.concat().contains(SECRET) && before.summary.title.contains(SECRET));
    let log = Log::read(&before.entries).unwrap();

    while let Err(error) = store::redact_session(&*store, &id("a"), 77).await {
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    }
    store.compact().await.unwrap();
    let after = store.read(&id("a")).await.unwrap();
    assert!(!after.entries.concat().contains(SECRET), "{:?}", after.entries);
    assert_eq!((after.summary.title.as_str(), after.summary.changed_ms), ("[redacted]", before.summary.changed_ms));
    assert_eq!(store.attachments(&id("a")).await.unwrap(), texts([]));
    let redacted = Log::read(&after.entries).unwrap();
    assert_eq!(redacted.redacted_at(), Some(77));
    assert_eq!(redacted.conversation().len(), log.conversation().len());
    assert_eq!(redacted.turns().len(), 3);
    for (turn, was) in redacted.turns().iter().zip(log.turns()) {
        assert_eq!((turn.usage, turn.at, turn.elapsed_ms), (was.usage, was.at, was.elapsed_ms));
        assert_eq!((&turn.agent, &turn.model, &turn.durations_ms), (&was.agent, &was.model, &was.durations_ms));
        assert_eq!(std::mem::discriminant(&turn.outcome), std::mem::discriminant(&was.outcome));
    }
    assert!(after.entries.concat().contains("\"work\""), "the names of tools stay");
    // Once is enough.
    assert!(!store::redact_session(&*store, &id("a"), 78).await.unwrap());
    let error = Session::open(project, store, &id("a")).await.err().unwrap();
    assert!(matches!(error, SessionError::Redacted(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "session `a` cannot be continued: its contents were removed (`patter sessions redact`)"
    );
}

async fn sessions_in_use_keep_their_contents(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts([r#"{"entry":"forked","from":"b","messages":[]}"#])).await;
    let error = store::redact_session(&*store, &id("a"), 7).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    claim.append(&[], SessionState::Waiting, 1).await.unwrap();
    let error = store::redact_session(&*store, &id("a"), 7).await.unwrap_err();
    assert_eq!(error.to_string(), "session `a` has an unfinished run");
    claim.append(&[], SessionState::Idle, 1).await.unwrap();
    drop(claim);
    // A message that waits for a worker.
    let work = NewWork {
        key: "k".to_owned(),
        session: id("a"),
        agent: "greeter".to_owned(),
        tenant: String::new(),
        task: SECRET.to_owned(),
        worker: None,
        due_ms: None,
    };
    store.queue().unwrap().add(work).await.unwrap();
    let error = store::redact_session(&*store, &id("a"), 7).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    let error = store.replace_log(&id("none"), 0, Vec::new()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    test_store.execute("DELETE FROM TABLE.work").await;
    let replaced = async {
        loop {
            match store.replace_log(&id("a"), 9, Vec::new()).await {
                Err(StoreError::Busy { .. }) => {}
                replaced => return replaced,
            }
        }
    };
    assert_eq!(replaced.await.unwrap_err(), StoreError::Conflict { id: id("a"), expected: 9 });
    assert_eq!(store.read(&id("a")).await.unwrap().entries.len(), 1);
}

/// Neither the file nor what is beside it has a byte of the contents.
#[tokio::test]
async fn nothing_is_left_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let location = store::StoreLocation::Sqlite(folder.path().join("sessions.db"));
    let store = store::open(&location).await.unwrap();
    talk(&store, "a").await;
    // Others make pages split and move.
    for number in 0..20 {
        let mut claim = store.create(new(&format!("s{number}")), 1).await.unwrap();
        append(&mut claim, &texts([&"x".repeat(3000)])).await;
    }
    let has_secret = || {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
        files.into_iter().any(|bytes| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()))
    };
    assert!(has_secret());
    assert!(store::redact_session(&*store, &id("a"), 77).await.unwrap());
    store.compact().await.unwrap();
    assert!(!has_secret());
    assert_eq!(store.read(&id("s3")).await.unwrap().entries.len(), 1);
}
