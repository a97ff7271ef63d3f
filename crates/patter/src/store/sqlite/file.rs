//! The SQLite file: how it is opened, written, synced and copied, and what its errors mean.

use super::attachment;
use super::writer::Writer;
use crate::os_error::describe;
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::limit::{
    DESCRIPTOR_TIMEOUT, LOCK_PAUSES_MS, RETRY_PAUSE, has_no_descriptors, is_out_of_descriptors, out_of_descriptors,
};
use crate::store::lock_file::{LockAttempt, LockFile, LockFiles};
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The version of the tables, in the file header.
const VERSION: i64 = 3;
/// The application id in the file header: "Patr".
const APPLICATION: i64 = 0x5061_7472;
/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Settings of a connection. A commit does not wait for the disk; see [`SqliteFile::sync_log`]. SQLite moves its
/// write-ahead log into the file after this number of pages. A process that just exits leaves the log behind, and the next
/// one reads all of it, so it is kept short.
const SETTINGS: &str = "
    PRAGMA foreign_keys = ON;
    PRAGMA synchronous = NORMAL;
    PRAGMA temp_store = MEMORY;
    PRAGMA wal_autocheckpoint = 500;
";
/// The folder that is kept out of version control.
const IGNORED_FOLDER: &str = ".patter";
/// The endings of the files that make up the database: the file itself, its write-ahead log, and the index of that.
const PARTS: [&str; 3] = ["", "-wal", "-shm"];

/// What leads from a version to the next one. The first creates the tables.
const STEPS: [&str; VERSION as usize] = [SESSIONS, WORK, LOGS];

const SESSIONS: &str = "
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY NOT NULL,
        agent TEXT NOT NULL,
        title TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        state TEXT NOT NULL,
        forked_from TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_change ON sessions (changed_ms, id);
    CREATE TABLE entries (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (session, number)
    ) STRICT, WITHOUT ROWID;
    PRAGMA application_id = 0x50617472;
    PRAGMA user_version = 1;
";

