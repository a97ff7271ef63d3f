//! The SQLite file: how it is opened, written, synced and copied, and what its errors mean.

use crate::os_error::describe;
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::limit::{
    CONNECT_TIMEOUT, LOCK_PAUSES_MS, MAX_CONNECTIONS, RETRY_PAUSE, has_no_descriptors, is_out_of_descriptors,
    out_of_descriptors,
};
use crate::store::lock_file::{LockAttempt, LockFile, LockFiles};
use crate::store::row::to_i64;
use rustix::process::{Resource, getrlimit};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteConnection, Transaction};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The version of the tables, in the file header.
const VERSION: i64 = 1;
/// The application id in the file header: "Patr".
const APPLICATION: i64 = 0x5061_7472;
/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for others to close files.
const DESCRIPTOR_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of pages after which SQLite moves its write-ahead log into the file. A process that just exits leaves the
/// log behind, and the next one reads all of it, so it is kept short.
const CHECKPOINT_PAGES: &str = "100";
/// The folder that is kept out of version control.
const IGNORED_FOLDER: &str = ".patter";
/// The endings of the files that make up the database: the file itself, its write-ahead log, and the index of that.
const PARTS: [&str; 3] = ["", "-wal", "-shm"];

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

/// An open SQLite file.
pub(super) struct SqliteFile {
    /// The canonical path, so that all names of the file share one lock.
    path: PathBuf,
    options: SqliteConnectOptions,
    readers: SqlitePool,
    writer: Mutex<WriterState>,
    locks: LockFiles,
    /// The number of commits.
    commits: AtomicU64,
    /// The number of commits that survive a power cut.
    synced: Mutex<u64>,
}

/// The connection that writes. It stays open as long as the store, so the files of the database stay the same ones.
struct WriterState {
    connection: SqliteConnection,
    /// The files, as far as they have been seen.
    files: [Option<FileId>; PARTS.len()],
    /// When the file had changed the last time it was checked.
    changed: Option<(i64, i64)>,
}

/// A file, whatever its name.
type FileId = (u64, u64);

/// The turn of a writer. SQLite only polls, so the writers of this process queue here.
pub(super) struct Writer<'f> {
    file: &'f SqliteFile,
    state: MutexGuard<'f, WriterState>,
}

