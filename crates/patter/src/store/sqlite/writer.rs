//! The thread that writes. What several sessions append at the same time is committed together, because a commit costs
//! more than the entries in it.

use super::file::{FileParts, SqliteFile, code};
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::row::to_i64;
use crate::store::session::{NewSession, SessionState};
use rusqlite::{Connection, params};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// The maximum number of changes that wait for the thread. Whoever wants to add another waits, too.
const QUEUE: usize = 1024;
/// The maximum number of changes in a transaction.
const MAX_GROUP: usize = 256;
/// SQLite's code for a row that exists already.
const CONSTRAINT: i32 = 19;

/// A change of the store.
pub(super) enum Change {
    /// Creates a session with its first entries.
    Create { new: NewSession, now_ms: u64 },
    /// Appends entries to the log of a session, which has `first` entries.
    Append { id: SessionId, first: u64, entries: Vec<String>, state: SessionState, now_ms: u64 },
    /// Deletes a session.
    Remove { id: SessionId },
}

/// Whether a change was made. If not, the session to create exists, or that to change does not or has a log of another
/// length.
pub(super) type IsMade = bool;

/// The thread, as others see it. It ends after this has been dropped.
pub(super) struct Writer {
    requests: mpsc::Sender<Request>,
    commits: Arc<AtomicU64>,
}

struct Request {
    change: Change,
    done: oneshot::Sender<Result<IsMade, StoreError>>,
}

/// The state of the thread.
struct WriterThread {
    file: SqliteFile,
    connection: Connection,
    parts: FileParts,
    requests: mpsc::Receiver<Request>,
    commits: Arc<AtomicU64>,
}

/// Why a transaction failed.
enum CommitError {
    /// One of its changes failed.
    Change(rusqlite::Error),
    /// The database did, whatever the changes.
    Database(StoreError),
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(file: SqliteFile, connection: Connection, parts: FileParts) -> io::Result<Self> {
        let (sender, requests) = mpsc::channel(QUEUE);
        let commits = Arc::<AtomicU64>::default();
        let thread = WriterThread { file, connection, parts, requests, commits: Arc::clone(&commits) };
        thread::Builder::new().name("patter-store".to_owned()).spawn(move || thread.run())?;
        Ok(Self { requests: sender, commits })
    }

    /// Makes a change, and returns once it is committed. It is made even if the future is dropped while it waits for that.
    pub(super) async fn write(&self, change: Change) -> Result<IsMade, StoreError> {
        let ended = || StoreError::Failed { message: "the thread that writes has ended".to_owned() };
        let (done, result) = oneshot::channel();
        self.requests.send(Request { change, done }).await.map_err(|_| ended())?;
        result.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns the number of commits so far.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }
}

impl WriterThread {
    fn run(mut self) {
        while let Some(request) = self.requests.blocking_recv() {
            let mut group = vec![request];
            while group.len() < MAX_GROUP
                && let Ok(request) = self.requests.try_recv()
            {
                group.push(request);
            }
            self.write(group);
        }
    }

    /// Makes the changes of a group. If one of them fails, each is committed by itself, so that the others do not.
    fn write(&mut self, group: Vec<Request>) {
        match self.commit(&group) {
            Ok(made) => {
                for (request, is_made) in group.into_iter().zip(made) {
                    request.answer(Ok(is_made));
                }
            }
            Err(CommitError::Change(_)) if group.len() > 1 => {
                for request in group {
                    self.write(vec![request]);
                }
            }
            Err(error) => {
                let result = match error {
                    CommitError::Change(error) if code(&error) == Some(CONSTRAINT) => Ok(false),
                    CommitError::Change(error) => Err(self.file.failed(&error)),
                    CommitError::Database(error) => Err(error),
                };
                for request in group {
                    request.answer(result.clone());
                }
            }
        }
    }

    /// Makes changes in one transaction, all or none. Returns whether each was made.
    fn commit(&mut self, group: &[Request]) -> Result<Vec<IsMade>, CommitError> {
        let database = |error: rusqlite::Error| CommitError::Database(self.file.failed(&error));
        self.execute("BEGIN IMMEDIATE").map_err(database)?;
        let made: Result<Vec<_>, _> = group.iter().map(|request| request.change.apply(&self.connection)).collect();
        let committed = match made {
            Ok(made) => self.execute("COMMIT").map_err(database).map(|()| made),
            Err(error) => Err(CommitError::Change(error)),
        };
        if committed.is_err() && !self.connection.is_autocommit() {
            // If even this fails, the next transaction cannot begin, and says why.
            let _ = self.execute("ROLLBACK");
        }
        let made = committed?;
        self.commits.fetch_add(1, Ordering::Release);
        let changes = group.iter().zip(&made).filter(|(_, is_made)| **is_made);
        let last_log = changes.rev().find_map(|(request, _)| request.change.log());
        self.verify(last_log).map_err(CommitError::Database)?;
        Ok(made)
    }

