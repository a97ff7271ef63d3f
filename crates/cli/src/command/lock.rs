//! `patter lock`: writes down which tools agents are bound to.

use crate::setup::{Setup, ToolSources};
use crate::{Outcome, diagnostics};
use clap::Args;
use patter::library::{Matching, bind};
use patter::lock::{LOCK, Lock};
use patter::project::Servers;
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
        let Some(lock) = bound(&setup)? else { return Ok(Outcome::Failure) };
        if setup.missing_servers > 0 {
            return Ok(Outcome::Failure);
        }
        let path = path(&setup);
        let text = lock.to_string();
        if std::fs::read_to_string(&path).is_ok_and(|before| before == text) {
            diagnostics::say(&format!("{LOCK} is up to date"))?;
            return Ok(Outcome::Success);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.persist(&path)?;
        let count = diagnostics::counted(lock.bindings.len(), "binding").unwrap_or("no bindings".to_owned());
        diagnostics::say(&format!("wrote {LOCK} with {count}"))?;
        Ok(Outcome::Success)
    }
}

/// Says what has changed since the project was locked.
pub(crate) fn check(sources: &ToolSources) -> io::Result<Outcome> {
    let Some(setup) = Setup::read(&[PathBuf::from(".")], sources, &Servers::All)? else {
        return Ok(Outcome::Failure);
    };
    let text = match std::fs::read_to_string(path(&setup)) {
        Ok(text) => text,
        Err(error) => {
            diagnostics::error(&format!("cannot read `{LOCK}`: {error}"), Some("`patter lock` writes it"))?;
            return Ok(Outcome::Failure);
        }
    };
    let locked = match Lock::parse(&text) {
        Ok(locked) => locked,
        Err(error) => {
            diagnostics::error(&error.to_string(), Some("`patter lock` writes it anew"))?;
            return Ok(Outcome::Failure);
        }
    };
    let Some(now) = bound(&setup)? else { return Ok(Outcome::Failure) };
    let drift = locked.drift(&now);
    for drift in &drift {
        diagnostics::error(&drift.to_string(), None)?;
    }
    if drift.is_empty() {
        return Ok(if setup.missing_servers == 0 { Outcome::Success } else { Outcome::Failure });
    }
    diagnostics::say(&format!("{LOCK} is out of date; `patter lock` writes it anew if the changes are meant"))?;
    Ok(Outcome::Failure)
}

/// Binds all agents of the project; says why where it cannot.
fn bound(setup: &Setup) -> io::Result<Option<Lock>> {
    let mut lock = Lock::default();
    let mut is_bound = true;
    let project = &setup.loaded.project;
    for (declaration, agent) in project.agents() {
        match bind(&agent, project, &setup.library, Matching::Compatible) {
            Ok(bindings) => lock.add(&declaration.name, &bindings, &setup.library),
            Err(error) => {
                is_bound = false;
                for failure in &error.failures {
                    let place = project.place(declaration.file, failure.span);
                    diagnostics::error(&format!("{place}: {failure}"), failure.hint().as_deref())?;
                }
            }
        }
    }
    Ok(is_bound.then_some(lock))
}

fn path(setup: &Setup) -> PathBuf {
    setup.root.as_deref().unwrap_or(Path::new(".")).join(LOCK)
}