impl SqliteFile {
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        let unusable = |error: io::Error| match is_out_of_descriptors(&error) {
            true => out_of_descriptors(&path.display().to_string()),
            false => StoreError::Unusable {
                message: format!("cannot open the session store `{}`: {}", path.display(), describe(&error)),
                hint: None,
            },
        };
        let path = create_file(path).map_err(unusable)?;
        let options = SqliteConnectOptions::new().filename(&path).busy_timeout(BUSY_TIMEOUT);
        let options = options.synchronous(SqliteSynchronous::Normal).pragma("wal_autocheckpoint", CHECKPOINT_PAGES);
        let options = options.pragma("temp_store", "memory").disable_statement_logging();
        let readers = SqlitePoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(CONNECT_TIMEOUT);
        let readers = readers.test_before_acquire(false).idle_timeout(None).max_lifetime(None);
        let readers = readers.connect_lazy_with(options.clone());
        let connection = options.connect().await.map_err(|error| failed(&path, &error))?;
        let writer = Mutex::new(WriterState { connection, files: [None; PARTS.len()], changed: None });
        let locks = LockFiles::default();
        let file = Self { path, options, readers, writer, locks, commits: AtomicU64::new(0), synced: Mutex::new(0) };
        file.prepare().await?;
        Ok(file)
    }

    /// Returns a connection for reading. Waits if this process has too many open files.
    pub(super) async fn reader(&self) -> Result<PoolConnection<Sqlite>, StoreError> {
        let deadline = Instant::now() + DESCRIPTOR_TIMEOUT;
        loop {
            match self.readers.acquire().await {
                Err(_) if has_no_descriptors() && Instant::now() < deadline => tokio::time::sleep(RETRY_PAUSE).await,
                reader => return reader.map_err(|error| self.failed(&error)),
            }
        }
    }

    /// Waits for the turn of a writer.
    pub(super) async fn writer(&self) -> Writer<'_> {
        Writer { file: self, state: self.writer.lock().await }
    }

    /// Creates the tables if the file is empty. Refuses a file that is not a session store, without changing it.
    async fn prepare(&self) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let (is_ready, is_wal) = self.head(&mut writer.state.connection).await?;
        if !is_wal {
            match self.use_write_ahead_log(&mut writer.state.connection).await {
                // A store that cannot be written can still be read.
                Err(_) if is_ready => {}
                switched => switched?,
            }
        }
        if !is_ready {
            let mut transaction = writer.begin().await?;
            if !self.head(&mut transaction).await?.0 {
                sqlx::raw_sql(TABLES).execute(&mut *transaction).await.map_err(|error| self.failed(&error))?;
            }
            transaction.commit().await.map_err(|error| self.failed(&error))?;
        }
        writer.state.changed = writer.verify_files()?;
        Ok(())
    }

    async fn use_write_ahead_log(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        // SQLite does not wait for this lock as for others, if several processes start at once.
        loop {
            match sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await {
                Err(error) if code(&error) == Some(5) => tokio::time::sleep(RETRY_PAUSE).await,
                Err(error) => return Err(self.failed(&error)),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Returns whether the file has the tables, and whether it uses a write-ahead log. Fails if it has other content.
    async fn head(&self, connection: &mut SqliteConnection) -> Result<(bool, bool), StoreError> {
        const HEAD: &str = "SELECT (SELECT application_id FROM pragma_application_id), \
                            (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema), \
                            (SELECT journal_mode FROM pragma_journal_mode)";
        let query = sqlx::query_as::<_, (i64, i64, i64, String)>(HEAD);
        let (application, version, tables, mode) =
            query.fetch_one(connection).await.map_err(|error| self.failed(&error))?;
        match (application, version, tables) {
            (APPLICATION, VERSION, _) => Ok((true, mode == "wal")),
            (APPLICATION, version, _) if version > VERSION => {
                Err(self.unusable("was created by a newer version of Patter", "update Patter, or use another file"))
            }
            (_, _, 0) => Ok((false, mode == "wal")),
            _ => Err(self.unusable("is not a Patter database", "use another file; this one was not changed")),
        }
    }

    /// Locks a session. Waits a moment for a holder that was just killed.
    pub(super) async fn lock(&self, id: &SessionId) -> Result<LockFile, StoreError> {
        for pause in LOCK_PAUSES_MS {
            match self.try_lock(id).await {
                Err(StoreError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(pause)).await,
                locked => return locked,
            }
        }
        self.try_lock(id).await
    }

    /// Locks a session unless it is busy. Waits if this process has too many open files.
    pub(super) async fn try_lock(&self, id: &SessionId) -> Result<LockFile, StoreError> {
        let path = self.path_with(&format!(".{id}.lock"));
        let deadline = Instant::now() + DESCRIPTOR_TIMEOUT;
        loop {
            match self.locks.acquire(&path) {
                Ok(LockAttempt::Acquired(lock)) => return Ok(lock),
                Ok(LockAttempt::Busy(holder)) => return Err(StoreError::Busy { id: id.clone(), holder }),
                Err(error) if is_out_of_descriptors(&error) => match Instant::now() < deadline {
                    true => tokio::time::sleep(RETRY_PAUSE).await,
                    false => return Err(out_of_descriptors(&self.path.display().to_string())),
                },
                Err(error) => {
                    let path = path.display();
                    let error = describe(&error);
                    let message = format!("cannot claim session `{id}`: cannot lock `{path}`: {error}");
                    return Err(StoreError::Unusable { message, hint: None });
                }
            }
        }
    }

    /// Waits until all commits survive a power cut. A commit itself does not wait for the disk, so this does; those who wait
    /// at the same time share it.
    pub(super) async fn sync(&self) -> Result<(), StoreError> {
        let wanted = self.commits.load(Ordering::Acquire);
        let mut synced = self.synced.lock().await;
        if *synced >= wanted {
            return Ok(());
        }
        let commits = self.commits.load(Ordering::Acquire);
        // What is no longer in the write-ahead log was synced when SQLite moved it. Closing the log is harmless, unlike
        // closing the other two files, which would release SQLite's locks.
        let path = self.path_with("-wal");
        let sync = tokio::task::spawn_blocking(move || match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            log => log?.sync_data(),
        });
        let result = sync.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        result.map_err(|error| self.unusable(&format!("cannot be synced: {}", describe(&error)), "check the disk"))?;
        *synced = commits;
        Ok(())
    }

    /// Copies the database to a new file, as it is at one moment.
    pub(super) async fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let unusable = |error: io::Error| {
            let hint = (error.kind() == ErrorKind::AlreadyExists).then(|| "name another file".to_owned());
            let message = format!("cannot write the copy `{}`: {}", path.display(), describe(&error));
            StoreError::Unusable { message, hint }
        };
        if path.symlink_metadata().is_ok() {
            return Err(unusable(ErrorKind::AlreadyExists.into()));
        }
        // Written under another name, so that the file is complete or not there.
        let target = std::path::absolute(path).map_err(unusable)?;
        let mut partial = OsString::from(&target);
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = PartialFile::create(PathBuf::from(partial)).map_err(unusable)?;
        let name = partial.path.to_str().ok_or_else(|| unusable(ErrorKind::InvalidFilename.into()))?;
        let failed = |error: sqlx::Error| match code(&error) {
            Some(10 | 13) => unusable(io::Error::other(error)),
            _ => self.failed(&error),
        };
        let mut connection = self.options.connect().await.map_err(failed)?;
        sqlx::query("VACUUM INTO ?1").bind(name).execute(&mut connection).await.map_err(failed)?;
        connection.close().await.map_err(failed)?;
        File::open(&partial.path).and_then(|file| file.sync_all()).map_err(unusable)?;
        // Unlike renaming, linking replaces nothing.
        match fs::hard_link(&partial.path, &target) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(unusable(error)),
            Err(_) => fs::rename(&partial.path, &target).map_err(unusable)?,
            Ok(()) => {}
        }
        sync_folder(&target);
        Ok(())
    }

    /// Returns the path of a file beside the database.
    fn path_with(&self, ending: &str) -> PathBuf {
        let mut path = OsString::from(&self.path);
        path.push(ending);
        path.into()
    }

    fn unusable(&self, problem: &str, hint: &str) -> StoreError {
        unusable(&self.path, problem, hint)
    }

    /// Translates an error.
    pub(super) fn failed(&self, error: &sqlx::Error) -> StoreError {
        failed(&self.path, error)
    }
}

