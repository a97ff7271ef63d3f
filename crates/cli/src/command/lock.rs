//! `patter lock`: records which tools agents are bound to.

use super::Command;
use crate::error::{CommandError, CommandResult, Outcome};
use crate::file::{Existing, unwritable, write_atomically};
use crate::inspect::{bind_all, lock_path};
use crate::setup::{Intent, Setup, ToolSources};
use crate::ui;
use clap::Args;
use patter::compile::LOCK_FILE;
use patter::project::ServerSelection;
use std::path::PathBuf;

/// Write patter.lock, which records the tool and the layer that each tool declared by an agent is bound to
///
/// Commit the file with the project. `patter check --locked` fails when a binding changed: another layer wins, a schema
/// differs, or a tool is implemented in another way.
#[derive(Args)]
pub(crate) struct LockCommand {
    #[command(flatten)]
    sources: ToolSources,
}

impl Command for LockCommand {
    fn run(&self) -> CommandResult {
        let setup = Setup::read(&[PathBuf::from(".")], &self.sources, &ServerSelection::All, Intent::Describe)?;
        let (lock, failures) = bind_all(&setup.loaded.project, &setup.toolset);
        if !setup.toolset.missing_servers.is_empty() || !failures.is_empty() {
            let failures = failures.iter().map(CommandError::from);
            return Err(CommandError::failure(format!("{LOCK_FILE} was not written")).with_details(failures));
        }
        let path = lock_path(setup.root.as_deref());
        let text = lock.to_string();
        if std::fs::read_to_string(&path).is_ok_and(|before| before == text) {
            ui::status(&format!("{LOCK_FILE} is up to date"))?;
            return Ok(Outcome::Success);
        }
        write_atomically(&path, &text, Existing::Replace).map_err(|error| unwritable(&path, &error))?;
        ui::status(&format!("wrote {LOCK_FILE} with {}", ui::plural(lock.bindings.len(), "binding")))?;
        Ok(Outcome::Success)
    }
}
