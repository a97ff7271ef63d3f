//! Work for any program that shares a store: turns that run to their end, whoever runs them.
//!
//! A piece of work says what is to be done in a session. It is there from the moment it was asked for until it is done, and
//! while a worker performs it, it belongs to that worker. The log of the session stays the only record of what was done.

use super::error::StoreError;
use super::id::SessionId;
use crate::model::ProviderLimit;
use crate::tool::BoxFuture;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of a worker: a program that takes work. It is used once.
pub type WorkerId = String;

/// A queue of work, in a store that several programs share.
pub trait WorkQueue: Send + Sync {
    /// Adds work. Returns its number; `None` if there is work with its key.
    fn add(&self, new: NewWork) -> BoxFuture<'_, Result<Option<u64>, StoreError>>;

    /// Takes work that is due, and that no other worker has. It belongs to the worker until it is settled.
    fn take(&self, request: TakeRequest) -> BoxFuture<'_, Result<Vec<Work>, StoreError>>;

    /// Reports the result of work that a worker took. Returns whether it still belonged to that worker.
    fn settle<'a>(
        &'a self,
        id: u64,
        worker: &'a str,
        settlement: Settlement,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns work, that which is due first at the start.
    fn list<'a>(&'a self, filter: &'a WorkFilter, limit: usize) -> BoxFuture<'a, Result<Vec<Work>, StoreError>>;

    /// Returns how much work there is.
    fn counts(&self) -> BoxFuture<'_, Result<QueueCounts, StoreError>>;

    /// Changes work, as an operator wants it. Returns whether there was such work in a state in which that is possible.
    fn change(&self, id: u64, change: WorkChange) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Returns the work of a worker that it has to cancel.
    fn cancelled<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Result<Vec<u64>, StoreError>>;

    /// Waits until there may be something to do. It may also return for no reason.
    fn wait(&self) -> BoxFuture<'_, ()>;

    /// Reports that a worker is alive, and puts the work of those back that have not reported for a while.
    fn report(&self, report: WorkerReport) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Says that a worker stops. Work that it still has is put back.
    fn leave<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the workers that reported in a while, in order of their names.
    fn workers(&self) -> BoxFuture<'_, Result<Vec<WorkerStatus>, StoreError>>;

    /// Adds limits of providers that this process met to those that all know, and returns all that have not ended.
    fn share_limits<'a>(&'a self, met: &'a [ProviderLimit]) -> BoxFuture<'a, Result<Vec<ProviderLimit>, StoreError>> {
        let _ = met;
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Work to add to a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWork {
    /// Identifies the work: adding it twice is the same as adding it once.
    pub key: String,
    /// The session that it is about, which may not exist yet. Work of a session is done in order.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// Who asked for it. Those share the workers fairly.
    pub tenant: String,
    /// What is to be done, as JSON.
    pub task: String,
    /// The worker that performs it at once; otherwise any.
    pub worker: Option<WorkerId>,
    /// When it is due, in milliseconds since 1970; by default at once.
    pub due_ms: Option<u64>,
}

/// Work of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Work {
    /// The number in the queue.
    pub id: u64,
    /// Identifies the work.
    pub key: String,
    /// The session that it is about.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// Who asked for it.
    pub tenant: String,
    /// What is to be done, as JSON.
    #[serde(skip)]
    pub task: String,
    /// The state.
    pub state: WorkState,
    /// When it is due, in milliseconds since 1970.
    pub due_ms: u64,
    /// When it was added, in milliseconds since 1970.
    pub created_ms: u64,
    /// When its state changed, in milliseconds since 1970.
    pub changed_ms: u64,
    /// How many times a worker took it.
    pub attempts: u32,
    /// The worker that performs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// Why it is in this state, if that is worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The state of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkState {
    /// It waits for a worker.
    Queued,
    /// A worker performs it.
    Running,
    /// Its run waits for somebody. When it is due, nobody came.
    Waiting,
    /// It failed too often. Somebody has to look at it.
    Parked,
}

impl WorkState {
    /// All states, in the order in which work passes through them.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Running, Self::Waiting, Self::Parked];

    /// Returns the name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// What a worker takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakeRequest {
    /// The worker.
    pub worker: WorkerId,
    /// The agents that it has, with how many turns of each may run at a time in all workers together.
    pub agents: BTreeMap<String, Option<u32>>,
    /// How many turns may run at a time for some of those who ask for them.
    pub tenants: BTreeMap<String, u32>,
    /// The only session to take work of, even if it is not due.
    pub session: Option<SessionId>,
    /// How much to take at most.
    pub limit: usize,
}

/// The result of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// It is done, and leaves the queue.
    Done,
    /// Its run waits for somebody, up to this time.
    Waiting(Duration),
    /// It failed, and is tried again after a while.
    Again(Duration, String),
    /// It did not fail, but cannot be done yet, and is tried again after a while.
    Later(Duration, String),
    /// It did not fail, but another worker has to continue.
    HandedOver,
    /// It failed too often.
    Parked(String),
}

/// How an operator changes work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkChange {
    /// It is due now, as if it had never failed.
    Retry,
    /// Work that waits for a worker, or is parked, is removed.
    Remove,
    /// The worker that performs it is asked to cancel it.
    Cancel,
}

