//! Tests for PostgreSQL.

use super::proxy::{Proxy, Traffic};
use super::{TestStore, append, claim_error, id, new, texts};
use patter::live::LiveProject;
use patter::run::{FailureKind, RunOutcome};
use patter::session::Session;
use patter::store::{self, SessionState, StoreError, StoreLocation};
use patter::tool::{CancellationToken, Tool};
use sqlx::{Connection, PgConnection};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn open_error(url: &str) -> (String, Option<String>) {
    let Err(error) = store::open(&StoreLocation::parse(url).unwrap()).await else { panic!("{url} opens") };
    (error.to_string(), error.hint())
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    let (message, hint) = open_error("postgres://ada:sesame@127.0.0.1:1/patter").await;
    let expected = "cannot connect to the session store `postgres://ada@127.0.0.1:1/patter`: \
                    the connection was refused";
    assert_eq!(message, expected);
    assert_eq!(hint.unwrap(), "check that the server is running, and that its host and port are correct");
}

/// A proxy may accept connections before the server behind it does.
#[tokio::test]
async fn a_connection_that_is_closed_at_once_is_tried_again() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let proxy = Proxy::start(&test_store).await;
    // Without options, the client asks for TLS first.
    let with_tls = StoreLocation::parse(&proxy.location.to_string()).unwrap();
    for location in [&proxy.location, &with_tls] {
        proxy.set(Traffic::Close);
        store::open(location).await.unwrap();
    }
}

/// Whoever creates a session whose lock somebody else has for a moment does not continue what that one did with it.
#[tokio::test]
async fn a_new_session_that_others_continued_is_not_continued() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    for is_continued in [false, true] {
        let name = if is_continued { "theirs" } else { "ours" };
        let mut other = PgConnection::connect(&test_store.location.to_string()).await.unwrap();
        const LOCK: &str = "SELECT pg_advisory_lock(hashtextextended('patter session ' || $1, 0))";
        sqlx::query(LOCK).bind(name).execute(&mut other).await.unwrap();
        let interfere = async {
            const COUNT: &str = "SELECT count(*) FROM patter.sessions WHERE id = $1";
            while sqlx::query_scalar::<_, i64>(COUNT).bind(name).fetch_one(&mut other).await.unwrap() == 0 {}
            if is_continued {
                test_store.execute("INSERT INTO TABLE.entries VALUES ('theirs', 1, '2'); UPDATE TABLE.sessions SET entries = 2 WHERE id = 'theirs'").await;
            }
            other.close().await.unwrap();
        };
        let create = store.create(new(name).with_entries(texts(["1"]), SessionState::Running), 1);
        let (created, ()) = tokio::join!(create, interfere);
        match is_continued {
            true => assert_eq!(claim_error(created), StoreError::Conflict { id: id(name), expected: 1 }),
            false => append(&mut created.unwrap(), &texts(["2"])).await,
        }
        assert_eq!(store.read(&id(name)).await.unwrap().entries, ["1", "2"]);
    }
}

#[tokio::test]
async fn server_errors_are_reported() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let url = test_store.location.to_string();
    test_store.execute("CREATE ROLE guarded LOGIN PASSWORD 'sesame'; CREATE ROLE poor LOGIN").await;
    let missing = url.replace("/test", "/no-test");
    let guarded = url.replace("user=postgres", "user=guarded");
    let poor = url.replace("user=postgres", "user=poor");
    for (url, expected, hint) in [
        (missing, "does not exist", "create the database with `createdb`, or use another one"),
        (
            format!("{guarded}&password=wrong"),
            "authentication failed",
            "check the user and the password in its address",
        ),
        (
            format!("{guarded}&password=sesame"),
            "permission denied",
            "allow this user to create the schema `patter` and to write to its tables",
        ),
        (poor.clone(), "permission denied", "allow this user to create the schema `patter` and to write to its tables"),
    ] {
        let (message, found_hint) = open_error(&url).await;
        assert!(message.starts_with("cannot use the session store `postgres:///"), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("sesame") && !message.contains("wrong"), "{message}");
        assert_eq!(found_hint.unwrap(), hint);
    }
    // A user who may not create schemas is given one.
    test_store.execute("CREATE SCHEMA patter AUTHORIZATION poor").await;
    let store = store::open(&StoreLocation::parse(&poor).unwrap()).await.unwrap();
    drop(store.create(new("a"), 1).await.unwrap());
    // Roles belong to the whole server.
    test_store.execute("DROP OWNED BY poor; DROP ROLE poor, guarded").await;
}

#[tokio::test]
async fn newer_store_is_not_touched() {
    let Some(test_store) = TestStore::postgres().await else { return };
    drop(test_store.open().await);
    test_store.execute("UPDATE TABLE.version SET version = 99").await;
    let (message, hint) = open_error(&test_store.location.to_string()).await;
    assert_eq!(
        message,
        format!("the session store `{}` was created by a newer version of Patter", test_store.location)
    );
    assert_eq!(hint.unwrap(), "update Patter, or use another database");
}

