//! `patter check`: finds mistakes before a token is spent.

mod report;
mod tables;

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::file::{Input, unreadable};
use crate::format::{FormatOption, OutputFormat};
use crate::inspect::{UsedOverrides, add_unbound, drift, with_called};
use crate::place::Place;
use crate::setup::{Intent, LockOption, Toolset, UNTRUSTED, invalid_policy, unused_error, unused_hooks};
use crate::ui::{self, Excerpts, Limit, nonzero};
use crate::unsupported;
use clap::{Args, ValueEnum};
use patter::compile::CompiledAgent;
use patter::declare::{Agent, DeclarationKind};
use patter::gram::{Dialect, Severity};
use patter::library::{self, Library, find_unbound, find_unused_rules};
use patter::project::{
    Config, Finding, LoadedProject, Project, ProjectCheck, ServerSelection, find_root, find_root_of, is_ignored,
};
use patter::query::Violation;
use patter::tool::Tool;
use std::io;
use std::path::{Path, PathBuf};
use tables::CaseTables;

/// Check agents and tools, and everything they refer to
///
/// Finds what can be known before a token is spent: missing and misspelt properties, unknown types and models, wrong
/// defaults, dangling references, agents that delegate in a cycle, and more. `patter explain CODE` documents a rule.
/// Within a project (a folder with a patter.toml) all its files are read, since they may refer to one another.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter check                        this folder and below\n  \
                        patter check agents --deny-warnings for CI: exit 1 on warnings too\n  \
                        patter check --format sarif > check.sarif")]
pub(crate) struct Check {
    /// Files and folders
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    format: FormatOption<CheckFormat>,

    /// Accept plain gram 0.6.1 only: report each use of Patter's extension
    #[arg(long)]
    portable: bool,

    /// Exit 1 on warnings too
    #[arg(long)]
    deny_warnings: bool,

    /// Report also what many projects do without, such as descriptions of parameters
    #[arg(long)]
    pedantic: bool,

    /// Check that every tool of an agent is implemented; starts the MCP servers of the project
    #[arg(long)]
    bind: bool,

    /// Fail if anything differs from patter.lock; implies --bind
    #[arg(long)]
    locked: bool,

    /// Do not start MCP servers
    #[arg(long)]
    no_mcp: bool,

    #[command(flatten)]
    limit: Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum CheckFormat {
    /// For people, on stderr
    #[default]
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

impl OutputFormat for CheckFormat {
    fn error_format(self) -> ErrorFormat {
        match self {
            CheckFormat::Text => ErrorFormat::Text,
            CheckFormat::Json => ErrorFormat::Json,
            CheckFormat::Sarif => ErrorFormat::Sarif,
        }
    }
}

impl Command for Check {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let root = self.paths.first().map_or_else(find_root, |path| find_root_of(path));
        let config = Config::read(root.as_deref())?;
        let is_portable = self.portable || config.check.portable;
        let dialect = if is_portable { Dialect::Portable } else { Dialect::Patter };
        let (tables, paths): (Vec<_>, Vec<_>) = self.paths.iter().cloned().partition(|path| CaseTables::is_table(path));
        let (others, paths): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| is_other_notation(path));
        let loaded = LoadedProject::read(&paths, root.as_deref(), dialect)?;
        let mut tables = CaseTables::check(&tables, &loaded.project);
        tables.problems.extend(others.iter().map(|path| other_notation(path)));
        for (path, error) in &loaded.unreadable {
            unreadable(&Input::Path(path.clone()), error).print_problem()?;
        }
        if let Some(code) = config.check.ignore.iter().find(|code| patter::rule::rule(code).is_none()) {
            let error = CommandError::failure(format!("patter.toml ignores the unknown rule `{code}`"));
            return Err(error.with_hint("`patter explain` lists all rules"));
        }
        let known = ProjectCheck::read(&loaded.project, root.as_deref(), &config);
        let findings = known.check(&loaded.project, self.pedantic || config.check.pedantic);
        tables.problems.iter_mut().try_for_each(CommandError::print_problem)?;
        let mut found = Found { findings, ..Found::default() };
        let mut problems = policy_problems(&known)?;
        problems.append(&mut match self.bind || self.locked {
            true => self.bind(&loaded, root.as_deref(), &config, &known, &mut found)?,
            false => {
                let library = known.library();
                let problems = check_rules(&loaded.project, library, root.as_deref(), &config, &mut found.findings)?;
                found.add_violations(&known, &loaded.project, library);
                problems
            }
        });
        problems.append(&mut tables.problems);
        let Found { mut findings, overrides, violations } = found;
        findings.retain(|finding| {
            loaded.selected.contains(&finding.file) && !is_ignored(finding, &config.check.ignore, &violations)
        });
        match self.format.format {
            CheckFormat::Text => {
                self.show(&loaded, &tables, &findings, problems.len() + loaded.unreadable.len())?;
            }
            CheckFormat::Json => ui::print(&report::json(&loaded, &findings, &violations, &problems, &overrides))?,
            CheckFormat::Sarif => ui::print(&report::sarif(&loaded, &findings, &violations, &problems))?,
        }
        let denies_warnings = self.deny_warnings || config.check.deny_warnings;
        let is_denied = |finding: &Finding| finding.diagnostic.severity == Severity::Error || denies_warnings;
        let is_failure = !problems.is_empty() || !loaded.unreadable.is_empty() || findings.iter().any(is_denied);
        Ok(Outcome::from_findings(is_failure))
    }
}

