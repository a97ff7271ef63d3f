//! Sessions in a SQLite file.

mod file;

use self::file::SqliteFile;
use super::backend::{Claim, Store};
use super::error::StoreError;
use super::find::not_found;
use super::id::{SessionId, is_id_text};
use super::limit::with_timeout;
use super::lock_file::LockFile;
use super::row::{
    EntryRow, SummaryRow, check_entries, is_unique_violation, session_ids, stored_session, summaries, summary_columns,
    to_i64,
};
use super::session::{NewSession, SessionState, SessionSummary, StoredSession};
use crate::tool::BoxFuture;
use sqlx::{Connection, SqliteConnection};
use std::path::Path;
use std::sync::Arc;

/// A session store in a SQLite file.
///
/// A claim is a locked file beside it, which exists as long as the claim.
pub(super) struct SqliteStore {
    file: Arc<SqliteFile>,
}

struct SqliteClaim {
    id: SessionId,
    next: u64,
    file: Arc<SqliteFile>,
    _lock: LockFile,
}

impl SqliteStore {
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { file: Arc::new(with_timeout(SqliteFile::open(path)).await?) })
    }

    fn claimed(&self, id: SessionId, next: u64, lock: LockFile) -> Box<dyn Claim> {
        tracing::debug!(session = %id, entries = next, "session claimed");
        Box::new(SqliteClaim { id, next, file: Arc::clone(&self.file), _lock: lock })
    }

    async fn entries(&self, id: &SessionId) -> Result<Option<u64>, StoreError> {
        let query = sqlx::query_scalar::<_, i64>("SELECT entries FROM sessions WHERE id = ?1").bind(id.as_str());
        let mut reader = self.file.reader().await?;
        let entries = query.fetch_optional(&mut *reader).await.map_err(|error| self.file.failed(&error))?;
        Ok(entries.and_then(|entries| u64::try_from(entries).ok()))
    }

    /// Locks a session to create it.
    async fn lock_new(&self, id: &SessionId) -> Result<LockFile, StoreError> {
        match self.file.try_lock(id).await {
            Err(StoreError::Busy { .. }) if self.entries(id).await?.is_some() => {
                Err(StoreError::Exists { id: id.clone() })
            }
            Err(StoreError::Busy { .. }) => self.file.lock(id).await,
            locked => locked,
        }
    }
}