#[tokio::test]
async fn claim_ends_with_its_connection() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    let mut lost = store.create(new("a"), 1).await.unwrap();
    append(&mut lost, &texts(["1"])).await;
    terminate_connections(&test_store.location.to_string()).await;
    let mut claim = test_store.open().await.claim(&id("a")).await.unwrap();
    append(&mut claim, &texts(["2"])).await;
    for _ in 0..2 {
        let error = lost.append(&texts(["theirs"]), SessionState::Idle, 2).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    }
    append(&mut claim, &texts(["3"])).await;
    // The store whose connections were terminated connects again.
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1", "2", "3"]);
    assert!(matches!(claim_error(store.claim(&id("a")).await), StoreError::Busy { .. }));
    drop(claim);
    let error = lost.append(&texts(["theirs"]), SessionState::Idle, 2).await.unwrap_err();
    assert_eq!(error, StoreError::Conflict { id: id("a"), expected: 1 });
    drop(lost);
    terminate_connections(&test_store.location.to_string()).await;
    drop(store.claim(&id("a")).await.unwrap());
    store.remove(&id("a")).await.unwrap();
}

#[tokio::test]
async fn many_claims_share_one_connection() {
    const SESSIONS: usize = 300;
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    let creating = (0..SESSIONS).map(|number| store.create(new(&format!("s{number}")), 1));
    let mut claims = Vec::new();
    for claim in futures_util::future::join_all(creating.map(|create| async { create.await.unwrap() })).await {
        claims.push(claim);
    }
    let entries = texts(["1", "2"]);
    for _ in 0..2 {
        // A batch of appends whose connection was lost is repeated.
        let appending = claims.iter_mut().map(|claim| append(claim, &entries));
        futures_util::future::join_all(appending).await;
        let connections = count_connections(&test_store).await;
        assert!(connections <= 3, "{connections} connections");
        terminate_connections(&test_store.location.to_string()).await;
    }
    for claim in claims {
        assert_eq!(store.read(claim.id()).await.unwrap().entries, ["1", "2", "1", "2"]);
    }
}

/// One session of a batch that somebody else changed does not keep the others from growing.
#[tokio::test]
async fn a_conflict_is_about_one_session() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    let mut claims = Vec::new();
    for name in ["a", "b", "c"] {
        claims.push(store.create(new(name), 1).await.unwrap());
    }
    test_store.execute("INSERT INTO TABLE.entries VALUES ('a', 0, 'theirs')").await;
    test_store.execute("UPDATE TABLE.sessions SET entries = 1 WHERE id = 'b'").await;
    let entries = texts(["mine"]);
    let appending = claims.iter_mut().map(|claim| claim.append(&entries, SessionState::Idle, 1));
    let results = futures_util::future::join_all(appending).await;
    let conflict = |name: &str| Err(StoreError::Conflict { id: id(name), expected: 0 });
    assert_eq!(results, [conflict("a"), conflict("b"), Ok(())]);
    assert_eq!(store.read(&id("c")).await.unwrap().entries, ["mine"]);
}

#[tokio::test]
async fn an_older_store_is_brought_up_to_date() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    append(&mut store.create(new("a"), 1).await.unwrap(), &texts(["1"])).await;
    drop(store);
    test_store
        .execute(
            "DROP TABLE TABLE.work, TABLE.workers, TABLE.attachments, TABLE.leases, TABLE.settings,
                TABLE.provider_limits;
             ALTER TABLE TABLE.sessions DROP COLUMN owner, DROP COLUMN epoch;
             UPDATE TABLE.version SET version = 1",
        )
        .await;
    let stores = futures_util::future::join_all((0..4).map(|_| test_store.open())).await;
    assert_eq!(stores[0].read(&id("a")).await.unwrap().entries, ["1"]);
    test_store.execute("SELECT * FROM TABLE.work, TABLE.workers").await;
    // The sessions of an older store are claimed by locks, and stay so.
    append(&mut stores[1].claim(&id("a")).await.unwrap(), &texts(["2"])).await;
    let (message, _) = open_error(&format!("{}&claims=lease", test_store.location)).await;
    assert!(message.ends_with("are claimed by locks"), "{message}");
}

#[tokio::test]
async fn lost_connection_is_replaced() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    terminate_connections(&test_store.location.to_string()).await;
    drop(store.create(new("a"), 1).await.unwrap());
}

#[tokio::test]
async fn claim_outlives_a_restart_of_the_server() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    for number in 1..4 {
        append(&mut claim, &[number.to_string()]).await;
        terminate_connections(&test_store.location.to_string()).await;
    }
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1", "2", "3"]);
    append(&mut claim, &[]).await;
    assert!(matches!(claim_error(store.claim(&id("a")).await), StoreError::Busy { .. }));
}

