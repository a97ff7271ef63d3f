//! `patter lock`: records what decides what agents do.

use super::Command;
use crate::error::{CommandError, CommandResult, Outcome};
use crate::file::{Existing, unwritable, write_atomically};
use crate::inspect::{bind_all, drift};
use crate::setup::{Intent, LockOption, Rules, Setup, ToolSources};
use crate::ui;
use clap::Args;
use patter::compile::LOCK_FILE;
use patter::file::read_settings;
use patter::project::{ProjectLock, ServerSelection};
use std::path::PathBuf;

/// Write patter.lock, which records everything that decides what the agents of the project do
///
/// It contains the settings and MCP servers of the project, the instruction, model and permissions of each agent, and for
/// each tool that an agent may call its description, types, command, server and scripts. Commit the file, and review its
/// changes. With --locked, and by default if CI=true, agents run only if nothing has changed since.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter lock            write patter.lock, or accept changes\n  \
                        patter lock --check    show what has changed, and exit 1 if anything has")]
pub(crate) struct LockCommand {
    /// Write nothing; show what has changed, and exit 1 if anything has
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    sources: ToolSources,
}

impl Command for LockCommand {
    fn run(&self) -> CommandResult {
        let lock = if self.check { LockOption::ALWAYS } else { LockOption::NEVER };
        let paths = [PathBuf::from(".")];
        let setup = Setup::read_locked(&paths, &self.sources, &ServerSelection::All, Intent::Describe, &[], lock)?;
        let root = setup.root.as_deref();
        let project = &setup.loaded.project;
        if self.check {
            drift(project, root, &setup.toolset)?;
            let (_, failures) = bind_all(project, root, &setup.toolset);
            if !failures.is_empty() {
                let failures = failures.iter().map(CommandError::from);
                return Err(CommandError::failure("agents lack tools that are locked").with_details(failures));
            }
            ui::status(&format!("{LOCK_FILE} is up to date"))?;
            return Ok(Outcome::from_findings(!setup.toolset.missing_servers.is_empty()));
        }
        // A project that cannot run is not worth recording.
        Rules::default().checked(&setup)?;
        let (lock, failures) = bind_all(project, root, &setup.toolset);
        if !setup.toolset.missing_servers.is_empty() || !failures.is_empty() {
            let failures = failures.iter().map(CommandError::from);
            return Err(CommandError::failure(format!("{LOCK_FILE} was not written")).with_details(failures));
        }
        let path = ProjectLock::path(root);
        let text = lock.to_string();
        if read_settings(&path).is_ok_and(|before| before == text) {
            ui::status(&format!("{LOCK_FILE} is up to date"))?;
            return Ok(Outcome::Success);
        }
        write_atomically(&path, &text, Existing::Replace).map_err(|error| unwritable(&path, &error))?;
        let agents = ui::plural(lock.agents.len(), "agent");
        let tools = ui::plural(lock.tools.len(), "tool");
        ui::status(&format!("wrote {LOCK_FILE} with {agents} and {tools}"))?;
        Ok(Outcome::Success)
    }
}