impl Store for SqliteStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            const CREATE: &str = "INSERT INTO sessions (id, agent, title, created_ms, changed_ms, entries, state, \
                                  forked_from) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
            check_entries(&new.entries)?;
            let failed = |error: sqlx::Error| self.file.failed(&error);
            // Locked before anyone else can see the session.
            let lock = self.lock_new(&new.id).await?;
            let next = new.entries.len() as u64;
            let mut writer = self.file.writer().await;
            let mut transaction = writer.begin().await?;
            let query = sqlx::query(CREATE).bind(new.id.as_str()).bind(new.agent()).bind(new.title());
            let query = query.bind(to_i64(now_ms)).bind(to_i64(next)).bind(new.state.as_str());
            let query = query.bind(new.forked_from.as_ref().map(SessionId::as_str));
            if query.execute(&mut *transaction).await.map_err(failed)?.rows_affected() == 0 {
                return Err(StoreError::Exists { id: new.id });
            }
            insert_entries(&mut transaction, &new.id, 0, &new.entries).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            writer.verify(&new.id, next).await?;
            drop(writer);
            Ok(self.claimed(new.id, next, lock))
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            let lock = self.file.lock(id).await?;
            match self.entries(id).await? {
                Some(next) => Ok(self.claimed(id.clone(), next, lock)),
                None => Err(not_found(self, id.as_str()).await),
            }
        }))
    }

    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        Box::pin(with_timeout(async move {
            const SUMMARY: &str = concat!("SELECT ", summary_columns!(), " FROM sessions WHERE id = ?1");
            const ENTRIES: &str = "SELECT number, entry FROM entries WHERE session = ?1 ORDER BY number";
            let failed = |error: sqlx::Error| self.file.failed(&error);
            // One transaction, so that summary and entries are consistent.
            let mut reader = self.file.reader().await?;
            let mut transaction = reader.begin().await.map_err(failed)?;
            let query = sqlx::query_as::<_, SummaryRow>(SUMMARY).bind(id.as_str());
            let Some(row) = query.fetch_optional(&mut *transaction).await.map_err(failed)? else {
                drop(transaction);
                drop(reader);
                return Err(not_found(self, id.as_str()).await);
            };
            let rows = sqlx::query_as::<_, EntryRow>(ENTRIES).bind(id.as_str()).fetch(&mut *transaction);
            stored_session(row, rows, failed).await
        }))
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str =
                concat!("SELECT ", summary_columns!(), " FROM sessions ORDER BY changed_ms DESC, id DESC LIMIT ?1");
            let query = sqlx::query_as::<_, SummaryRow>(LIST).bind(to_i64(limit as u64));
            let mut reader = self.file.reader().await?;
            let rows = query.fetch_all(&mut *reader).await.map_err(|error| self.file.failed(&error))?;
            summaries(rows)
        }))
    }

    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(with_timeout(async move {
            // `{` sorts after every character of ids.
            const IDS: &str = "SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || '{' ORDER BY id LIMIT ?2";
            if !is_id_text(prefix) {
                return Ok(Vec::new());
            }
            let query = sqlx::query_scalar::<_, String>(IDS).bind(prefix).bind(to_i64(limit as u64));
            let mut reader = self.file.reader().await?;
            let ids = query.fetch_all(&mut *reader).await.map_err(|error| self.file.failed(&error))?;
            session_ids(&ids)
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.file.failed(&error);
            let _lock = self.file.lock(id).await?;
            let mut writer = self.file.writer().await;
            let mut transaction = writer.begin().await?;
            let query = sqlx::query("DELETE FROM sessions WHERE id = ?1").bind(id.as_str());
            let done = query.execute(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            drop(writer);
            match done.rows_affected() {
                0 => Err(not_found(self, id.as_str()).await),
                _ => Ok(()),
            }
        }))
    }

    fn back_up<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.file.copy_to(path))
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
            const UPDATE: &str = "UPDATE sessions SET entries = ?1, state = ?2, changed_ms = ?3 \
                                WHERE id = ?4 AND entries = ?5";
            check_entries(entries)?;
            let conflict = || StoreError::Conflict { id: self.id.clone(), expected: self.next };
            let failed = |error: sqlx::Error| match is_unique_violation(&error) {
                true => conflict(),
                false => self.file.failed(&error),
            };
            let mut writer = self.file.writer().await;
            let mut transaction = writer.begin().await?;
            let next = self.next + entries.len() as u64;
            let query = sqlx::query(UPDATE).bind(to_i64(next)).bind(state.as_str()).bind(to_i64(now_ms));
            let query = query.bind(self.id.as_str()).bind(to_i64(self.next));
            if query.execute(&mut *transaction).await.map_err(failed)?.rows_affected() == 0 {
                return Err(conflict());
            }
            insert_entries(&mut transaction, &self.id, self.next, entries).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            writer.verify(&self.id, next).await?;
            drop(writer);
            self.next = next;
            Ok(())
        }))
    }

    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(with_timeout(self.file.sync()))
    }
}

async fn insert_entries(
    connection: &mut SqliteConnection,
    id: &SessionId,
    first: u64,
    entries: &[String],
) -> Result<(), sqlx::Error> {
    const INSERT: &str = "INSERT INTO entries (session, number, entry) VALUES (?1, ?2, ?3)";
    for (number, entry) in (first..).zip(entries) {
        let query = sqlx::query(INSERT).bind(id.as_str()).bind(to_i64(number)).bind(entry.as_str());
        query.execute(&mut *connection).await?;
    }
    Ok(())
}
