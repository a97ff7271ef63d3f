//! The claims of a process: one connection has the locks of all its sessions, and appends for all of them.
//!
//! Whoever lost the connection has lost all locks, and whoever has it appends in the order in which it was asked to. What
//! several sessions append at the same time is one statement, because a commit costs more than the entries in it.

use super::batch::{self, Append, Create};
use super::server::{Server, is_connection_lost, is_serialization_failure, is_unique_violation};
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::limit::LOCK_PAUSES_MS;
use crate::store::row::to_i64;
use crate::store::session::{NewSession, SessionState};
use sqlx::PgConnection;
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The maximum number of requests that wait for the connection. Whoever wants to add another waits, too.
const QUEUE: usize = 1024;
/// The maximum number of requests that are executed together.
const MAX_GROUP: usize = 256;
/// How long the server may take for a statement before the connection counts as lost. The server itself gives up earlier.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(55);
/// How many times to repeat a statement that others prevented.
const ATTEMPTS: usize = 10;

/// The claims of a process. Their connection is closed after this and all claims have been dropped.
#[derive(Clone)]
pub(super) struct Claims {
    requests: mpsc::Sender<Request>,
    /// Sessions that are no longer claimed: at most one message for each claim.
    released: mpsc::UnboundedSender<SessionId>,
}

/// Whether a session could be claimed or created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    /// It is claimed, and has this number of entries.
    Yes(u64),
    /// Somebody else has it.
    Busy,
    /// This process has it.
    BusyHere,
    /// There is no such session; or one that was to be created exists.
    No,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

enum Request {
    Claim { id: SessionId, done: Answer<Claimed> },
    Create { create: Create, done: Answer<Claimed> },
    Append { append: Append, done: Answer<()> },
}

/// The task that owns the connection.
struct ClaimsTask {
    server: Arc<Server>,
    /// `None` after it was lost.
    connection: Option<PgConnection>,
    /// The id of the connection on the server.
    connection_id: i32,
    held: HashMap<SessionId, Lock>,
    requests: mpsc::Receiver<Request>,
    released: mpsc::UnboundedReceiver<SessionId>,
}

/// The lock of a claimed session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// The request to claim it is under way.
    Wanted,
    /// The connection has it.
    Held,
    /// It was lost with an earlier connection, and somebody else had it when we connected again.
    Lost,
}

impl Claims {
    /// Starts the task that owns a connection.
    pub(super) fn start(server: Arc<Server>, connection: PgConnection, connection_id: i32) -> Self {
        let (requests, received) = mpsc::channel(QUEUE);
        let (released, releases) = mpsc::unbounded_channel();
        let connection = Some(connection);
        let held = HashMap::new();
        let task = ClaimsTask { server, connection, connection_id, held, requests: received, released: releases };
        tokio::spawn(task.run());
        Self { requests, released }
    }

    /// Claims a session, without waiting for its holder.
    pub(super) async fn claim(&self, id: &SessionId) -> Result<Claimed, StoreError> {
        self.request(|done| Request::Claim { id: id.clone(), done }).await
    }

    /// Creates a session, and claims it.
    pub(super) async fn create(&self, new: NewSession, now_ms: u64) -> Result<Claimed, StoreError> {
        self.request(|done| Request::Create { create: Create { new, now_ms }, done }).await
    }

    /// Appends entries to a session that has `first` entries. They are appended even if the future is dropped.
    pub(super) async fn append(
        &self,
        id: &SessionId,
        first: u64,
        entries: &[String],
        state: SessionState,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let append = Append { id: id.clone(), first, entries: entries.to_vec(), state, now_ms };
        self.request(|done| Request::Append { append, done }).await
    }

    /// Releases a session.
    pub(super) fn release(&self, id: SessionId) {
        // The task ends only with the program.
        let _ = self.released.send(id);
    }