const WORK: &str = "
    CREATE TABLE workers (
        id TEXT PRIMARY KEY NOT NULL,
        about TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        seen_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE work (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        agent TEXT NOT NULL,
        tenant TEXT NOT NULL,
        task TEXT NOT NULL,
        state TEXT NOT NULL,
        due_ms INTEGER NOT NULL,
        created_ms INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        worker TEXT,
        reason TEXT
    ) STRICT;
    CREATE INDEX work_by_session ON work (session);
    CREATE INDEX work_by_due ON work (state, due_ms);
    PRAGMA user_version = 2;
";

/// A row is what was appended to the log of a session at a time, one entry per line. `length` is that of the log with it. New rows
/// are at the end of the table, whatever their session, so that a transaction of many sessions writes few pages.
const LOGS: &str = "
    CREATE TABLE logs (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        length INTEGER NOT NULL,
        entries TEXT NOT NULL,
        PRIMARY KEY (session, length)
    ) STRICT;
    INSERT INTO logs SELECT session, number + 1, entry FROM entries ORDER BY session, number;
    DROP TABLE entries;
    PRAGMA user_version = 3;
";

/// A SQLite file.
#[derive(Clone)]
pub(super) struct SqliteFile {
    /// The canonical path, so that all names of the file share one lock.
    path: Arc<Path>,
}

/// The files of the database. They stay the same ones as long as a connection has them open, unless somebody replaces them.
pub(super) struct FileParts {
    /// The paths, and the files that have been seen there.
    known: [(PathBuf, Option<FileId>); PARTS.len()],
    /// When the database had changed the last time its content was checked.
    checked: Option<ChangeTime>,
}

/// A file, whatever its name.
type FileId = (u64, u64);

/// When a file changed, in seconds and nanoseconds.
pub(super) type ChangeTime = (i64, i64);

impl SqliteFile {
    /// Opens the file, creates it if it is missing, and starts the thread that writes.
    pub(super) fn open(path: &Path) -> Result<(Self, Writer), StoreError> {
        let unusable = |error: io::Error| match is_out_of_descriptors(&error) {
            true => out_of_descriptors(&path.display().to_string()),
            false => StoreError::Unusable {
                message: format!("cannot open the session store `{}`: {}", path.display(), describe(&error)),
                hint: None,
            },
        };
        let file = Self { path: create_file(path).map_err(unusable)?.into() };
        let connection = file.connect().map_err(|error| file.failed(&error))?;
        file.prepare(&connection)?;
        let mut parts = FileParts::new(&file);
        let changed = parts.verify(&file)?;
        parts.set_checked(changed);
        let writer = Writer::start(file.clone(), connection, parts).map_err(unusable)?;
        Ok((file, writer))
    }

    /// Returns a new connection.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.execute_batch(SETTINGS)?;
        Ok(connection)
    }

    /// Creates the tables if the file is empty, and brings those of an older version up to date. Refuses a file that is not a
    /// session store, without changing it.
    fn prepare(&self, connection: &Connection) -> Result<(), StoreError> {
        let (version, is_wal) = self.head(connection)?;
        match self.bring_up_to_date(connection, version, is_wal) {
            // A store that cannot be written can still be read.
            Err(_) if version > 0 && connection.is_readonly(c"main").unwrap_or(false) => Ok(()),
            prepared => prepared,
        }
    }

    fn bring_up_to_date(&self, connection: &Connection, version: i64, is_wal: bool) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| self.failed(&error);
        if !is_wal {
            use_write_ahead_log(connection).map_err(failed)?;
        }
        if version == VERSION {
            return Ok(());
        }
        if version > 0 {
            self.check_unused()?;
            self.back_up(version)?;
        }
        connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        // Another process may have been faster.
        let (version, _) = self.head(connection)?;
        for step in STEPS.iter().skip(usize::try_from(version).unwrap_or_default()) {
            connection.execute_batch(step).map_err(failed)?;
        }
        connection.execute_batch("COMMIT").map_err(failed)
    }

    /// Checks that nobody has claimed a session. Who has, is a program of an older version, which could not save it any more.
    fn check_unused(&self) -> Result<(), StoreError> {
        let prefix = self.path_with(".");
        let folder = self.path.parent().map(fs::read_dir);
        for file in folder.into_iter().flatten().flatten().flatten() {
            let path = file.path();
            let is_lock = path.as_os_str().as_bytes().starts_with(prefix.as_os_str().as_bytes())
                && path.extension().is_some_and(|extension| extension == "lock");
            if is_lock && let Ok(LockAttempt::Busy(holder)) = LockFiles::default().acquire(&path) {
                let holder = holder.unwrap_or_else(|| "a program".to_owned());
                return Err(self.unusable(
                    &format!("is used by {holder}, an older version of Patter"),
                    "stop it first: this version changes the format of the store",
                ));
            }
        }
        Ok(())
    }

    /// Copies the file before its tables change, unless there is a copy.
    fn back_up(&self, version: i64) -> Result<(), StoreError> {
        let path = self.path_with(&format!(".version-{version}"));
        match self.copy_to(&path) {
            // Another process makes it, or an earlier attempt did.
            Err(_) if path.exists() => Ok(()),
            copied => {
                tracing::info!(path = %path.display(), "the session store was copied before it is brought up to date");
                copied
            }
        }
    }

    /// Returns the version of the tables, 0 if there are none, and whether the file uses a write-ahead log. Fails if it has
    /// other content.
    fn head(&self, connection: &Connection) -> Result<(i64, bool), StoreError> {
        const HEAD: &str = "SELECT (SELECT application_id FROM pragma_application_id), \
                            (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema), \
                            (SELECT journal_mode FROM pragma_journal_mode)";
        let head = connection.query_row(HEAD, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        let (application, version, tables, mode): (i64, i64, i64, String) =
            head.map_err(|error| self.failed(&error))?;
        match (application, version, tables) {
            (APPLICATION, 1..=VERSION, _) => Ok((version, mode == "wal")),
            (APPLICATION, version, _) if version > VERSION => {
                Err(self.unusable("was created by a newer version of Patter", "update Patter, or use another file"))
            }
            (_, _, 0) => Ok((0, mode == "wal")),
            _ => Err(self.unusable("is not a Patter database", "use another file; this one was not changed")),
        }
    }

    /// Locks a session. Waits a moment for a holder that was just killed.
    pub(super) async fn lock(&self, locks: &LockFiles, id: &SessionId) -> Result<LockFile, StoreError> {
        for pause in LOCK_PAUSES_MS {
            match self.try_lock(locks, id).await {
                Err(StoreError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(pause)).await,
                locked => return locked,
            }
        }
        self.try_lock(locks, id).await
    }

    /// Locks a session unless it is busy. Waits if this process has too many open files.
    pub(super) async fn try_lock(&self, locks: &LockFiles, id: &SessionId) -> Result<LockFile, StoreError> {
        let path = self.path_with(&format!(".{id}.lock"));
        let deadline = Instant::now() + DESCRIPTOR_TIMEOUT;
        loop {
            match locks.acquire(&path) {
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

    /// Waits until the write-ahead log is on the disk. What is no longer in it was synced when SQLite moved it.
    pub(super) fn sync_log(&self) -> Result<(), StoreError> {
        // Closing the log is harmless, unlike closing the other two files, which would release SQLite's locks.
        let synced = match File::open(self.path_with("-wal")) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            log => log.and_then(|log| log.sync_data()),
        };
        synced.map_err(|error| self.unusable(&format!("cannot be synced: {}", describe(&error)), "check the disk"))
    }

    /// Gives unused pages back to the system, after removing what belongs to no session.
    pub(super) fn compact(&self) -> Result<(), StoreError> {
        let connection = self.connect().map_err(|error| self.failed(&error))?;
        attachment::remove_orphans(&connection).map_err(|error| self.failed(&error))?;
        connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").map_err(|error| self.failed(&error))
    }

    /// Copies the database to a new file, as it is at one moment.
    pub(super) fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
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
        let failed = |error: rusqlite::Error| match code(&error) {
            Some(10 | 13) => unusable(io::Error::other(error)),
            _ => self.failed(&error),
        };
        let connection = self.connect().map_err(failed)?;
        connection.execute("VACUUM INTO ?1", [name]).map_err(failed)?;
        drop(connection);
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
        let mut path = OsString::from(&*self.path);
        path.push(ending);
        path.into()
    }

    fn unusable(&self, problem: &str, hint: &str) -> StoreError {
        let message = format!("the session store `{}` {problem}", self.path.display());
        StoreError::Unusable { message, hint: Some(hint.to_owned()) }
    }

    /// Returns the error that the files are not the ones that were opened.
    pub(super) fn replaced(&self) -> StoreError {
        self.unusable(
            "was removed or replaced while it was in use",
            "what was saved since then is lost; stop all programs that use the store before you change its files",
        )
    }

    /// Translates an error. See <https://sqlite.org/rescode.html> for the codes.
    pub(super) fn failed(&self, error: &rusqlite::Error) -> StoreError {
        let unusable = |problem: &str, hint: &str| self.unusable(problem, hint);
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
            Some(14) if has_no_descriptors() => out_of_descriptors(&self.path.display().to_string()),
            Some(14) => unusable("cannot be opened", "allow this user to write to the file and its folder"),
            Some(26) => unusable("is not a database", "use another file; this one was not changed"),
            _ => StoreError::Failed { message: format!("`{}`: {error}", self.path.display()) },
        }
    }
}

