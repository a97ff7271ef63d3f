//! Tests for every store.

use super::concurrency::{
    dropped_append_is_atomic, many_open_a_new_store_concurrently, many_sessions_grow_concurrently,
    one_of_many_claims_wins, reads_are_consistent_while_others_write,
};
use super::{TestStore, append, claim_error, id, new, texts};
use patter::message::attachment::AttachmentContents;
use patter::store::{self, NewSession, SessionState, StoreError};

/// Defines a test of each case for each database.
macro_rules! suite {
    ($($case:ident,)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&crate::store::TestStore::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                if let Some(test_store) = crate::store::TestStore::postgres().await {
                    super::$case(&test_store).await;
                }
            })*
        }
        mod pooled {
            $(#[tokio::test]
            async fn $case() {
                if let Some(test_store) = crate::store::TestStore::pooled().await {
                    super::$case(&test_store).await;
                }
            })*
        }
    };
}
pub(super) use suite;

suite! {
    entries_are_ordered_and_visible_to_others,
    metadata_is_stored,
    steps_of_a_run_are_visible_at_once,
    append_is_atomic,
    claim_is_exclusive_until_released,
    missing_session_is_reported,
    session_is_created_once,
    session_is_created_with_its_first_entries,
    attachments_are_kept_by_hash,
    removed_session_is_gone,
    programs_share_one_secret,
    list_starts_with_the_latest_change,
    pages_have_every_session_once,
    sessions_are_found_by_unambiguous_prefix,
    any_text_round_trips,
    long_log_is_read_completely,
    one_of_many_claims_wins,
    many_sessions_grow_concurrently,
    many_open_a_new_store_concurrently,
    another_writer_is_detected,
    damaged_log_is_reported,
    dropped_append_is_atomic,
    reads_are_consistent_while_others_write,
}

async fn entries_are_ordered_and_visible_to_others(test_store: &TestStore) {
    let store = test_store.open().await;
    let other = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    assert_eq!(other.read(&id("a")).await.unwrap().entries, texts([]));
    for (from, count) in [(0, 1), (1, 12), (13, 0), (13, 1)] {
        let entries: Vec<_> = (from..from + count).map(|number| format!("{{\"n\":{number}}}")).collect();
        append(&mut claim, &entries).await;
        let expected: Vec<_> = (0..from + count).map(|number| format!("{{\"n\":{number}}}")).collect();
        assert_eq!(other.read(&id("a")).await.unwrap().entries, expected);
        assert_eq!(claim.entries(), from + count);
    }
    drop(claim);
    let mut claim = other.claim(&id("a")).await.unwrap();
    assert_eq!(claim.entries(), 14);
    append(&mut claim, &texts(["last"])).await;
    assert_eq!(store.read(&id("a")).await.unwrap().entries[14], "last");
}

async fn metadata_is_stored(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut claim = store.create(new("a").forked_from(id("origin")), 5).await.unwrap();
    let begun = store.read(&id("a")).await.unwrap().summary;
    assert_eq!((begun.created_ms, begun.changed_ms, begun.entries, begun.state), (5, 5, 0, SessionState::Idle));
    assert_eq!((begun.agent.as_str(), begun.title.as_str()), ("greeter", "Hello there"));
    assert_eq!(begun.forked_from, Some(id("origin")));
    claim.append(&texts(["1", "2"]), SessionState::Running, 7).await.unwrap();
    claim.append(&texts([]), SessionState::Running, u64::MAX).await.unwrap();
    let grown = store.read(&id("a")).await.unwrap().summary;
    assert_eq!((grown.created_ms, grown.entries, grown.state), (5, 2, SessionState::Running));
    assert_eq!(grown.changed_ms, i64::MAX as u64);
    claim.append(&texts([]), SessionState::Idle, 9).await.unwrap();
    let ended = store.read(&id("a")).await.unwrap().summary;
    assert_eq!((ended.changed_ms, ended.entries, ended.state), (9, 2, SessionState::Idle));
    assert_eq!(store.list(9).await.unwrap(), [ended]);
}

