//! Sessions in a SQLite file.

use super::backend::{Claim, Store};
use super::error::StoreError;
use super::find::not_found;
use super::id::{SessionId, is_id_text};
use super::limit::{CONNECT_TIMEOUT, MAX_CONNECTIONS, with_timeout};
use super::lock_file::{LockAttempt, LockFile};
use super::row::{
    EntryRow, SummaryRow, check_entries, is_unique_violation, session_ids, stored_session, summaries, summary_columns,
    to_i64,
};
use super::session::{NewSession, SessionState, SessionSummary, StoredSession};
use crate::os_error::describe;
use crate::tool::BoxFuture;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Sqlite, SqliteConnection, Transaction};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The version of the tables, in the file header.
const VERSION: i64 = 1;
/// The application id in the file header: "Patr".
const APPLICATION: i64 = 0x5061_7472;
/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of pages after which SQLite moves its write-ahead log into the file. A process that just exits leaves the
/// log behind, and the next one reads all of it, so it is kept short.
const CHECKPOINT_PAGES: &str = "100";
/// The pause between attempts to switch the journal mode.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// The folder that is kept out of version control.
const IGNORED_FOLDER: &str = ".patter";

const TABLES: &str = "
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY NOT NULL,
        agent TEXT NOT NULL,
        title TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        state TEXT NOT NULL,
        forked_from TEXT
    ) STRICT;
    CREATE INDEX sessions_by_change ON sessions (changed_ms, id);
    CREATE TABLE entries (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (session, number)
    ) STRICT;
    PRAGMA application_id = 0x50617472;
    PRAGMA user_version = 1;
";

/// A session store in a SQLite file.
///
/// A claim is a locked file beside it, which exists as long as the claim.
pub(super) struct SqliteStore {
    file: Arc<SqliteFile>,
}

struct SqliteFile {
    /// The canonical path, so that all names of the file share one lock.
    path: PathBuf,
    pool: SqlitePool,
    /// Queues the writers of this process; SQLite only polls.
    writer: Semaphore,
}

struct SqliteClaim {
    id: SessionId,
    next: u64,
    file: Arc<SqliteFile>,
    _lock: LockFile,
}

impl SqliteStore {
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        let unusable = |error: io::Error| StoreError::Unusable {
            message: format!("cannot open the session store `{}`: {}", path.display(), describe(&error)),
            hint: None,
        };
        let path = create_file(path).map_err(unusable)?;
        let options = SqliteConnectOptions::new().filename(&path).busy_timeout(BUSY_TIMEOUT);
        let options = options.synchronous(SqliteSynchronous::Normal).pragma("wal_autocheckpoint", CHECKPOINT_PAGES);
        let options = options.disable_statement_logging();
        let pool = SqlitePoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(CONNECT_TIMEOUT);
        let pool = pool.test_before_acquire(false).idle_timeout(None).max_lifetime(None).connect_lazy_with(options);
        let file = SqliteFile { path, pool, writer: Semaphore::new(1) };
        with_timeout(file.prepare()).await?;
        Ok(Self { file: Arc::new(file) })
    }
}

