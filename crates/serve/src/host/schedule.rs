//! Schedules: the next tick of each is work of the queue.
//!
//! All servers compute the same ticks and add them under the same keys, so a tick is in the queue once. Its session has an id that
//! follows from the tick: a tick that ran is not run again, whoever adds it. What a tick runs is decided when it is performed, by
//! the schedule as it is then.

use super::Host;
use super::work::{SayTask, Task};
use crate::metrics::TickOutcome;
use patter::drive::now_ms;
use patter::store::{NewWork, SessionId, Settlement, StoreError, Work, WorkChange, WorkFilter, WorkQueue, WorkState};
use patter_core::schedule::{Schedule, Tick};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How the keys of ticks start.
const KEYS: &str = "schedule/";
/// How often to look at the schedules, besides at their ticks: the project may have changed.
const LOOK: Duration = Duration::from_secs(5);
/// How often ticks are added again, in case somebody removed them.
const ADD_AGAIN: Duration = Duration::from_secs(60);
/// A tick that starts later than this was missed: no server was there.
const MISSED_AFTER: Duration = Duration::from_secs(60);
/// When to look again at a tick of a schedule that this server does not know. Another one may.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(5);
/// How many ticks of a schedule are added at once at most, if this server was busy.
const MAX_TICKS: usize = 100;
/// How many ticks are read at most.
const MAX_ROWS: usize = 10_000;

/// A tick in the queue. It says about the schedule what others want to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TickTask {
    pub(super) schedule: String,
    pub(super) tick_ms: u64,
    pub(super) at: String,
    pub(super) timezone: String,
    /// The tick before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous_ms: Option<u64>,
    /// The session of the tick before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous_session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) webhook: Option<String>,
}

impl TickTask {
    fn new(schedule: &Schedule, tick: Tick) -> Self {
        let previous = tick.as_ms().checked_sub(1).and_then(|before| schedule.previous(before));
        Self {
            schedule: schedule.name.clone(),
            tick_ms: tick.as_ms(),
            at: schedule.at.to_string(),
            timezone: schedule.timezone.clone(),
            previous_ms: previous.map(Tick::as_ms),
            previous_session: previous.and_then(|tick| SessionId::parse(&schedule.session(tick)).ok()),
            webhook: schedule.webhook.clone(),
        }
    }

    pub(super) fn parse(work: &Work) -> Option<Self> {
        match serde_json::from_str(&work.task) {
            Ok(Task::Tick(tick)) => Some(tick),
            _ => None,
        }
    }
}

/// What this server has added.
#[derive(Default)]
struct Added {
    /// The schedules, once they are known.
    schedules: Option<Vec<Schedule>>,
    /// The last tick of each schedule, by its name.
    ticks: HashMap<String, Tick>,
    /// When ticks are added again.
    again_ms: u64,
}

impl Host {
    /// Adds the next tick of each schedule to the queue, until the server stops.
    pub(crate) async fn keep_schedules(self: Arc<Self>) {
        let Some(store) = self.store.clone() else { return };
        let Some(queue) = store.queue() else { return };
        let mut added = Added::default();
        loop {
            let mut pause = LOOK;
            if self.worker.get().is_some() {
                match self.add_ticks(queue, &mut added).await {
                    Ok(next) => pause = next.unwrap_or(LOOK).min(LOOK),
                    Err(error) => tracing::warn!(%error, "cannot add the next ticks of schedules"),
                }
            } else {
                pause = Duration::from_millis(50);
            }
            if self.draining.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            // A tick may be due now.
            self.freed.notify_one();
        }
    }

    /// Adds the ticks that are not in the queue. Returns how long it takes until the next one.
    async fn add_ticks(&self, queue: &dyn WorkQueue, added: &mut Added) -> Result<Option<Duration>, StoreError> {
        let driver = self.project.driver();
        let schedules = Schedule::read_all(driver.project());
        let now = now_ms();
        if added.schedules.as_ref() != Some(&schedules) {
            remove_outdated(queue, &schedules).await?;
            let known = added.schedules.take().unwrap_or_default();
            let find = |list: &[Schedule], name: &str| list.iter().find(|schedule| schedule.name == name).cloned();
            added.ticks.retain(|name, _| find(&schedules, name) == find(&known, name));
        }
        let is_again = now >= added.again_ms;
        if is_again {
            added.again_ms = now.saturating_add(patter::text::milliseconds(ADD_AGAIN));
        }
        let mut next_ms: Option<u64> = None;
        for schedule in schedules.iter().filter(|schedule| self.serves(&schedule.agent)) {
            let last = added.ticks.get(&schedule.name).copied();
            if let Some(last) = last.filter(|last| last.as_ms() > now) {
                if is_again {
                    add_tick(queue, schedule, last).await?;
                }
                next_ms = Some(next_ms.map_or(last.as_ms(), |next| next.min(last.as_ms())));
                continue;
            }
            // Ticks that came while this server was busy are added too.
            let recent = now.saturating_sub(patter::text::milliseconds(MISSED_AFTER));
            let mut after = last.map_or(now, |last| last.as_ms().max(recent));
            for _ in 0..MAX_TICKS {
                let Some(tick) = schedule.next(after) else { break };
                add_tick(queue, schedule, tick).await?;
                added.ticks.insert(schedule.name.clone(), tick);
                after = tick.as_ms();
                if after > now {
                    next_ms = Some(next_ms.map_or(after, |next| next.min(after)));
                    break;
                }
            }
        }
        added.schedules = Some(schedules);
        Ok(next_ms.map(|next| Duration::from_millis(next.saturating_sub(now_ms()))))
    }