    async fn request<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, StoreError> {
        let ended = || StoreError::Failed { message: "the task that appends has ended".to_owned() };
        let (done, result) = oneshot::channel();
        self.requests.send(request(done)).await.map_err(|_| ended())?;
        result.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl ClaimsTask {
    async fn run(mut self) {
        let mut group = Vec::new();
        loop {
            tokio::select! {
                biased;
                received = self.requests.recv_many(&mut group, MAX_GROUP) => if received == 0 { break },
                released = self.released.recv() => match released {
                    Some(id) => self.release(vec![id]).await,
                    None => break,
                },
            }
            if !group.is_empty() {
                self.perform(std::mem::take(&mut group)).await;
            }
        }
    }

    /// Performs requests: claims first, because they are for sessions that nothing is appended to yet.
    async fn perform(&mut self, group: Vec<Request>) {
        // What was released before a request was made is free.
        self.release(Vec::new()).await;
        let mut claims = Vec::new();
        let mut creates = Vec::new();
        let mut appends = Vec::new();
        for request in group {
            match request {
                Request::Claim { id, done } => match self.held.contains_key(&id) {
                    true => drop(done.send(Ok(Claimed::BusyHere))),
                    false => {
                        self.held.insert(id.clone(), Lock::Wanted);
                        claims.push((id, done));
                    }
                },
                Request::Create { create, done } => match self.held.contains_key(&create.new.id) {
                    true => drop(done.send(Ok(Claimed::No))),
                    false => {
                        self.held.insert(create.new.id.clone(), Lock::Wanted);
                        creates.push((create, done));
                    }
                },
                Request::Append { append, done } => appends.push((append, done)),
            }
        }
        if !claims.is_empty() {
            self.claim(claims).await;
        }
        if !creates.is_empty() {
            self.create(creates).await;
        }
        if !appends.is_empty() {
            self.append(appends).await;
        }
    }

    /// Releases sessions, and all others that were released meanwhile.
    async fn release(&mut self, mut ids: Vec<SessionId>) {
        while let Ok(id) = self.released.try_recv() {
            ids.push(id);
        }
        ids.retain(|id| self.held.remove(id) == Some(Lock::Held));
        self.unlock(&ids).await;
    }

    async fn unlock(&mut self, ids: &[SessionId]) {
        const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended('patter session ' || id, 0)) \
                              FROM unnest($1::text[]) AS released (id)";
        let Some(connection) = self.connection.as_mut().filter(|_| !ids.is_empty()) else { return };
        let ids: Vec<_> = ids.iter().map(SessionId::as_str).collect();
        let unlocked = limited(sqlx::query(UNLOCK).bind(ids).execute(connection)).await;
        if let Err(error) = unlocked {
            // Locks that are not released end with their connection.
            tracing::debug!(%error, "cannot release sessions");
            self.connection = None;
        }
    }

    async fn claim(&mut self, claims: Vec<(SessionId, Answer<Claimed>)>) {
        let ids: Vec<_> = claims.iter().map(|(id, _)| id.clone()).collect();
        let mut attempt = 1;
        let found = loop {
            if let Err(error) = self.reconnect().await {
                break Err(error);
            }
            match self.try_claim(&ids).await {
                Err(error) if attempt < ATTEMPTS && self.may_repeat(&error) => attempt += 1,
                found => break found,
            }
        };
        for (id, done) in claims {
            let result = match &found {
                Ok(found) => Ok(found.get(&id).copied().unwrap_or(Claimed::Busy)),
                Err(error) => Err(self.server.failed(error)),
            };
            self.answer_claim(id, result, done).await;
        }
    }

    async fn create(&mut self, creates: Vec<(Create, Answer<Claimed>)>) {
        let batch: Vec<_> = creates.iter().map(|(create, _)| create).collect();
        // Whether sessions may have been created by an earlier attempt.
        let mut is_uncertain = false;
        let mut attempt = 1;
        let found = loop {
            if let Err(error) = self.reconnect().await {
                break Err(error);
            }
            match self.try_create(&batch, is_uncertain).await {
                Err(error) if attempt < ATTEMPTS && self.may_repeat(&error) => {
                    attempt += 1;
                    is_uncertain |= self.connection.is_none();
                }
                found => break found,
            }
        };
        for (create, done) in creates {
            let result = match &found {
                Ok(found) => Ok(found.get(&create.new.id).copied().unwrap_or(Claimed::No)),
                Err(error) => Err(self.server.failed(error)),
            };
            self.answer_claim(create.new.id, result, done).await;
        }
    }

    async fn answer_claim(&mut self, id: SessionId, result: Result<Claimed, StoreError>, done: Answer<Claimed>) {
        let is_claimed = matches!(result, Ok(Claimed::Yes(_)));
        if is_claimed {
            self.held.insert(id.clone(), Lock::Held);
        } else {
            self.held.remove(&id);
        }
        // Whoever asked may have given up.
        if done.send(result).is_err() && is_claimed {
            self.held.remove(&id);
            self.unlock(&[id]).await;
        }
    }

    /// Returns whether a statement may succeed if it is repeated, perhaps with a new connection.
    fn may_repeat(&mut self, error: &sqlx::Error) -> bool {
        let is_lost = is_connection_lost(error);
        if is_lost {
            tracing::debug!(%error, "reconnecting to the session store");
            self.connection = None;
        }
        is_lost || is_serialization_failure(error)
    }

    /// Locks sessions, and reads how many entries they have.
    async fn try_claim(&mut self, ids: &[SessionId]) -> Result<HashMap<SessionId, Claimed>, sqlx::Error> {
        const LENGTHS: &str = "SELECT id, entries FROM patter.sessions WHERE id = ANY($1)";
        let locked = self.try_lock(ids).await?;
        let Some(connection) = &mut self.connection else { return Ok(HashMap::new()) };
        // The lengths are read once the locks are there: nobody else changes them from now on.
        let wanted: Vec<_> = locked.iter().map(SessionId::as_str).collect();
        let query = sqlx::query_as::<_, (String, i64)>(LENGTHS).bind(wanted);
        let rows = limited(query.fetch_all(&mut *connection)).await;
        if rows.is_err() {
            // Locks are counted, and the next attempt takes them again.
            self.unlock(&locked).await;
        }
        let lengths: HashMap<_, _> = rows?.into_iter().collect();
        let mut claimed = HashMap::new();
        let mut missing = Vec::new();
        for id in locked {
            match lengths.get(id.as_str()) {
                Some(length) => {
                    claimed.insert(id, Claimed::Yes(u64::try_from(*length).unwrap_or_default()));
                }
                None => {
                    claimed.insert(id.clone(), Claimed::No);
                    missing.push(id);
                }
            }
        }
        self.unlock(&missing).await;
        Ok(claimed)
    }

    /// Locks sessions, and returns those that were free.
    async fn try_lock(&mut self, ids: &[SessionId]) -> Result<Vec<SessionId>, sqlx::Error> {
        const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('patter session ' || id, 0)) \
                            FROM unnest($1::text[]) WITH ORDINALITY AS wanted (id, position) ORDER BY position";
        let Some(connection) = &mut self.connection else { return Ok(Vec::new()) };
        let wanted: Vec<_> = ids.iter().map(SessionId::as_str).collect();
        let query = sqlx::query_scalar::<_, bool>(LOCK).bind(wanted);
        let locked = limited(query.fetch_all(connection)).await?;
        Ok(ids.iter().zip(locked).filter(|(_, is_locked)| *is_locked).map(|(id, _)| id.clone()).collect())
    }

