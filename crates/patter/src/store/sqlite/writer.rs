//! The thread that writes. What several sessions append at the same time is committed together, because a commit costs
//! more than the entries in it.

use super::file::{FileParts, SqliteFile, code};
use super::statements::Statements;
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::row::to_i64;
use crate::store::session::{NewSession, SessionState};
use rusqlite::Connection;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// The maximum number of changes that wait for the thread. Whoever wants to add another waits, too.
const QUEUE: usize = 1024;
/// The maximum number of changes in a transaction.
const MAX_GROUP: usize = 256;
/// After this number of commits, a process is one that writes a lot.
const MANY_COMMITS: u64 = 1000;
/// Lets the write-ahead log grow longer before it is moved into the file. Pages that change again and again are moved less often
/// then, but whoever opens the file after this process was killed has to read a log of up to 16 MiB.
const LONG_LOG: &str = "PRAGMA wal_autocheckpoint = 4000";
/// How old the time of the last change of a session may be while a run is under way.
const LIST_DELAY_MS: u64 = 1000;
/// SQLite's code for a row that exists already.
const CONSTRAINT: i32 = 19;

/// A change of the store.
pub(super) enum Change {
    /// Creates a session with its first entries.
    Create { new: NewSession, now_ms: u64 },
    /// Appends lines to the log of a session, which has `first` entries and gets `length`.
    Append { id: SessionId, first: u64, length: u64, lines: String, update: Option<SessionUpdate> },
    /// Adds the content of an attachment to a session.
    Attach { id: SessionId, sha256: String, content: Arc<[u8]> },
    /// Deletes a session.
    Remove { id: SessionId },
}

/// What an append changes in the list of sessions.
#[derive(Clone, Copy)]
pub(super) struct SessionUpdate {
    pub(super) state: SessionState,
    pub(super) now_ms: u64,
}

/// Whether a change was made. If not, the session to create exists, or that to change does not or has a log of another
/// length.
pub(super) type IsMade = bool;

impl SessionUpdate {
    /// Returns whether the list is up to date enough after this one. Sessions are listed by the time of their last change, so a
    /// new time moves a row, and that is not worth it for every step of a run.
    pub(super) fn is_enough_for(self, state: SessionState, now_ms: u64) -> bool {
        let is_running = state == SessionState::Running && self.state == SessionState::Running;
        is_running && now_ms.abs_diff(self.now_ms) < LIST_DELAY_MS
    }
}

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
struct WriterThread<'c> {
    file: SqliteFile,
    connection: &'c Connection,
    /// Prepared by the first transaction.
    statements: Option<Statements<'c>>,
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
        let counter = Arc::clone(&commits);
        let run = move || {
            let connection = &connection;
            WriterThread { file, connection, statements: None, parts, requests, commits: counter }.run();
        };
        thread::Builder::new().name("patter-store".to_owned()).spawn(run)?;
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

impl<'c> WriterThread<'c> {
    fn run(mut self) {
        while let Some(request) = self.requests.blocking_recv() {
            // Others who are about to write get the chance to do so, and become part of the transaction.
            thread::yield_now();
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
        let file = self.file.clone();
        let database = |error: rusqlite::Error| CommitError::Database(file.failed(&error));
        let connection = self.connection;
        let statements = self.statements().map_err(database)?;
        statements.begin.execute([]).map_err(database)?;
        let made: Result<Vec<_>, _> = group.iter().map(|request| statements.apply(&request.change)).collect();
        let committed = match made {
            Ok(made) => statements.commit.execute([]).map_err(database).map(|_| made),
            Err(error) => Err(CommitError::Change(error)),
        };
        if committed.is_err() && !connection.is_autocommit() {
            // If even this fails, the next transaction cannot begin, and says why.
            let _ = connection.execute_batch("ROLLBACK");
        }
        let made = committed?;
        if self.commits.fetch_add(1, Ordering::Release) == MANY_COMMITS {
            // If this fails, everything works as before.
            let _ = connection.execute_batch(LONG_LOG);
        }
        let changes = group.iter().zip(&made).filter(|(_, is_made)| **is_made);
        let last_log = changes.rev().find_map(|(request, _)| request.change.log());
        self.verify(last_log).map_err(CommitError::Database)?;
        Ok(made)
    }

    fn statements(&mut self) -> rusqlite::Result<&mut Statements<'c>> {
        match &mut self.statements {
            Some(statements) => Ok(statements),
            missing => Ok(missing.insert(Statements::prepare(self.connection)?)),
        }
    }

    /// Checks, after a commit, that others find the log of a session with its new length: SQLite does not notice when
    /// someone removes or replaces the files that it has open.
    fn verify(&mut self, log: Option<(&SessionId, u64)>) -> Result<(), StoreError> {
        let changed = self.parts.verify(&self.file)?;
        let Some((id, length)) = log.filter(|_| !self.parts.is_checked(changed)) else { return Ok(()) };
        // SQLite changes the file itself only now and then, so there is time for a closer look: a new connection reads what
        // is on the disk.
        match find_length(&self.file, id) {
            Ok(found) if found == to_i64(length) => self.parts.set_checked(changed),
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
    /// Returns the session whose log the change makes longer, and the new length.
    fn log(&self) -> Option<(&SessionId, u64)> {
        match self {
            Change::Create { new, .. } => Some((&new.id, new.entries.len() as u64)),
            Change::Append { id, length, .. } => Some((id, *length)),
            Change::Attach { .. } | Change::Remove { .. } => None,
        }
    }
}

/// Reads the length of the log of a session with a new connection.
fn find_length(file: &SqliteFile, id: &SessionId) -> rusqlite::Result<i64> {
    const LENGTH: &str = "SELECT coalesce((SELECT max(length) FROM logs WHERE session = ?1), 0)";
    file.connect()?.query_row(LENGTH, [id.as_str()], |row| row.get(0))
}
