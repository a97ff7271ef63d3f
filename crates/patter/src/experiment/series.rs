//! Runs the trials of a plan, several at a time, and saves their results.

use super::arm::{Arm, TrialRun};
use super::command_check::CommandChecks;
use super::judge::{Judge, Judgement};
use super::stored::{StoredTrials, StoredTrialsError};
use crate::store::StoreError;
use crate::tool::CancellationToken;
use crate::trace::{Evaluation, Tracer, TrialTracer};
use patter_core::case::{Case, Check, CheckResult, Observation};
use patter_core::experiment::{CaseInfo, PlannedTrial, ToolUse, Trial};
use patter_core::types::definition::hash;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How long saving may take after the series was stopped.
const SAVE_GRACE: Duration = Duration::from_secs(1);

/// Cases, the arms to run them under, and what checks the results.
pub struct Series {
    /// The arms, in the order of the plan.
    pub arms: Vec<Arm>,
    /// The cases, in the order of the plan.
    pub cases: Vec<Case>,
    /// The agents that judge answers.
    pub judges: Vec<Judge>,
    /// Runs the checks that are commands.
    pub command_checks: CommandChecks,
    /// Exports trials as spans.
    pub tracer: Option<Tracer>,
}

/// How fast trials start.
///
/// ```
/// use patter::experiment::Throttle;
/// assert_eq!(Throttle::default().concurrency.get(), 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
    /// The maximum number of trials at a time.
    pub concurrency: NonZeroU32,
    /// The minimum time between the starts of two trials.
    pub interval: Option<Duration>,
}

/// Whether an experiment continues.
///
/// ```
/// use patter::experiment::SeriesProgress;
/// assert_ne!(SeriesProgress::Continue, SeriesProgress::Enough);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesProgress {
    /// More trials are needed.
    Continue,
    /// The results are conclusive: no more trials start.
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
    /// All trials are done.
    Complete,
    /// The results were conclusive before all trials were done.
    Enough,
    /// The series was stopped; completed trials are saved.
    Stopped,
}

impl Default for Throttle {
    fn default() -> Self {
        Self { concurrency: NonZeroU32::MIN.saturating_add(3), interval: None }
    }
}

impl Series {
    /// Returns descriptions of the cases, and the hash of all of them.
    pub fn case_infos(&self) -> (Vec<CaseInfo>, String) {
        let judges: HashMap<_, _> = self.judges.iter().map(|judge| (judge.name(), judge.info())).collect();
        let mut scripts: HashMap<&[String], Vec<String>> = HashMap::new();
        let mut infos = Vec::with_capacity(self.cases.len());
        for case in &self.cases {
            let mut parts = vec![case.to_json().to_string()];
            for check in &case.checks {
                match check {
                    Check::Judge { agent, .. } => parts.extend(judges.get(agent.as_str()).map(|judge| {
                        [&judge.agent_hash, &judge.model, &judge.setup_hash].map(String::as_str).join(" ")
                    })),
                    Check::Command { run, .. } => {
                        // Many cases share a script, which is read once.
                        let hashes = scripts.entry(run).or_insert_with(|| self.command_checks.script_hashes(run));
                        parts.extend(hashes.iter().cloned());
                    }
                    _ => {}
                }
            }
            infos.push(CaseInfo {
                id: case.id.clone(),
                turns: case.turns.clone(),
                tags: case.tags.clone(),
                hash: hash(parts.join("\n").as_bytes()),
            });
        }
        let hashes: Vec<_> = infos.iter().map(|info| info.hash.as_str()).collect();
        let all = hash(hashes.join("\n").as_bytes());
        (infos, all)
    }