    /// Creates sessions, and locks them. Those that existed are missing from the result.
    async fn try_create(
        &mut self,
        creates: &[&Create],
        is_uncertain: bool,
    ) -> Result<HashMap<SessionId, Claimed>, sqlx::Error> {
        let Some(connection) = &mut self.connection else { return Ok(HashMap::new()) };
        let rows = limited(batch::create(creates).fetch_all(connection)).await;
        if rows.as_ref().is_err_and(|error| !is_connection_lost(error)) {
            // Locks outlive the statement that failed, and are counted: the next attempt takes them again.
            let ids: Vec<_> = creates.iter().map(|create| create.new.id.clone()).collect();
            self.unlock(&ids).await;
        }
        let rows: HashMap<_, _> = rows?.into_iter().collect();
        let mut created = HashMap::new();
        for create in creates {
            let id = &create.new.id;
            let length = create.new.entries.len() as u64;
            let claimed = match rows.get(id.as_str()) {
                Some(true) => Claimed::Yes(length),
                // The lock of a holder of the same id that was just killed.
                Some(false) => Claimed::Busy,
                None if is_uncertain && self.is_created(create).await? => Claimed::Yes(length),
                None => continue,
            };
            created.insert(id.clone(), claimed);
        }
        Ok(created)
    }

