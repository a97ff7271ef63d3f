//! Sessions in a SQLite file.

use super::hold::{Hold, Taken};
use super::id::is_part;
use super::session::{Log, Row, summary, summary_columns};
use super::{CONNECT, CONNECTIONS, bounded, check, missing, signed};
use super::{Claim, NewSession, SessionId, SessionState, Store, StoreError, Stored, Summary};
use crate::tool::BoxFuture;
use futures_util::TryStreamExt;
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

/// The version of the tables, in the head of the file.
const VERSION: i64 = 1;
/// What marks the file as one of Patter: "Patr".
const APPLICATION: i64 = 0x5061_7472;
/// How long a process waits for another that writes.
const BUSY: Duration = Duration::from_secs(10);
/// After how many pages the log of SQLite is put into the file. A program that just ends leaves it, and who opens the store
/// next reads it through, so it is kept short.
const CHECKPOINT: &str = "100";
/// The pause between two tries to do what cannot be waited for.
const PAUSE: Duration = Duration::from_millis(10);
/// The folder that projects keep out of their history.
const FOLDER: &str = ".patter";

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

/// A SQLite file with sessions.
///
/// A claim is a lock of the system on a small file beside it, which is there while the claim is.
pub(super) struct SqliteStore {
    file: Arc<SqliteFile>,
}

struct SqliteFile {
    /// Where it really is, so that its names have one lock.
    path: PathBuf,
    pool: SqlitePool,
    /// One writes at a time. Those of other processes are waited for by trying again and again; here there is a queue.
    writer: Semaphore,
}

struct SqliteClaim {
    id: SessionId,
    next: u64,
    file: Arc<SqliteFile>,
    _hold: Hold,
}

impl SqliteStore {
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        let unusable = |error: io::Error| StoreError::Unusable {
            message: format!("the store of sessions `{}` cannot be opened: {error}", path.display()),
            hint: None,
        };
        let path = make(path).map_err(unusable)?;
        let options = SqliteConnectOptions::new().filename(&path).busy_timeout(BUSY);
        let options = options.synchronous(SqliteSynchronous::Normal).pragma("wal_autocheckpoint", CHECKPOINT);
        let options = options.disable_statement_logging();
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT);
        let pool = pool.test_before_acquire(false).idle_timeout(None).max_lifetime(None).connect_lazy_with(options);
        let file = SqliteFile { path, pool, writer: Semaphore::new(1) };
        bounded(file.prepare()).await?;
        Ok(Self { file: Arc::new(file) })
    }

    async fn absent(&self, id: &SessionId) -> StoreError {
        missing(self, id.as_str()).await
    }
}

