//! Looking after a store.

use super::{TestStore, id};
use patter::message::attachment::AttachmentContents;
use patter::store::{Copied, NewSession, SessionState, Store, StoreError, copy_session, read_attachments};

async fn fill(store: &dyn Store) {
    for (name, state, changed_ms) in
        [("old", SessionState::Idle, 2_000), ("open", SessionState::Running, 3_000), ("new", SessionState::Idle, 9_000)]
    {
        let new = NewSession::new(id(name), "greeter", "Hello").with_entries(vec!["{}".to_owned()], SessionState::Idle);
        let mut contents = AttachmentContents::default();
        contents.attach("name.txt", name.as_bytes().to_vec()).unwrap();
        let mut claim = store.create(new.with_attachments(contents), 1_000).await.unwrap();
        claim.append(&[format!("{{\"name\":\"{name}\"}}")], state, changed_ms).await.unwrap();
    }
}

/// Everything that is promised, for two stores.
async fn look_after(from: &dyn Store, to: &dyn Store) {
    fill(from).await;
    let old: Vec<_> = from.list_unchanged_since(9_000).await.unwrap().into_iter().map(|session| session.id).collect();
    assert_eq!(old, [id("old"), id("open")]);
    let usage = from.usage().await.unwrap();
    assert_eq!((usage.sessions, usage.entries, usage.oldest_ms), (3, 6, Some(2_000)));
    assert!(usage.bytes > 0);

    for session in from.list_unchanged_since(u64::MAX).await.unwrap() {
        assert_eq!(copy_session(from, to, &session).await.unwrap(), Copied::New);
        assert_eq!(copy_session(from, to, &session).await.unwrap(), Copied::Unchanged);
        let there = to.read(&session.id).await.unwrap();
        assert_eq!(there.summary, session, "with its times and its state");
        assert_eq!(there.entries, from.read(&session.id).await.unwrap().entries);
        let contents = read_attachments(to, &session.id, None).await.unwrap();
        assert_eq!(contents, read_attachments(from, &session.id, None).await.unwrap());
        assert_eq!(contents.iter().count(), 1);
    }
    // What happened there afterwards is not lost.
    let mut claim = to.claim(&id("old")).await.unwrap();
    claim.append(&["[]".to_owned()], SessionState::Idle, 10_000).await.unwrap();
    drop(claim);
    let session = from.read(&id("old")).await.unwrap().summary;
    assert_eq!(copy_session(from, to, &session).await.unwrap(), Copied::Differs);
    assert_eq!(to.read(&id("old")).await.unwrap().entries.len(), 3);

    from.remove(&id("old")).await.unwrap();
    from.compact().await.unwrap();
    assert_eq!(from.usage().await.unwrap().sessions, 2);
    assert!(matches!(from.read(&id("old")).await, Err(StoreError::NotFound { .. })));
}

#[tokio::test]
async fn sessions_are_copied_and_counted() {
    let sqlite = TestStore::sqlite();
    let other = TestStore::sqlite();
    look_after(&*sqlite.open().await, &*other.open().await).await;
    let Some(postgres) = TestStore::postgres().await else { return };
    let sqlite = TestStore::sqlite();
    look_after(&*sqlite.open().await, &*postgres.open().await).await;
    let Some(postgres) = TestStore::postgres().await else { return };
    let sqlite = TestStore::sqlite();
    look_after(&*postgres.open().await, &*sqlite.open().await).await;
}

#[tokio::test]
async fn compacting_removes_attachments_of_sessions_that_are_gone() {
    let database = TestStore::sqlite();
    let store = database.open().await;
    fill(&*store).await;
    // As a version that knows no attachments does it.
    database
        .execute(
            "PRAGMA foreign_keys = OFF; DELETE FROM logs WHERE session = 'old'; DELETE FROM sessions WHERE id = 'old'",
        )
        .await;
    assert_eq!(store.attachments(&id("old")).await.unwrap().len(), 1);
    store.compact().await.unwrap();
    assert_eq!(store.attachments(&id("old")).await.unwrap().len(), 0);
    assert_eq!(store.attachments(&id("new")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn compacting_gives_space_back() {
    let database = TestStore::sqlite();
    let store = database.open().await;
    let entries = vec![format!("\"{}\"", "x".repeat(200_000)); 10];
    let new = NewSession::new(id("large"), "greeter", "Hello").with_entries(entries, SessionState::Idle);
    drop(store.create(new, 1).await.unwrap());
    store.remove(&id("large")).await.unwrap();
    let before = store.usage().await.unwrap();
    assert!(before.unused_bytes > 1_000_000, "{before:?}");
    store.compact().await.unwrap();
    let after = store.usage().await.unwrap();
    assert!(after.bytes < before.bytes - 1_000_000 && after.unused_bytes == 0, "{after:?}");
}