    /// Returns what a tick sends to its agent, or how its work is settled if it does not run.
    pub(super) async fn tick_message(&self, tick: &TickTask) -> Result<SayTask, Settlement> {
        let now = now_ms();
        let late = Duration::from_millis(now.saturating_sub(tick.tick_ms));
        let driver = self.project.driver();
        let schedules = Schedule::read_all(driver.project());
        let moment = Tick::from_ms(tick.tick_ms);
        let schedule = schedules.iter().find(|schedule| schedule.name == tick.schedule);
        let Some((schedule, moment)) = schedule.zip(moment).filter(|(schedule, moment)| schedule.has_tick(*moment))
        else {
            // A server with another version of the project may know it.
            if late < MISSED_AFTER {
                let reason = format!("this server does not have the schedule `{}` with this tick", tick.schedule);
                return Err(Settlement::Later(UNKNOWN_PAUSE, reason));
            }
            return Err(self.skip(tick, "the project does not have it any more"));
        };
        if late >= MISSED_AFTER {
            let last = schedule.previous(now);
            if let Some(last) = last.filter(|last| *last != moment) {
                if let Some((queue, _)) = self.queue()
                    && Some(last) == schedule.missed(now)
                    && let Err(error) = add_tick(queue, schedule, last).await
                {
                    return Err(Settlement::Later(UNKNOWN_PAUSE, error.to_string()));
                }
                return Err(self.skip(tick, "a later one has come"));
            }
            if schedule.missed(now).is_none() {
                return Err(self.skip(tick, "no server was there in time"));
            }
        }
        self.metrics.tick(TickOutcome::Started);
        Ok(SayTask { message: schedule.input.clone(), webhook: schedule.webhook.clone(), ..SayTask::default() })
    }

    fn skip(&self, tick: &TickTask, reason: &str) -> Settlement {
        let at = Tick::from_ms(tick.tick_ms).map(|tick| tick.to_string());
        tracing::warn!(schedule = tick.schedule, at, reason, "a tick of a schedule was left out");
        self.metrics.tick(TickOutcome::Skipped);
        Settlement::Done
    }
}

async fn add_tick(queue: &dyn WorkQueue, schedule: &Schedule, tick: Tick) -> Result<(), StoreError> {
    let task = serde_json::to_string(&Task::Tick(TickTask::new(schedule, tick)));
    let new = NewWork {
        key: schedule.key(tick),
        session: SessionId::parse(&schedule.session(tick))?,
        agent: schedule.agent.clone(),
        tenant: Schedule::key_prefix(&schedule.name).trim_end_matches('/').to_owned(),
        task: task.map_err(|error| StoreError::Failed { message: error.to_string() })?,
        worker: None,
        due_ms: Some(tick.as_ms()),
    };
    queue.add(new).await.map(|_| ())
}

/// Removes the ticks of schedules that have changed, or are not there any more.
async fn remove_outdated(queue: &dyn WorkQueue, schedules: &[Schedule]) -> Result<(), StoreError> {
    for work in ticks(queue).await? {
        // What has started, ends.
        if work.state != WorkState::Queued || work.attempts > 0 {
            continue;
        }
        let Some(tick) = TickTask::parse(&work) else { continue };
        let is_current = schedules.iter().any(|schedule| {
            let current = Tick::from_ms(tick.tick_ms).map(|moment| TickTask::new(schedule, moment));
            schedule.name == tick.schedule && schedule.agent == work.agent && current.as_ref() == Some(&tick)
        });
        if !is_current {
            queue.change(work.id, WorkChange::Remove).await?;
        }
    }
    Ok(())
}

/// Returns the ticks in a queue, the first ones first.
pub(super) async fn ticks(queue: &dyn WorkQueue) -> Result<Vec<Work>, StoreError> {
    queue.list(&WorkFilter { key_prefix: Some(KEYS.to_owned()), ..WorkFilter::default() }, MAX_ROWS).await
}
