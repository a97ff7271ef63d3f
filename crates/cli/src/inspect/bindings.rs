//! The bindings of agents, and their drift from `patter.lock`.

use crate::error::{CommandError, ErrorKind};
use crate::place::Place;
use crate::setup::Toolset;
use patter::compile::{LOCK_FILE, Lock};
use patter::declare::Agent;
use patter::library::{BindFailure, MatchMode, bind};
use patter::os_error::describe;
use patter::project::Project;
use std::io;
use std::path::{Path, PathBuf};

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

/// Returns the path of `patter.lock`.
pub(crate) fn lock_path(root: Option<&Path>) -> PathBuf {
    root.unwrap_or(Path::new(".")).join(LOCK_FILE)
}

/// Binds all agents of a project, including those inside of others. Returns the bindings of the agents that can be bound,
/// and the failures of the others.
pub(crate) fn bind_all(project: &Project, toolset: &Toolset) -> (Lock, Vec<BindingFailure>) {
    let mut lock = Lock::default();
    let mut failures = Vec::new();
    for (file, source) in project.files().iter().enumerate() {
        for agent in source.tree.walk().filter_map(Agent::cast) {
            match bind(&agent, project, &toolset.library, MatchMode::Compatible) {
                Ok(bindings) => lock.add(&agent.path().to_string(), &bindings, &toolset.library),
                Err(error) => failures.extend(error.failures.into_iter().map(|failure| BindingFailure {
                    agent: error.agent.clone(),
                    place: Place::in_project(project, file, failure.span),
                    failure,
                })),
            }
        }
    }
    (lock, failures)
}

/// Returns what has changed since the project was locked, or why that is not known.
pub(crate) fn drift(project: &Project, root: Option<&Path>, toolset: &Toolset) -> Vec<String> {
    let text = match std::fs::read_to_string(lock_path(root)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![format!("`{LOCK_FILE}` does not exist; create it with `patter lock`")];
        }
        Err(error) => return vec![format!("cannot read `{LOCK_FILE}`: {}", describe(&error))],
    };
    let mut locked = match Lock::parse(&text) {
        Ok(locked) => locked,
        Err(error) => return vec![format!("{error}; recreate it with `patter lock`")],
    };
    let (mut current, failures) = bind_all(project, toolset);
    // An agent that cannot be bound is reported as such, and not as drift.
    let is_unbound = |agent: &str| failures.iter().any(|failed| failed.agent == agent);
    locked.bindings.retain(|binding| !is_unbound(&binding.agent));
    current.bindings.retain(|binding| !is_unbound(&binding.agent));
    let mut changes: Vec<_> = locked.drift(&current).iter().map(ToString::to_string).collect();
    if !changes.is_empty() {
        changes.push(format!("`{LOCK_FILE}` is out of date; if the changes are intended, run `patter lock`"));
    }
    changes
}
