//! Schedules, as those see them who share a store.

use super::schedule::{TickTask, ticks};
use patter::session::Log;
use patter::store::{SessionId, SessionState, Store, StoreError, Work};
use patter_core::run::RunOutcome;
use serde::Serialize;

/// A schedule, as all servers that share a store see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduleStatus {
    /// The name.
    pub name: String,
    /// The agent that runs.
    pub agent: String,
    /// When it runs.
    pub at: String,
    /// The time zone.
    pub timezone: String,
    /// The next tick, in milliseconds since 1970.
    pub next_ms: u64,
    /// The tick before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastTick>,
}

/// The last tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastTick {
    /// When it was due, in milliseconds since 1970.
    pub due_ms: u64,
    /// Its session.
    pub session: SessionId,
    /// How it ended, or what it does: `answered`, `failed`, `cancelled`, `running`, `waiting`, `queued`, `parked`, or `not_run` if
    /// there is no such session.
    pub status: String,
}

/// Returns the schedules whose next tick is in the queue of a store, in order of their names.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let folder = tempfile::tempdir().unwrap();
/// # let location = patter::store::StoreLocation::Sqlite(folder.path().join("s.db"));
/// let store = patter::store::open(&location).await.unwrap();
/// assert!(patter_serve::schedule_statuses(&*store).await.unwrap().is_empty());
/// # }
/// ```
pub async fn schedule_statuses(store: &dyn Store) -> Result<Vec<ScheduleStatus>, StoreError> {
    let Some(queue) = store.queue() else { return Ok(Vec::new()) };
    let rows = ticks(queue).await?;
    let mut statuses: Vec<ScheduleStatus> = Vec::new();
    // The latest tick of each schedule is the next one.
    for work in rows.iter().rev() {
        let Some(tick) = TickTask::parse(work) else { continue };
        if statuses.iter().any(|known| known.name == tick.schedule) {
            continue;
        }
        let last = match tick.previous_ms.zip(tick.previous_session) {
            Some((due_ms, session)) => {
                let status = last_status(store, &rows, &session).await?;
                Some(LastTick { due_ms, session, status })
            }
            None => None,
        };
        statuses.push(ScheduleStatus {
            name: tick.schedule,
            agent: work.agent.clone(),
            at: tick.at,
            timezone: tick.timezone,
            next_ms: tick.tick_ms,
            last,
        });
    }
    statuses.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(statuses)
}

/// Returns how a tick ended, or what it does.
async fn last_status(store: &dyn Store, rows: &[Work], session: &SessionId) -> Result<String, StoreError> {
    let work = rows.iter().find(|work| work.session == *session);
    let stored = match store.read(session).await {
        Ok(stored) => stored,
        Err(StoreError::NotFound { .. }) => return Ok(work.map_or("not_run", |work| work.state.as_str()).to_owned()),
        Err(error) => return Err(error),
    };
    Ok(match stored.summary.state {
        SessionState::Running => "running".to_owned(),
        SessionState::Waiting => "waiting".to_owned(),
        SessionState::Idle => {
            let log = Log::read(&stored.entries).ok();
            let outcome = log.as_ref().and_then(|log| Some(&log.turns().last()?.outcome));
            match outcome {
                Some(RunOutcome::Answer { .. }) => "answered",
                Some(RunOutcome::Failed(_)) => "failed",
                Some(RunOutcome::Cancelled) => "cancelled",
                None => "not_run",
            }
            .to_owned()
        }
    })
}
