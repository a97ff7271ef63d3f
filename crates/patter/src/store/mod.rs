//! Where sessions are kept: an append-only log for each, in a SQLite file or in PostgreSQL.
//!
//! A session is a conversation with an agent that outlives the program. Its log is a list of entries, which are JSON
//! texts that the store does not read. Anybody may read a session; to add to it one holds its [`Claim`], and there is
//! one at a time, whichever processes want it. A claim ends with its process, however that ends.
//!
//! ```
//! use patter::store::{self, Location, NewSession, SessionId, SessionState};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), store::StoreError> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join(".patter/sessions.db").display().to_string();
//! let store = store::open(&Location::parse(&path)?).await?;
//! let now_ms = 1_700_000_000_000;
//! let id = SessionId::new(now_ms);
//! let mut claim = store.create(NewSession::new(id.clone(), "greeter", "Hello there"), now_ms).await?;
//! claim.append(&[r#"{"user":"Hello there"}"#.to_owned()], SessionState::Running, now_ms).await?;
//! assert!(store.claim(&id).await.is_err(), "there is one claim at a time");
//! drop(claim);
//!
//! let stored = store.read(&id).await?;
//! assert_eq!(stored.summary.state, SessionState::Running);
//! assert_eq!(stored.entries, [r#"{"user":"Hello there"}"#]);
//! assert_eq!(store::find(&*store, "latest").await?, id);
//! # Ok(())
//! # }
//! ```

mod error;
mod hold;
mod id;
mod location;
mod postgres;
mod session;
mod sqlite;

pub use error::StoreError;
pub use id::SessionId;
pub use location::{Location, PostgresUrl};
pub use session::{NewSession, SessionState, Stored, Summary};

use crate::tool::BoxFuture;
use patter_core::text::nearest;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How long an operation may take. Reading a long log over a slow line is the longest of them.
const LONGEST: Duration = Duration::from_secs(60);
/// How long there may be no connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The most connections that reading uses.
const CONNECTIONS: u32 = 4;
/// How many ids are told where the beginning of an id is not enough.
const AMBIGUOUS: usize = 5;
/// Among how many sessions the nearest to a wrong one is looked for.
const NEAREST_AMONG: usize = 1000;

/// What stands for the agent of a session that is no conversation, but the runs of an experiment.
pub const EXPERIMENT: &str = "(experiment)";

/// Keeps sessions. An operation that fails has changed nothing, unless it took too long or the connection broke; then
/// reading tells.
pub trait Store: Send + Sync {
    /// Begins a session and claims it.
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>>;

    /// Claims a session, or fails with [`StoreError::Busy`] without waiting for whoever holds it.
    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>>;

    /// Returns a session with its entries, as they were at one moment.
    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Stored, StoreError>>;

    /// Returns the sessions that changed last, newest first.
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Summary>, StoreError>>;

    /// Returns the ids that begin with a text, in their order.
    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>>;

    /// Removes a session that nobody holds.
    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The exclusive right to add to one session. Dropping it gives it back.
pub trait Claim: Send {
    /// Returns which session it is.
    fn id(&self) -> &SessionId;

    /// Returns how many entries the log has, as far as this claim knows.
    fn entries(&self) -> u64;

    /// Adds entries to the end of the log and sets the state: all of it or nothing. There may be no entries.
    ///
    /// Where the future is dropped, or the connection breaks, the entries may be there or not. Nothing is lost or doubled by
    /// trying again: if they are there, that fails with [`StoreError::Conflict`].
    fn append<'a>(
        &'a mut self,
        entries: &'a [String],
        state: SessionState,
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Opens a store, and makes it where there is none.
pub async fn open(location: &Location) -> Result<Arc<dyn Store>, StoreError> {
    match location {
        Location::Sqlite(path) => Ok(Arc::new(sqlite::SqliteStore::open(path).await?)),
        Location::Postgres(url) => Ok(Arc::new(postgres::PostgresStore::open(url).await?)),
    }
}

/// Finds a session by its id, by the beginning of its id if no other begins so, or as `latest`.
pub async fn find(store: &dyn Store, text: &str) -> Result<SessionId, StoreError> {
    let text = text.trim();
    if text == "latest" {
        let recent = store.list(NEAREST_AMONG).await?;
        let latest = recent.into_iter().find(|summary| !summary.is_experiment());
        return latest.map(|latest| latest.id).ok_or(StoreError::Empty);
    }
    let ids = if text.is_empty() { Vec::new() } else { store.ids(text, AMBIGUOUS).await? };
    match ids.as_slice() {
        [] => Err(missing(store, text).await),
        [first, ..] if ids.len() == 1 || first.as_str() == text => Ok(first.clone()),
        _ => Err(StoreError::Ambiguous { text: text.to_owned(), ids }),
    }
}

/// Returns that a session is not there, with the one that may be meant.
async fn missing(store: &dyn Store, text: &str) -> StoreError {
    let recent = store.list(NEAREST_AMONG).await.unwrap_or_default();
    let near = nearest(text, recent.iter().map(|summary| summary.id.as_str()));
    let near = recent.iter().find(|summary| Some(summary.id.as_str()) == near).map(|summary| summary.id.clone());
    StoreError::NotFound { text: text.to_owned(), nearest: near }
}

/// Waits for an operation, but not for ever.
async fn bounded<T>(work: impl Future<Output = Result<T, StoreError>> + Send) -> Result<T, StoreError> {
    let took_too_long = || StoreError::Failed { message: format!("it took longer than {} s", LONGEST.as_secs()) };
    tokio::time::timeout(LONGEST, work).await.unwrap_or_else(|_| Err(took_too_long()))
}

/// Checks that entries can be kept, whatever the database: only PostgreSQL refuses this character, and JSON has none.
fn check(entries: &[String]) -> Result<(), StoreError> {
    match entries.iter().position(|entry| entry.contains('\0')) {
        Some(index) => Err(StoreError::Entry { index }),
        None => Ok(()),
    }
}

/// Returns who holds the claims of this process.
fn holder() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("process {} on {host}", std::process::id())
}

/// Returns a number as databases take it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
