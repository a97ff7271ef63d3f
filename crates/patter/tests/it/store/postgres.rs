//! What only servers do.

use super::{Place, append, id, new, refused, texts};
use patter::store::{self, Location, SessionState, StoreError};
use sqlx::{Connection, PgConnection};

async fn why(url: &str) -> (String, Option<String>) {
    let Err(error) = store::open(&Location::parse(url).unwrap()).await else { panic!("{url} opens") };
    (error.to_string(), error.hint())
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_told() {
    let (message, hint) = why("postgres://ada:sesame@127.0.0.1:1/patter").await;
    let expected = "the store of sessions `postgres://ada@127.0.0.1:1/patter` cannot be reached: \
                    Connection refused (os error 111)";
    assert_eq!(message, expected);
    assert_eq!(hint.unwrap(), "is the server running, and are its name and port right?");
}

#[tokio::test]
async fn what_a_server_refuses_is_told() {
    let Some(place) = Place::postgres().await else { return };
    let url = place.location.to_string();
    place.meddle("CREATE ROLE guarded LOGIN PASSWORD 'sesame'; CREATE ROLE poor LOGIN").await;
    let (there, guarded) = (url.replace("/test", "/no-test"), url.replace("user=postgres", "user=guarded"));
    let poor = url.replace("user=postgres", "user=poor");
    for (url, expected, hint) in [
        (there, "does not exist", "make the database with `createdb`, or name another"),
        (
            format!("{guarded}&password=wrong"),
            "authentication failed",
            "check the user and the password of its address",
        ),
        (
            format!("{guarded}&password=sesame"),
            "permission denied",
            "allow this user to create the schema `patter` and to write to its tables",
        ),
        (poor.clone(), "permission denied", "allow this user to create the schema `patter` and to write to its tables"),
    ] {
        let (message, told) = why(&url).await;
        assert!(message.starts_with("the store of sessions `postgres:///"), "{message}");
        assert!(message.contains("` refuses: ") && message.contains(expected), "{message}");
        assert!(!message.contains("sesame") && !message.contains("wrong"), "{message}");
        assert_eq!(told.unwrap(), hint);
    }
    // Somebody who may make schemas makes one for somebody who may not.
    place.meddle("CREATE SCHEMA patter AUTHORIZATION poor").await;
    let store = store::open(&Location::parse(&poor).unwrap()).await.unwrap();
    drop(store.create(new("a"), 1).await.unwrap());
    // The roles are those of the whole server.
    place.meddle("DROP OWNED BY poor; DROP ROLE poor, guarded").await;
}

#[tokio::test]
async fn a_store_of_a_newer_patter_is_left_alone() {
    let Some(place) = Place::postgres().await else { return };
    drop(place.open().await);
    place.meddle("UPDATE TABLE.version SET version = 2").await;
    let (message, hint) = why(&place.location.to_string()).await;
    assert_eq!(message, format!("the store of sessions `{}` is of a newer version of Patter", place.location));
    assert_eq!(hint.unwrap(), "update Patter, or name another database");
}

#[tokio::test]
async fn a_claim_ends_with_its_connection() {
    let Some(place) = Place::postgres().await else { return };
    let store = place.open().await;
    let mut lost = store.create(new("a"), 1).await.unwrap();
    append(&mut lost, &texts(["1"])).await;
    end_connections(&place).await;
    let mut claim = place.open().await.claim(&id("a")).await.unwrap();
    append(&mut claim, &texts(["2"])).await;
    for _ in 0..2 {
        let error = lost.append(&texts(["theirs"]), SessionState::Idle, 2).await.unwrap_err();
        assert!(matches!(error, StoreError::Failed { .. } | StoreError::Unusable { .. }), "{error}");
    }
    append(&mut claim, &texts(["3"])).await;
    // The handle whose connections were ended connects again.
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1", "2", "3"]);
    assert!(matches!(refused(store.claim(&id("a")).await), StoreError::Busy { .. }));
    drop(claim);
    end_connections(&place).await;
    drop(store.claim(&id("a")).await.unwrap());
    store.remove(&id("a")).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_ends_before_its_first_claim_is_made_again() {
    let Some(place) = Place::postgres().await else { return };
    let store = place.open().await;
    end_connections(&place).await;
    drop(store.create(new("a"), 1).await.unwrap());
}

/// Ends all connections to a database, as a server does that is restarted.
async fn end_connections(place: &Place) {
    let url = place.location.to_string();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    const END: &str = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity \
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(END).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
