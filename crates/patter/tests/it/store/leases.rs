//! Claims that are leases, through a pooler that assigns a connection per transaction.

use super::{TestStore, append, claim_error, id, new, texts};
use patter::live::LiveProject;
use patter::session::{Session, SessionError};
use patter::store::{self, Claim, SessionState, Store, StoreError, StoreLocation};
use patter::tool::{CancellationToken, Tool};
use sqlx::{Connection, PgConnection, Row};
use std::sync::Arc;
use std::time::Duration;

/// The time limit for waits that should be short.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Claims a session as soon as that is possible.
async fn take(store: &Arc<dyn Store>, name: &str) -> Box<dyn Claim> {
    let taken = async {
        loop {
            match store.claim(&id(name)).await {
                Ok(claim) => return claim,
                Err(StoreError::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, taken).await.unwrap()
}

async fn count(test_store: &TestStore, statement: &'static str) -> i64 {
    let mut connection = PgConnection::connect(test_store.direct.as_deref().unwrap()).await.unwrap();
    sqlx::raw_sql(statement).fetch_one(&mut connection).await.unwrap().try_get(0).unwrap()
}

/// Whoever was stopped for so long that its session was taken writes nothing, even if the log has not changed.
#[tokio::test]
async fn an_owner_that_wakes_too_late_writes_nothing() {
    let Some(test_store) = TestStore::pooled().await else { return };
    let store = test_store.open().await;
    let mut zombie = store.create(new("a"), 1).await.unwrap();
    append(&mut zombie, &texts(["1"])).await;
    // For the database, it did not renew its lease.
    test_store.execute("UPDATE TABLE.leases SET until_ms = 0").await;
    let other = test_store.open().await;
    let mut claim = other.claim(&id("a")).await.unwrap();
    assert!(!zombie.lost().unwrap().is_cancelled(), "it has not noticed yet");
    let error = zombie.append(&texts(["theirs"]), SessionState::Idle, 2).await.unwrap_err();
    assert!(matches!(&error, StoreError::Busy { holder: Some(holder), .. } if holder.contains("process")), "{error}");
    let content = Arc::from(b"theirs".as_slice());
    let error = zombie.attach("abc", content).await.unwrap_err();
    assert_eq!(error, StoreError::Conflict { id: id("a"), expected: 1 });
    assert_eq!(other.attachments(&id("a")).await.unwrap(), texts([]));
    append(&mut claim, &texts(["2"])).await;
    drop(claim);
    let mut claim = take(&other, "a").await;
    append(&mut claim, &texts(["3"])).await;
    drop(claim);
    let error = zombie.append(&texts(["theirs"]), SessionState::Idle, 2).await.unwrap_err();
    assert_eq!(error, StoreError::Conflict { id: id("a"), expected: 1 });
    assert_eq!(other.read(&id("a")).await.unwrap().entries, ["1", "2", "3"]);
}

/// Whoever waits for a session to be released does not prevent its owner from that.
#[tokio::test]
async fn a_session_can_be_released_while_others_wait_to_remove_it() {
    let Some(test_store) = TestStore::pooled().await else { return };
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        append(&mut claim, &texts(["1"])).await;
        drop(claim);
    };
    let a = id("a");
    let (removed, ()) = tokio::join!(store.remove(&a), release);
    removed.unwrap();
}

/// Nobody else claimed the session meanwhile, so its owner goes on.
#[tokio::test]
async fn a_lost_session_that_nobody_took_is_claimed_again() {
    let Some(test_store) = TestStore::pooled().await else { return };
    let store = store::open(&test_store.with_lease(1)).await.unwrap();
    let mut claim = store.create(new("a"), 1).await.unwrap();
    let lost = claim.lost().unwrap();
    test_store.execute("DELETE FROM TABLE.leases").await;
    tokio::time::timeout(TIMEOUT, lost.cancelled()).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    assert!(!claim.lost().unwrap().is_cancelled());
    let other = test_store.open().await;
    assert!(matches!(claim_error(other.claim(&id("a")).await), StoreError::Busy { .. }));
    assert!(matches!(other.remove(&id("a")).await, Err(StoreError::Busy { .. })));
}

/// A lease lasts as long as its process renews it, and its sessions are free a while after that.
#[tokio::test]
async fn leases_are_renewed_together_until_their_process_ends() {
    let Some(test_store) = TestStore::pooled().await else { return };
    let store = store::open(&test_store.with_lease(3)).await.unwrap();
    let mut claims = Vec::new();
    for name in ["a", "b", "c"] {
        claims.push(store.create(new(name), 1).await.unwrap());
    }
    let other = test_store.open().await;
    let until = "SELECT until_ms FROM patter.leases";
    let first = count(&test_store, until).await;
    // Twice the length of the lease, by the clock of the server.
    let renewed = async { while count(&test_store, until).await < first + 6000 {} };
    tokio::time::timeout(TIMEOUT, renewed).await.unwrap();
    for claim in &mut claims {
        assert!(!claim.lost().unwrap().is_cancelled());
        append(claim, &texts(["1"])).await;
        assert!(matches!(claim_error(other.claim(claim.id()).await), StoreError::Busy { .. }));
    }
    assert_eq!(count(&test_store, "SELECT count(DISTINCT owner) FROM patter.sessions").await, 1);
    // As if the process was killed: nothing is released.
    claims.into_iter().for_each(std::mem::forget);
    std::mem::forget(store);
    test_store
        .execute(
            "UPDATE TABLE.leases SET owner = 'killed' WHERE owner IN (SELECT owner FROM TABLE.sessions);
             UPDATE TABLE.sessions SET owner = 'killed'",
        )
        .await;
    for name in ["a", "b", "c"] {
        append(&mut take(&other, name).await, &texts(["2"])).await;
    }
}

/// A run stops when its claim cannot be renewed, before somebody else can have the session.
#[tokio::test]
async fn a_run_stops_before_its_lease_ends() {
    let Some(test_store) = TestStore::pooled().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gram");
    std::fs::write(&path, "[worker:Agent {instruction: 'Use `work`.', model: 'demo'} | work]").unwrap();
    let url = test_store.direct.clone().unwrap();
    let work = Tool::native("work", "Works", "()==>(::Text)", move |_, _| {
        let url = url.clone();
        async move {
            // From now on the lease cannot be renewed.
            let mut connection = PgConnection::connect(&url).await.unwrap();
            sqlx::raw_sql("ALTER TABLE patter.leases RENAME TO away").execute(&mut connection).await.unwrap();
            std::future::pending::<()>().await;
            Ok(serde_json::json!("done"))
        }
    });
    let project = LiveProject::open(&path).with_tools([work.unwrap()]).read().await.unwrap();
    let store = store::open(&test_store.with_lease(2)).await.unwrap();
    let mut session = Session::create(project.into(), store, id("a"));
    let never = CancellationToken::new();
    let said = session.say("Please work", &never);
    let error = tokio::time::timeout(TIMEOUT, said).await.unwrap().unwrap_err();
    assert!(matches!(&error, SessionError::Store(StoreError::Lost { id }) if id.as_str() == "a"), "{error}");
    let left = "SELECT until_ms - (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM patter.away";
    assert!(count(&test_store, left).await > 0, "others could have taken the session");
    test_store.execute("ALTER TABLE TABLE.away RENAME TO leases").await;
    drop(session);
    let mut claim = take(&test_store.open().await, "a").await;
    append(&mut claim, &texts(["more"])).await;
}

#[tokio::test]
async fn hundreds_of_sessions_need_few_connections() {
    const SESSIONS: usize = 300;
    let Some(test_store) = TestStore::pooled().await else { return };
    let store = test_store.open().await;
    let creating = (0..SESSIONS).map(|number| store.create(new(&format!("s{number}")), 1));
    let created = futures_util::future::join_all(creating).await;
    let mut claims: Vec<_> = created.into_iter().map(Result::unwrap).collect();
    let entries = texts(["1", "2"]);
    for _ in 0..2 {
        let appending = claims.iter_mut().map(|claim| append(claim, &entries));
        futures_util::future::join_all(appending).await;
        // A batch of appends whose connection was lost is repeated.
        super::postgres::terminate_connections(test_store.direct.as_deref().unwrap()).await;
    }
    let behind = "SELECT count(*) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    assert!(count(&test_store, behind).await <= 4);
    for claim in &claims {
        assert_eq!(store.read(claim.id()).await.unwrap().entries, ["1", "2", "1", "2"]);
    }
    drop(claims);
    // Each is free at once.
    let waited = tokio::task::spawn_blocking(|| store::wait_for_releases(TIMEOUT)).await.unwrap();
    assert!(waited);
    assert_eq!(count(&test_store, "SELECT count(*) FROM patter.sessions WHERE owner IS NOT NULL").await, 0);
}

/// Locks and leases do not exclude each other, so the database says which are used.
#[tokio::test]
async fn both_ways_of_claiming_are_not_mixed() {
    let Some(test_store) = TestStore::pooled().await else { return };
    let direct = StoreLocation::parse(test_store.direct.as_deref().unwrap()).unwrap();
    let store = test_store.open().await;
    let claim = store.create(new("a"), 1).await.unwrap();
    let error = store::open(&direct).await.err().unwrap();
    assert_eq!(error.to_string(), format!("the sessions of `{direct}` are claimed by leases"));
    let hint = error.hint().unwrap();
    assert!(hint.starts_with("add `claims=lease` to the address; or stop everything"), "{hint}");
    // As long as somebody has a lease, nothing is changed.
    let error = store::change_claims(&direct).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the session store `{direct}` is in use"));
    drop(claim);
    drop(store);
    let changed = async {
        loop {
            match store::change_claims(&direct).await {
                Ok(changed) => return changed,
                Err(error) => assert!(error.to_string().ends_with("is in use"), "{error}"),
            }
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, changed).await.unwrap());
    assert!(!store::change_claims(&direct).await.unwrap(), "it is so already");
    let store = store::open(&direct).await.unwrap();
    let mut claim = store.claim(&id("a")).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    let error = store::open(&test_store.location).await.err().unwrap();
    assert_eq!(error.to_string(), format!("the sessions of `{}` are claimed by locks", test_store.location));
    let error = store::change_claims(&test_store.location).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the session store `{}` is in use", test_store.location));
    let file = StoreLocation::parse("sessions.db").unwrap();
    let error = store::change_claims(&file).await.unwrap_err();
    assert!(error.to_string().contains("is a file"), "{error}");
}
