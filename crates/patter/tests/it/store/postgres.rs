//! Tests for PostgreSQL.

use super::{TestStore, append, claim_error, id, new, texts};
use patter::store::{self, SessionState, StoreError, StoreLocation};
use sqlx::{Connection, PgConnection};

async fn open_error(url: &str) -> (String, Option<String>) {
    let Err(error) = store::open(&StoreLocation::parse(url).unwrap()).await else { panic!("{url} opens") };
    (error.to_string(), error.hint())
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    let (message, hint) = open_error("postgres://ada:sesame@127.0.0.1:1/patter").await;
    let expected = "cannot connect to the session store `postgres://ada@127.0.0.1:1/patter`: \
                    Connection refused (os error 111)";
    assert_eq!(message, expected);
    assert_eq!(hint.unwrap(), "check that the server is running, and that its host and port are correct");
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
    test_store.execute("UPDATE TABLE.version SET version = 2").await;
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
    terminate_connections(&test_store).await;
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
    terminate_connections(&test_store).await;
    drop(store.claim(&id("a")).await.unwrap());
    store.remove(&id("a")).await.unwrap();
}

#[tokio::test]
async fn lost_spare_connection_is_replaced() {
    let Some(test_store) = TestStore::postgres().await else { return };
    let store = test_store.open().await;
    terminate_connections(&test_store).await;
    drop(store.create(new("a"), 1).await.unwrap());
}

/// Terminates all connections to a database, as a restart of the server does.
async fn terminate_connections(test_store: &TestStore) {
    let url = test_store.location.to_string();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    const TERMINATE: &str = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity \
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(TERMINATE).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