async fn steps_of_a_run_are_visible_at_once(test_store: &TestStore) {
    let store = test_store.open().await;
    let other = test_store.open().await;
    let new = new("a").with_entries(texts(["1", "2"]), SessionState::Running);
    let mut claim = store.create(new, 1).await.unwrap();
    // All within a second.
    for (at, step) in [(2, texts(["3"])), (3, texts(["4", "5", "6"])), (4, texts(["7"]))] {
        claim.append(&step, SessionState::Running, at).await.unwrap();
        let length = claim.entries();
        assert_eq!(other.list(9).await.unwrap().first().unwrap().entries, length);
        for first in 0..length + 2 {
            let stored = other.read_from(&id("a"), first).await.unwrap();
            let expected: Vec<_> = (first..length).map(|number| (number + 1).to_string()).collect();
            assert_eq!((stored.entries, stored.summary.entries), (expected, length));
        }
    }
    // As if the program was killed.
    drop(claim);
    let claim = other.claim(&id("a")).await.unwrap();
    assert_eq!(claim.entries(), 7);
}

async fn append_is_atomic(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    let before = store.read(&id("a")).await.unwrap();
    let error = claim.append(&texts(["2", "3\0", "4"]), SessionState::Running, 9).await.unwrap_err();
    assert_eq!(error.to_string(), "entry 1 is not JSON on one line: it contains a line break or a NUL character");
    // The last of three numbers is taken, so that the statement fails halfway.
    test_store.insert_entry("a", 3, "theirs").await;
    let error = claim.append(&texts(["2", "3", "4"]), SessionState::Running, 9).await.unwrap_err();
    assert_eq!(error, StoreError::Conflict { id: id("a"), expected: 1 });
    test_store.remove_entry("a", 3).await;
    assert_eq!(store.read(&id("a")).await.unwrap(), before);
    // The claim still works.
    append(&mut claim, &texts(["2"])).await;
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1", "2"]);
}

async fn claim_is_exclusive_until_released(test_store: &TestStore) {
    let store = test_store.open().await;
    let other = test_store.open().await;
    let claim = store.create(new("a"), 1).await.unwrap();
    for store in [&store, &other] {
        let error = claim_error(store.claim(&id("a")).await);
        let message = error.to_string();
        let us = format!("session `a` is in use by process {} on ", std::process::id());
        assert!(message.starts_with(&us) && message.len() > us.len(), "{message}");
        assert_eq!(error.hint().unwrap(), "wait until it ends, or fork the session");
    }
    drop(other.create(new("b"), 1).await.unwrap());
    drop(claim);
    let claim = other.claim(&id("a")).await.unwrap();
    assert_eq!(claim.id(), &id("a"));
    assert!(matches!(claim_error(store.claim(&id("a")).await), StoreError::Busy { .. }));
    drop(claim);
    drop(store.claim(&id("a")).await.unwrap());
}

async fn missing_session_is_reported(test_store: &TestStore) {
    let store = test_store.open().await;
    assert_eq!(store::find(&*store, "latest").await.unwrap_err().to_string(), "there are no sessions yet");
    drop(store.create(new("greeting"), 1).await.unwrap());
    let errors = [
        claim_error(store.claim(&id("greting")).await),
        store.read(&id("greting")).await.unwrap_err(),
        store.remove(&id("greting")).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), "there is no session `greting`");
        assert_eq!(error.hint().unwrap(), "list all sessions with `patter sessions`");
    }
    // Only whoever types an id learns about similar ones, since finding them takes a while.
    let error = store::find(&*store, "greting").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no session `greting`");
    assert_eq!(error.hint().unwrap(), "did you mean `greeting`?");
    // The failed operations left nothing behind: the session can be created.
    drop(store.create(new("greting"), 1).await.unwrap());
}

