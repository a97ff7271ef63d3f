//! Sessions in a SQLite file.

mod attachment;
mod file;
mod queue;
mod readers;
mod redact;
mod row;
mod statements;
mod writer;

use self::file::SqliteFile;
use self::readers::Readers;
use self::redact::Replaced;
use self::row::{entry_rows, log_length, summary_row};
use self::writer::{Change, SessionUpdate, Writer};
use super::backend::{Claim, Store};
use super::care::StoreUsage;
use super::error::StoreError;
use super::id::{SessionId, is_id_text};
use super::limit::with_timeout;
use super::lock_file::{LockFile, LockFiles};
use super::row::{check_entries, session_ids, stored_session, summaries, summary, summary_columns, to_i64, usage};
use super::session::{NewSession, SessionState, SessionSummary, StoredSession};
use super::work::WorkQueue;
use crate::tool::BoxFuture;
use rusqlite::{OptionalExtension, Row, Transaction, TransactionBehavior};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};

/// Selects the metadata of a session.
const SUMMARY: &str = concat!("SELECT ", summary_columns!(log_length!()), " FROM sessions WHERE id = ?1");

/// A session store in a SQLite file.
///
/// A claim is a locked file beside it, which exists as long as the claim.
pub(super) struct SqliteStore {
    file: SqliteFile,
    locks: LockFiles,
    readers: Readers,
    writer: Arc<SyncedWriter>,
    /// Wakes those who wait for work.
    wakeups: Notify,
}

struct SqliteClaim {
    id: SessionId,
    next: u64,
    /// What the list of sessions says.
    listed: SessionUpdate,
    writer: Arc<SyncedWriter>,
    _lock: LockFile,
}

/// The writer of the file, and how much of what it wrote survives a power cut.
struct SyncedWriter {
    file: SqliteFile,
    writer: Writer,
    /// The number of commits that survive a power cut.
    synced: Mutex<u64>,
}

impl SqliteStore {
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        let path = path.to_owned();
        with_timeout(async move {
            let open = tokio::task::spawn_blocking(move || SqliteFile::open(&path));
            let (file, writer) = open.await.unwrap_or_else(|error| Err(join_error(&error)))?;
            let readers = Readers::new(file.clone());
            let writer = Arc::new(SyncedWriter { file: file.clone(), writer, synced: Mutex::new(0) });
            Ok(Self { file, locks: LockFiles::default(), readers, writer, wakeups: Notify::new() })
        })
        .await
    }

    fn claimed(&self, id: SessionId, next: u64, listed: SessionUpdate, lock: LockFile) -> Box<dyn Claim> {
        tracing::debug!(session = %id, entries = next, "session claimed");
        Box::new(SqliteClaim { id, next, listed, writer: Arc::clone(&self.writer), _lock: lock })
    }

    /// Reads the length of the log of a session, and what the list says about it.
    async fn find(&self, id: &SessionId) -> Result<Option<(u64, SessionUpdate)>, StoreError> {
        let id = id.clone();
        let row = self.readers.read(move |connection| {
            connection.prepare_cached(SUMMARY)?.query_row([id.as_str()], summary_row).optional()
        });
        let found = row.await?.map(summary).transpose()?;
        Ok(found.map(|found| (found.entries, SessionUpdate { state: found.state, now_ms: found.changed_ms })))
    }

    /// Waits until all changes survive a power cut, also those that were not made by the thread that writes.
    async fn sync_file(&self) -> Result<(), StoreError> {
        let file = self.file.clone();
        let sync = tokio::task::spawn_blocking(move || file.sync_log());
        sync.await.unwrap_or_else(|error| Err(join_error(&error)))
    }

    /// Locks a session to create it.
    async fn lock_new(&self, id: &SessionId) -> Result<LockFile, StoreError> {
        match self.file.try_lock(&self.locks, id).await {
            Err(StoreError::Busy { .. }) if self.find(id).await?.is_some() => {
                Err(StoreError::Exists { id: id.clone() })
            }
            Err(StoreError::Busy { .. }) => self.file.lock(&self.locks, id).await,
            locked => locked,
        }
    }

    /// Changes something other than a log, in one transaction.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let changed = self.readers.read(move |connection| {
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let result = change(&transaction)?;
            transaction.commit()?;
            Ok(result)
        });
        with_timeout(changed).await
    }
}