    /// Locks a session that an earlier attempt may have created. Returns whether it did.
    async fn is_created(&mut self, create: &Create) -> Result<bool, sqlx::Error> {
        let id = &create.new.id;
        let locked = self.try_lock(std::slice::from_ref(id)).await?;
        let is_same = self.read_tail(id, 0).await?.is_some_and(|(_, entries)| entries == create.new.entries);
        if !is_same {
            self.unlock(&locked).await;
        }
        Ok(is_same && !locked.is_empty())
    }

    /// Reads how many entries a session has, and those from a number on.
    async fn read_tail(&mut self, id: &SessionId, first: u64) -> Result<Option<(u64, Vec<String>)>, sqlx::Error> {
        const TAIL: &str = "
            SELECT entries, ARRAY(SELECT entry FROM patter.entries WHERE session = $1 AND number >= $2 ORDER BY number)
            FROM patter.sessions WHERE id = $1";
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let query = sqlx::query_as::<_, (i64, Vec<String>)>(TAIL).bind(id.as_str()).bind(to_i64(first));
        let found = limited(query.fetch_optional(connection)).await?;
        Ok(found.map(|(length, tail)| (u64::try_from(length).unwrap_or_default(), tail)))
    }

    /// Appends to several sessions. If that fails because of one of them, each is tried by itself.
    async fn append(&mut self, appends: Vec<(Append, Answer<()>)>) {
        let (appends, answers): (Vec<_>, Vec<_>) = appends.into_iter().unzip();
        let mut results = self.append_all(&appends).await;
        if let Err(AppendError::Refused(_)) = &results
            && appends.len() > 1
        {
            let mut each = Vec::with_capacity(appends.len());
            for append in &appends {
                each.push(match self.append_all(std::slice::from_ref(append)).await {
                    Ok(mut results) => results.pop().unwrap_or_else(|| Err(append.conflict())),
                    Err(error) => Err(error.into()),
                });
            }
            results = Ok(each);
        }
        match results {
            Ok(results) => answers.into_iter().zip(results).for_each(|(done, result)| drop(done.send(result))),
            Err(error) => {
                let error = StoreError::from(error);
                answers.into_iter().for_each(|done| drop(done.send(Err(error.clone()))));
            }
        }
    }

    /// Appends to several sessions in one statement: to those whose logs are as long as expected.
    async fn append_all(&mut self, appends: &[Append]) -> Result<Vec<Result<(), StoreError>>, AppendError> {
        let mut results: Vec<Option<Result<(), StoreError>>> = vec![None; appends.len()];
        // Whether entries that were sent may have been appended.
        let mut is_uncertain = false;
        for attempt in 1.. {
            self.reconnect().await.map_err(|error| AppendError::Database(self.server.failed(&error)))?;
            for (append, result) in appends.iter().zip(&mut results) {
                if result.is_some() {
                    continue;
                }
                match self.known_result(append, is_uncertain).await {
                    Ok(known) => *result = known,
                    Err(error) if attempt < ATTEMPTS && self.may_repeat(&error) => {}
                    Err(error) => return Err(AppendError::Database(self.server.failed(&error))),
                }
            }
            let open = appends.iter().zip(&results).filter(|(_, result)| result.is_none());
            let open: Vec<_> = open.map(|(append, _)| append).collect();
            if open.is_empty() {
                break;
            }
            let Some(connection) = &mut self.connection else { continue };
            match limited(batch::append(&open).fetch_all(connection)).await {
                Ok(appended) => {
                    let appended: HashSet<_> = appended.into_iter().collect();
                    for (append, result) in appends.iter().zip(&mut results).filter(|(_, result)| result.is_none()) {
                        let is_appended = appended.contains(append.id.as_str());
                        *result = Some(if is_appended { Ok(()) } else { Err(append.conflict()) });
                    }
                    break;
                }
                Err(error) if attempt < ATTEMPTS && self.may_repeat(&error) => {
                    is_uncertain |= self.connection.is_none();
                }
                // Somebody else appended. What is still open here becomes a conflict.
                Err(error) if is_unique_violation(&error) && open.len() == 1 => break,
                Err(error) => return Err(AppendError::Refused(self.server.failed(&error))),
            }
        }
        let unknown = |append: &Append| Err(append.conflict());
        Ok(results.into_iter().zip(appends).map(|(known, append)| known.unwrap_or_else(|| unknown(append))).collect())
    }

