//! Session stores: one suite for both databases, and tests for each.

mod care;
mod cases;
mod concurrency;
mod leases;
mod postgres;
mod processes;
mod properties;
mod proxy;
mod queue;
mod redact;
mod server;
mod sqlite;

use patter::store::{
    self, Claim, NewSession, SessionId, SessionIdError, SessionState, Store, StoreError, StoreLocation,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A store for one test.
pub(crate) struct TestStore {
    pub(crate) location: StoreLocation,
    /// The address of the same database without a pooler.
    direct: Option<String>,
    _folder: Option<TempDir>,
}

impl TestStore {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::Sqlite(folder.path().join("sessions.db"));
        Self { location, direct: None, _folder: Some(folder) }
    }

    /// Returns a new database, if PostgreSQL is installed.
    pub(crate) async fn postgres() -> Option<Self> {
        let url = server::database().await?;
        Some(Self { location: StoreLocation::parse(&url).unwrap(), direct: Some(url), _folder: None })
    }

    /// Returns a new database behind a pooler, if both are installed.
    pub(crate) async fn pooled() -> Option<Self> {
        let url = server::database().await?;
        let location = server::through_pooler(&url)?;
        Some(Self { location: StoreLocation::parse(&location).unwrap(), direct: Some(url), _folder: None })
    }

    /// Returns the same store with claims that end this soon if they are not renewed.
    pub(crate) fn with_lease(&self, seconds: u64) -> StoreLocation {
        StoreLocation::parse(&format!("{}&lease={seconds}s", self.location)).unwrap()
    }

    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        store::open(&self.location).await.unwrap()
    }

    /// Adds an entry to the log of a session behind the back of the store.
    async fn insert_entry(&self, session: &str, number: u64, entry: &str) {
        let number = number + self.is_sqlite() as u64;
        self.execute(&format!("INSERT INTO TABLE.entries VALUES ('{session}', {number}, '{entry}')")).await;
    }

    /// Removes an entry from the log of a session behind the back of the store. In SQLite it must have been appended alone.
    async fn remove_entry(&self, session: &str, number: u64) {
        let is_entry = match self.is_sqlite() {
            true => format!("length = {}", number + 1),
            false => format!("number = {number}"),
        };
        self.execute(&format!("DELETE FROM TABLE.entries WHERE session = '{session}' AND {is_entry}")).await;
    }

    fn is_sqlite(&self) -> bool {
        matches!(self.location, StoreLocation::Sqlite(_))
    }

    /// Executes a statement behind the back of the store. `TABLE.entries` is the table of logs.
    ///
    /// Connections of a dropped store close in the background, so a statement that needs the file for itself waits.
    async fn execute(&self, statement: &str) {
        match &self.location {
            StoreLocation::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                let statement = statement.replace("TABLE.entries", "logs").replace("TABLE.", "");
                let deadline = Instant::now() + Duration::from_secs(10);
                while let Err(error) = connection.execute_batch(&statement) {
                    let locked = error.to_string().contains("database is locked");
                    assert!(locked && Instant::now() < deadline, "{error}");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            StoreLocation::Postgres(_) => {
                let mut connection = PgConnection::connect(self.direct.as_deref().unwrap()).await.unwrap();
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

/// Returns the error of a claim, which is not `Debug`.
fn claim_error(claim: Result<Box<dyn Claim>, StoreError>) -> StoreError {
    match claim {
        Ok(claim) => panic!("{} was claimed", claim.id()),
        Err(error) => error,
    }
}

async fn append(claim: &mut Box<dyn Claim>, entries: &[String]) {
    claim.append(entries, SessionState::Idle, 1).await.unwrap();
}

#[test]
fn locations_are_parsed_and_shown_without_secrets() {
    let long = format!("postgres://u:{0}@h/d?password={0}&sslmode=require", "sesame");
    for (text, expected) in [
        ("sqlite:a/b.db", "sqlite:a/b.db"),
        ("sqlite:///a/b.db", "sqlite:/a/b.db"),
        (" a.db ", "sqlite:a.db"),
        ("//a/b.db", "sqlite://a/b.db"),
        (&long, "postgres://u@h:5432/d"),
        ("postgresql://u@[::1]:99/d%20x", "postgres://u@[::1]:99/d x"),
        ("postgres://u:sesame@h/d?claims=lease", "postgres://u@h:5432/d?claims=lease"),
        ("postgres://u@h/d?lease=90s&sslmode=require&claims=lease", "postgres://u@h:5432/d?claims=lease&lease=90s"),
        ("postgres:///d?host=/run&user=u&claims=lock", "postgres:///d?host=/run&port=5432&user=u"),
    ] {
        let location = StoreLocation::parse(text).unwrap();
        assert_eq!(location.to_string(), expected);
        assert!(!format!("{location:?} {location}").contains("sesame"), "{location:?}");
    }
    for (text, expected) in [
        ("", "the path of the session store is empty"),
        ("sqlite:", "the path of the session store is empty"),
        ("mysql://u@h/d", "`mysql://` is not supported: sessions are stored in SQLite or PostgreSQL"),
        ("postgres://u:sesame@h:port/d", "the address of the database is not valid"),
        ("postgres://u@h/d?sslmode=sesame", "the address of the database is not valid"),
    ] {
        let error = StoreLocation::parse(text).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.hint().unwrap(), "write `sqlite:PATH` or `postgres://user@host/database`");
    }
}

#[test]
fn options_about_claims_are_checked() {
    for (options, invalid) in [
        ("claims=both", "claims=both"),
        ("claims=lease&lease=1ms", "lease=1ms"),
        ("claims=lease&lease=2h", "lease=2h"),
        ("lease=9s", "lease"),
    ] {
        let error = StoreLocation::parse(&format!("postgres://u:sesame@h/d?{options}")).unwrap_err();
        assert_eq!(error.to_string(), format!("`{invalid}` in the address of the database is not valid"));
        let hint = "write `claims=lease`, perhaps with `lease=30s`: from 1 s to 10 minutes";
        assert_eq!(error.hint().unwrap(), hint);
    }
}

#[test]
fn ids_are_parsed_and_generated() {
    for invalid in ["", "A", "a_b", "a/b", "ä", "a b", "a.b", &"a".repeat(65)] {
        assert_eq!(SessionId::parse(invalid).unwrap_err(), SessionIdError { text: invalid.to_owned() });
        assert!(serde_json::from_value::<SessionId>(invalid.into()).is_err(), "{invalid}");
    }
    assert_eq!(id(&"a".repeat(64)).as_str().len(), 64);
    let mut ids: Vec<_> = [0, 999, 1000, 1_700_000_000_000, u64::MAX].map(SessionId::new).to_vec();
    assert!(ids[0].as_str().starts_with("19700101-000000-"), "{ids:?}");
    assert!(ids[2].as_str().starts_with("19700101-000001-"), "{ids:?}");
    ids.extend((0..1000).map(|_| SessionId::new(1)));
    for id in &ids {
        assert_eq!(&SessionId::parse(id.as_str()).unwrap(), id);
        assert_eq!(id.as_str().len(), 21);
    }
    ids.sort();
    ids.dedup();
    assert!(ids.len() > 1000, "too many duplicates: {}", ids.len());
}
