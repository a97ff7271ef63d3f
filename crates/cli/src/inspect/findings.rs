//! Findings of the check, and the files they are in.

use crate::error::CommandError;
use crate::file::{Input, check_readable, unreadable};
use crate::ui;
use patter::check::{Options, check};
use patter::declare::Effect;
use patter::gram::Dialect;
use patter::library::{Entry, Layer, Library};
use patter::permission::Rule;
use patter::project::{Config, Environment, Finding, LoadedProject, Project, Tools, find_root};
use patter::rule;
use patter::tool::Tool;
use std::collections::HashSet;
use std::path::Path;

/// Reads a file as the first of its project. Errors in it are mentioned on stderr.
pub(crate) fn read_file(path: &Path) -> Result<Project, CommandError> {
    let root = find_root();
    let loaded = LoadedProject::read(&[path.to_owned()], root.as_deref(), Dialect::Patter)?;
    if !loaded.selected.contains(&0) {
        check_readable(&loaded.unreadable)?;
    }
    for (path, error) in &loaded.unreadable {
        unreadable(&Input::Path(path.clone()), error).print_problem()?;
    }
    let diagnostics = loaded.project.files().first().map_or(&[][..], |file| &file.diagnostics);
    let errors = diagnostics.iter().filter(|found| found.is_error()).count();
    if let Some(errors) = ui::nonzero(errors, "error") {
        ui::status(&format!("{} has {errors}; run `patter check` for details", path.display()))?;
    }
    Ok(loaded.project)
}

/// What is known about the tools of a project without starting its MCP servers.
#[derive(Default)]
pub(crate) struct KnownTools {
    /// The full names of the tools that agents may refer to, and the toolboxes of servers.
    names: Vec<String>,
    /// The full names of the tools that the project must not override.
    sealed: Vec<String>,
    /// The full names of the built-in tools that change something. What those of a toolbox of the project change may differ.
    writing: Vec<String>,
    rules: Vec<Rule>,
    library: Library<Tool>,
}

impl KnownTools {
    pub(crate) fn read(project: &Project, root: Option<&Path>, config: &Config) -> Self {
        let rules = config.permissions.rules().unwrap_or_default();
        let Ok(tools) = Tools::read(project, root, config, &Environment::default()) else {
            return Self { rules, ..Self::default() };
        };
        let names = tools.names().map(|name| name.as_str().to_owned());
        let names = names.chain(tools.servers().map(|server| format!("{server}/*"))).collect();
        let sealed = tools.sealed_names().map(|name| name.as_str().to_owned()).collect();
        // Layers that cannot be merged are found by `sealed`.
        let library = tools.library().unwrap_or_default();
        let is_writing = |entry: &&Entry<Tool>| entry.layer == Layer::Internal && entry.value.effect == Effect::Writes;
        let writing = library.entries().filter(is_writing).map(|entry| entry.name.to_string()).collect();
        Self { names, sealed, writing, rules, library }
    }

    /// Returns the tools that need no server.
    pub(crate) fn library(&self) -> &Library<Tool> {
        &self.library
    }

    /// Checks the project with what is known about its tools.
    pub(crate) fn check(&self, project: &Project, pedantic: bool) -> Vec<Finding> {
        let library: Vec<_> = self.names.iter().map(String::as_str).collect();
        let sealed: Vec<_> = self.sealed.iter().map(String::as_str).collect();
        let writing: Vec<_> = self.writing.iter().map(String::as_str).collect();
        check(project, &Options { library: &library, sealed: &sealed, writing: &writing, rules: &self.rules, pedantic })
    }
}

/// Adds the declarations that nothing implements, in place of the weaker finding that they are not declared.
pub(crate) fn add_unbound(findings: &mut Vec<Finding>, unbound: Vec<Finding>) {
    let places: HashSet<_> = unbound.iter().map(|other| (other.file, other.diagnostic.span)).collect();
    findings.retain(|finding| {
        finding.diagnostic.code != rule::UNDEFINED_REFERENCE.code
            || !places.contains(&(finding.file, finding.diagnostic.span))
    });
    findings.extend(unbound);
    findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start));
}