impl Store for SqliteStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(bounded(async move {
            const CREATE: &str = "INSERT INTO sessions (id, agent, title, created_ms, changed_ms, entries, state, \
                                  forked_from) VALUES (?1, ?2, ?3, ?4, ?4, 0, ?5, ?6) ON CONFLICT DO NOTHING";
            let (_turn, mut transaction) = self.file.write().await?;
            let query = sqlx::query(CREATE).bind(new.id.as_str()).bind(new.agent()).bind(new.title());
            let query = query.bind(signed(now_ms)).bind(SessionState::Idle.as_str());
            let query = query.bind(new.forked_from.as_ref().map(SessionId::as_str));
            let done = query.execute(&mut *transaction).await.map_err(|error| self.file.failed(&error))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::Exists { id: new.id });
            }
            // The lock is taken before anybody else can see the session.
            let hold = self.file.hold(&new.id)?;
            transaction.commit().await.map_err(|error| self.file.failed(&error))?;
            Ok(Box::new(SqliteClaim { id: new.id, next: 0, file: self.file.clone(), _hold: hold }) as Box<dyn Claim>)
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(bounded(async move {
            let hold = self.file.hold(id)?;
            let query = sqlx::query_scalar::<_, i64>("SELECT entries FROM sessions WHERE id = ?1").bind(id.as_str());
            let entries = query.fetch_optional(&self.file.pool).await.map_err(|error| self.file.failed(&error))?;
            let Some(next) = entries.and_then(|entries| u64::try_from(entries).ok()) else {
                return Err(self.absent(id).await);
            };
            Ok(Box::new(SqliteClaim { id: id.clone(), next, file: self.file.clone(), _hold: hold }) as Box<dyn Claim>)
        }))
    }

    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Stored, StoreError>> {
        Box::pin(bounded(async move {
            const SUMMARY: &str = concat!("SELECT ", summary_columns!(), " FROM sessions WHERE id = ?1");
            const ENTRIES: &str = "SELECT number, entry FROM entries WHERE session = ?1 ORDER BY number";
            let failed = |error: sqlx::Error| self.file.failed(&error);
            // Both are read in one transaction, so that they are of one moment.
            let mut transaction = self.file.pool.begin().await.map_err(failed)?;
            let query = sqlx::query_as::<_, Row>(SUMMARY).bind(id.as_str());
            let Some(row) = query.fetch_optional(&mut *transaction).await.map_err(failed)? else {
                drop(transaction);
                return Err(self.absent(id).await);
            };
            let mut log = Log::new(summary(row)?);
            let mut rows = sqlx::query_as::<_, (i64, String)>(ENTRIES).bind(id.as_str()).fetch(&mut *transaction);
            while let Some(row) = rows.try_next().await.map_err(failed)? {
                log.push(row)?;
            }
            log.end()
        }))
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Summary>, StoreError>> {
        Box::pin(bounded(async move {
            const LIST: &str =
                concat!("SELECT ", summary_columns!(), " FROM sessions ORDER BY changed_ms DESC, id DESC LIMIT ?1");
            let query = sqlx::query_as::<_, Row>(LIST).bind(signed(limit as u64));
            let rows = query.fetch_all(&self.file.pool).await.map_err(|error| self.file.failed(&error))?;
            rows.into_iter().map(summary).collect()
        }))
    }

    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(bounded(async move {
            // `{` comes after all that ids are made of.
            const IDS: &str = "SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || '{' ORDER BY id LIMIT ?2";
            if !is_part(prefix) {
                return Ok(Vec::new());
            }
            let query = sqlx::query_scalar::<_, String>(IDS).bind(prefix).bind(signed(limit as u64));
            let ids = query.fetch_all(&self.file.pool).await.map_err(|error| self.file.failed(&error))?;
            ids.iter().map(|id| SessionId::parse(id)).collect()
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(bounded(async move {
            let _hold = self.file.hold(id)?;
            let (turn, mut transaction) = self.file.write().await?;
            let query = sqlx::query("DELETE FROM sessions WHERE id = ?1").bind(id.as_str());
            let done = query.execute(&mut *transaction).await.map_err(|error| self.file.failed(&error))?;
            transaction.commit().await.map_err(|error| self.file.failed(&error))?;
            drop(turn);
            match done.rows_affected() {
                0 => Err(self.absent(id).await),
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
        Box::pin(bounded(async move {
            const MOVE: &str = "UPDATE sessions SET entries = ?1, state = ?2, changed_ms = ?3 \
                                WHERE id = ?4 AND entries = ?5";
            const ADD: &str = "INSERT INTO entries (session, number, entry) VALUES (?1, ?2, ?3)";
            check(entries)?;
            let failed = |error: sqlx::Error| match is_unique_violation(&error) {
                true => StoreError::Conflict { id: self.id.clone(), expected: self.next },
                false => self.file.failed(&error),
            };
            let (_turn, mut transaction) = self.file.write().await?;
            let next = self.next + entries.len() as u64;
            let query = sqlx::query(MOVE).bind(signed(next)).bind(state.as_str()).bind(signed(now_ms));
            let query = query.bind(self.id.as_str()).bind(signed(self.next));
            if query.execute(&mut *transaction).await.map_err(failed)?.rows_affected() == 0 {
                return Err(StoreError::Conflict { id: self.id.clone(), expected: self.next });
            }
            for (number, entry) in (self.next..).zip(entries) {
                let query = sqlx::query(ADD).bind(self.id.as_str()).bind(signed(number)).bind(entry.as_str());
                query.execute(&mut *transaction).await.map_err(failed)?;
            }
            transaction.commit().await.map_err(failed)?;
            self.next = next;
            Ok(())
        }))
    }
}

impl SqliteFile {
    /// Makes the tables, where the file is empty, and refuses a file that is not ours. Such a file is not changed.
    async fn prepare(&self) -> Result<(), StoreError> {
        let failed = |error: sqlx::Error| self.failed(&error);
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        if self.is_ready(&mut connection).await? {
            return Ok(());
        }
        // This cannot be waited for as for other locks, where several processes begin at once.
        loop {
            match sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await {
                Err(error) if code(&error) == Some(5) => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(failed(error)),
                Ok(_) => break,
            }
        }
        drop(connection);
        let (_turn, mut transaction) = self.write().await?;
        if !self.is_ready(&mut transaction).await? {
            sqlx::raw_sql(TABLES).execute(&mut *transaction).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    /// Returns whether the file has our tables, or fails where it has others.
    async fn is_ready(&self, connection: &mut SqliteConnection) -> Result<bool, StoreError> {
        const HEAD: &str = "SELECT (SELECT application_id FROM pragma_application_id), \
                            (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";
        let query = sqlx::query_as::<_, (i64, i64, i64)>(HEAD);
        match query.fetch_one(connection).await.map_err(|error| self.failed(&error))? {
            (APPLICATION, VERSION, _) => Ok(true),
            (APPLICATION, version, _) if version > VERSION => {
                Err(self.unusable("is of a newer version of Patter", "update Patter, or name another file"))
            }
            (_, _, 0) => Ok(false),
            _ => Err(self.unusable("is a database of something else", "name another file; this one was not changed")),
        }
    }

    /// Begins to write, when it is its turn.
    async fn write(&self) -> Result<(SemaphorePermit<'_>, Transaction<'static, Sqlite>), StoreError> {
        let closed = |_| StoreError::Failed { message: "it is closed".to_owned() };
        let turn = self.writer.acquire().await.map_err(closed)?;
        let transaction = self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(|error| self.failed(&error))?;
        Ok((turn, transaction))
    }

    /// Takes the lock of a session.
    fn hold(&self, id: &SessionId) -> Result<Hold, StoreError> {
        let mut path = OsString::from(&self.path);
        path.push(format!(".{id}.lock"));
        match Hold::take(Path::new(&path)) {
            Ok(Taken::Held(hold)) => Ok(hold),
            Ok(Taken::Busy(holder)) => Err(StoreError::Busy { id: id.clone(), holder }),
            Err(error) => Err(StoreError::Unusable {
                message: format!("session `{id}` cannot be claimed: `{}`: {error}", path.display()),
                hint: None,
            }),
        }
    }

    fn unusable(&self, what: &str, hint: &str) -> StoreError {
        let message = format!("the store of sessions `{}` {what}", self.path.display());
        StoreError::Unusable { message, hint: Some(hint.to_owned()) }
    }

    /// Puts a failure into words. The codes are those of <https://sqlite.org/rescode.html>.
    fn failed(&self, error: &sqlx::Error) -> StoreError {
        match code(error) {
            Some(5 | 6) => self.unusable("is locked by another program", "try again when that has ended"),
            Some(8) => self.unusable("is read-only", "allow this user to write to it, or name another file"),
            Some(11) => self.unusable("is damaged", "name another file, or recover it with `sqlite3 FILE .recover`"),
            Some(13) => self.unusable("cannot grow: the disk is full", "make room, and try again"),
            Some(14) => self.unusable("cannot be opened", "allow this user to write to the file and to its folder"),
            Some(26) => self.unusable("is no database", "name another file; this one was not changed"),
            _ => StoreError::Failed { message: format!("`{}`: {error}", self.path.display()) },
        }
    }
}

/// Makes the file and its folder, where they are missing, and returns where it really is.
fn make(path: &Path) -> io::Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.is_dir()
    {
        make_folder(folder)?;
    }
    // The files that SQLite puts beside it get the same mode.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => match path.exists() {
            true => fs::canonicalize(path),
            false => Err(error),
        },
        _ => fs::canonicalize(path),
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        // Somebody else was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return if folder.is_dir() { Ok(()) } else { Err(ErrorKind::NotADirectory.into()) };
        }
        made => made?,
    }
    if folder.file_name().is_some_and(|name| name == FOLDER) {
        OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore"))?.write_all(b"*\n")?;
    }
    Ok(())
}

fn is_unique_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Returns the primary code of SQLite that an error has.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
