//! Stores compared with a simple model.

use super::{TestStore, id, new};
use patter::store::{self, Claim, SessionState, Store, StoreError};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An operation. There are few names, so that operations affect one another.
#[derive(Debug, Clone)]
enum Operation {
    Create(&'static str),
    Claim(&'static str),
    Release(&'static str),
    Append(&'static str, Vec<String>, SessionState),
    Remove(&'static str),
    Read(&'static str),
    List(usize),
    Find(&'static str),
    /// Releases all claims and reopens the store.
    Reopen,
}

#[derive(Debug, Default)]
struct Model {
    sessions: BTreeMap<&'static str, Session>,
}

#[derive(Debug, Default, Clone)]
struct Session {
    entries: Vec<String>,
    is_running: bool,
    changed_ms: u64,
    is_claimed: bool,
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = || prop::sample::select(vec!["a", "ab", "b"]);
    let entries = prop::collection::vec(any::<String>().prop_map(|text| text.replace(['\0', '\n'], "")), 0..4);
    let state = prop::sample::select(vec![SessionState::Idle, SessionState::Running]);
    prop_oneof![
        4 => name().prop_map(Operation::Create),
        4 => name().prop_map(Operation::Claim),
        4 => name().prop_map(Operation::Release),
        8 => (name(), entries, state).prop_map(|(name, entries, state)| Operation::Append(name, entries, state)),
        2 => name().prop_map(Operation::Remove),
        2 => name().prop_map(Operation::Read),
        2 => (0_usize..4).prop_map(Operation::List),
        2 => prop::sample::select(vec!["latest", "a", "ab", "b", "c", ""]).prop_map(Operation::Find),
        1 => Just(Operation::Reopen),
    ]
}

/// Reduces errors to what the model knows of them.
fn simplify<T>(result: Result<T, StoreError>) -> Result<T, &'static str> {
    result.map_err(|error| match error {
        StoreError::NotFound { .. } | StoreError::Id(_) => "not found",
        StoreError::Empty => "empty",
        StoreError::Ambiguous { .. } => "ambiguous",
        StoreError::Exists { .. } => "exists",
        StoreError::Busy { .. } => "busy",
        other => panic!("{other}"),
    })
}

impl Model {
    fn create(&mut self, name: &'static str, now_ms: u64) -> Result<(), &'static str> {
        if self.sessions.contains_key(name) {
            return Err("exists");
        }
        self.sessions.insert(name, Session { changed_ms: now_ms, is_claimed: true, ..Session::default() });
        Ok(())
    }

    fn claim(&mut self, name: &str) -> Result<(), &'static str> {
        match self.sessions.get_mut(name) {
            None => Err("not found"),
            Some(session) if session.is_claimed => Err("busy"),
            Some(session) => {
                session.is_claimed = true;
                Ok(())
            }
        }
    }

    fn remove(&mut self, name: &str) -> Result<(), &'static str> {
        match self.sessions.get(name) {
            None => Err("not found"),
            Some(session) if session.is_claimed => Err("busy"),
            Some(_) => {
                self.sessions.remove(name);
                Ok(())
            }
        }
    }

    fn list(&self, limit: usize) -> Vec<String> {
        let mut all: Vec<_> = self.sessions.iter().map(|(name, session)| (session.changed_ms, *name)).collect();
        all.sort();
        all.iter().rev().take(limit).map(|(_, name)| (*name).to_owned()).collect()
    }

    fn find(&self, text: &str) -> Result<String, &'static str> {
        let matches: Vec<_> = self.sessions.keys().filter(|name| !text.is_empty() && name.starts_with(text)).collect();
        match (text, matches.as_slice()) {
            ("latest", _) => self.list(1).pop().ok_or("empty"),
            (_, []) => Err("not found"),
            (_, [one]) => Ok((**one).to_owned()),
            _ if self.sessions.contains_key(text) => Ok(text.to_owned()),
            _ => Err("ambiguous"),
        }
    }
}

async fn play(test_store: &TestStore, operations: Vec<Operation>) {
    let mut store = test_store.open().await;
    let mut model = Model::default();
    let mut claims: BTreeMap<&str, Box<dyn Claim>> = BTreeMap::new();
    for (number, operation) in (1..).zip(operations) {
        let now_ms = number * 400;
        match operation {
            Operation::Create(name) => {
                let claim = simplify(store.create(new(name), now_ms).await);
                assert_eq!(claim.as_ref().map(|_| ()).map_err(|why| *why), model.create(name, now_ms));
                claims.extend(claim.ok().map(|claim| (name, claim)));
            }
            Operation::Claim(name) => {
                let claim = simplify(store.claim(&id(name)).await);
                assert_eq!(claim.as_ref().map(|_| ()).map_err(|why| *why), model.claim(name));
                claims.extend(claim.ok().map(|claim| (name, claim)));
            }
            Operation::Release(name) => {
                claims.remove(name);
                model.sessions.entry(name).and_modify(|session| session.is_claimed = false);
            }
            Operation::Append(name, entries, state) => {
                if let Some(claim) = claims.get_mut(name) {
                    claim.append(&entries, state, now_ms).await.unwrap();
                    let session = model.sessions.get_mut(name).unwrap();
                    session.entries.extend(entries);
                    let is_running = state == SessionState::Running;
                    // While a run is under way, the time has a resolution of a second.
                    if !(session.is_running && is_running) || now_ms >= session.changed_ms + 1000 {
                        session.changed_ms = now_ms;
                    }
                    session.is_running = is_running;
                    assert_eq!(claim.entries(), session.entries.len() as u64);
                }
            }
            Operation::Remove(name) => assert_eq!(simplify(store.remove(&id(name)).await), model.remove(name)),
            Operation::Read(name) => assert_same(&store, name, model.sessions.get(name)).await,
            Operation::List(limit) => {
                let listed = store.list(limit).await.unwrap();
                assert_eq!(listed.iter().map(|one| one.id.to_string()).collect::<Vec<_>>(), model.list(limit));
            }
            Operation::Find(text) => {
                let found = simplify(store::find(&*store, text).await).map(|id| id.to_string());
                assert_eq!(found, model.find(text));
            }
            Operation::Reopen => {
                claims.clear();
                model.sessions.values_mut().for_each(|session| session.is_claimed = false);
                store = test_store.open().await;
            }
        }
    }
    for (name, session) in &model.sessions {
        assert_same(&store, name, Some(session)).await;
    }
}

async fn assert_same(store: &Arc<dyn Store>, name: &str, session: Option<&Session>) {
    let stored = simplify(store.read(&id(name)).await);
    let Some(session) = session else {
        assert_eq!(stored, Err("not found"));
        return;
    };
    let stored = stored.unwrap();
    let is_running = stored.summary.state == SessionState::Running;
    assert_eq!((&stored.entries, is_running), (&session.entries, session.is_running));
    assert_eq!((stored.summary.changed_ms, stored.summary.entries), (session.changed_ms, stored.entries.len() as u64));
}

/// Plays random operations. Does nothing if there is no such database.
fn check(cases: u32, length: usize, test_store: impl AsyncFn() -> Option<TestStore>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if runtime.block_on(test_store()).is_none() {
        return;
    }
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let sequences = prop::collection::vec(operation(), 1..length);
    let played = runner.run(&sequences, |operations| {
        runtime.block_on(async { play(&test_store().await.unwrap(), operations).await });
        Ok(())
    });
    played.unwrap();
}

#[test]
fn sqlite_behaves_like_the_model() {
    check(48, 40, async || Some(TestStore::sqlite()));
}

#[test]
fn postgres_behaves_like_the_model() {
    check(6, 30, TestStore::postgres);
}
