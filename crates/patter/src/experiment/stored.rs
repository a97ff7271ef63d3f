//! Experiments in a store: the plan, and each trial as it ends, so that an interrupted experiment can resume.

use crate::drive::now_ms;
use crate::store::{Claim, EXPERIMENT_AGENT, NewSession, SessionId, SessionState, SessionSummary, Store, StoreError};
use patter_core::experiment::{Completion, Plan, PlannedTrial, Report, Trial};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::sync::Arc;
use thiserror::Error;

/// The maximum number of experiments with the same plan to check for an interrupted one.
const MAX_SAME_PLAN: usize = 100;
/// The number of recent sessions among which to look for them.
const MAX_RECENT: usize = 1000;

/// An experiment in a store. Only what a summary needs of each trial stays in memory.
pub struct StoredTrials {
    store: Arc<dyn Store>,
    claim: Box<dyn Claim>,
    plan: Plan,
    began_ms: u64,
    /// The trials so far, without details.
    trials: Vec<Trial>,
}

/// An error saving or resuming an experiment.
#[derive(Debug, Error)]
pub enum StoredTrialsError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan changed.
    #[error("cannot resume the experiment `{id}`: {difference}")]
    PlanChanged {
        /// The experiment.
        id: SessionId,
        /// What differs.
        difference: String,
    },
    /// The session is not an experiment.
    #[error("`{id}` is not an experiment")]
    NotAnExperiment {
        /// The session.
        id: SessionId,
    },
    /// The stored experiment is damaged.
    #[error("the stored experiment `{id}` is damaged: {message}")]
    Damaged {
        /// The experiment.
        id: SessionId,
        /// What is wrong with it.
        message: String,
    },
    /// A trial cannot be serialized.
    #[error("cannot serialize a trial: {0}")]
    Unwritable(#[from] serde_json::Error),
}