impl Store for SqliteStore {
    fn queue(&self) -> Option<&dyn WorkQueue> {
        Some(self)
    }

    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            check_entries(&new.entries)?;
            // Locked before anyone else can see the session.
            let lock = self.lock_new(&new.id).await?;
            let id = new.id.clone();
            let next = new.entries.len() as u64;
            let listed = SessionUpdate { state: new.state, now_ms };
            match self.writer.writer.write(Change::Create { new, now_ms }).await? {
                true => Ok(self.claimed(id, next, listed, lock)),
                false => Err(StoreError::Exists { id }),
            }
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            let lock = self.file.lock(&self.locks, id).await?;
            match self.find(id).await? {
                Some((next, listed)) => Ok(self.claimed(id.clone(), next, listed, lock)),
                None => Err(StoreError::not_found(id)),
            }
        }))
    }

    fn read_from<'a>(&'a self, id: &'a SessionId, first: u64) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        Box::pin(with_timeout(async move {
            const LOG: &str = "SELECT length, entries FROM logs WHERE session = ?1 AND length > ?2 ORDER BY length";
            let wanted = id.clone();
            let found = self.readers.read(move |connection| {
                // One transaction, so that summary and entries are consistent. It ends when it is dropped.
                let transaction = connection.unchecked_transaction()?;
                let summary = transaction.query_row(SUMMARY, [wanted.as_str()], summary_row).optional()?;
                let mut query = transaction.prepare_cached(LOG)?;
                let entries = entry_rows(query.query((wanted.as_str(), to_i64(first)))?, to_i64(first))?;
                Ok(summary.map(|summary| (summary, entries)))
            });
            match found.await? {
                Some((summary, entries)) => stored_session(summary, first, entries),
                None => Err(StoreError::not_found(id)),
            }
        }))
    }

    fn attachment<'a>(
        &'a self,
        id: &'a SessionId,
        sha256: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(with_timeout(async move {
            let wanted = (id.as_str().to_owned(), sha256.to_owned());
            self.readers.read(move |connection| attachment::find(connection, &wanted.0, &wanted.1)).await
        }))
    }

    fn attachments<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(with_timeout(async move {
            let wanted = id.as_str().to_owned();
            self.readers.read(move |connection| attachment::list(connection, &wanted)).await
        }))
    }

    fn list_page<'a>(
        &'a self,
        state: Option<SessionState>,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!(log_length!()),
                " FROM sessions WHERE (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR (changed_ms, id) < (?3, ?4)) \
                  ORDER BY changed_ms DESC, id DESC LIMIT ?1"
            );
            let after = after.map(|last| (to_i64(last.changed_ms), last.id.as_str().to_owned())).unzip();
            let rows = self.readers.read(move |connection| {
                let mut query = connection.prepare_cached(LIST)?;
                let values = (to_i64(limit as u64), state.map(SessionState::as_str), after.0, after.1);
                query.query_map(values, summary_row)?.collect::<rusqlite::Result<Vec<_>>>()
            });
            summaries(rows.await?)
        }))
    }

    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(with_timeout(async move {
            // `{` sorts after every character of ids.
            const IDS: &str = "SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || '{' ORDER BY id LIMIT ?2";
            if !is_id_text(prefix) {
                return Ok(Vec::new());
            }
            let prefix = prefix.to_owned();
            let ids = self.readers.read(move |connection| {
                let mut query = connection.prepare_cached(IDS)?;
                let ids = query.query_map((prefix, to_i64(limit as u64)), |row| row.get::<_, String>(0))?;
                ids.collect::<rusqlite::Result<Vec<_>>>()
            });
            session_ids(&ids.await?)
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let _lock = self.file.lock(&self.locks, id).await?;
            match self.writer.writer.write(Change::Remove { id: id.clone() }).await? {
                true => Ok(()),
                false => Err(StoreError::not_found(id)),
            }
        }))
    }

    fn replace_log<'a>(
        &'a self,
        id: &'a SessionId,
        expected: u64,
        entries: Vec<String>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            check_entries(&entries)?;
            let _lock = self.file.lock(&self.locks, id).await?;
            let file = self.file.clone();
            let wanted = id.clone();
            let replace = tokio::task::spawn_blocking(move || redact::replace_log(&file, &wanted, expected, &entries));
            match replace.await.unwrap_or_else(|error| Err(join_error(&error)))? {
                Replaced::Yes => Ok(()),
                Replaced::Missing => Err(StoreError::not_found(id)),
                Replaced::Conflict => Err(StoreError::Conflict { id: id.clone(), expected }),
                Replaced::HasWork => {
                    let holder = Some("the queue, which has work for it".to_owned());
                    Err(StoreError::Busy { id: id.clone(), holder })
                }
            }
        }))
    }

    fn list_unchanged_since(&self, moment_ms: u64) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!(log_length!()),
                " FROM sessions WHERE changed_ms < ?1 ORDER BY changed_ms, id"
            );
            let rows = self.readers.read(move |connection| {
                let mut query = connection.prepare_cached(LIST)?;
                query.query_map([to_i64(moment_ms)], summary_row)?.collect::<rusqlite::Result<Vec<_>>>()
            });
            summaries(rows.await?)
        }))
    }

    fn shared_secret<'a>(&'a self, new: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        // The table is created with the first secret, so that files without one stay as they were.
        const TABLE: &str =
            "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT";
        const ADD: &str = "INSERT INTO settings (name, value) VALUES ('secret', ?1) ON CONFLICT DO NOTHING";
        const SECRET: &str = "SELECT value FROM settings WHERE name = 'secret'";
        let new = new.to_owned();
        Box::pin(self.change(move |transaction| {
            transaction.execute_batch(TABLE)?;
            transaction.execute(ADD, [new])?;
            transaction.query_row(SECRET, [], |row| row.get(0)).optional()
        }))
    }

    fn usage(&self) -> BoxFuture<'_, Result<StoreUsage, StoreError>> {
        Box::pin(with_timeout(async move {
            const USAGE: &str = "SELECT count(*), coalesce(sum(entries), 0), min(changed_ms), \
                (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size), \
                (SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size) FROM sessions";
            let found = self.readers.read(|connection| {
                let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
                connection.query_row(USAGE, [], row)
            });
            Ok(usage(found.await?))
        }))
    }

    fn compact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let file = self.file.clone();
            let compact = tokio::task::spawn_blocking(move || file.compact());
            compact.await.unwrap_or_else(|error| Err(join_error(&error)))
        })
    }

    fn back_up<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let file = self.file.clone();
            let path = path.to_owned();
            let copy = tokio::task::spawn_blocking(move || file.copy_to(&path));
            copy.await.unwrap_or_else(|error| Err(join_error(&error)))
        })
    }
}

