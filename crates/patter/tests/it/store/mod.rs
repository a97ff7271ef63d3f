//! The stores of sessions: one suite for both databases, and what only one of them can do.

mod cases;
mod postgres;
mod processes;
mod properties;
mod server;
mod sqlite;
mod together;

use patter::store::{self, Claim, Location, NewSession, SessionId, SessionState, Store, StoreError};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use std::sync::Arc;
use tempfile::TempDir;

/// A store of a test's own.
pub(crate) struct Place {
    pub(crate) location: Location,
    _folder: Option<TempDir>,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("sessions.db"));
        Self { location, _folder: Some(folder) }
    }

    /// Returns a database of the server of this run, if there is one.
    pub(crate) async fn postgres() -> Option<Self> {
        let url = server::database().await?;
        Some(Self { location: Location::parse(&url).unwrap(), _folder: None })
    }

    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        store::open(&self.location).await.unwrap()
    }

    /// Does something to the tables that no store does. They are called `TABLE.sessions` and `TABLE.entries`.
    async fn meddle(&self, statement: &str) {
        match &self.location {
            Location::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
                let statement = statement.replace("TABLE.", "");
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
            Location::Postgres(url) => {
                let mut connection = PgConnection::connect(&url.to_string()).await.unwrap();
                let statement = statement.replace("TABLE.", "patter.");
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
        }
    }
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn new(text: &str) -> NewSession {
    NewSession::new(id(text), "greeter", "Hello there")
}

fn texts<const N: usize>(entries: [&str; N]) -> Vec<String> {
    entries.map(str::to_owned).to_vec()
}

/// Returns what went wrong with a claim, which has no form to show.
fn refused(claim: Result<Box<dyn Claim>, StoreError>) -> StoreError {
    match claim {
        Ok(claim) => panic!("there is a claim on {}", claim.id()),
        Err(error) => error,
    }
}

async fn append(claim: &mut Box<dyn Claim>, entries: &[String]) {
    claim.append(entries, SessionState::Idle, 1).await.unwrap();
}

#[test]
fn locations_are_read_and_shown_without_their_secrets() {
    let long = format!("postgres://u:{0}@h/d?password={0}&sslmode=require", "sesame");
    for (text, expected) in [
        ("sqlite:a/b.db", "sqlite:a/b.db"),
        ("sqlite:///a/b.db", "sqlite:/a/b.db"),
        (" a.db ", "sqlite:a.db"),
        ("//a/b.db", "sqlite://a/b.db"),
        (&long, "postgres://u@h:5432/d"),
        ("postgresql://u@[::1]:99/d%20x", "postgres://u@[::1]:99/d x"),
    ] {
        let location = Location::parse(text).unwrap();
        assert_eq!(location.to_string(), expected);
        assert!(!format!("{location:?} {location}").contains("sesame"), "{location:?}");
    }
    for (text, expected) in [
        ("", "the place of the sessions has no name"),
        ("sqlite:", "the place of the sessions has no name"),
        ("mysql://u@h/d", "sessions are kept in SQLite or PostgreSQL only"),
        ("postgres://u:sesame@h:port/d", "the address of the database cannot be read"),
        ("postgres://u@h/d?sslmode=sesame", "the address of the database cannot be read"),
    ] {
        let error = Location::parse(text).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.hint().unwrap(), "write `sqlite:PATH` or `postgres://user@host/database`");
    }
}

#[test]
fn ids_are_parsed_and_made() {
    for wrong in ["", "A", "a_b", "a/b", "ä", "a b", "a.b", &"a".repeat(65)] {
        assert_eq!(SessionId::parse(wrong).unwrap_err(), StoreError::Id { text: wrong.to_owned() });
        assert!(serde_json::from_value::<SessionId>(wrong.into()).is_err(), "{wrong}");
    }
    assert_eq!(id(&"a".repeat(64)).as_str().len(), 64);
    let mut made: Vec<_> = [0, 999, 1000, 1_700_000_000_000, u64::MAX].map(SessionId::new).to_vec();
    assert!(made[0].as_str().starts_with("19700101-000000-"), "{made:?}");
    assert!(made[2].as_str().starts_with("19700101-000001-"), "{made:?}");
    made.extend((0..1000).map(|_| SessionId::new(1)));
    for id in &made {
        assert_eq!(&SessionId::parse(id.as_str()).unwrap(), id);
        assert_eq!(id.as_str().len(), 21);
    }
    made.sort();
    made.dedup();
    assert!(made.len() > 1000, "chance is not enough: {}", made.len());
}