    /// Returns the result of an append, if it is known without trying: the entries were appended before the connection was
    /// lost, or somebody else has the session or changed it.
    async fn known_result(
        &mut self,
        append: &Append,
        is_uncertain: bool,
    ) -> Result<Option<Result<(), StoreError>>, sqlx::Error> {
        let id = &append.id;
        match self.held.get(id).copied() {
            Some(Lock::Held) if !is_uncertain => return Ok(None),
            Some(Lock::Held) => {}
            Some(Lock::Lost) if !self.try_lock(std::slice::from_ref(id)).await?.is_empty() => {
                self.held.insert(id.clone(), Lock::Held);
            }
            Some(Lock::Lost | Lock::Wanted) => {
                return Ok(Some(Err(StoreError::Busy { id: id.clone(), holder: None })));
            }
            None => return Ok(Some(Err(append.conflict()))),
        }
        let found = self.read_tail(id, append.first).await?;
        let added = found.as_ref().and_then(|(length, _)| length.checked_sub(append.first));
        match (added, found) {
            (Some(0), _) => Ok(None),
            (Some(_), Some((_, tail))) if is_uncertain && tail == append.entries => Ok(Some(Ok(()))),
            _ => {
                // Whoever changed it may continue.
                self.held.insert(id.clone(), Lock::Lost);
                self.unlock(std::slice::from_ref(id)).await;
                Ok(Some(Err(append.conflict())))
            }
        }
    }

    /// Connects if the connection was lost, and locks the sessions again that are claimed.
    async fn reconnect(&mut self) -> Result<(), sqlx::Error> {
        if self.connection.is_some() {
            return Ok(());
        }
        let mut connection = self.server.reconnect().await?;
        let id = limited(backend_id(&mut connection)).await?;
        let is_claimed = |lock: Lock| matches!(lock, Lock::Held | Lock::Lost);
        let claimed = self.held.iter().filter(|(_, lock)| is_claimed(**lock));
        let mut lost: Vec<_> = claimed.map(|(id, _)| id.clone()).collect();
        if let Some(session) = lost.first() {
            self.server.end_lost(&mut connection, self.connection_id, session).await;
        }
        self.connection = Some(connection);
        self.connection_id = id;
        for id in &lost {
            self.held.insert(id.clone(), Lock::Lost);
        }
        // The lock of a connection that was lost outlives it by a moment.
        for pause in LOCK_PAUSES_MS {
            if lost.is_empty() {
                return Ok(());
            }
            for id in self.try_lock(&lost).await? {
                self.held.insert(id, Lock::Held);
            }
            lost.retain(|id| self.held.get(id) == Some(&Lock::Lost));
            if !lost.is_empty() {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
        tracing::warn!(sessions = lost.len(), "others have claimed sessions while the connection was lost");
        Ok(())
    }
}

/// Returns the id of a connection on its server.
pub(super) async fn backend_id(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await
}

/// Why entries could not be appended to any session.
enum AppendError {
    /// The server refused the statement, perhaps because of one of the sessions.
    Refused(StoreError),
    /// The server cannot be used.
    Database(StoreError),
}

impl From<AppendError> for StoreError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Refused(error) | AppendError::Database(error) => error,
        }
    }
}

/// Applies the time limit to a statement.
async fn limited<T>(statement: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    let late = || sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    tokio::time::timeout(STATEMENT_TIMEOUT, statement).await.unwrap_or_else(|_| Err(late()))
}
