//! The queue of work.

use super::cases::suite;
use super::{TestStore, id};
use patter::model::ProviderLimit;
use patter::store::{
    NewWork, Settlement, Store, TakeRequest, Work, WorkChange, WorkFilter, WorkQueue, WorkState, WorkerInfo,
    WorkerReport,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

suite! {
    work_is_added_once,
    work_of_a_session_is_done_in_order,
    tenants_share_the_workers,
    limits_apply_to_all_workers_together,
    work_belongs_to_its_worker,
    waiting_work_is_taken_when_due_or_answered,
    work_of_a_worker_that_is_gone_is_put_back_and_parked_in_the_end,
    work_that_is_handed_over_has_not_failed,
    many_workers_take_everything_once,
    workers_are_woken,
    limits_of_providers_are_shared,
    work_for_later_is_taken_when_it_is_due,
}

const HOUR: Duration = Duration::from_secs(3600);

fn new(key: &str, session: &str, tenant: &str) -> NewWork {
    NewWork {
        key: key.to_owned(),
        session: id(session),
        agent: "greeter".to_owned(),
        tenant: tenant.to_owned(),
        task: r#"{"message":"Hello"}"#.to_owned(),
        worker: None,
        due_ms: None,
    }
}

fn request(worker: &str, limit: usize) -> TakeRequest {
    let agents = BTreeMap::from([("greeter".to_owned(), None)]);
    TakeRequest { worker: worker.to_owned(), agents, limit, ..TakeRequest::default() }
}

fn report(worker: &str, timeout: Duration) -> WorkerReport {
    let about = WorkerInfo { name: format!("process of {worker}"), ..WorkerInfo::new(4) };
    WorkerReport { worker: worker.to_owned(), about, timeout, max_attempts: 3 }
}

fn queue(store: &Arc<dyn Store>) -> &dyn WorkQueue {
    store.queue().unwrap()
}

fn keys(work: &[Work]) -> Vec<&str> {
    work.iter().map(|work| work.key.as_str()).collect()
}

async fn list(queue: &dyn WorkQueue) -> Vec<Work> {
    queue.list(&WorkFilter::default(), 100).await.unwrap()
}

async fn work_is_added_once(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    let id_of_a = queue.add(new("a", "s", "ada")).await.unwrap().unwrap();
    assert_eq!(queue.add(new("a", "t", "bob")).await.unwrap(), None);
    let work = list(queue).await;
    assert_eq!((keys(&work), work[0].id), (vec!["a"], id_of_a));
    assert_eq!((work[0].session.as_str(), work[0].tenant.as_str(), work[0].attempts), ("s", "ada", 0));
    assert_eq!((work[0].state, work[0].task.as_str()), (WorkState::Queued, r#"{"message":"Hello"}"#));
    let other = request("w", 9);
    let agents = BTreeMap::from([("another".to_owned(), None)]);
    assert!(queue.take(TakeRequest { agents, ..other }).await.unwrap().is_empty());
    // Work that is performed at once belongs to its worker from the start.
    let of_b = queue.add(NewWork { worker: Some("w".to_owned()), ..new("b", "u", "ada") }).await.unwrap().unwrap();
    let filter = WorkFilter {
        state: Some(WorkState::Running),
        session: Some(id("u")),
        worker: Some("w".to_owned()),
        ..WorkFilter::default()
    };
    let work = queue.list(&filter, 9).await.unwrap();
    assert_eq!((keys(&work), work[0].attempts, work[0].worker.as_deref()), (vec!["b"], 1, Some("w")));
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.queued, counts.running, counts.waiting, counts.parked), (1, 1, 0, 0));
    let filter = WorkFilter { key: Some("a".to_owned()), ..WorkFilter::default() };
    assert_eq!(queue.list(&filter, 9).await.unwrap().len(), 1);
    assert!(queue.cancelled("w").await.unwrap().is_empty());
    assert!(queue.change(of_b, WorkChange::Cancel).await.unwrap());
    assert_eq!(queue.cancelled("w").await.unwrap(), [of_b]);
    assert!(!queue.change(id_of_a, WorkChange::Cancel).await.unwrap());
}

async fn work_of_a_session_is_done_in_order(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    for (key, session) in [("a", "s"), ("b", "s"), ("c", "t")] {
        queue.add(new(key, session, "ada")).await.unwrap();
    }
    let taken = queue.take(request("w", 9)).await.unwrap();
    assert_eq!(keys(&taken), ["a", "c"]);
    assert!(queue.take(request("w", 9)).await.unwrap().is_empty());
    assert!(queue.settle(taken[0].id, "w", Settlement::Again(HOUR, "no answer".to_owned())).await.unwrap());
    // What failed comes first, even if it is not due.
    assert!(queue.take(request("w", 9)).await.unwrap().is_empty());
    assert_eq!(list(queue).await[2].reason.as_deref(), Some("no answer"));
    assert!(queue.change(taken[0].id, WorkChange::Retry).await.unwrap());
    let taken = queue.take(request("w", 9)).await.unwrap();
    assert_eq!((keys(&taken), taken[0].attempts), (vec!["a"], 1));
    assert!(queue.settle(taken[0].id, "w", Settlement::Done).await.unwrap());
    assert_eq!(keys(&queue.take(request("w", 9)).await.unwrap()), ["b"]);
}

async fn tenants_share_the_workers(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    for number in 0..6 {
        queue.add(new(&format!("a{number}"), &format!("a{number}"), "ada")).await.unwrap();
    }
    queue.add(new("b", "b", "bob")).await.unwrap();
    queue.add(new("c", "c", "cleo")).await.unwrap();
    let mut first = keys(&queue.take(request("w", 3)).await.unwrap()).join(" ");
    assert!(
        ["a0 b c", "a0 c b"].contains(&{
            first = sorted(&first);
            first.as_str()
        }),
        "{first}"
    );
    assert_eq!(keys(&queue.take(request("w", 2)).await.unwrap()), ["a1", "a2"]);
}

fn sorted(text: &str) -> String {
    let mut words: Vec<_> = text.split(' ').collect();
    words.sort_unstable();
    words.join(" ")
}

async fn limits_apply_to_all_workers_together(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    for number in 0..6 {
        let tenant = if number < 4 { "ada" } else { "bob" };
        queue.add(new(&format!("{number}"), &format!("s{number}"), tenant)).await.unwrap();
    }
    let agents = BTreeMap::from([("greeter".to_owned(), Some(4))]);
    let tenants = BTreeMap::from([("ada".to_owned(), 1)]);
    let limited = |worker: &str| TakeRequest { agents: agents.clone(), tenants: tenants.clone(), ..request(worker, 9) };
    let first = queue.take(limited("v")).await.unwrap();
    let second = queue.take(limited("w")).await.unwrap();
    let ada = first.iter().chain(&second).filter(|work| work.tenant == "ada").count();
    assert_eq!(ada, 1);
    assert!(first.len() + second.len() <= 4);
    let done = first.iter().find(|work| work.tenant == "ada").unwrap();
    assert!(queue.settle(done.id, "v", Settlement::Done).await.unwrap());
    let third = queue.take(limited("w")).await.unwrap();
    assert_eq!(third.iter().filter(|work| work.tenant == "ada").count(), 1);
}

async fn work_belongs_to_its_worker(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    queue.add(new("a", "s", "ada")).await.unwrap();
    let taken = queue.take(request("v", 1)).await.unwrap();
    assert!(!queue.settle(taken[0].id, "w", Settlement::Done).await.unwrap());
    assert!(!queue.change(taken[0].id, WorkChange::Remove).await.unwrap());
    assert!(queue.settle(taken[0].id, "v", Settlement::Parked("it is broken".to_owned())).await.unwrap());
    assert!(!queue.settle(taken[0].id, "v", Settlement::Done).await.unwrap());
    let work = list(queue).await;
    assert_eq!((work[0].state, work[0].reason.as_deref()), (WorkState::Parked, Some("it is broken")));
    assert!(queue.take(request("v", 1)).await.unwrap().is_empty());
    assert!(queue.change(taken[0].id, WorkChange::Remove).await.unwrap());
    assert!(list(queue).await.is_empty());
}

async fn waiting_work_is_taken_when_due_or_answered(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    queue.add(new("a", "s", "ada")).await.unwrap();
    for _ in 0..5 {
        let due = TakeRequest { session: Some(id("s")), ..request("w", 1) };
        let taken = queue.take(due).await.unwrap();
        // Waiting is not a failure, however often it happens.
        assert_eq!((taken.len(), taken[0].attempts), (1, 1));
        assert!(queue.settle(taken[0].id, "w", Settlement::Waiting(HOUR)).await.unwrap());
        assert!(queue.take(request("w", 1)).await.unwrap().is_empty());
    }
    let other = TakeRequest { session: Some(id("t")), ..request("w", 1) };
    assert!(queue.take(other).await.unwrap().is_empty());
    let taken = queue.take(TakeRequest { session: Some(id("s")), ..request("w", 1) }).await.unwrap();
    assert!(queue.settle(taken[0].id, "w", Settlement::Waiting(Duration::ZERO)).await.unwrap());
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(queue.take(request("w", 1)).await.unwrap().len(), 1);
}

async fn work_of_a_worker_that_is_gone_is_put_back_and_parked_in_the_end(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    queue.add(new("a", "s", "ada")).await.unwrap();
    for attempt in 1..=3 {
        let worker = format!("v{attempt}");
        let theirs = test_store.open().await;
        let theirs = theirs.queue().unwrap();
        theirs.report(report(&worker, HOUR)).await.unwrap();
        let taken = theirs.take(request(&worker, 1)).await.unwrap();
        assert_eq!((taken.len(), taken[0].attempts), (1, attempt));
        queue.report(report("w", HOUR)).await.unwrap();
        assert_eq!(list(queue).await[0].state, WorkState::Running);
        tokio::time::sleep(Duration::from_millis(30)).await;
        queue.report(report("w", Duration::from_millis(20))).await.unwrap();
        // Their connections may have been ended.
        let settled = theirs.settle(taken[0].id, &worker, Settlement::Done).await;
        assert!(!settled.unwrap_or_default());
        let names: Vec<_> = queue.workers().await.unwrap().into_iter().map(|worker| worker.about.name).collect();
        assert_eq!(names, ["process of w"]);
    }
    let work = list(queue).await;
    assert_eq!(work[0].state, WorkState::Parked);
    assert_eq!(work[0].reason.as_deref(), Some("its worker stopped: v3"));
}

async fn work_that_is_handed_over_has_not_failed(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    queue.add(new("a", "s", "ada")).await.unwrap();
    queue.report(report("v", HOUR)).await.unwrap();
    for _ in 0..5 {
        let taken = queue.take(request("v", 1)).await.unwrap();
        assert!(queue.settle(taken[0].id, "v", Settlement::HandedOver).await.unwrap());
        let taken = queue.take(request("v", 1)).await.unwrap();
        assert_eq!(taken[0].attempts, 1);
        queue.leave("v").await.unwrap();
        assert!(!queue.settle(taken[0].id, "v", Settlement::Done).await.unwrap());
    }
    assert!(queue.workers().await.unwrap().is_empty());
    assert_eq!(list(queue).await[0].attempts, 0);
}

async fn many_workers_take_everything_once(test_store: &TestStore) {
    const WORK: usize = 60;
    const MOST: u32 = 3;
    let store = test_store.open().await;
    for number in 0..WORK {
        let tenant = if number % 3 == 0 { "ada" } else { "bob" };
        queue(&store).add(new(&format!("{number}"), &format!("s{number}"), tenant)).await.unwrap();
    }
    let workers = (0..3).map(|number| {
        let location = test_store.location.clone();
        tokio::spawn(async move {
            let store = patter::store::open(&location).await.unwrap();
            let queue = store.queue().unwrap();
            let worker = format!("w{number}");
            let agents = BTreeMap::from([("greeter".to_owned(), Some(MOST))]);
            let mut done = Vec::new();
            loop {
                let taken = queue.take(TakeRequest { agents: agents.clone(), ..request(&worker, 4) }).await.unwrap();
                let running = WorkFilter { state: Some(WorkState::Running), ..WorkFilter::default() };
                assert!(queue.list(&running, 100).await.unwrap().len() <= MOST as usize);
                for work in &taken {
                    assert!(queue.settle(work.id, &worker, Settlement::Done).await.unwrap());
                    done.push(work.key.clone());
                }
                if taken.is_empty() && queue.list(&WorkFilter::default(), 1).await.unwrap().is_empty() {
                    return done;
                }
            }
        })
    });
    let mut done = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        done.extend(worker.await.unwrap());
    }
    done.sort();
    done.dedup();
    assert_eq!(done.len(), WORK);
}

