//! What a worker does with sessions, without Restate: everything may be repeated.

use crate::world::World;
use patter::live::LiveProject;
use patter::project::Environment;
use patter::session::Log;
use patter::store::{SessionId, Store, StoreLocation};
use patter::tool::CancellationToken;
use patter_restate::{Failure, Progress, RunState, Worker};
use serde_json::{Value as Json, json};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// A worker with a store of its own.
struct Bench {
    folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    worker: Worker,
    world: Arc<World>,
}

impl Bench {
    async fn new(agent: &str) -> Self {
        let (world, port) = World::start();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("patter.toml"), crate::shop::settings(port)).unwrap();
        fs::write(folder.path().join("shop.gram"), crate::shop::agents(port)).unwrap();
        let path = folder.path().join("s.db").display().to_string();
        let store = patter::store::open(&StoreLocation::parse(&path).unwrap()).await.unwrap();
        let environment = Environment::from_variables([("OPENAI_API_KEY", "k")]);
        let project = LiveProject::open(folder.path()).with_environment(environment).read().await.unwrap();
        let worker = Worker::new(Arc::new(project), Arc::clone(&store), Duration::from_secs(60));
        let bench = Self { folder, store, worker, world };
        bench.start("a", agent, "k1").await.unwrap();
        bench
    }

    async fn start(&self, session: &str, agent: &str, key: &str) -> Result<Progress, Failure> {
        let request = json!({"agent": agent, "message": session});
        self.worker.start(&SessionId::parse(session).unwrap(), &request, key).await
    }

    async fn step(&self, entries: u64) -> Progress {
        let id = SessionId::parse("a").unwrap();
        self.worker.step(&id, entries, &CancellationToken::new()).await.unwrap()
    }

    async fn log(&self) -> Log {
        Log::read(self.store.read(&SessionId::parse("a").unwrap()).await.unwrap().entries).unwrap()
    }
}

#[tokio::test]
async fn whatever_is_repeated_finds_out_from_the_log() {
    let bench = Bench::new("clerk").await;
    assert!(bench.folder.path().exists());
    let mut progress = bench.start("a", "clerk", "k1").await.unwrap();
    assert_eq!((progress.state, bench.log().await.run_count()), (RunState::Running, 1), "it is the same message");
    assert!(bench.world.order("a").results.is_empty(), "the first step is still to be taken");
    let other = bench.start("a", "clerk", "k2").await.unwrap_err();
    assert_eq!(other, Failure::conflict("the last run has not ended"));
    let mut steps = 0;
    while progress.state == RunState::Running {
        let next = bench.step(progress.entries).await;
        assert!(next.entries > progress.entries);
        // Whoever takes the same step again learns that it was taken.
        assert_eq!(bench.step(progress.entries).await, next);
        progress = next;
        steps += 1;
    }
    assert_eq!((steps, progress.state), (5, RunState::Ended), "three replies, and calls in between");
    let order = bench.world.order("a");
    assert_eq!(order.results, [0, 2, 3]);
    assert_eq!((order.calls("pay"), order.calls("look"), order.calls("ship")), (1, 1, 1));
    assert_eq!(bench.worker.reply(&SessionId::parse("a").unwrap()).await.unwrap()["text"], "3 of 3 a");
    assert_eq!(bench.start("a", "clerk", "k1").await.unwrap(), progress, "the message was answered");
    for (after, count) in [(0, progress.entries), (progress.entries, 0), (99, 0)] {
        let read = bench.worker.read(&SessionId::parse("a").unwrap(), after).await.unwrap();
        assert_eq!(
            (&read["next"], read["entries"].as_array().unwrap().len() as u64),
            (&json!(progress.entries), count)
        );
    }
}

#[tokio::test]
async fn answers_and_expiry_count_once() {
    let bench = Bench::new("careful").await;
    let id = SessionId::parse("a").unwrap();
    let mut progress = bench.worker.look(&id).await.unwrap();
    while progress.state == RunState::Running {
        progress = bench.step(progress.entries).await;
    }
    assert_eq!(progress.state, RunState::Waiting { expires_in_ms: Some(60_000) });
    assert_eq!(bench.step(progress.entries).await, progress, "there is nothing to do");
    // The session went on from an earlier number, so this is about a question that was answered.
    assert_eq!(bench.worker.expire(&id, progress.entries - 1).await.unwrap(), progress);
    let expired = bench.worker.expire(&id, progress.entries).await.unwrap();
    assert_eq!(expired.state, RunState::Running);
    assert_eq!(bench.worker.expire(&id, progress.entries).await.unwrap(), expired);
    let waiting = bench.worker.read(&id, 0).await.unwrap()["waiting"].clone();
    assert_eq!(waiting, Json::Array(Vec::new()));
    let late = json!({"call_id": "ship-a", "hash": "x", "decision": "approve"});
    let late = bench.worker.answer(&id, &late).await.unwrap_err();
    assert_eq!(late.to_string(), "no call `ship-a` waits in the session `a`");
    // A run is ended only for the request that started it.
    assert_eq!(bench.worker.abandon(&id, Some("k2")).await.unwrap()["status"], "waiting");
    assert!(bench.log().await.open_run().is_some());
    assert_eq!(bench.worker.abandon(&id, Some("k1")).await.unwrap()["status"], "cancelled");
    assert_eq!(bench.worker.abandon(&id, Some("k1")).await.unwrap()["status"], "cancelled");
    assert_eq!(bench.worker.look(&id).await.unwrap().state, RunState::Ended);
}
