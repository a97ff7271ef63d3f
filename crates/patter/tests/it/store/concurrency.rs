//! Tests for every store with concurrent users.

use super::{TestStore, append, id, new, texts};
use patter::store::{self, SessionState, StoreError};
use std::sync::Arc;

pub(super) async fn one_of_many_claims_wins(test_store: &TestStore) {
    let stores = [test_store.open().await, test_store.open().await];
    drop(stores[0].create(new("a"), 1).await.unwrap());
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move { store.claim(&id("a")).await })
        })
        .collect();
    let mut won = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(claim) => won.push(claim),
            Err(error) => assert!(matches!(error, StoreError::Busy { .. }), "{error}"),
        }
    }
    assert_eq!(won.len(), 1);
}

pub(super) async fn many_sessions_grow_concurrently(test_store: &TestStore) {
    let store = test_store.open().await;
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut claim = store.create(new(&format!("s{number}")), 1).await.unwrap();
                for entry in 0..10 {
                    append(&mut claim, &[format!("{number} {entry}"), "more".to_owned()]).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for number in 0..20 {
        let expected: Vec<_> = (0..10).flat_map(|entry| [format!("{number} {entry}"), "more".to_owned()]).collect();
        assert_eq!(store.read(&id(&format!("s{number}"))).await.unwrap().entries, expected);
    }
}

pub(super) async fn many_open_a_new_store_concurrently(test_store: &TestStore) {
    let location = Arc::new(test_store.location.clone());
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let location = location.clone();
            tokio::spawn(async move { store::open(&location).await.map(|_| ()) })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

pub(super) async fn dropped_append_is_atomic(test_store: &TestStore) {
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    let batch = texts(["1", "2", "3"]);
    let mut batches = 0;
    for polls in 0..40 {
        let mut future = claim.append(&batch, SessionState::Idle, 1);
        let mut ended = false;
        for _ in 0..polls {
            if futures_util::poll!(&mut future).is_ready() {
                ended = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(future);
        // The next append knows whether the dropped one took effect.
        match claim.append(&batch, SessionState::Idle, 1).await {
            Ok(()) => batches += if ended { 2 } else { 1 },
            Err(StoreError::Conflict { .. }) => {
                drop(claim);
                claim = store.claim(&id("a")).await.unwrap();
                batches += 1;
            }
            Err(error) => panic!("{error}"),
        }
        let expected = vec![batch.clone(); batches].concat();
        assert_eq!(store.read(&id("a")).await.unwrap().entries, expected, "after {polls} polls");
    }
}

pub(super) async fn reads_are_consistent_while_others_write(test_store: &TestStore) {
    let store = test_store.open().await;
    let other = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    let writer = tokio::spawn(async move {
        for number in 0..100 {
            append(&mut claim, &[format!("{number}"), format!("{number}")]).await;
        }
    });
    let mut seen = 0;
    while seen < 200 {
        let stored = other.read(&id("a")).await.unwrap();
        assert_eq!(stored.entries.len() % 2, 0);
        assert_eq!(stored.summary.entries, stored.entries.len() as u64);
        assert!(stored.entries.len() >= seen);
        seen = stored.entries.len();
        assert!(seen == 200 || !writer.is_finished() || other.read(&id("a")).await.unwrap().entries.len() == 200);
    }
    writer.await.unwrap();
}