/// What a check finds.
#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
    overrides: UsedOverrides,
    violations: Vec<Violation>,
}

impl Found {
    /// Adds where the project breaks its policies.
    fn add_violations(&mut self, known: &ProjectCheck, project: &Project, library: &Library<Tool>) {
        self.findings.extend(known.policies().findings.clone());
        self.violations = known.violations(project, library, &self.findings);
        self.findings.extend(self.violations.iter().map(|violation| violation.finding.clone()));
        self.findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start));
    }
}

/// Returns why policies of the organisation cannot be checked, after printing it.
fn policy_problems(known: &ProjectCheck) -> io::Result<Vec<CommandError>> {
    let unreadable = known.error().map(|error| CommandError::failure(error.to_string()).with_hint_if(error.hint()));
    let invalid = known.policies().errors.iter().map(invalid_policy);
    let mut problems: Vec<_> = unreadable.into_iter().chain(invalid).collect();
    problems.iter_mut().try_for_each(CommandError::print_problem)?;
    Ok(problems)
}

impl Check {
    /// Binds the agents, and adds what cannot be bound to the findings, and the overrides that agents use. Returns the
    /// problems that are not about a file.
    fn bind(
        &self,
        loaded: &LoadedProject,
        root: Option<&Path>,
        config: &Config,
        known: &ProjectCheck,
        found: &mut Found,
    ) -> Result<Vec<CommandError>, CommandError> {
        let project = &loaded.project;
        let servers = if self.no_mcp { ServerSelection::None } else { ServerSelection::All };
        // A server that changed is not started to find out what else did.
        let lock = if self.locked { LockOption::ALWAYS } else { LockOption::NEVER };
        let toolset = match Toolset::read(project, root, config, &servers, Intent::Describe, lock) {
            Ok(toolset) => toolset,
            Err(error) if error.kind() == UNTRUSTED => return Err(error),
            Err(mut error) => {
                error.print_problem()?;
                return Ok(vec![error]);
            }
        };
        add_unbound(&mut found.findings, find_unbound(project, &toolset.library));
        let unused = check_rules(project, &toolset.library, root, config, &mut found.findings)?;
        found.add_violations(known, project, &toolset.library);
        let compile = |agent: &Agent| CompiledAgent::new(agent, project, &toolset.library, None).ok();
        let agents = with_called(project.agents().filter_map(|(_, agent)| compile(&agent)).collect(), compile);
        unsupported::warn(&agents, &toolset.environment, &config.models)?;
        found.overrides = UsedOverrides::of_agents(&agents, &toolset.library);
        found.overrides.print()?;
        let drift = if self.locked { drift(project, root, &toolset) } else { Ok(()) };
        let mut problems: Vec<_> = drift.err().into_iter().collect();
        problems.iter_mut().try_for_each(CommandError::print_problem)?;
        problems.extend(unused);
        problems.extend(toolset.missing_servers);
        Ok(problems)
    }