impl Store for SqliteStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            const CREATE: &str = "INSERT INTO sessions (id, agent, title, created_ms, changed_ms, entries, state, \
                                  forked_from) VALUES (?1, ?2, ?3, ?4, ?4, 0, ?5, ?6) ON CONFLICT DO NOTHING";
            let (_permit, mut transaction) = self.file.write().await?;
            let query = sqlx::query(CREATE).bind(new.id.as_str()).bind(new.agent()).bind(new.title());
            let query = query.bind(to_i64(now_ms)).bind(SessionState::Idle.as_str());
            let query = query.bind(new.forked_from.as_ref().map(SessionId::as_str));
            let done = query.execute(&mut *transaction).await.map_err(|error| self.file.failed(&error))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::Exists { id: new.id });
            }
            // Locked before anyone else can see the session.
            let lock = self.file.lock(&new.id)?;
            transaction.commit().await.map_err(|error| self.file.failed(&error))?;
            Ok(Box::new(SqliteClaim { id: new.id, next: 0, file: self.file.clone(), _lock: lock }) as Box<dyn Claim>)
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            let lock = self.file.lock(id)?;
            let query = sqlx::query_scalar::<_, i64>("SELECT entries FROM sessions WHERE id = ?1").bind(id.as_str());
            let entries = query.fetch_optional(&self.file.pool).await.map_err(|error| self.file.failed(&error))?;
            let Some(next) = entries.and_then(|entries| u64::try_from(entries).ok()) else {
                return Err(not_found(self, id.as_str()).await);
            };
            tracing::debug!(session = %id, entries = next, "session claimed");
            Ok(Box::new(SqliteClaim { id: id.clone(), next, file: self.file.clone(), _lock: lock }) as Box<dyn Claim>)
        }))
    }

    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        Box::pin(with_timeout(async move {
            const SUMMARY: &str = concat!("SELECT ", summary_columns!(), " FROM sessions WHERE id = ?1");
            const ENTRIES: &str = "SELECT number, entry FROM entries WHERE session = ?1 ORDER BY number";
            let failed = |error: sqlx::Error| self.file.failed(&error);
            // One transaction, so that summary and entries are consistent.
            let mut transaction = self.file.pool.begin().await.map_err(failed)?;
            let query = sqlx::query_as::<_, SummaryRow>(SUMMARY).bind(id.as_str());
            let Some(row) = query.fetch_optional(&mut *transaction).await.map_err(failed)? else {
                drop(transaction);
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
            let rows = query.fetch_all(&self.file.pool).await.map_err(|error| self.file.failed(&error))?;
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
            let ids = query.fetch_all(&self.file.pool).await.map_err(|error| self.file.failed(&error))?;
            session_ids(&ids)
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let _lock = self.file.lock(id)?;
            let (permit, mut transaction) = self.file.write().await?;
            let query = sqlx::query("DELETE FROM sessions WHERE id = ?1").bind(id.as_str());
            let done = query.execute(&mut *transaction).await.map_err(|error| self.file.failed(&error))?;
            transaction.commit().await.map_err(|error| self.file.failed(&error))?;
            drop(permit);
            match done.rows_affected() {
                0 => Err(not_found(self, id.as_str()).await),
                _ => Ok(()),
            }
        }))
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
            const INSERT: &str = "INSERT INTO entries (session, number, entry) VALUES (?1, ?2, ?3)";
            check_entries(entries)?;
            let failed = |error: sqlx::Error| match is_unique_violation(&error) {
                true => StoreError::Conflict { id: self.id.clone(), expected: self.next },
                false => self.file.failed(&error),
            };
            let (_permit, mut transaction) = self.file.write().await?;
            let next = self.next + entries.len() as u64;
            let query = sqlx::query(UPDATE).bind(to_i64(next)).bind(state.as_str()).bind(to_i64(now_ms));
            let query = query.bind(self.id.as_str()).bind(to_i64(self.next));
            if query.execute(&mut *transaction).await.map_err(failed)?.rows_affected() == 0 {
                return Err(StoreError::Conflict { id: self.id.clone(), expected: self.next });
            }
            for (number, entry) in (self.next..).zip(entries) {
                let query = sqlx::query(INSERT).bind(self.id.as_str()).bind(to_i64(number)).bind(entry.as_str());
                query.execute(&mut *transaction).await.map_err(failed)?;
            }
            transaction.commit().await.map_err(failed)?;
            self.next = next;
            Ok(())
        }))
    }
}

