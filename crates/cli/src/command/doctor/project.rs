//! The project: its configuration, variables and files.

use super::CheckResult;
use crate::inspect::add_unbound;
use crate::setup::unused_error;
use crate::ui::{self, nonzero};
use patter::declare::DeclarationKind;
use patter::gram::Dialect;
use patter::library::{self, Library, find_unbound, find_unused_rules};
use patter::os_error::describe;
use patter::project::{CONFIG, Config, Environment, LoadError, LoadedProject, Project, ProjectCheck, is_ignored};
use patter::tool::Tool;
use std::path::{Path, PathBuf};

/// Checks the configuration.
pub(super) fn config(root: Option<&Path>) -> (Config, Vec<CheckResult>) {
    match (root, Config::read(root)) {
        (None, _) => {
            let message = format!("no `{CONFIG}` in this folder or above; checking this folder");
            (Config::default(), vec![CheckResult::skipped(message)])
        }
        (Some(_), Ok(config)) => (config, vec![CheckResult::ok(format!("`{CONFIG}` is valid"))]),
        (Some(_), Err(error)) => {
            let check = CheckResult::broken(error.to_string(), "docs/cli.md lists the settings");
            (Config::default(), vec![check])
        }
    }
}

/// Checks the file of variables.
pub(super) fn environment(root: Option<&Path>) -> (Environment, Vec<CheckResult>) {
    match Environment::read(root) {
        Ok(environment) => {
            let malformed = |line: &usize| {
                CheckResult::broken(format!("line {line} of `.env` is not an assignment"), "write NAME=value")
            };
            let checks = environment.bad_lines().iter().map(malformed).collect();
            (environment, checks)
        }
        Err(error) => {
            let hint = "its variables are missing; make it a text file, or remove it";
            (Environment::from_process(), vec![CheckResult::broken(error.to_string(), hint)])
        }
    }
}

/// Checks that the files can be read.
pub(super) fn files(root: Option<&Path>, config: &Config) -> (Project, Vec<CheckResult>) {
    let dialect = if config.check.portable { Dialect::Portable } else { Dialect::Patter };
    let folder = root.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let empty = || Project::read::<String, String>([]);
    match LoadedProject::read(&[folder], root, dialect) {
        Ok(loaded) => {
            let unreadable = loaded.unreadable.iter().map(|(path, error)| {
                let message = format!("cannot read `{}`: {}", path.display(), describe(error));
                CheckResult::broken(message, "fix its permissions, or remove it")
            });
            (loaded.project, unreadable.collect())
        }
        Err(LoadError::Empty(_)) => (empty(), vec![CheckResult::skipped("no *.gram files")]),
        Err(error @ LoadError::Config { .. }) => {
            (empty(), vec![CheckResult::broken(error.to_string(), "run `patter check` for details")])
        }
    }
}

/// Checks the agents and tools, and with a library also that every tool is implemented.
pub(super) fn findings(
    project: &Project,
    root: Option<&Path>,
    config: &Config,
    library: Option<&Library<Tool>>,
) -> Vec<CheckResult> {
    let known = ProjectCheck::read(project, root, config);
    let mut findings = known.check(project, false);
    if let Some(library) = library {
        add_unbound(&mut findings, find_unbound(project, library));
    }
    let library = library.unwrap_or(known.library());
    add_unbound(&mut findings, find_unused_rules(project, library));
    findings.extend(known.policies().findings.clone());
    let violations = known.violations(project, library, &findings);
    findings.extend(violations.iter().map(|violation| violation.finding.clone()));
    findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start));
    let mut checks = unused_rules(project, root, config, library);
    findings.retain(|finding| finding.diagnostic.is_error() && !is_ignored(finding, &config.check.ignore, &violations));
    if findings.is_empty() {
        checks.extend((!project.files().is_empty()).then(|| summary(project)));
        return checks;
    }
    let of_file = |findings: &[patter::project::Finding]| {
        let file = findings.first().and_then(|finding| project.files().get(finding.file));
        let path = file.map_or("", |file| file.path.as_str());
        let message = format!("`{path}` has {}", ui::plural(findings.len(), "error"));
        CheckResult::broken(message, format!("run `patter check --bind {path}` for details"))
    };
    checks.extend(findings.chunk_by(|a, b| a.file == b.file).map(of_file));
    checks
}

/// Checks that the rules of the configuration are about something, without which nothing runs.
fn unused_rules(project: &Project, root: Option<&Path>, config: &Config, library: &Library<Tool>) -> Vec<CheckResult> {
    let known = library::KnownTools::new(project, library);
    let rules = config.permissions.rules().unwrap_or_default();
    let unused = rules.iter().filter_map(|rule| known.unused(rule)).map(|unused| unused_error(root, &unused));
    unused.map(|error| CheckResult::broken(error.to_string(), error.hint().unwrap_or_default())).collect()
}

/// Summarizes a project without errors.
fn summary(project: &Project) -> CheckResult {
    let patterns = || project.files().iter().flat_map(|file| file.tree.walk());
    let count = |wanted| patterns().filter(|pattern| DeclarationKind::from_pattern(*pattern) == Some(wanted)).count();
    let counts = [
        nonzero(project.files().len(), "file"),
        nonzero(count(DeclarationKind::Agent), "agent"),
        nonzero(count(DeclarationKind::Tool) + count(DeclarationKind::Implementation), "tool"),
    ];
    let counts: Vec<_> = counts.into_iter().flatten().collect();
    CheckResult::ok(format!("{}: no errors", counts.join(", ")))
}