    fn show(
        &self,
        loaded: &LoadedProject,
        tables: &CaseTables,
        findings: &[Finding],
        problems: usize,
    ) -> io::Result<()> {
        for chunk in findings.chunk_by(|a, b| a.file == b.file) {
            let Some(file) = chunk.first().and_then(|first| loaded.project.files().get(first.file)) else { continue };
            let diagnostics: Vec<_> = chunk.iter().map(|finding| finding.diagnostic.clone()).collect();
            Excerpts::new(diagnostics, file.tree.source(), &file.path, self.limit).print()?;
        }
        ui::status(&summary(loaded, tables, findings, problems))
    }
}

/// Returns whether a file that was named is in another notation, by its extension. Whatever its content, it is not gram.
fn is_other_notation(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["json", "yaml", "yml", "toml", "md"].contains(&extension)) && path.is_file()
}

fn other_notation(path: &Path) -> CommandError {
    let file = path.display().to_string();
    CommandError::failure(format!("`{file}` is not a gram file"))
        .with_place(Place::file(file))
        .with_hint("name a .gram file or a folder, or a .jsonl or .csv file of cases")
}

/// Adds the rules of agents that are about nothing to the findings. Returns those of `patter.toml`.
fn check_rules(
    project: &Project,
    library: &Library<Tool>,
    root: Option<&Path>,
    config: &Config,
    findings: &mut Vec<Finding>,
) -> Result<Vec<CommandError>, CommandError> {
    add_unbound(findings, find_unused_rules(project, library));
    let rules = config.permissions.rules().unwrap_or_default();
    // Collecting the tools reads all signatures, which is not needed without rules.
    let known = match rules.is_empty() {
        true => library::KnownTools::default(),
        false => library::KnownTools::new(project, library),
    };
    let unused = rules.iter().filter_map(|rule| known.unused(rule));
    let mut problems: Vec<_> = unused.map(|unused| unused_error(root, &unused)).collect();
    problems.extend(unused_hooks(root, config, library));
    problems.iter_mut().try_for_each(CommandError::print_problem)?;
    Ok(problems)
}

/// Summarizes in a line what was checked and what was found.
fn summary(loaded: &LoadedProject, tables: &CaseTables, findings: &[Finding], problems: usize) -> String {
    if loaded.selected.is_empty() && tables.files == 0 {
        return "nothing was checked".to_owned();
    }
    let files = loaded.project.files().iter().enumerate().filter(|(index, _)| loaded.selected.contains(index));
    // Declarations inside of others count too.
    let kinds = files.flat_map(|(_, file)| file.tree.walk()).filter_map(DeclarationKind::from_pattern);
    let mut agents = 0;
    let mut tools = 0;
    let mut cases = tables.cases;
    for kind in kinds {
        match kind {
            DeclarationKind::Agent => agents += 1,
            DeclarationKind::Tool => tools += 1,
            DeclarationKind::Case => cases += 1,
            _ => {}
        }
    }
    let checked = [
        nonzero(loaded.selected.len() + tables.files, "file"),
        nonzero(agents, "agent"),
        nonzero(tools, "tool"),
        nonzero(cases, "case"),
    ];
    let checked = checked.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let errors = findings.iter().filter(|finding| finding.diagnostic.is_error()).count();
    let found =
        [nonzero(errors, "error"), nonzero(findings.len() - errors, "warning"), nonzero(problems, "other problem")];
    let found = found.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let found = if found.is_empty() { "no problems found".to_owned() } else { found };
    format!("checked {checked}: {found}")
}