impl SqliteFile {
    /// Creates the tables if the file is empty. Refuses a file that is not a session store, without changing it.
    async fn prepare(&self) -> Result<(), StoreError> {
        let failed = |error: sqlx::Error| self.failed(&error);
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        if self.is_ready(&mut connection).await? {
            return Ok(());
        }
        // SQLite does not wait for this lock as for others, if several processes start at once.
        loop {
            match sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await {
                Err(error) if code(&error) == Some(5) => tokio::time::sleep(RETRY_PAUSE).await,
                Err(error) => return Err(failed(error)),
                Ok(_) => break,
            }
        }
        drop(connection);
        let (_permit, mut transaction) = self.write().await?;
        if !self.is_ready(&mut transaction).await? {
            sqlx::raw_sql(TABLES).execute(&mut *transaction).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    /// Returns whether the file has the tables. Fails if it has other content.
    async fn is_ready(&self, connection: &mut SqliteConnection) -> Result<bool, StoreError> {
        const HEAD: &str = "SELECT (SELECT application_id FROM pragma_application_id), \
                            (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";
        let query = sqlx::query_as::<_, (i64, i64, i64)>(HEAD);
        match query.fetch_one(connection).await.map_err(|error| self.failed(&error))? {
            (APPLICATION, VERSION, _) => Ok(true),
            (APPLICATION, version, _) if version > VERSION => {
                Err(self.unusable("was created by a newer version of Patter", "update Patter, or use another file"))
            }
            (_, _, 0) => Ok(false),
            _ => Err(self.unusable("is not a Patter database", "use another file; this one was not changed")),
        }
    }

    /// Begins a write transaction when it is this writer's turn.
    async fn write(&self) -> Result<(SemaphorePermit<'_>, Transaction<'static, Sqlite>), StoreError> {
        let closed = |_| StoreError::Failed { message: "the store is closed".to_owned() };
        let permit = self.writer.acquire().await.map_err(closed)?;
        let transaction = self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(|error| self.failed(&error))?;
        Ok((permit, transaction))
    }

    /// Locks a session.
    fn lock(&self, id: &SessionId) -> Result<LockFile, StoreError> {
        let mut path = OsString::from(&self.path);
        path.push(format!(".{id}.lock"));
        match LockFile::acquire(Path::new(&path)) {
            Ok(LockAttempt::Acquired(lock)) => Ok(lock),
            Ok(LockAttempt::Busy(holder)) => Err(StoreError::Busy { id: id.clone(), holder }),
            Err(error) => Err(StoreError::Unusable {
                message: format!("cannot claim session `{id}`: cannot lock `{}`: {}", path.display(), describe(&error)),
                hint: None,
            }),
        }
    }

    fn unusable(&self, problem: &str, hint: &str) -> StoreError {
        let message = format!("the session store `{}` {problem}", self.path.display());
        StoreError::Unusable { message, hint: Some(hint.to_owned()) }
    }

    /// Translates an error. See <https://sqlite.org/rescode.html> for the codes.
    fn failed(&self, error: &sqlx::Error) -> StoreError {
        match code(error) {
            Some(5 | 6) => self.unusable("is locked by another program", "try again later"),
            Some(8) => self.unusable("is read-only", "allow this user to write to it, or use another file"),
            Some(11) => self.unusable("is damaged", "use another file, or recover it with `sqlite3 FILE .recover`"),
            Some(13) => self.unusable("cannot grow: the disk is full", "free some disk space and try again"),
            Some(14) => self.unusable("cannot be opened", "allow this user to write to the file and its folder"),
            Some(26) => self.unusable("is not a database", "use another file; this one was not changed"),
            _ => StoreError::Failed { message: format!("`{}`: {error}", self.path.display()) },
        }
    }
}

/// Creates the file and its folder if they are missing, and returns the canonical path.
fn create_file(path: &Path) -> io::Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.is_dir()
    {
        create_folder(folder)?;
    }
    // SQLite gives the files that it creates beside it the same mode.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => match path.exists() {
            true => fs::canonicalize(path),
            false => Err(error),
        },
        _ => fs::canonicalize(path),
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return if folder.is_dir() { Ok(()) } else { Err(ErrorKind::NotADirectory.into()) };
        }
        created => created?,
    }
    if folder.file_name().is_some_and(|name| name == IGNORED_FOLDER) {
        OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore"))?.write_all(b"*\n")?;
    }
    Ok(())
}

/// Returns the primary result code of an error.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