impl Writer<'_> {
    /// Begins a transaction.
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_, Sqlite>, StoreError> {
        self.state.connection.begin_with("BEGIN IMMEDIATE").await.map_err(|error| failed(&self.file.path, &error))
    }

    /// Checks, after a commit, that others find its entries: SQLite does not notice when someone removes or replaces the
    /// files that it has open.
    pub(super) async fn verify(&mut self, id: &SessionId, entries: u64) -> Result<(), StoreError> {
        self.file.commits.fetch_add(1, Ordering::Release);
        let changed = self.verify_files()?;
        if self.state.changed == changed {
            return Ok(());
        }
        // SQLite changes the file itself only now and then, so there is time for a closer look: a new connection reads what
        // is on the disk.
        match self.file.find_last_entry(id).await {
            Ok(found) if found == (Some(to_i64(entries)), to_i64(entries)) => {}
            Ok(_) => return Err(self.replaced()),
            Err(error) if matches!(code(&error), Some(1 | 11 | 26)) => return Err(self.replaced()),
            // It cannot be read right now: look again after the next commit.
            Err(_) => return Ok(()),
        }
        self.state.changed = changed;
        Ok(())
    }

    /// Checks that the files are those that SQLite opened. Returns when the database changed.
    fn verify_files(&mut self) -> Result<Option<(i64, i64)>, StoreError> {
        let mut changed = None;
        for (part, ending) in PARTS.iter().enumerate() {
            let metadata = fs::metadata(self.file.path_with(ending)).ok();
            if part == 0 {
                changed = metadata.as_ref().map(|metadata| (metadata.mtime(), metadata.mtime_nsec()));
            }
            let found = metadata.map(|metadata| (metadata.dev(), metadata.ino()));
            let Some(known) = self.state.files.get_mut(part) else { continue };
            if known.is_some() && *known != found {
                return Err(self.replaced());
            }
            *known = found;
        }
        Ok(changed)
    }

    fn replaced(&self) -> StoreError {
        self.file.unusable(
            "was removed or replaced while it was in use",
            "what was saved since then is lost; stop all programs that use the store before you change its files",
        )
    }
}