async fn workers_are_woken(test_store: &TestStore) {
    let store = test_store.open().await;
    let other = test_store.open().await;
    // The first one connects.
    let _ = tokio::time::timeout(Duration::from_millis(500), queue(&store).wait()).await;
    let waiting = async { tokio::time::timeout(Duration::from_secs(20), queue(&store).wait()).await };
    let adding = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        queue(&other).add(new("a", "s", "ada")).await.unwrap().unwrap()
    };
    let (woken, _) = tokio::join!(waiting, adding);
    woken.expect("nobody was woken");
}

async fn limits_of_providers_are_shared(test_store: &TestStore) {
    let store = test_store.open().await;
    let other = test_store.open().await;
    let limit = |provider: &str, ends_in: Duration, reason: &str| ProviderLimit {
        provider: provider.to_owned(),
        ends_in,
        reason: reason.to_owned(),
    };
    assert_eq!(queue(&store).share_limits(&[]).await.unwrap(), []);
    queue(&store).share_limits(&[limit("a", HOUR, "slow down"), limit("b", HOUR, "used up")]).await.unwrap();
    // The longest time counts, and what has ended is left out.
    let met =
        [limit("a", Duration::from_secs(1), "shorter"), limit("b", 2 * HOUR, "longer"), limit("c", Duration::ZERO, "")];
    queue(&other).share_limits(&met).await.unwrap();
    let known = queue(&store).share_limits(&[]).await.unwrap();
    let shown: Vec<_> = known.iter().map(|limit| (limit.provider.as_str(), limit.reason.as_str())).collect();
    assert_eq!(shown, [("a", "slow down"), ("b", "longer")]);
    assert!(known[0].ends_in <= HOUR && known[0].ends_in > HOUR / 2, "{known:?}");
    assert!(known[1].ends_in > HOUR, "{known:?}");
}

