//! Experiments in a store: a plan, and each run as it ends. So one that was interrupted goes on where it was.

use super::plan::{Job, Plan};
use super::report::{Report, Trial};
use crate::drive::now;
use crate::store::{Claim, EXPERIMENT, NewSession, SessionId, SessionState, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use thiserror::Error;

/// How many experiments of the same plan are looked at.
const SAME: usize = 100;

/// An experiment in a store. Of what is done, only what is needed for a summary stays in memory.
pub struct StoredTrials {
    store: Arc<dyn Store>,
    claim: Box<dyn Claim>,
    plan: Plan,
    began_ms: u64,
    /// What is done, in brief.
    done: Vec<Trial>,
}

/// Why an experiment cannot be kept, or go on.
#[derive(Debug, Error)]
pub enum KeepError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan is another.
    #[error("the experiment `{id}` cannot go on: {difference}")]
    Changed {
        /// Which one.
        id: SessionId,
        /// What differs.
        difference: String,
    },
    /// What is stored is none.
    #[error("`{id}` is no experiment")]
    NoExperiment {
        /// Which session.
        id: SessionId,
    },
    /// What is stored cannot be read.
    #[error("what is stored of the experiment `{id}` cannot be read: {message}")]
    Damaged {
        /// Which one.
        id: SessionId,
        /// Why not.
        message: String,
    },
    /// A run cannot be written.
    #[error("a run cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Entry<'e> {
    Plan(&'e Plan),
    Trial(&'e Trial),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReadEntry {
    Plan(Box<Plan>),
    Trial(Box<Trial>),
}

impl StoredTrials {
    /// Begins an experiment.
    pub async fn begin(store: Arc<dyn Store>, plan: Plan) -> Result<Self, KeepError> {
        let began_ms = now();
        let id = SessionId::parse(&format!("{}{}", prefix(&plan), SessionId::new(began_ms)))?;
        let mut claim = store.create(NewSession::new(id, EXPERIMENT, &plan.title), began_ms).await?;
        let entry = serde_json::to_string(&Entry::Plan(&plan))?;
        claim.append(&[entry], SessionState::Running, began_ms).await?;
        Ok(Self { store, claim, plan, began_ms, done: Vec::new() })
    }

    /// Finds the last experiment of the same plan that was interrupted.
    pub async fn interrupted(store: &dyn Store, plan: &Plan) -> Result<Option<SessionId>, KeepError> {
        let ids = store.ids(&prefix(plan), SAME).await?;
        // Few have the same plan; each is looked at, newest first.
        for id in ids.into_iter().rev() {
            if store.read(&id).await?.summary.state == SessionState::Running {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Goes on with an experiment, which must have the same plan.
    pub async fn resume(store: Arc<dyn Store>, id: &SessionId, plan: Plan) -> Result<Self, KeepError> {
        let claim = store.claim(id).await?;
        let (stored, began_ms, trials) = read(&*store, id).await?;
        if let Some(difference) = plan.difference(&stored) {
            return Err(KeepError::Changed { id: id.clone(), difference });
        }
        let done = trials.into_iter().map(Trial::brief).collect();
        Ok(Self { store, claim, plan, began_ms, done })
    }

    /// Reads the report of an experiment, whether it is complete or not.
    pub async fn read(store: &dyn Store, id: &SessionId) -> Result<Report, KeepError> {
        let (plan, began_ms, trials) = read(store, id).await?;
        Ok(report(plan, began_ms, trials))
    }

    /// Returns which session of the store it is.
    pub fn id(&self) -> &SessionId {
        self.claim.id()
    }

    /// Returns its plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns what is done, without what takes much room.
    pub fn done(&self) -> &[Trial] {
        &self.done
    }

    /// Returns what is not done yet, in the order of the plan.
    pub fn left(&self) -> Vec<Job> {
        let done: HashSet<_> = self.done.iter().map(|trial| trial.order).collect();
        self.plan.jobs().into_iter().filter(|job| !done.contains(&job.order)).collect()
    }

    /// Keeps runs that have ended: all or none.
    pub async fn keep(&mut self, trials: Vec<Trial>) -> Result<(), KeepError> {
        let entries = trials.iter().map(|trial| serde_json::to_string(&Entry::Trial(trial)));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        self.claim.append(&entries, SessionState::Running, now()).await?;
        self.done.extend(trials.into_iter().map(Trial::brief));
        Ok(())
    }

    /// Notes that nothing more is to be done.
    pub async fn finish(&mut self) -> Result<(), KeepError> {
        Ok(self.claim.append(&[], SessionState::Idle, now()).await?)
    }

    /// Returns the report, without what takes much room.
    pub fn brief_report(&self) -> Report {
        report(self.plan.clone(), self.began_ms, self.done.clone())
    }

    /// Returns the whole report, with the conversations.
    pub async fn report(&self) -> Result<Report, KeepError> {
        Self::read(&*self.store, self.claim.id()).await
    }
}

/// Returns how the ids of experiments of a plan begin.
fn prefix(plan: &Plan) -> String {
    let hash: String = plan.hash().chars().take(8).collect();
    format!("x-{hash}-")
}

async fn read(store: &dyn Store, id: &SessionId) -> Result<(Plan, u64, Vec<Trial>), KeepError> {
    let stored = store.read(id).await?;
    if stored.summary.agent != EXPERIMENT {
        return Err(KeepError::NoExperiment { id: id.clone() });
    }
    let damaged = |message: String| KeepError::Damaged { id: id.clone(), message };
    let (mut plan, mut trials) = (None, Vec::with_capacity(stored.entries.len()));
    for entry in stored.entries {
        match serde_json::from_str(&entry).map_err(|error| damaged(error.to_string()))? {
            ReadEntry::Plan(read) => plan = Some(*read),
            ReadEntry::Trial(trial) => trials.push(*trial),
        }
    }
    let plan = plan.ok_or_else(|| damaged("there is no plan".to_owned()))?;
    Ok((plan, stored.summary.created_ms, trials))
}

fn report(plan: Plan, began_ms: u64, mut trials: Vec<Trial>) -> Report {
    trials.sort_by_key(|trial| trial.order);
    let ended = |trial: &Trial| trial.at_ms.saturating_add(trial.latency_ms);
    let ended_ms = trials.iter().map(ended).max().unwrap_or(began_ms);
    let Plan { title, kind, arms, cases, judges, repeats, seed, blocks, .. } = plan;
    let empty = Report::new(&title, kind);
    Report { arms, cases, judges, repeats, seed, blocks, trials, began_ms, ended_ms, ..empty }
}