async fn session_is_created_once(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    assert_eq!(claim_error(store.create(new("a"), 2).await), StoreError::Exists { id: id("a") });
    drop(claim);
    let error = claim_error(store.create(new("a"), 2).await);
    assert_eq!(error.to_string(), "session `a` already exists");
    let stored = store.read(&id("a")).await.unwrap();
    assert_eq!((stored.summary.created_ms, stored.entries), (1, texts(["1"])));
    drop(store.claim(&id("a")).await.unwrap());
}

async fn session_is_created_with_its_first_entries(test_store: &TestStore) {
    let store = test_store.open().await;
    let first = new("a").with_entries(texts(["1", "2"]), SessionState::Running);
    let mut claim = store.create(first.clone(), 1).await.unwrap();
    assert_eq!(claim.entries(), 2);
    append(&mut claim, &texts(["3"])).await;
    let stored = store.read(&id("a")).await.unwrap();
    assert_eq!((stored.entries, stored.summary.entries), (texts(["1", "2", "3"]), 3));
    drop(claim);
    assert_eq!(claim_error(store.create(first, 2).await), StoreError::Exists { id: id("a") });
    assert_eq!(store.read(&id("a")).await.unwrap().entries.len(), 3);
    let invalid = new("b").with_entries(texts(["1", "\0"]), SessionState::Running);
    assert_eq!(claim_error(store.create(invalid, 1).await), StoreError::Entry { index: 1 });
    assert!(matches!(store.read(&id("b")).await, Err(StoreError::NotFound { .. })));
    let running = new("c").with_entries(texts(["1"]), SessionState::Running);
    drop(store.create(running, 9).await.unwrap());
    assert_eq!(store.list(1).await.unwrap()[0].state, SessionState::Running);
}

async fn attachments_are_kept_by_hash(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut contents = AttachmentContents::default();
    let one = contents.attach("one.txt", b"one".to_vec()).unwrap().sha256;
    let two = contents.attach("two.bin", b"\xff\xd8\xff\0two".to_vec()).unwrap().sha256;
    let mut first = AttachmentContents::default();
    first.attach("one.txt", b"one".to_vec()).unwrap();
    let mut plain = store.create(new("plain"), 1).await.unwrap();
    assert_eq!(store.attachments(&id("plain")).await.unwrap(), texts([]));
    assert_eq!(store.attachment(&id("plain"), &one).await.unwrap(), None);

    let mut claim = store.create(new("a").with_attachments(first), 1).await.unwrap();
    for _ in 0..2 {
        claim.attach(&two, contents.shared(&two).unwrap()).await.unwrap();
    }
    plain.attach(&one, contents.shared(&one).unwrap()).await.unwrap();
    append(&mut claim, &texts(["{}"])).await;
    drop((claim, plain));
    let other = test_store.open().await;
    let mut expected = vec![one.clone(), two.clone()];
    expected.sort();
    assert_eq!(other.attachments(&id("a")).await.unwrap(), expected);
    assert_eq!(other.attachment(&id("a"), &two).await.unwrap().as_deref(), Some(&b"\xff\xd8\xff\0two"[..]));
    assert_eq!(other.attachment(&id("a"), "unknown").await.unwrap(), None);
    assert_eq!(store::read_attachments(&*other, &id("a"), None).await.unwrap(), contents);

    other.remove(&id("a")).await.unwrap();
    assert_eq!(other.attachment(&id("a"), &two).await.unwrap(), None);
    assert_eq!(store.attachment(&id("plain"), &one).await.unwrap().as_deref(), Some(&b"one"[..]));
    // A session of the same name starts without them.
    drop(store.create(new("a"), 2).await.unwrap());
    assert_eq!(store.attachments(&id("a")).await.unwrap(), texts([]));
    drop(store);
    test_store.execute("UPDATE TABLE.attachments SET content = substr(content, 2)").await;
    let error = store::read_attachments(&*other, &id("plain"), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the session store failed: the attachment {one} of session `plain` is damaged")
    );
}