    /// Executes a statement, which is prepared once.
    fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(drop)
    }

    /// Checks, after a commit, that others find the log of a session with its new length: SQLite does not notice when
    /// someone removes or replaces the files that it has open.
    fn verify(&mut self, log: Option<(&SessionId, u64)>) -> Result<(), StoreError> {
        let changed = self.parts.verify(&self.file)?;
        let Some((id, length)) = log.filter(|_| !self.parts.is_checked(changed)) else { return Ok(()) };
        // SQLite changes the file itself only now and then, so there is time for a closer look: a new connection reads what
        // is on the disk.
        match find_last_entry(&self.file, id) {
            Ok(found) if found == (Some(to_i64(length)), to_i64(length)) => self.parts.set_checked(changed),
            Ok(_) => return Err(self.file.replaced()),
            Err(error) if matches!(code(&error), Some(1 | 11 | 26)) => return Err(self.file.replaced()),
            // It cannot be read right now: look again after the next commit.
            Err(_) => {}
        }
        Ok(())
    }
}

impl Request {
    fn answer(self, result: Result<IsMade, StoreError>) {
        // Nobody waits if the future was dropped.
        let _ = self.done.send(result);
    }
}

impl Change {
    /// Makes the change, as part of a transaction.
    fn apply(&self, connection: &Connection) -> rusqlite::Result<IsMade> {
        const CREATE: &str = "INSERT INTO sessions (id, agent, title, created_ms, changed_ms, entries, state, forked_from) \
                              VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
        const UPDATE: &str =
            "UPDATE sessions SET entries = ?1, state = ?2, changed_ms = ?3 WHERE id = ?4 AND entries = ?5";
        // Sessions are listed by the time of their last change, so a new time moves an entry of that index. That is not
        // worth it for every step of a run.
        const UPDATE_LENGTH: &str =
            "UPDATE sessions SET entries = ?1 WHERE id = ?4 AND entries = ?5 AND state = ?2 AND changed_ms > ?3 - 1000";
        match self {
            Change::Create { new, now_ms } => {
                let length = to_i64(new.entries.len() as u64);
                let from = new.forked_from.as_ref().map(SessionId::as_str);
                let state = new.state.as_str();
                let mut create = connection.prepare_cached(CREATE)?;
                let values = params![new.id.as_str(), new.agent(), new.title(), to_i64(*now_ms), length, state, from];
                Ok(create.execute(values)? == 1 && insert_entries(connection, &new.id, 0, &new.entries)?)
            }
            Change::Append { id, first, entries, state, now_ms } => {
                let length = to_i64(first + entries.len() as u64);
                let values = params![length, state.as_str(), to_i64(*now_ms), id.as_str(), to_i64(*first)];
                let is_running = *state == SessionState::Running;
                let is_updated = (is_running && connection.prepare_cached(UPDATE_LENGTH)?.execute(values)? == 1)
                    || connection.prepare_cached(UPDATE)?.execute(values)? == 1;
                Ok(is_updated && insert_entries(connection, id, *first, entries)?)
            }
            Change::Remove { id } => Ok(connection.execute("DELETE FROM sessions WHERE id = ?1", [id.as_str()])? == 1),
        }
    }

    /// Returns the session whose log the change makes longer, and the new length.
    fn log(&self) -> Option<(&SessionId, u64)> {
        match self {
            Change::Create { new, .. } => Some((&new.id, new.entries.len() as u64)),
            Change::Append { id, first, entries, .. } => Some((id, first + entries.len() as u64)),
            Change::Remove { .. } => None,
        }
    }
}

fn insert_entries(connection: &Connection, id: &SessionId, first: u64, entries: &[String]) -> rusqlite::Result<IsMade> {
    let mut insert = connection.prepare_cached("INSERT INTO entries (session, number, entry) VALUES (?1, ?2, ?3)")?;
    for (number, entry) in (first..).zip(entries) {
        insert.execute(params![id.as_str(), to_i64(number), entry])?;
    }
    Ok(true)
}

/// Reads how many entries a session has, and the number after that of the last one, with a new connection.
fn find_last_entry(file: &SqliteFile, id: &SessionId) -> rusqlite::Result<(Option<i64>, i64)> {
    const LAST: &str = "SELECT (SELECT entries FROM sessions WHERE id = ?1), \
                        (SELECT coalesce(max(number) + 1, 0) FROM entries WHERE session = ?1)";
    file.connect()?.query_row(LAST, [id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
}
