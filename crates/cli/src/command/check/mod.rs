//! `patter check`: finds mistakes before a token is spent.

mod report;

use crate::diagnostics::{self, Limit};
use crate::setup::Toolset;
use crate::source::Input;
use crate::{Outcome, print, unsent};
use clap::{Args, ValueEnum};
use patter::agent::CompiledAgent;
use patter::check::{Options, check};
use patter::declare::Agent;
use patter::gram::{Dialect, Severity};
use patter::library::unbound;
use patter::project::{Config, Environment, Finding, Loaded, Project, Servers, Tools, find_root, find_root_of};
use std::io;
use std::path::{Path, PathBuf};

/// Check agents and tools, and everything they refer to
///
/// Finds what can be known before a token is spent: missing and misspelt properties, unknown types and models, wrong
/// defaults, references to nothing, agents that delegate in a circle, and more. `patter explain CODE` says more about a
/// rule. Within a project (a folder with a patter.toml) all its files are read, since they may refer to one another.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter check                        everything here and below\n  \
                        patter check agents --deny-warnings for CI: exit 1 on warnings too\n  \
                        patter check --format sarif > check.sarif")]
pub(crate) struct Check {
    /// Files and folders
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Accept plain gram 0.6.1 only: point at each use of Patter's extension
    #[arg(long)]
    portable: bool,

    /// Exit 1 on warnings too
    #[arg(long)]
    deny_warnings: bool,

    /// Look for what serves each tool of an agent too; starts the MCP servers of the project
    #[arg(long)]
    bind: bool,

    /// Fail if agents are bound to other tools than patter.lock says; looks for what serves them too
    #[arg(long)]
    locked: bool,

    /// Do not start MCP servers
    #[arg(long)]
    no_mcp: bool,

    #[command(flatten)]
    limit: Limit,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, on stderr
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

impl Check {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let root = self.paths.first().map_or_else(find_root, |path| find_root_of(path));
        let config = match Config::read(root.as_deref()) {
            Ok(config) => config,
            Err(error) => return diagnostics::unloaded(&error),
        };
        let is_portable = self.portable || config.check.portable;
        let dialect = if is_portable { Dialect::Portable } else { Dialect::Patter };
        let loaded = match Loaded::read(&self.paths, root.as_deref(), dialect) {
            Ok(loaded) => loaded,
            Err(error) => return diagnostics::unloaded(&error),
        };
        for (path, error) in &loaded.unreadable {
            diagnostics::unreadable(&Input::Path(path.clone()), error)?;
        }
        if let Some(code) = config.check.ignore.iter().find(|code| patter::rule::rule(code).is_none()) {
            let message = format!("patter.toml ignores the rule `{code}`, which does not exist");
            diagnostics::error(&message, Some("`patter explain` lists all rules"))?;
            return Ok(Outcome::Failure);
        }
        let known = known_tools(&loaded.project, root.as_deref(), &config);
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let mut findings = check(&loaded.project, &Options { library: &known });
        // What is wrong beyond the files.
        let mut problems = Vec::new();
        if self.bind || self.locked {
            let servers = if self.no_mcp { Servers::None } else { Servers::All };
            match Toolset::read(&loaded.project, root.as_deref(), &config, &servers)? {
                Some(toolset) => {
                    add_unbound(&mut findings, unbound(&loaded.project, &toolset.library));
                    let tools = || toolset.library.entries().map(|entry| (&entry.name, &*entry.value.definition));
                    for idle in
                        config.permissions.rules().unwrap_or_default().iter().filter_map(|rule| rule.idle(tools()))
                    {
                        diagnostics::warning(&format!("in patter.toml {idle}; {}", idle.hint()))?;
                    }
                    let made = |agent: Agent| CompiledAgent::new(&agent, &loaded.project, &toolset.library, None).ok();
                    let agents = loaded.project.agents().filter_map(|(_, agent)| made(agent)).collect();
                    let settings = (&toolset.environment, &config.models);
                    unsent::warn(agents, |name| loaded.project.any_agent(name).and_then(made), settings)?;
                    if self.locked {
                        problems.extend(super::lock::drift(&loaded.project, root.as_deref(), &toolset));
                    }
                    for problem in &problems {
                        diagnostics::error(problem, None)?;
                    }
                    problems.extend(toolset.missing_servers);
                }
                None => problems.push("the tools of the project cannot be made".to_owned()),
            }
        }
        let config = config.check;
        findings.retain(|finding| {
            loaded.selected.contains(&finding.file) && !config.ignore.iter().any(|code| code == finding.diagnostic.code)
        });
        match self.format {
            Format::Text => self.show(&loaded, &findings, problems.len())?,
            Format::Json => print(&report::json(&loaded, &findings, &problems))?,
            Format::Sarif => print(&report::sarif(&loaded.project, &findings, &problems))?,
        }
        let denied = |finding: &Finding| {
            finding.diagnostic.severity == Severity::Error || self.deny_warnings || config.deny_warnings
        };
        let is_failure = !problems.is_empty() || !loaded.unreadable.is_empty() || findings.iter().any(denied);
        Ok(if is_failure { Outcome::Failure } else { Outcome::Success })
    }

