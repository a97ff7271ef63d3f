//! The claims of a process. One task has them all, and appends for all of them in the order in which it was asked to. What
//! several sessions append at the same time is one statement, because a commit costs more than the entries in it.

use super::batch::{Append, Create};
use super::lease::Fence;
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::session::{NewSession, SessionState};
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
pub(super) const ATTEMPTS: usize = 10;

/// The claims of a process. Their connection is closed after this and all claims have been dropped.
#[derive(Clone)]
pub(super) struct Claims {
    requests: mpsc::Sender<Request>,
    /// Sessions that are no longer claimed: at most one message for each claim.
    released: mpsc::UnboundedSender<Release>,
}

/// What the task receives.
pub(super) struct Received {
    requests: mpsc::Receiver<Request>,
    pub(super) released: mpsc::UnboundedReceiver<Release>,
}

/// What the task does next.
pub(super) enum Next {
    /// Perform requests together.
    Perform(Vec<Request>),
    Release(Release),
}

/// A session that is no longer claimed.
pub(super) struct Release {
    pub(super) id: SessionId,
    /// Held until others can claim it.
    pub(super) _pending: Option<PendingRelease>,
}

/// Whether a session could be claimed or created.
#[derive(Debug, Clone)]
pub(super) enum Claimed {
    /// It is claimed, and has this number of entries.
    Yes(u64, Option<Arc<Fence>>),
    /// Somebody else has it.
    Busy,
    /// This process has it.
    BusyHere,
    /// There is no such session; or one that was to be created exists.
    No,
}

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Request {
    Claim { id: SessionId, done: Answer<Claimed> },
    Create { create: Create, done: Answer<Claimed> },
    Append { append: Append, done: Answer<()> },
}

/// Requests that are performed together, by kind.
#[derive(Default)]
pub(super) struct Group {
    pub(super) claims: Vec<(SessionId, Answer<Claimed>)>,
    pub(super) creates: Vec<(Create, Answer<Claimed>)>,
    pub(super) appends: Vec<(Append, Answer<()>)>,
}

impl Group {
    /// Sorts requests. A session that this process has, or wants, is not claimed again.
    pub(super) fn new(requests: Vec<Request>, mut want: impl FnMut(&SessionId) -> bool) -> Self {
        let mut group = Self::default();
        for request in requests {
            match request {
                Request::Claim { id, done } => match want(&id) {
                    true => group.claims.push((id, done)),
                    false => drop(done.send(Ok(Claimed::BusyHere))),
                },
                Request::Create { create, done } => match want(&create.new.id) {
                    true => group.creates.push((create, done)),
                    false => drop(done.send(Ok(Claimed::No))),
                },
                Request::Append { append, done } => group.appends.push((append, done)),
            }
        }
        group
    }
}

impl Received {
    /// Waits for what to do next. `None` if nobody is left who could ask for something.
    pub(super) async fn next(&mut self) -> Option<Next> {
        let mut group = Vec::new();
        tokio::select! {
            biased;
            received = self.requests.recv_many(&mut group, MAX_GROUP) => (received > 0).then_some(Next::Perform(group)),
            released = self.released.recv() => released.map(Next::Release),
        }
    }
}

impl Claims {
    /// Returns claims, and what the task that has them receives.
    pub(super) fn new() -> (Self, Received) {
        let (requests, received) = mpsc::channel(QUEUE);
        let (released, releases) = mpsc::unbounded_channel();
        (Self { requests, released }, Received { requests: received, released: releases })
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
    pub(super) fn release(&self, id: SessionId, pending: Option<PendingRelease>) {
        // The task ends only with the program.
        let _ = self.released.send(Release { id, _pending: pending });
    }

    async fn request<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, StoreError> {
        let ended = || StoreError::Failed { message: "the task that appends has ended".to_owned() };
        let (done, result) = oneshot::channel();
        self.requests.send(request(done)).await.map_err(|_| ended())?;
        result.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// Why entries could not be appended to any session.
pub(super) enum AppendError {
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

/// Sends the results of appends.
pub(super) fn answer_appends(answers: Vec<Answer<()>>, results: Result<Vec<Result<(), StoreError>>, AppendError>) {
    match results {
        Ok(results) => answers.into_iter().zip(results).for_each(|(done, result)| drop(done.send(result))),
        Err(error) => {
            let error = StoreError::from(error);
            answers.into_iter().for_each(|done| drop(done.send(Err(error.clone()))));
        }
    }
}

/// Applies the time limit to a statement.
pub(super) async fn limited<T>(statement: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    let late = || sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    tokio::time::timeout(STATEMENT_TIMEOUT, statement).await.unwrap_or_else(|_| Err(late()))
}

pub(super) use self::pending::PendingRelease;

/// Releases that have not reached their database yet.
pub(in crate::store) mod pending {
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    static COUNT: Mutex<usize> = Mutex::new(0);
    static DONE: Condvar = Condvar::new();

    fn count() -> MutexGuard<'static, usize> {
        COUNT.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that is being released, until this is dropped.
    pub(in crate::store) struct PendingRelease(());

    impl PendingRelease {
        pub(in crate::store) fn new() -> Self {
            *count() += 1;
            Self(())
        }
    }

    impl Drop for PendingRelease {
        fn drop(&mut self) {
            *count() -= 1;
            DONE.notify_all();
        }
    }

    /// Waits until nothing is being released.
    pub(in crate::store) fn wait(timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut left = count();
        while *left > 0 {
            let Some(rest) = deadline.checked_duration_since(Instant::now()) else { return false };
            left = DONE.wait_timeout(left, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
