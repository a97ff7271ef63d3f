//! `patter lock`: writes down which tools agents are bound to.

use crate::setup::{Setup, ToolSources, Toolset};
use crate::source::{Existing, write_whole};
use crate::{Outcome, diagnostics};
use clap::Args;
use patter::declare::Agent;
use patter::library::{BindFailure, Matching, bind};
use patter::lock::{LOCK, Lock};
use patter::project::{Project, Servers};
use std::io;
use std::path::{Path, PathBuf};

/// Write patter.lock: which tool of which layer serves each tool that an agent declares
///
/// The file is kept with the project. `patter check --locked` fails when anything in it has changed: another layer wins,
/// a schema is another, a tool is implemented in another way.
#[derive(Args)]
pub(crate) struct LockCommand {
    #[command(flatten)]
    sources: ToolSources,
}

impl LockCommand {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let Some(setup) = Setup::read(&[PathBuf::from(".")], &self.sources, &Servers::All)? else {
            return Ok(Outcome::Failure);
        };
        let (lock, failures) = bound(&setup.loaded.project, &setup.toolset);
        for (_, place, failure) in &failures {
            diagnostics::error(&format!("{place}: {failure}"), failure.hint().as_deref())?;
        }
        if !setup.toolset.missing_servers.is_empty() || !failures.is_empty() {
            diagnostics::say(&format!("{LOCK} was not written"))?;
            return Ok(Outcome::Failure);
        }
        let path = path(setup.root.as_deref());
        let text = lock.to_string();
        if std::fs::read_to_string(&path).is_ok_and(|before| before == text) {
            diagnostics::say(&format!("{LOCK} is up to date"))?;
            return Ok(Outcome::Success);
        }
        write_whole(&path, &text, Existing::Replaced)?;
        let count = diagnostics::counted(lock.bindings.len(), "binding").unwrap_or("no bindings".to_owned());
        diagnostics::say(&format!("wrote {LOCK} with {count}"))?;
        Ok(Outcome::Success)
    }
}

/// Returns what has changed since the project was locked, and why that cannot be told.
pub(crate) fn drift(project: &Project, root: Option<&Path>, toolset: &Toolset) -> Vec<String> {
    let text = match std::fs::read_to_string(path(root)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![format!("there is no `{LOCK}`; `patter lock` writes it")];
        }
        Err(error) => return vec![format!("cannot read `{LOCK}`: {error}")],
    };
    let locked = match Lock::parse(&text) {
        Ok(locked) => locked,
        Err(error) => return vec![format!("{error}; `patter lock` writes it anew")],
    };
    let (mut now, failures) = bound(project, toolset);
    // Of an agent that cannot be bound nothing is known but that, and it is told elsewhere.
    let unbound = |agent: &str| failures.iter().any(|(of, ..)| of == agent);
    let mut locked = locked;
    locked.bindings.retain(|binding| !unbound(&binding.agent));
    now.bindings.retain(|binding| !unbound(&binding.agent));
    let mut changes: Vec<_> = locked.drift(&now).iter().map(ToString::to_string).collect();
    if !changes.is_empty() {
        changes.push(format!("`{LOCK}` is out of date; `patter lock` writes it anew if the changes are meant"));
    }
    changes
}

/// Binds all agents of a project, those inside of others too. Returns those that can be bound, and of others their name,
/// the place and why not.
fn bound(project: &Project, toolset: &Toolset) -> (Lock, Vec<(String, String, BindFailure)>) {
    let (mut lock, mut failures) = (Lock::default(), Vec::new());
    for (file, source) in project.files().iter().enumerate() {
        for agent in source.tree.walk().filter_map(Agent::cast) {
            match bind(&agent, project, &toolset.library, Matching::Compatible) {
                Ok(bindings) => lock.add(&agent.name().unwrap_or_default(), &bindings, &toolset.library),
                Err(error) => failures.extend(error.failures.into_iter().map(|failure| {
                    let place = project.place(file, failure.span);
                    (error.agent.clone(), place, failure)
                })),
            }
        }
    }
    (lock, failures)
}

fn path(root: Option<&Path>) -> PathBuf {
    root.unwrap_or(Path::new(".")).join(LOCK)
}