    fn show(&self, loaded: &Loaded, findings: &[Finding], problems: usize) -> io::Result<()> {
        for chunk in findings.chunk_by(|a, b| a.file == b.file) {
            let Some(file) = chunk.first().and_then(|first| loaded.project.files().get(first.file)) else { continue };
            let diagnostics: Vec<_> = chunk.iter().map(|finding| finding.diagnostic.clone()).collect();
            diagnostics::show(&diagnostics, file.tree.source(), &file.path, self.limit)?;
        }
        diagnostics::say(&summary(loaded, findings, problems))
    }
}

/// Returns the names of the tools that agents may refer to beyond what the project declares. Those of MCP servers are
/// not known before the servers run.
pub(super) fn known_tools(project: &Project, root: Option<&Path>, config: &Config) -> Vec<String> {
    let Ok(tools) = Tools::read(project, root, config, &Environment::default()) else { return Vec::new() };
    let names = tools.names().flat_map(|name| [name.as_str().to_owned(), name.own().to_owned()]);
    names.chain(tools.servers().map(|server| format!("{server}/*"))).collect()
}

/// Adds what nothing serves, instead of the weaker finding that it is not declared.
pub(super) fn add_unbound(findings: &mut Vec<Finding>, unbound: Vec<Finding>) {
    findings.retain(|finding| {
        let is_same = |other: &Finding| other.file == finding.file && other.diagnostic.span == finding.diagnostic.span;
        finding.diagnostic.code != "P040" || !unbound.iter().any(is_same)
    });
    findings.extend(unbound);
    findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start));
}

/// Says in a line what was checked and how it went.
fn summary(loaded: &Loaded, findings: &[Finding], problems: usize) -> String {
    if loaded.selected.is_empty() {
        return "nothing was checked".to_owned();
    }
    let in_files = |declares| count_declared(&loaded.project, loaded, declares);
    let checked = [
        diagnostics::counted(loaded.selected.len(), "file"),
        diagnostics::counted(in_files(patter::declare::Declares::Agent), "agent"),
        diagnostics::counted(in_files(patter::declare::Declares::Tool), "tool"),
        diagnostics::counted(in_files(patter::declare::Declares::Case), "case"),
    ];
    let checked = checked.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let errors = findings.iter().filter(|finding| finding.diagnostic.is_error()).count();
    let found = [
        diagnostics::counted(errors, "error"),
        diagnostics::counted(findings.len() - errors, "warning"),
        diagnostics::counted(problems, "other problem"),
    ];
    let found = found.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let found = if found.is_empty() { "all is well".to_owned() } else { found };
    format!("checked {checked}: {found}")
}

/// Counts declarations in the files that were asked for, also those inside of others.
fn count_declared(project: &Project, loaded: &Loaded, declares: patter::declare::Declares) -> usize {
    let files = project.files().iter().enumerate().filter(|(index, _)| loaded.selected.contains(index));
    let patterns = files.flat_map(|(_, file)| file.tree.walk());
    patterns.filter(|pattern| patter::declare::Declares::of(*pattern) == Some(declares)).count()
}