async fn removed_session_is_gone(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    assert!(matches!(store.remove(&id("a")).await, Err(StoreError::Busy { .. })));
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1"]);
    drop(claim);
    store.remove(&id("a")).await.unwrap();
    assert!(matches!(store.read(&id("a")).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.list(9).await.unwrap(), []);
    let mut claim = store.create(new("a"), 2).await.unwrap();
    append(&mut claim, &texts(["new"])).await;
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["new"]);
    // Someone removes it without a claim.
    test_store.execute("DELETE FROM TABLE.entries; DELETE FROM TABLE.sessions").await;
    let error = claim.append(&texts(["2"]), SessionState::Idle, 3).await.unwrap_err();
    assert_eq!(error, StoreError::Conflict { id: id("a"), expected: 1 });
}

async fn programs_share_one_secret(test_store: &TestStore) {
    let store = test_store.open().await;
    let other = test_store.open().await;
    let (one, two) = tokio::join!(store.shared_secret("one"), other.shared_secret("two"));
    let secret = one.unwrap().unwrap();
    assert!(["one", "two"].contains(&secret.as_str()), "{secret}");
    assert_eq!(two.unwrap().as_deref(), Some(secret.as_str()));
    assert_eq!(test_store.open().await.shared_secret("three").await.unwrap(), Some(secret));
}

async fn list_starts_with_the_latest_change(test_store: &TestStore) {
    let store = test_store.open().await;
    for (name, now) in [("a", 10), ("b", 30), ("c", 20), ("d", 30)] {
        drop(store.create(new(name), now).await.unwrap());
    }
    let names = |limit| {
        let store = store.clone();
        async move { store.list(limit).await.unwrap().iter().map(|one| one.id.to_string()).collect::<Vec<_>>().concat() }
    };
    assert_eq!(names(9).await, "dbca");
    store.claim(&id("a")).await.unwrap().append(&texts(["1"]), SessionState::Idle, 40).await.unwrap();
    for (limit, expected) in [(0, ""), (1, "a"), (2, "ad"), (3, "adb"), (usize::MAX, "adbc")] {
        assert_eq!(names(limit).await, expected);
    }
}

async fn sessions_are_found_by_unambiguous_prefix(test_store: &TestStore) {
    let store = test_store.open().await;
    for (now, name) in
        (0..).zip(["20261115-1", "20261115-2", "20261115-22", "a", "ab", "abc", "abcd", "abcde", "abcdef"])
    {
        drop(store.create(new(name), now).await.unwrap());
    }
    for (text, expected) in [
        ("latest", Ok("abcdef")),
        (" 20261115-1 ", Ok("20261115-1")),
        ("20261115-2", Ok("20261115-2")),
        ("abcdef", Ok("abcdef")),
        ("a", Ok("a")),
        (
            "2",
            Err((
                "several session ids start with `2`",
                Some("write more of the id; matches include `20261115-1`, `20261115-2`, `20261115-22`"),
            )),
        ),
        ("b", Err(("there is no session `b`", None))),
        ("", Err(("`` is not a session id", None))),
        ("%", Err(("there is no session `%`", None))),
        ("A", Err(("there is no session `A`", None))),
        ("' OR ''='", Err(("there is no session `' OR ''='`", None))),
    ] {
        match (store::find(&*store, text).await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.as_str(), expected),
            (Err(error), Err((message, hint))) => {
                assert_eq!(error.to_string(), message);
                assert!(hint.is_none() || error.hint().as_deref() == hint, "{:?}", error.hint());
            }
            (found, expected) => panic!("{text}: found {found:?}, expected {expected:?}"),
        }
    }
}

