//! `patter doctor`: checks that everything a project needs is available.

mod model;
mod project;
mod store;
mod tool;

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::setup::{Signals, ToolRuntime, Turn, require_trust, until_stopped};
use crate::ui;
use crate::ui::style::{ACCENT, BAD, BOLD, DIM, GOOD, Style};
use clap::Args;
use patter::project::{DefinitionKind, Tools, find_root};
use patter::tool::CancellationToken;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use tokio::runtime::Runtime;

/// Check that everything the project needs is available
///
/// Reads the project around the current folder, checks its agents and API keys, asks the model providers whether they
/// accept the keys, starts the MCP servers, and checks that the programs of command tools exist and that the store is
/// writable. Keys are never shown, and no token is spent. Exits with 1 if a check fails.
#[derive(Args)]
#[command(after_help = "Examples:\n  patter doctor\n  patter doctor --offline --format json")]
pub(crate) struct Doctor {
    #[command(flatten)]
    format: FormatOption<DataFormat>,

    /// Do not contact model providers
    #[arg(long)]
    offline: bool,

    /// Do not start MCP servers
    #[arg(long)]
    no_mcp: bool,
}

/// The result of one check.
struct CheckResult {
    state: State,
    message: String,
    /// What to do about a failed check.
    hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Broken,
    /// Not checked, or nothing to check.
    Skipped,
}

/// Checks of one topic.
struct Section {
    name: &'static str,
    checks: Vec<CheckResult>,
}

impl Command for Doctor {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let runtime = ToolRuntime::new()?;
        let stop = Signals::listen(&runtime, Turn::default())?.stop;
        let root = find_root();
        self.require_trust(&runtime, &stop, root.as_deref())?;
        let examined = until_stopped(&runtime, &stop, self.examine(root.as_deref()));
        let sections = examined.ok_or_else(CommandError::interrupted)?;
        let checks = sections.iter().flat_map(|section| &section.checks);
        let broken = checks.filter(|check| check.state == State::Broken).count();
        match self.format.format {
            DataFormat::Text => {
                ui::print(&text(&sections))?;
                let found = ui::nonzero(broken, "problem").map(|problems| format!("{problems} found"));
                ui::status(found.as_deref().unwrap_or("no problems found"))?;
            }
            DataFormat::Json => ui::print(&to_json(&sections, broken == 0))?,
        }
        Ok(Outcome::from_findings(broken > 0))
    }
}

impl Doctor {
    /// Makes sure that the user trusts what the checks would start, and where they would send keys.
    fn require_trust(
        &self,
        runtime: &Runtime,
        stop: &CancellationToken,
        root: Option<&Path>,
    ) -> Result<(), CommandError> {
        let (config, _) = project::config(root);
        let (environment, _) = project::environment(root);
        let (project, _) = project::files(root, &config);
        // What is wrong with the tools is one of the checks.
        let Ok(tools) = Tools::read(&project, root, &config, &environment) else { return Ok(()) };
        let contacts_others = !self.offline || !self.no_mcp;
        let used = tools.definitions().iter().filter(|it| contacts_others || it.kind == DefinitionKind::Store);
        require_trust(runtime, stop, root, used)
    }

    /// Runs all checks.
    async fn examine(&self, root: Option<&Path>) -> Vec<Section> {
        let (config, mut project_checks) = project::config(root);
        let (environment, checks) = project::environment(root);
        project_checks.extend(checks);
        let (project, checks) = project::files(root, &config);
        project_checks.extend(checks);
        let (library, tool_checks) = tool::examine(&project, root, &config, &environment, self).await;
        project_checks.extend(project::findings(&project, root, &config, library.as_ref()));
        let model_checks = model::examine(&project, &environment, &config, self).await;
        vec![
            Section { name: "project", checks: project_checks },
            Section { name: "models", checks: model_checks },
            Section { name: "tools", checks: tool_checks },
            Section { name: "store", checks: vec![store::examine(root, &config, &environment).await] },
        ]
    }
}

impl CheckResult {
    fn ok(message: impl Into<String>) -> Self {
        Self { state: State::Ok, message: message.into(), hint: None }
    }

    fn broken(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { state: State::Broken, message: message.into(), hint: Some(hint.into()) }
    }

    fn skipped(message: impl Into<String>) -> Self {
        Self { state: State::Skipped, message: message.into(), hint: None }
    }
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Broken => "broken",
            State::Skipped => "skipped",
        }
    }

    const fn mark(self) -> (Style, char) {
        match self {
            State::Ok => (GOOD, '✓'),
            State::Broken => (BAD.bold(), '✗'),
            State::Skipped => (DIM, '–'),
        }
    }
}

fn text(sections: &[Section]) -> String {
    let mut out = String::new();
    for section in sections.iter().filter(|section| !section.checks.is_empty()) {
        let _ = writeln!(out, "{BOLD}{}{BOLD:#}", section.name);
        for check in &section.checks {
            let (style, mark) = check.state.mark();
            // Messages of servers and providers may have several lines.
            let message = check.message.replace('\n', "\n    ");
            let _ = writeln!(out, "  {style}{mark}{style:#} {message}");
            if let Some(hint) = &check.hint {
                let hint = hint.replace('\n', "\n          ");
                let _ = writeln!(out, "    {ACCENT}help{ACCENT:#}: {hint}");
            }
        }
    }
    out
}

fn to_json(sections: &[Section], is_ok: bool) -> String {
    let checks: Vec<_> = sections
        .iter()
        .flat_map(|section| section.checks.iter().map(|check| (section.name, check)))
        .map(|(topic, check)| {
            json!({"topic": topic, "state": check.state.name(), "message": check.message, "hint": check.hint})
        })
        .collect();
    format!("{:#}\n", json!({"version": 1, "ok": is_ok, "checks": checks}))
}