async fn work_for_later_is_taken_when_it_is_due(test_store: &TestStore) {
    let store = test_store.open().await;
    let queue = queue(&store);
    let now = patter::drive::now_ms();
    let later = |key: &str, due_ms: u64| NewWork { due_ms: Some(due_ms), ..new(key, key, "ada") };
    for (key, due_ms) in [("tick-1", now - 10_000), ("tick-2", now + 3_600_000), ("tock", now + 1_500)] {
        queue.add(later(key, due_ms)).await.unwrap().unwrap();
    }
    assert_eq!(queue.add(later("tick-2", now)).await.unwrap(), None);
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.queued, counts.scheduled), (1, 2));
    assert!(counts.oldest_ms >= 10_000, "{counts:?}");
    let filter = WorkFilter { key_prefix: Some("tick-".to_owned()), ..WorkFilter::default() };
    let ticks = queue.list(&filter, 9).await.unwrap();
    assert_eq!((keys(&ticks), ticks[1].due_ms), (vec!["tick-1", "tick-2"], now + 3_600_000));
    assert_eq!(keys(&queue.take(request("w", 9)).await.unwrap()), ["tick-1"]);
    let taken = async {
        loop {
            let taken = queue.take(request("w", 9)).await.unwrap();
            if let [work] = taken.as_slice() {
                return work.key.clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), taken).await.unwrap(), "tock");
    // Work that is not due can be removed.
    assert!(queue.change(ticks[1].id, WorkChange::Remove).await.unwrap());
    assert_eq!(queue.counts().await.unwrap().scheduled, 0);
}