impl SqliteFile {
    /// Reads how many entries a session has, and the number after that of the last one, with a new connection.
    async fn find_last_entry(&self, id: &SessionId) -> Result<(Option<i64>, i64), sqlx::Error> {
        const LAST: &str = "SELECT (SELECT entries FROM sessions WHERE id = ?1), \
                            (SELECT coalesce(max(number) + 1, 0) FROM entries WHERE session = ?1)";
        let mut connection = self.options.connect().await?;
        let found = sqlx::query_as(LAST).bind(id.as_str()).fetch_one(&mut connection).await;
        connection.close().await?;
        found
    }
}

/// A file that is removed when it is dropped.
struct PartialFile {
    path: PathBuf,
}

impl PartialFile {
    fn create(path: PathBuf) -> io::Result<Self> {
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        Ok(Self { path })
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
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
        Ok(_) => sync_folder(path),
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !path.exists() => return Err(error),
        Err(_) => {}
    }
    fs::canonicalize(path)
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
    sync_folder(folder);
    Ok(())
}

/// Makes a new file survive a power cut, as far as the file system can.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

fn unusable(path: &Path, problem: &str, hint: &str) -> StoreError {
    let message = format!("the session store `{}` {problem}", path.display());
    StoreError::Unusable { message, hint: Some(hint.to_owned()) }
}

/// Translates an error. See <https://sqlite.org/rescode.html> for the codes.
fn failed(path: &Path, error: &sqlx::Error) -> StoreError {
    let unusable = |problem: &str, hint: &str| unusable(path, problem, hint);
    match code(error) {
        Some(5 | 6) => unusable("is locked by another program", "try again later"),
        Some(8) => unusable("is read-only", "allow this user to write to it, or use another file"),
        Some(10) => match getrlimit(Resource::Fsize).current {
            Some(limit) => unusable(
                &format!("cannot grow: files of this process are limited to {limit} bytes"),
                "raise the limit with `ulimit -f`",
            ),
            None => unusable(&format!("cannot be read or written: {error}"), "check the disk and its file system"),
        },
        Some(11) => unusable("is damaged", "use another file, or recover it with `sqlite3 FILE .recover`"),
        Some(13) => unusable("cannot grow: the disk is full", "free some disk space and try again"),
        Some(14) if has_no_descriptors() => out_of_descriptors(&path.display().to_string()),
        Some(14) => unusable("cannot be opened", "allow this user to write to the file and its folder"),
        Some(26) => unusable("is not a database", "use another file; this one was not changed"),
        _ => StoreError::Failed { message: format!("`{}`: {error}", path.display()) },
    }
}

/// Returns the primary result code of an error.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