impl Claim for SqliteClaim {
    fn id(&self) -> &SessionId {
        &self.id
    }

    fn entries(&self) -> u64 {
        self.next
    }

    fn append<'a>(
        &'a mut self,
        entries: &'a [String],
        state: SessionState,
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            check_entries(entries)?;
            let id = self.id.clone();
            let length = self.next + entries.len() as u64;
            let is_listed = self.listed.is_enough_for(state, now_ms);
            let update = (!is_listed).then_some(SessionUpdate { state, now_ms });
            let change = Change::Append { id, first: self.next, length, lines: entries.join("\n"), update };
            if !self.writer.writer.write(change).await? {
                return Err(StoreError::Conflict { id: self.id.clone(), expected: self.next });
            }
            self.next = length;
            self.listed = update.unwrap_or(self.listed);
            Ok(())
        }))
    }

    fn attach<'a>(&'a mut self, sha256: &'a str, content: Arc<[u8]>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let change = Change::Attach { id: self.id.clone(), sha256: sha256.to_owned(), content };
            match self.writer.writer.write(change).await? {
                true => Ok(()),
                false => Err(StoreError::Conflict { id: self.id.clone(), expected: self.next }),
            }
        }))
    }

    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(with_timeout(self.writer.sync()))
    }
}

impl SyncedWriter {
    /// Waits until all commits survive a power cut. A commit itself does not wait for the disk, so this does; those who wait
    /// at the same time share it.
    async fn sync(&self) -> Result<(), StoreError> {
        let wanted = self.writer.commits();
        let mut synced = self.synced.lock().await;
        if *synced >= wanted {
            return Ok(());
        }
        let commits = self.writer.commits();
        let file = self.file.clone();
        let sync = tokio::task::spawn_blocking(move || file.sync_log());
        sync.await.unwrap_or_else(|error| Err(join_error(&error)))?;
        *synced = commits;
        Ok(())
    }
}

/// Returns the error of a blocking operation that panicked or was cancelled because the program ends.
fn join_error(error: &tokio::task::JoinError) -> StoreError {
    StoreError::Failed { message: error.to_string() }
}