    /// Runs the remaining trials of an experiment. Trials are saved when they end; then `look` sees all trials so far and
    /// decides whether to continue. If they are complete or enough, call [`Series::finish`] once their report is
    /// written: until then, the experiment can be resumed, which runs nothing again.
    pub async fn run(
        self: &Arc<Self>,
        stored: &mut StoredTrials,
        throttle: Throttle,
        mut look: impl FnMut(&[Trial]) -> SeriesProgress,
        cancellation: &CancellationToken,
    ) -> Result<SeriesEnd, StoredTrialsError> {
        let mut remaining = VecDeque::from(stored.remaining());
        let mut end = SeriesEnd::Complete;
        let is_resumed = !stored.trials().is_empty();
        if is_resumed && !remaining.is_empty() && look(stored.trials()) == SeriesProgress::Enough {
            end = SeriesEnd::Enough;
            remaining.clear();
        }
        let mut running = JoinSet::new();
        let experiment: Arc<str> = stored.id().as_str().into();
        let mut ticks = tokio::time::interval_at(Instant::now(), throttle.interval.unwrap_or(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !(remaining.is_empty() && running.is_empty()) {
            let has_room = !remaining.is_empty() && running.len() < throttle.concurrency.get() as usize;
            let ended = tokio::select! {
                biased;
                () = cancellation.cancelled(), if end != SeriesEnd::Stopped => {
                    // Running trials have the same token, and end.
                    end = SeriesEnd::Stopped;
                    remaining.clear();
                    continue;
                }
                () = next_start(&mut ticks, throttle.interval), if has_room => {
                    self.start_next(&experiment, &mut remaining, &mut running, cancellation);
                    continue;
                }
                Some(ended) = running.join_next() => ended,
            };
            let more = std::iter::from_fn(|| running.try_join_next());
            // A task that panicked leaves no trial; it runs again when the experiment resumes.
            let trials: Vec<_> = std::iter::once(ended).chain(more).filter_map(Result::ok).flatten().collect();
            if trials.is_empty() {
                continue;
            }
            // Other trials run while these are saved.
            while throttle.interval.is_none()
                && !remaining.is_empty()
                && running.len() < throttle.concurrency.get() as usize
            {
                self.start_next(&experiment, &mut remaining, &mut running, cancellation);
            }
            unless_stopped(cancellation, stored.append(trials)).await?;
            if look(stored.trials()) == SeriesProgress::Enough && end == SeriesEnd::Complete && !remaining.is_empty() {
                end = SeriesEnd::Enough;
                remaining.clear();
            }
        }
        let is_complete = stored.trials().len() == stored.plan().planned();
        Ok(if is_complete {
            SeriesEnd::Complete
        } else if end == SeriesEnd::Complete {
            SeriesEnd::Stopped
        } else {
            end
        })
    }

    /// Marks an experiment as finished, once its report is written.
    pub async fn finish(stored: &mut StoredTrials, cancellation: &CancellationToken) -> Result<(), StoredTrialsError> {
        unless_stopped(cancellation, stored.finish()).await
    }

    fn start_next(
        self: &Arc<Self>,
        experiment: &Arc<str>,
        remaining: &mut VecDeque<PlannedTrial>,
        running: &mut JoinSet<Option<Trial>>,
        cancellation: &CancellationToken,
    ) {
        if let Some(planned) = remaining.pop_front() {
            let series = Arc::clone(self);
            let cancellation = cancellation.clone();
            let experiment = Arc::clone(experiment);
            running.spawn(async move { series.perform(&experiment, planned, &cancellation).await });
        }
    }

    /// Runs a trial and its checks. Returns `None` if it is cancelled.
    async fn perform(
        &self,
        experiment: &str,
        planned: PlannedTrial,
        cancellation: &CancellationToken,
    ) -> Option<Trial> {
        let arm = self.arms.get(planned.arm)?;
        let case = self.cases.get(planned.case)?;
        let tracer = self.tracer.as_ref().map(|tracer| {
            let baseline = self.arms.first().map(Arm::name);
            TrialTracer::new(tracer, experiment, arm.name(), &case.id, planned.repeat, baseline)
        });
        let run = arm.run(case, planned.repeat, tracer.as_ref(), cancellation).await?;
        let mut judged = Vec::with_capacity(case.checks.len());
        for check in &case.checks {
            judged.push(self.judge(check, case, &run, tracer.as_ref(), cancellation).await?);
        }
        let TrialRun { at_ms, content, failure, conversation, tools, latency_ms, usage, cost, model_calls, .. } = run;
        let passed = failure.is_none() && judged.iter().all(|judged| judged.passed);
        if let Some(tracer) = tracer {
            let evaluations = judged.iter().map(|judged| Evaluation {
                name: judged.check.clone(),
                passed: judged.passed,
                explanation: judged.why.clone(),
            });
            tracer.finish(at_ms, passed, &evaluations.collect::<Vec<_>>());
        }
        Some(Trial {
            arm: arm.name().to_owned(),
            case: case.id.clone(),
            repeat: planned.repeat,
            order: planned.order,
            at_ms,
            passed,
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

    async fn judge(
        &self,
        check: &Check,
        case: &Case,
        run: &TrialRun,
        tracer: Option<&TrialTracer>,
        cancellation: &CancellationToken,
    ) -> Option<CheckResult> {
        let observed = Observation {
            content: &run.content,
            value: run.value.as_ref(),
            tools: &run.tools,
            model_calls: run.model_calls,
            latency_ms: run.latency_ms,
            cost: run.cost,
            failure: run.failure.as_ref().map(|failure| failure.message.as_str()),
        };
        let judgement = match check {
            Check::Judge { .. } | Check::Command { .. } if run.failure.is_some() => {
                Judgement::Failed("there is no answer".to_owned())
            }
            Check::Judge { agent, criteria } => match self.judges.iter().find(|judge| judge.name() == agent) {
                Some(judge) => judge.judge(criteria, run, tracer, cancellation).await?,
                None => Judgement::Error(format!("there is no judge `{agent}`")),
            },
            Check::Command { run: command, timeout_ms } => {
                let check = self.command_checks.check(command, *timeout_ms, case, run);
                cancellation.run_until_cancelled(check).await?
            }
            pure => return pure.judge(&observed),
        };
        let (passed, error, why) = match judgement {
            Judgement::Passed(why) => (true, false, why),
            Judgement::Failed(why) => (false, false, why),
            Judgement::Error(why) => (false, true, why),
        };
        Some(CheckResult { check: check.to_string(), passed, error, why })
    }
}

/// Waits for the store, but only for a moment once the series was stopped.
async fn unless_stopped(
    cancellation: &CancellationToken,
    work: impl Future<Output = Result<(), StoredTrialsError>>,
) -> Result<(), StoredTrialsError> {
    let stopped = async {
        cancellation.cancelled().await;
        tokio::time::sleep(SAVE_GRACE).await;
    };
    tokio::select! {
        biased;
        done = work => done,
        () = stopped => {
            let message = "no answer after the experiment was stopped: the last runs are not saved".to_owned();
            Err(StoreError::Failed { message }.into())
        }
    }
}

/// Waits until the next trial may start.
async fn next_start(ticks: &mut Interval, interval: Option<Duration>) {
    if interval.is_some() {
        ticks.tick().await;
    }
}
