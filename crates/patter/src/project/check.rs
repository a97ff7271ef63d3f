//! The check of a project, with what is known about its tools without starting its MCP servers.

use super::{Config, Environment, Finding, Project, Tools};
use crate::tool::Tool;
use patter_core::check::{Options, check};
use patter_core::declare::Effect;
use patter_core::library::{Entry, Layer, Library, find_unused_rules};
use patter_core::permission::Rule;
use std::path::Path;

/// What the check knows about the tools of a project.
#[derive(Default)]
pub struct ProjectCheck {
    /// The full names of the tools that agents may refer to, and the toolboxes of servers.
    names: Vec<String>,
    /// The full names of the tools that the project must not override.
    sealed: Vec<String>,
    /// The full names of the built-in tools that change something. What those of a toolbox of the project change may differ.
    writing: Vec<String>,
    rules: Vec<Rule>,
    library: Library<Tool>,
}

impl ProjectCheck {
    /// Reads the tools of a project. Those that cannot be read are unknown to the check.
    pub fn read(project: &Project, root: Option<&Path>, config: &Config) -> Self {
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
    pub fn library(&self) -> &Library<Tool> {
        &self.library
    }

    /// Checks the project with what is known about its tools.
    pub fn check(&self, project: &Project, pedantic: bool) -> Vec<Finding> {
        let library: Vec<_> = self.names.iter().map(String::as_str).collect();
        let sealed: Vec<_> = self.sealed.iter().map(String::as_str).collect();
        let writing: Vec<_> = self.writing.iter().map(String::as_str).collect();
        check(project, &Options { library: &library, sealed: &sealed, writing: &writing, rules: &self.rules, pedantic })
    }

    /// Returns the findings that the configuration of the project does not ignore, with permission rules of agents that
    /// are about nothing.
    pub fn findings(&self, project: &Project, config: &Config) -> Vec<Finding> {
        let mut findings = self.check(project, config.check.pedantic);
        findings.extend(find_unused_rules(project, &self.library));
        findings.retain(|finding| !config.check.ignore.iter().any(|code| code == finding.diagnostic.code));
        findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start));
        findings
    }
}