/// Which work is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkFilter {
    /// Only work in this state.
    pub state: Option<WorkState>,
    /// Only work of this session.
    pub session: Option<SessionId>,
    /// Only the work with this key.
    pub key: Option<String>,
    /// Only the work of this worker.
    pub worker: Option<WorkerId>,
    /// Only work whose key starts with this.
    pub key_prefix: Option<String>,
}

/// How much work there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// Work that waits for a worker.
    pub queued: u64,
    /// Work that is to be done at a later time.
    pub scheduled: u64,
    /// Work that is performed.
    pub running: u64,
    /// Work whose run waits for somebody.
    pub waiting: u64,
    /// Work that somebody has to look at.
    pub parked: u64,
    /// How long the work that waits for a worker has been due, at most, in milliseconds.
    pub oldest_ms: u64,
}

/// What a worker reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    /// The worker.
    pub worker: WorkerId,
    /// What others learn about it.
    pub about: WorkerInfo,
    /// After which time without a report a worker counts as gone.
    pub timeout: Duration,
    /// How many times work is taken before it is parked.
    pub max_attempts: u32,
}

/// What others learn about a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// The process and its machine.
    pub name: String,
    /// Where it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The version of Patter.
    #[serde(default)]
    pub version: String,
    /// How many turns it performs at a time.
    #[serde(default)]
    pub capacity: u32,
}

impl WorkerInfo {
    /// Describes this process.
    pub fn new(capacity: u32) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { name: super::holder::holder(), address: None, version, capacity }
    }
}

/// A worker, as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    /// Its id.
    pub id: WorkerId,
    /// What it says about itself.
    #[serde(flatten)]
    pub about: WorkerInfo,
    /// When it started, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long ago it reported, in milliseconds.
    pub seen_ago_ms: u64,
    /// How much work it performs.
    pub running: u64,
}

/// A row with work, as [`work_columns!`] selects it.
pub(super) type WorkRow =
    (i64, String, String, String, String, String, String, (i64, i64, i64, i64), Option<String>, Option<String>);

/// The columns of a [`WorkRow`], to insert into a statement.
macro_rules! work_columns {
    () => {
        "work.id, work.key, work.session, work.agent, work.tenant, work.task, work.state, work.due_ms, work.created_ms, \
         work.changed_ms, work.attempts, work.worker, work.reason"
    };
}
pub(super) use work_columns;

/// Converts a row to work.
pub(super) fn work(row: WorkRow) -> Result<Work, StoreError> {
    let (id, key, session, agent, tenant, task, state, (due_ms, created_ms, changed_ms, attempts), worker, reason) =
        row;
    let damaged = || StoreError::Failed { message: format!("the work {id} is damaged") };
    let number = |number: i64| u64::try_from(number).map_err(|_| damaged());
    Ok(Work {
        id: number(id)?,
        session: SessionId::parse(&session)?,
        state: WorkState::parse(&state).ok_or_else(damaged)?,
        due_ms: number(due_ms)?,
        created_ms: number(created_ms)?,
        changed_ms: number(changed_ms)?,
        attempts: u32::try_from(attempts).map_err(|_| damaged())?,
        key,
        agent,
        tenant,
        task,
        worker,
        reason,
    })
}

/// Converts a row with a provider, how long its limit lasts and why.
pub(super) fn provider_limit((provider, ends_in, reason): (String, i64, String)) -> ProviderLimit {
    let ends_in = Duration::from_millis(u64::try_from(ends_in).unwrap_or_default());
    ProviderLimit { provider, ends_in, reason }
}

/// Adds up rows with a state, how often it is there, and how long such work has been due.
pub(super) fn counts(rows: impl IntoIterator<Item = (String, i64, i64)>) -> QueueCounts {
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    let mut counts = QueueCounts::default();
    for (state, count, due_ms) in rows {
        if state == SCHEDULED {
            counts.scheduled = number(count);
        }
        match WorkState::parse(&state) {
            Some(WorkState::Queued) => {
                counts.queued = number(count);
                counts.oldest_ms = number(due_ms);
            }
            Some(WorkState::Running) => counts.running = number(count),
            Some(WorkState::Waiting) => counts.waiting = number(count),
            Some(WorkState::Parked) => counts.parked = number(count),
            None => {}
        }
    }
    counts
}

/// Instead of the state of work that is to be done at a later time, when work is counted.
pub(super) const SCHEDULED: &str = "scheduled";

/// The reason of work that its worker has to cancel.
pub(super) const CANCELLED: &str = "cancelled";

/// How a settlement changes a row: the new state, how much later it is due, by how much the attempts change, and the reason.
/// `None` removes it.
pub(super) fn change_of(settlement: Settlement) -> Option<(WorkState, i64, i64, Option<String>)> {
    let later = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4);
    match settlement {
        Settlement::Done => None,
        Settlement::Waiting(time) => Some((WorkState::Waiting, later(time), -1, None)),
        Settlement::Again(time, reason) => Some((WorkState::Queued, later(time), 0, Some(reason))),
        Settlement::Later(time, reason) => Some((WorkState::Queued, later(time), -1, Some(reason))),
        Settlement::HandedOver => Some((WorkState::Queued, 0, -1, None)),
        Settlement::Parked(reason) => Some((WorkState::Parked, 0, 0, Some(reason))),
    }
}
