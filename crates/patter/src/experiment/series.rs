//! Runs the jobs of a plan, some at a time, and keeps what comes of them.

use super::arm::{Arm, Ran};
use super::command_check::Programs;
use super::judge::Judge;
use super::plan::Job;
use super::report::{CaseInfo, ToolUse, Trial};
use super::stored::{KeepError, StoredTrials};
use crate::tool::CancellationToken;
use patter_core::case::{Case, Check, Judged, Observed};
use patter_core::types::definition::hash;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

/// Cases, the arms that they are run under, and who judges what comes of it.
pub struct Series {
    /// The arms, in the order of the plan.
    pub arms: Vec<Arm>,
    /// The cases, in the order of the plan.
    pub cases: Vec<Case>,
    /// The agents that judge.
    pub judges: Vec<Judge>,
    /// What runs checks that are programs.
    pub programs: Programs,
}

/// How fast jobs are run.
///
/// ```
/// use patter::experiment::Pace;
/// assert_eq!(Pace::default().concurrency.get(), 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many at a time.
    pub concurrency: NonZeroU32,
    /// How long after one begins the next may.
    pub interval: Option<Duration>,
}

/// Whether an experiment goes on.
///
/// ```
/// use patter::experiment::Going;
/// assert_ne!(Going::On, Going::Enough);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Going {
    /// It does.
    On,
    /// What was found is enough: nothing more begins.
    Enough,
}

/// How a series ended.
///
/// ```
/// use patter::experiment::SeriesEnd;
/// assert_ne!(SeriesEnd::Complete, SeriesEnd::Stopped);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesEnd {
    /// All jobs are done.
    Complete,
    /// What was found was enough.
    Enough,
    /// It was stopped; what had ended is kept.
    Stopped,
}

impl Default for Pace {
    fn default() -> Self {
        Self { concurrency: NonZeroU32::MIN.saturating_add(3), interval: None }
    }
}

impl Series {
    /// Returns what the cases are, and the hash of them with their checks.
    pub fn case_infos(&self) -> (Vec<CaseInfo>, String) {
        let info = |case: &Case| CaseInfo { id: case.id.clone(), turns: case.turns.clone(), tags: case.tags.clone() };
        let lines: Vec<_> = self.cases.iter().map(|case| case.to_json().to_string()).collect();
        (self.cases.iter().map(info).collect(), hash(lines.join("\n").as_bytes()))
    }

    /// Runs what is left of an experiment. Each run is kept once it has ended, and then looked at.
    pub async fn run(
        self: &Arc<Self>,
        kept: &mut StoredTrials,
        pace: Pace,
        mut look: impl FnMut(&[Trial]) -> Going,
        cancellation: &CancellationToken,
    ) -> Result<SeriesEnd, KeepError> {
        let mut left = VecDeque::from(kept.left());
        let mut end = SeriesEnd::Complete;
        let mut running = JoinSet::new();
        let mut ticks = tokio::time::interval_at(Instant::now(), pace.interval.unwrap_or(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !(left.is_empty() && running.is_empty()) {
            let has_room = !left.is_empty() && running.len() < pace.concurrency.get() as usize;
            let ended = tokio::select! {
                biased;
                () = cancellation.cancelled(), if end != SeriesEnd::Stopped => {
                    // What is under way hears it too, and ends.
                    end = SeriesEnd::Stopped;
                    left.clear();
                    continue;
                }
                () = ready(&mut ticks, pace.interval), if has_room => {
                    self.begin(&mut left, &mut running, cancellation);
                    continue;
                }
                Some(ended) = running.join_next() => ended,
            };
            let more = std::iter::from_fn(|| running.try_join_next());
            // A task that panicked left nothing; its job is run again with the rest of the experiment.
            let ended: Vec<_> = std::iter::once(ended).chain(more).filter_map(Result::ok).flatten().collect();
            if ended.is_empty() {
                continue;
            }
            // Others run while these are written.
            while pace.interval.is_none() && !left.is_empty() && running.len() < pace.concurrency.get() as usize {
                self.begin(&mut left, &mut running, cancellation);
            }
            kept.keep(ended).await?;
            if look(kept.done()) == Going::Enough && end == SeriesEnd::Complete && !left.is_empty() {
                end = SeriesEnd::Enough;
                left.clear();
            }
        }
        let is_complete = kept.done().len() == kept.plan().jobs().len();
        if is_complete || end == SeriesEnd::Enough {
            kept.finish().await?;
        }
        Ok(if is_complete {
            SeriesEnd::Complete
        } else if end == SeriesEnd::Complete {
            SeriesEnd::Stopped
        } else {
            end
        })
    }

    /// Begins the next job.
    fn begin(
        self: &Arc<Self>,
        left: &mut VecDeque<Job>,
        running: &mut JoinSet<Option<Trial>>,
        cancellation: &CancellationToken,
    ) {
        if let Some(job) = left.pop_front() {
            let (series, cancellation) = (Arc::clone(self), cancellation.clone());
            running.spawn(async move { series.perform(job, &cancellation).await });
        }
    }

    /// Does a job; nothing comes of it where it is stopped.
    async fn perform(&self, job: Job, cancellation: &CancellationToken) -> Option<Trial> {
        let (arm, case) = (self.arms.get(job.arm)?, self.cases.get(job.case)?);
        let ran = arm.run(case, job.repeat, cancellation).await?;
        let mut judged = Vec::with_capacity(case.checks.len());
        for check in &case.checks {
            judged.push(self.judge(check, case, &ran, cancellation).await?);
        }
        let Ran { at_ms, content, failure, conversation, tools, latency_ms, usage, cost, model_calls, .. } = ran;
        Some(Trial {
            arm: arm.name().to_owned(),
            case: case.id.clone(),
            repeat: job.repeat,
            order: job.order,
            at_ms,
            passed: failure.is_none() && judged.iter().all(|judged| judged.passed),
            judged,
            content,
            failure,
            conversation,
            tools: tools.into_iter().map(ToolUse::from).collect(),
            latency_ms,
            usage,
            cost,
            model_calls,
        })
    }

    async fn judge(&self, check: &Check, case: &Case, ran: &Ran, cancellation: &CancellationToken) -> Option<Judged> {
        let observed = Observed {
            content: &ran.content,
            value: ran.value.as_ref(),
            tools: &ran.tools,
            model_calls: ran.model_calls,
            latency_ms: ran.latency_ms,
            cost: ran.cost,
            failure: ran.failure.as_ref().map(|failure| failure.message.as_str()),
        };
        let (passed, why) = match check {
            Check::Judge { .. } | Check::Command { .. } if ran.failure.is_some() => {
                (false, "there is no answer".to_owned())
            }
            Check::Judge { agent, criteria } => match self.judges.iter().find(|judge| judge.name() == agent) {
                Some(judge) => judge.judge(criteria, ran, cancellation).await?,
                None => (false, format!("there is no judge `{agent}`")),
            },
            Check::Command { run, timeout_ms } => {
                let checked = self.programs.check(run, *timeout_ms, case, ran);
                cancellation.run_until_cancelled(checked).await?
            }
            pure => return pure.judge(&observed),
        };
        Some(Judged { check: check.to_string(), passed, why })
    }
}

/// Waits until the next job may begin.
async fn ready(ticks: &mut tokio::time::Interval, interval: Option<Duration>) {
    if interval.is_some() {
        ticks.tick().await;
    }
}
