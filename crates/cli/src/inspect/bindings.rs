//! The bindings of agents, and their drift from `patter.lock`.

use crate::error::{CommandError, ErrorKind};
use crate::place::Place;
use crate::setup::Toolset;
use patter::compile::{Lock, LockedAgent};
use patter::library::{BindFailure, MatchMode, bind};
use patter::project::{Project, ProjectLock, ProjectLockError, lock_files, lock_project};
use std::path::Path;

/// A declared tool that could not be bound.
pub(crate) struct BindingFailure {
    agent: String,
    place: Option<Place>,
    failure: BindFailure,
}

impl From<&BindingFailure> for CommandError {
    fn from(failed: &BindingFailure) -> Self {
        let error = Self::new(ErrorKind::named("ToolError"), failed.failure.to_string());
        let error = error.with_hint_if(failed.failure.hint());
        match &failed.place {
            Some(place) => error.with_place(place.clone()),
            None => error,
        }
    }
}

/// Binds all agents of a project, including those inside of others. Returns the lock of the agents that can be bound, and
/// the failures of the others.
pub(crate) fn bind_all(project: &Project, root: Option<&Path>, toolset: &Toolset) -> (Lock, Vec<BindingFailure>) {
    let mut lock = lock_project(root, &toolset.tools);
    let mut failures = Vec::new();
    for (file, agent) in project.all_agents() {
        match bind(&agent, project, &toolset.library, MatchMode::Compatible) {
            Ok(bindings) => lock.add(&agent, project, &bindings, &toolset.library),
            Err(error) => failures.extend(error.failures.into_iter().map(|failure| BindingFailure {
                agent: error.agent.clone(),
                place: Place::in_project(project, file, failure.span),
                failure,
            })),
        }
    }
    lock_files(&mut lock, root, &toolset.library);
    lock.sort();
    (lock, failures)
}

/// Returns what has changed since the project was locked, or why that is not known.
pub(crate) fn drift(project: &Project, root: Option<&Path>, toolset: &Toolset) -> Result<(), CommandError> {
    let lock = ProjectLock::read(root)?;
    let mut locked = lock.lock().clone();
    let (mut current, failures) = bind_all(project, root, toolset);
    // An agent that cannot be bound is reported as such, and not as drift.
    if !failures.is_empty() {
        let is_unbound = |agent: &LockedAgent| failures.iter().any(|failed| failed.agent == agent.name);
        locked.agents.retain(|agent| !is_unbound(agent));
        current.agents.retain(|agent| !is_unbound(agent));
        locked.tools.retain(|tool| current.tools.iter().any(|one| one.name == tool.name));
    }
    match locked.drift(&current) {
        drift if drift.is_empty() => Ok(()),
        drift => Err(ProjectLockError::Drift(drift).into()),
    }
}
