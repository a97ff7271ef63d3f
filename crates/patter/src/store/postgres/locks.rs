//! Claims that are advisory locks: one connection has those of all sessions of a process.
//!
//! Whoever lost the connection has lost all locks, and whoever has it appends in the order in which it was asked to.

use super::batch::{self, Append, Create};
use super::claims::{
    ATTEMPTS, Answer, AppendError, Claimed, Claims, Group, Next, Received, Request, answer_appends, limited,
};
use super::mode::hold_mode;
use super::server::{Server, is_connection_lost, is_serialization_failure, is_unique_violation};
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::limit::LOCK_PAUSES_MS;
use crate::store::row::to_i64;
use sqlx::{PgConnection, Row};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The task that owns the connection.
struct LocksTask {
    server: Arc<Server>,
    /// `None` after it was lost.
    connection: Option<PgConnection>,
    /// The id of the connection on the server.
    connection_id: i32,
    held: HashMap<SessionId, Lock>,
    received: Received,
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

/// Starts the task that owns a connection.
pub(super) fn start(server: Arc<Server>, connection: PgConnection, connection_id: i32) -> Claims {
    let (claims, received) = Claims::new();
    let held = HashMap::new();
    let task = LocksTask { server, connection: Some(connection), connection_id, held, received };
    tokio::spawn(task.run());
    claims
}

impl LocksTask {
    async fn run(mut self) {
        while let Some(next) = self.received.next().await {
            match next {
                Next::Perform(requests) => self.perform(requests).await,
                Next::Release(released) => self.release(vec![released.id]).await,
            }
        }
    }

    /// Performs requests: claims first, because they are for sessions that nothing is appended to yet.
    async fn perform(&mut self, group: Vec<Request>) {
        // What was released before a request was made is free.
        self.release(Vec::new()).await;
        let held = &mut self.held;
        let Group { claims, creates, appends } = Group::new(group, |id| match held.contains_key(id) {
            true => false,
            false => held.insert(id.clone(), Lock::Wanted).is_none(),
        });
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
        while let Ok(released) = self.received.released.try_recv() {
            ids.push(released.id);
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
                Ok(found) => Ok(found.get(&id).cloned().unwrap_or(Claimed::Busy)),
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
                Ok(found) => Ok(found.get(&create.new.id).cloned().unwrap_or(Claimed::No)),
                Err(error) => Err(self.server.failed(error)),
            };
            self.answer_claim(create.new.id, result, done).await;
        }
    }

    async fn answer_claim(&mut self, id: SessionId, result: Result<Claimed, StoreError>, done: Answer<Claimed>) {
        let is_claimed = matches!(result, Ok(Claimed::Yes(..)));
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
                    claimed.insert(id, Claimed::Yes(u64::try_from(*length).unwrap_or_default(), None));
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
                Some(true) => Claimed::Yes(length, None),
                // The lock of a holder of the same id that was just killed.
                Some(false) => Claimed::Busy,
                None if is_uncertain && self.is_created(create).await? => Claimed::Yes(length, None),
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
        answer_appends(answers, results);
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
        hold_mode(&mut connection).await?;
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
    // Not prepared, because there may be a pooler.
    sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}