impl FileParts {
    fn new(file: &SqliteFile) -> Self {
        Self { known: PARTS.map(|ending| (file.path_with(ending), None)), checked: None }
    }

    /// Checks that the files are those that were opened. Returns when the database changed.
    pub(super) fn verify(&mut self, file: &SqliteFile) -> Result<Option<ChangeTime>, StoreError> {
        let mut changed = None;
        for (part, (path, known)) in self.known.iter_mut().enumerate() {
            let metadata = fs::metadata(&*path).ok();
            if part == 0 {
                changed = metadata.as_ref().map(|metadata| (metadata.mtime(), metadata.mtime_nsec()));
            }
            let found = metadata.map(|metadata| (metadata.dev(), metadata.ino()));
            if known.is_some() && *known != found {
                return Err(file.replaced());
            }
            *known = found;
        }
        Ok(changed)
    }

    /// Returns whether the content of the database was checked since it changed.
    pub(super) fn is_checked(&self, changed: Option<ChangeTime>) -> bool {
        self.checked == changed
    }

    pub(super) fn set_checked(&mut self, changed: Option<ChangeTime>) {
        self.checked = changed;
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

/// Switches to a write-ahead log. SQLite does not wait for this lock as for others, if several processes start at once.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(error) if code(&error) == Some(5) && Instant::now() < deadline => std::thread::sleep(RETRY_PAUSE),
            switched => return switched,
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

/// Returns the primary result code of an error.
pub(super) fn code(error: &rusqlite::Error) -> Option<i32> {
    Some(error.sqlite_error()?.extended_code & 0xff)
}