async fn any_text_round_trips(test_store: &TestStore) {
    let store = test_store.open().await;
    let title = format!("a\0b\n\u{7}c  \u{1F600} ' ; DROP TABLE sessions -- {}", "é".repeat(500));
    let mut claim = store.create(NewSession::new(id("a"), "gre\0eter", &title), 1).await.unwrap();
    let entries = texts([
        "",
        " {\"b\":1, \"a\":  1.0e5, \"a\":2}\t",
        r#"{"nul":"\u0000","lone":"\ud800"}"#,
        "日本語 \u{1F600} \u{FEFF}\u{2028}\r\t\u{1}",
        "'; DROP TABLE entries; --",
        "\\x00 {a,b} NULL",
        &"long é ".repeat(1_500_000),
        "null",
    ]);
    append(&mut claim, &entries).await;
    let stored = store.read(&id("a")).await.unwrap();
    assert!(stored.entries == entries, "the entries changed");
    assert!(
        stored.summary.title.starts_with("a b c \u{1F600} ' ; DROP TABLE sessions -- éé"),
        "{}",
        stored.summary.title
    );
    assert_eq!(stored.summary.title.chars().count(), 200);
    assert_eq!(stored.summary.agent, "gre eter");
}

async fn long_log_is_read_completely(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    let entries: Vec<_> = (0..100_000).map(|number| format!("{{\"number\":{number}}}")).collect();
    append(&mut claim, &entries).await;
    assert!(store.read(&id("a")).await.unwrap().entries == entries);
}

async fn another_writer_is_detected(test_store: &TestStore) {
    let store = test_store.open().await;
    for (name, state) in [("a", SessionState::Idle), ("b", SessionState::Idle), ("c", SessionState::Running)] {
        let mut claim = store.create(new(name), 1).await.unwrap();
        claim.append(&texts(["1"]), state, 1).await.unwrap();
        match name {
            "b" => test_store.execute("UPDATE TABLE.sessions SET entries = 2 WHERE id = 'b'").await,
            name => test_store.insert_entry(name, 1, "theirs").await,
        }
        let error = claim.append(&texts(["2"]), state, 3).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("session `{name}` was changed by another writer: entry 1 was expected to be the next")
        );
        let hint = format!("another program continued it; `patter sessions show {name}` shows what it did");
        assert_eq!(error.hint().unwrap(), hint);
    }
}

async fn damaged_log_is_reported(test_store: &TestStore) {
    let store = test_store.open().await;
    for (name, expected) in [
        ("a", "the log of session `a` is damaged: entry 1 is missing"),
        ("b", "the log of session `b` is damaged: entry 2 is missing"),
        ("c", "the record of session `c` is damaged"),
    ] {
        let mut claim = store.create(new(name), 1).await.unwrap();
        for entry in ["1", "2", "3"] {
            append(&mut claim, &texts([entry])).await;
        }
        match name {
            "a" => test_store.remove_entry(name, 1).await,
            "b" => test_store.remove_entry(name, 2).await,
            _ => test_store.execute("UPDATE TABLE.sessions SET state = 'odd' WHERE id = 'c'").await,
        }
        let error = store.read(&id(name)).await.unwrap_err();
        assert_eq!(error.to_string(), format!("the session store failed: {expected}"));
    }
}

async fn pages_have_every_session_once(test_store: &TestStore) {
    const SESSIONS: usize = 7;
    let store = test_store.open().await;
    for number in 0..SESSIONS {
        // Some have changed at the same time.
        let mut claim = store.create(new(&format!("s{number}")), 1).await.unwrap();
        let state = if number == 3 { SessionState::Idle } else { SessionState::Waiting };
        claim.append(&[], state, 10 + number as u64 / 3).await.unwrap();
    }
    for limit in 1..=SESSIONS {
        let mut found = Vec::new();
        loop {
            let page = store.list_page(Some(SessionState::Waiting), found.last(), limit).await.unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        assert_eq!(found, store.list_in_state(Some(SessionState::Waiting), 100).await.unwrap());
        assert_eq!(found.len(), SESSIONS - 1);
    }
}