/// Trials of an experiment that were saved after others.
#[derive(Debug, Clone)]
pub struct NewTrials {
    /// The trials, in the order in which they ended.
    pub trials: Vec<Trial>,
    /// How many entries the experiment has, to read those after them next.
    pub entries: u64,
    /// The state of the experiment.
    pub state: SessionState,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum NewEntry<'e> {
    Plan(NewPlan<'e>),
    Trial(&'e Trial),
}

#[derive(Serialize)]
struct NewPlan<'e> {
    #[serde(flatten)]
    plan: &'e Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'e Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredEntry {
    Plan(Box<StoredPlan>),
    Trial(Box<Trial>),
}

#[derive(Deserialize)]
struct StoredPlan {
    #[serde(flatten)]
    plan: Plan,
    #[serde(default)]
    request: Option<Json>,
}

impl StoredTrials {
    /// Creates an experiment. Whoever runs experiments for others stores what was asked for, in a form of its own, to be able
    /// to resume it.
    pub async fn create(store: Arc<dyn Store>, plan: Plan, request: Option<&Json>) -> Result<Self, StoredTrialsError> {
        let began_ms = now_ms();
        let id =
            SessionId::parse(&format!("{}{}", id_prefix(&plan), SessionId::new(began_ms))).map_err(StoreError::from)?;
        let entry = serde_json::to_string(&NewEntry::Plan(NewPlan { plan: &plan, request }))?;
        let new = NewSession::new(id, EXPERIMENT_AGENT, &plan.title);
        let claim = store.create(new.with_entries(vec![entry], SessionState::Running), began_ms).await?;
        Ok(Self { store, claim, plan, began_ms, trials: Vec::new() })
    }

    /// Finds the latest interrupted experiment with the same plan.
    pub async fn find_interrupted(store: &dyn Store, plan: &Plan) -> Result<Option<SessionId>, StoredTrialsError> {
        let ids = store.ids(&id_prefix(plan), MAX_SAME_PLAN).await?;
        if ids.is_empty() {
            return Ok(None);
        }
        // A list has no entries, of which an experiment may have very many.
        let recent = store.list(MAX_RECENT).await?;
        for id in ids.into_iter().rev() {
            let state = match recent.iter().find(|summary| summary.id == id) {
                Some(summary) => summary.state,
                None => store.read(&id).await?.summary.state,
            };
            if state == SessionState::Running {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Resumes an experiment, which must have the same plan.
    pub async fn resume(store: Arc<dyn Store>, id: &SessionId, plan: Plan) -> Result<Self, StoredTrialsError> {
        let claim = store.claim(id).await?;
        let StoredExperiment { plan: stored, began_ms, trials, .. } = read(&*store, id).await?;
        if let Some(difference) = plan.difference(&stored) {
            return Err(StoredTrialsError::PlanChanged { id: id.clone(), difference });
        }
        let trials = trials.into_iter().map(Trial::without_details).collect();
        Ok(Self { store, claim, plan, began_ms, trials })
    }

    /// Reads the report of an experiment, complete or not.
    pub async fn read(store: &dyn Store, id: &SessionId) -> Result<Report, StoredTrialsError> {
        Ok(Self::read_with_request(store, id).await?.0)
    }

    /// Reads the report of an experiment, and what was asked for when it was created.
    pub async fn read_with_request(
        store: &dyn Store,
        id: &SessionId,
    ) -> Result<(Report, Option<Json>), StoredTrialsError> {
        let StoredExperiment { plan, request, began_ms, trials, state } = read(store, id).await?;
        Ok((report(plan, began_ms, trials, state), request))
    }

    /// Reads the trials of an experiment that were saved after others: `known` is how many entries have been read before, 0
    /// for none.
    pub async fn read_new(store: &dyn Store, id: &SessionId, known: u64) -> Result<NewTrials, StoredTrialsError> {
        let stored = read_entries(store, id, known).await?;
        let trials = stored.entries.into_iter().filter_map(|entry| match entry {
            StoredEntry::Trial(trial) => Some(*trial),
            StoredEntry::Plan(_) => None,
        });
        Ok(NewTrials { trials: trials.collect(), entries: stored.summary.entries, state: stored.summary.state })
    }

    /// Returns the id of the experiment, which is a session of the store.
    pub fn id(&self) -> &SessionId {
        self.claim.id()
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the trials so far, without details.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Returns the remaining trials, in the order of the plan.
    pub fn remaining(&self) -> Vec<PlannedTrial> {
        let done: HashSet<_> = self.trials.iter().map(|trial| trial.order).collect();
        self.plan.planned_trials().into_iter().filter(|trial| !done.contains(&trial.order)).collect()
    }

    /// Appends trials, all or none.
    pub async fn append(&mut self, trials: Vec<Trial>) -> Result<(), StoredTrialsError> {
        let entries = trials.iter().map(|trial| serde_json::to_string(&NewEntry::Trial(trial)));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        self.claim.append(&entries, SessionState::Running, now_ms()).await?;
        self.trials.extend(trials.into_iter().map(Trial::without_details));
        Ok(())
    }

    /// Marks the experiment as finished, so that it is not resumed.
    pub async fn finish(&mut self) -> Result<(), StoredTrialsError> {
        Ok(self.claim.append(&[], SessionState::Idle, now_ms()).await?)
    }

    /// Returns the report without the details of trials.
    pub fn brief_report(&self) -> Report {
        report(self.plan.clone(), self.began_ms, self.trials.clone(), SessionState::Running)
    }

    /// Reads the whole report, with the conversations.
    pub async fn report(&self) -> Result<Report, StoredTrialsError> {
        Self::read(&*self.store, self.claim.id()).await
    }
}

/// Returns the prefix of the ids of experiments with a plan.
fn id_prefix(plan: &Plan) -> String {
    let hash: String = plan.hash().chars().take(8).collect();
    format!("x-{hash}-")
}

/// An experiment as it is stored.
struct StoredExperiment {
    plan: Plan,
    request: Option<Json>,
    began_ms: u64,
    trials: Vec<Trial>,
    state: SessionState,
}

async fn read(store: &dyn Store, id: &SessionId) -> Result<StoredExperiment, StoredTrialsError> {
    let stored = read_entries(store, id, 0).await?;
    let mut plan = None;
    let mut trials = Vec::with_capacity(stored.entries.len());
    for entry in stored.entries {
        match entry {
            StoredEntry::Plan(read) => plan = Some(*read),
            StoredEntry::Trial(trial) => trials.push(*trial),
        }
    }
    let missing = || StoredTrialsError::Damaged { id: id.clone(), message: "the plan is missing".to_owned() };
    let StoredPlan { plan, request } = plan.ok_or_else(missing)?;
    Ok(StoredExperiment { plan, request, began_ms: stored.summary.created_ms, trials, state: stored.summary.state })
}

/// The entries of an experiment, from some number on.
struct StoredEntries {
    summary: SessionSummary,
    entries: Vec<StoredEntry>,
}

async fn read_entries(store: &dyn Store, id: &SessionId, first: u64) -> Result<StoredEntries, StoredTrialsError> {
    let stored = store.read_from(id, first).await?;
    if !stored.summary.is_experiment() {
        return Err(StoredTrialsError::NotAnExperiment { id: id.clone() });
    }
    let damaged = |error: serde_json::Error| StoredTrialsError::Damaged { id: id.clone(), message: error.to_string() };
    let entries = stored.entries.iter().map(|entry| serde_json::from_str(entry).map_err(damaged));
    Ok(StoredEntries { entries: entries.collect::<Result<_, _>>()?, summary: stored.summary })
}

fn report(plan: Plan, began_ms: u64, mut trials: Vec<Trial>, state: SessionState) -> Report {
    let completion = match state {
        _ if trials.len() == plan.planned() => Completion::Complete,
        SessionState::Idle => Completion::StoppedEarly,
        SessionState::Running | SessionState::Waiting => Completion::Interrupted,
    };
    trials.sort_by_key(|trial| trial.order);
    let end = |trial: &Trial| trial.at_ms.saturating_add(trial.latency_ms);
    let ended_ms = trials.iter().map(end).max().unwrap_or(began_ms);
    let Plan { title, kind, arms, cases, judges, repeats, seed, blocks, .. } = plan;
    let empty = Report::new(&title, kind);
    Report { arms, cases, judges, repeats, seed, blocks, trials, completion, began_ms, ended_ms, ..empty }
}
