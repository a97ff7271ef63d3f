//! What every database provides: a store, and claims on its sessions.

use super::care::StoreUsage;
use super::error::StoreError;
use super::id::SessionId;
use super::session::{NewSession, SessionState, SessionSummary, StoredSession};
use super::work::WorkQueue;
use crate::tool::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A store of sessions. An operation that fails has changed nothing, unless it timed out or the connection broke; read the
/// session again to find out.
pub trait Store: Send + Sync {
    /// Creates a session with its first entries, and claims it.
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>>;

    /// Claims a session, or fails with [`StoreError::Busy`] without waiting for its holder.
    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>>;

    /// Returns a consistent snapshot of a session with its entries, from the one with this number on. The first entry has the
    /// number 0.
    fn read_from<'a>(&'a self, id: &'a SessionId, first: u64) -> BoxFuture<'a, Result<StoredSession, StoreError>>;

    /// Returns a consistent snapshot of a session with all its entries.
    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        self.read_from(id, 0)
    }

    /// Returns the content of an attachment of a session by its hash, if the session has it.
    fn attachment<'a>(
        &'a self,
        id: &'a SessionId,
        sha256: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let _ = (id, sha256);
        Box::pin(async { Ok(None) })
    }

    /// Returns the hashes of all attachments of a session, sorted.
    fn attachments<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let _ = id;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Returns the most recently changed sessions, newest first.
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.list_in_state(None, limit)
    }

    /// Returns the most recently changed sessions that are in a state, newest first.
    fn list_in_state(
        &self,
        state: Option<SessionState>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.list_page(state, None, limit)
    }

    /// Returns sessions that are in a state, newest first, that follow another one in this order. If that one changes meanwhile,
    /// none is left out that did not change.
    fn list_page<'a>(
        &'a self,
        state: Option<SessionState>,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>>;

    /// Returns the ids with a prefix, sorted.
    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>>;

    /// Deletes a session that nobody has claimed.
    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the sessions that have not changed since a moment, those that have not changed for the longest time first.
    fn list_unchanged_since(&self, moment_ms: u64) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move {
            let mut sessions = self.list(usize::MAX).await?;
            sessions.retain(|session| session.changed_ms < moment_ms);
            sessions.reverse();
            Ok(sessions)
        })
    }

    /// Replaces the log of a session that nobody has claimed, and that has a number of entries. Its title, its attachments and
    /// its parked work are removed. That cannot be undone. See [`redact_session`](super::redact_session).
    fn replace_log<'a>(
        &'a self,
        id: &'a SessionId,
        expected: u64,
        entries: Vec<String>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let _ = (id, expected, entries);
        let message = "the contents of this session store cannot be removed".to_owned();
        Box::pin(async { Err(StoreError::Unusable { message, hint: None }) })
    }

    /// Returns the queue of work that programs share; `None` if the store has none.
    fn queue(&self) -> Option<&dyn WorkQueue> {
        None
    }

    /// Returns the secret that all programs which use the store share. If it has none yet, `new` becomes it. `None` if the store
    /// cannot keep one.
    fn shared_secret<'a>(&'a self, new: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let _ = new;
        Box::pin(async { Ok(None) })
    }

    /// Returns what the store contains.
    fn usage(&self) -> BoxFuture<'_, Result<StoreUsage, StoreError>> {
        let message = "the size of this session store is not known".to_owned();
        Box::pin(async { Err(StoreError::Unusable { message, hint: None }) })
    }

    /// Gives space back to the system that removed sessions took. Others can use the store meanwhile, but may have to wait.
    fn compact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    /// Copies the store to a new file while it is in use. The copy is consistent: it contains what had been appended at one
    /// moment. Fails if the file exists, or if the store has other means.
    fn back_up<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        let _ = path;
        let message = "this session store cannot be copied to a file".to_owned();
        Box::pin(async { Err(StoreError::Unusable { message, hint: None }) })
    }
}

/// The exclusive right to append to a session. Dropping it releases the session, in a database as soon as the runtime gets to
/// it.
pub trait Claim: Send {
    /// Returns the id of the session.
    fn id(&self) -> &SessionId;

    /// Returns the number of entries in the log, as far as this claim knows.
    fn entries(&self) -> u64;

    /// Appends entries, each of which is JSON on one line, to the log and sets the state, atomically. There may be no entries.
    ///
    /// Appended entries survive the end of the process; see [`Claim::sync`] for the end of the machine.
    ///
    /// If the future is dropped or the connection breaks, the entries may or may not be appended. Retrying neither loses
    /// nor duplicates entries: if they were appended, it fails with [`StoreError::Conflict`].
    fn append<'a>(
        &'a mut self,
        entries: &'a [String],
        state: SessionState,
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Adds the content of an attachment under its hash, before an entry names it. Adding it again changes nothing.
    fn attach<'a>(&'a mut self, sha256: &'a str, content: Arc<[u8]>) -> BoxFuture<'a, Result<(), StoreError>> {
        let _ = (sha256, content);
        let message = "this session store cannot keep attachments".to_owned();
        Box::pin(async { Err(StoreError::Unusable { message, hint: None }) })
    }

    /// Returns a token that is cancelled when the claim cannot be relied on any more, a while before somebody else may have the
    /// session: whatever runs in it has to stop. `None` if a claim ends only with its process or its connection.
    fn lost(&self) -> Option<CancellationToken> {
        None
    }

    /// Returns once everything appended so far survives a power cut of this machine.
    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}
