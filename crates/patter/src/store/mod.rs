//! Session stores: an append-only log per session, in a SQLite file or in PostgreSQL.
//!
//! A session is a conversation with an agent that outlives the process. Its log is a list of entries, JSON texts that the
//! store does not interpret. Anyone may read a session; appending requires its [`Claim`], which only one process holds at
//! a time. A claim ends with its process, however that ends. Beside the log, a session has the contents of its attachments,
//! by their hashes.
//!
//! ```
//! use patter::store::{self, StoreLocation, NewSession, SessionId, SessionState};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), store::StoreError> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join(".patter/sessions.db").display().to_string();
//! let store = store::open(&StoreLocation::parse(&path)?).await?;
//! let now_ms = 1_700_000_000_000;
//! let id = SessionId::new(now_ms);
//! let mut claim = store.create(NewSession::new(id.clone(), "greeter", "Hello there"), now_ms).await?;
//! claim.append(&[r#"{"user":"Hello there"}"#.to_owned()], SessionState::Running, now_ms).await?;
//! assert!(store.claim(&id).await.is_err(), "a session has one claim at a time");
//! drop(claim);
//!
//! let stored = store.read(&id).await?;
//! assert_eq!(stored.summary.state, SessionState::Running);
//! assert_eq!(stored.entries, [r#"{"user":"Hello there"}"#]);
//! assert_eq!(store::find(&*store, "latest").await?, id);
//! # Ok(())
//! # }
//! ```

mod id;
mod error;
mod session;
mod location;
mod work;
mod backend;
mod care;
mod find;
mod limit;
mod holder;
mod row;
mod lock_file;
mod sqlite;
mod postgres;

pub use backend::{Claim, Store};
pub use care::{Copied, StoreUsage, copy_session, read_attachments, redact_session};
pub use error::StoreError;
pub use find::find;
pub use id::{SessionId, SessionIdError};
pub use location::{PostgresUrl, StoreLocation};
pub use session::{EXPERIMENT_AGENT, NewSession, SessionState, SessionSummary, StoredSession};

pub use work::{
    NewWork, QueueCounts, Settlement, TakeRequest, Work, WorkChange, WorkFilter, WorkQueue, WorkState, WorkerId,
    WorkerInfo, WorkerReport, WorkerStatus,
};

use std::sync::Arc;
use std::time::Duration;

/// Makes the way in which an address claims sessions, by locks or by leases (`claims=lease`), that of its database. Returns
/// whether it was another one. Fails if the database is in use, or if it is a file.
pub async fn change_claims(location: &StoreLocation) -> Result<bool, StoreError> {
    match location {
        StoreLocation::Postgres(url) => limit::with_timeout(postgres::change_mode(url)).await,
        StoreLocation::Sqlite(_) => Err(StoreError::Unusable {
            message: format!("the session store `{location}` is a file, whose sessions are claimed by locks"),
            hint: Some("name a PostgreSQL database: `--store postgres://…?claims=lease`".to_owned()),
        }),
    }
}

/// Waits until sessions whose claims were dropped are free for others, and returns whether they are. A program calls it before
/// it ends: leases outlive it, unlike locks.
///
/// ```
/// assert!(patter::store::wait_for_releases(std::time::Duration::from_secs(2)));
/// ```
pub fn wait_for_releases(timeout: Duration) -> bool {
    postgres::pending::wait(timeout)
}

/// Opens a store, and creates it if it does not exist.
pub async fn open(location: &StoreLocation) -> Result<Arc<dyn Store>, StoreError> {
    tracing::debug!(%location, "opening session store");
    match location {
        StoreLocation::Sqlite(path) => Ok(Arc::new(sqlite::SqliteStore::open(path).await?)),
        StoreLocation::Postgres(url) => Ok(Arc::new(postgres::PostgresStore::open(url).await?)),
    }
}