#[tokio::test]
async fn append_whose_answer_is_lost_happens_once() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let proxy = Proxy::start(&test_store).await;
    let store = store::open(&proxy.location).await.unwrap();
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    // The server appends the entries, but the connection breaks before it can say so.
    proxy.set(Traffic::CutAnswers);
    append(&mut claim, &texts(["2", "3"])).await;
    append(&mut claim, &texts(["4"])).await;
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn claim_outlives_a_connection_that_the_server_still_has() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let proxy = Proxy::start(&test_store).await;
    let store = store::open(&proxy.location).await.unwrap();
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    proxy.set(Traffic::Abandon);
    append(&mut claim, &texts(["2"])).await;
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1", "2"]);
}

#[tokio::test]
async fn serialization_failures_are_repeated() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let StoreLocation::Postgres(url) = &test_store.location else { panic!() };
    let database = url.to_string().split('/').nth(3).unwrap().split('?').next().unwrap().to_owned();
    test_store.execute(&format!("ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")).await;
    super::concurrency::many_sessions_grow_concurrently(&test_store).await;
}

#[tokio::test]
async fn copies_are_made_with_the_tools_of_the_server() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let error = test_store.open().await.back_up(Path::new("backup.db")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the session store `{}` is a PostgreSQL database", test_store.location));
    assert_eq!(error.hint().unwrap(), "back it up with `pg_dump --schema=patter`");
}

#[tokio::test]
async fn commits_wait_for_the_disk() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let url = format!("{}&options=-c%20synchronous_commit%3Doff", test_store.location);
    let store = store::open(&StoreLocation::parse(&url).unwrap()).await.unwrap();
    let mut claim = store.create(new("a"), 1).await.unwrap();
    // A trigger sees the setting of the connection that appends.
    test_store
        .execute(
            "CREATE TABLE seen (setting TEXT);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
             $$BEGIN INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END$$;
             CREATE TRIGGER note BEFORE INSERT ON TABLE.entries FOR EACH ROW EXECUTE FUNCTION note()",
        )
        .await;
    append(&mut claim, &texts(["1"])).await;
    let mut connection = PgConnection::connect(&test_store.location.to_string()).await.unwrap();
    let seen: String = sqlx::query_scalar("SELECT setting FROM seen").fetch_one(&mut connection).await.unwrap();
    assert_eq!(seen, "local");
}

/// The time in which a run has to end whose store hangs. The time limit of operations is far longer.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn stopping_does_not_wait_for_a_server_that_hangs() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gram");
    std::fs::write(&path, "[worker:Agent {instruction: 'Use `work`.', model: 'demo'} | work]").unwrap();
    for (name, is_stopped) in [("stopped", true), ("timed-out", false)] {
        let proxy = Arc::new(Proxy::start(&test_store).await);
        let stop = CancellationToken::new();
        // The server hangs from the first call on.
        let stalled = Arc::clone(&proxy);
        let token = stop.clone();
        let work = Tool::native("work", "Works", "()==>(::Text)", move |_, _| {
            stalled.set(Traffic::Stall);
            if is_stopped {
                token.cancel();
            }
            async { Ok(serde_json::json!("done")) }
        });
        let project = LiveProject::open(&path).with_tools([work.unwrap()]).read().await.unwrap();
        let store = store::open(&proxy.location).await.unwrap();
        let mut session = Session::create(project.into(), store, id(name));
        if !is_stopped {
            session = session.with_limits(|limits| limits.deadline_ms = Some(1000));
        }
        let start = Instant::now();
        let run = session.say("Please work", &stop).await.unwrap();
        assert!(start.elapsed() < SOON, "{name}: {:?}", start.elapsed());
        let Some(RunOutcome::Failed(failure)) = run.outcome() else { panic!("{name}: {:?}", run.outcome()) };
        assert_eq!(failure.kind, FailureKind::Store);
        let expected = "cannot save the run: the session store did not answer after the run was stopped";
        assert_eq!(failure.message, expected, "{name}");
        drop(session);
        // What was saved can be resumed.
        let stored = test_store.open().await.read(&id(name)).await.unwrap();
        assert_eq!(stored.summary.state, SessionState::Running);
    }
}

async fn count_connections(test_store: &TestStore) -> i64 {
    const COUNT: &str = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let mut connection = PgConnection::connect(&test_store.location.to_string()).await.unwrap();
    sqlx::query_scalar(COUNT).fetch_one(&mut connection).await.unwrap()
}

/// Terminates all connections to a database, as a restart of the server does.
pub(super) async fn terminate_connections(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    const TERMINATE: &str = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity \
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(TERMINATE).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
