//! The check of a project, with what is known about its tools without starting its MCP servers.

use super::{Config, Environment, Finding, Project, ProjectPolicies, Tools, ToolsError};
use crate::tool::Tool;
use patter_core::check::{Options, check};
use patter_core::declare::Effect;
use patter_core::edit::{ChangedFile, DeclarationEdit, DeclarationEditError};
use patter_core::library::{Entry, Layer, Library, Sealing, find_unused_rules};
use patter_core::permission::Rule;
use patter_core::query::{FilePlace, Limits, ProjectGraph, Violation, find_violations};
use patter_core::rule;
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
    policies: ProjectPolicies,
    /// Why the files of the organisation could not be read. They may have policies.
    error: Option<ToolsError>,
}

impl ProjectCheck {
    /// Reads the tools of a project. Those that cannot be read are unknown to the check.
    pub fn read(project: &Project, root: Option<&Path>, config: &Config) -> Self {
        let rules = config.permissions.rules().unwrap_or_default();
        let tools = match Tools::read(project, root, config, &Environment::default()) {
            Ok(tools) => tools,
            Err(error) => {
                let error = Some(error).filter(|error| matches!(error, ToolsError::Org { .. }));
                return Self { rules, error, ..Self::default() };
            }
        };
        let policies = tools.policies().clone();
        let names = tools.names().map(|name| name.as_str().to_owned());
        let names = names.chain(tools.servers().map(|server| format!("{server}/*"))).collect();
        let sealed = tools.sealed_names().map(|name| name.as_str().to_owned()).collect();
        // Layers that cannot be merged are found by `sealed`.
        let library = tools.library().unwrap_or_default();
        let is_writing = |entry: &&Entry<Tool>| entry.layer == Layer::Internal && entry.value.effect == Effect::Writes;
        let writing = library.entries().filter(is_writing).map(|entry| entry.name.to_string()).collect();
        Self { names, sealed, writing, rules, library, policies, error: None }
    }

    /// Returns the tools that need no server.
    pub fn library(&self) -> &Library<Tool> {
        &self.library
    }

    /// Returns why the files of the organisation could not be read, if so.
    pub fn error(&self) -> Option<&ToolsError> {
        self.error.as_ref()
    }

    /// Returns the policies that apply to the project.
    pub fn policies(&self) -> &ProjectPolicies {
        &self.policies
    }

    /// Finds where the project breaks its policies, with the tools of a library.
    pub fn violations(&self, project: &Project, library: &Library<Tool>, findings: &[Finding]) -> Vec<Violation> {
        let source = ProjectGraph { project, library, rules: &self.rules, findings };
        find_violations(&self.policies.policies, &source, Limits::default())
    }

    /// Checks the project with what is known about its tools.
    pub fn check(&self, project: &Project, pedantic: bool) -> Vec<Finding> {
        self.with_options(pedantic, |options| check(project, options))
    }

    /// Changes declarations of the project, unless that adds errors.
    pub fn edit(
        &self,
        project: &Project,
        edit: &DeclarationEdit,
        places: Vec<FilePlace>,
    ) -> Result<Vec<ChangedFile>, DeclarationEditError> {
        self.with_options(false, |options| edit.apply(project, places, options))
    }

    fn with_options<R>(&self, pedantic: bool, use_options: impl FnOnce(&Options<'_>) -> R) -> R {
        let library: Vec<_> = self.names.iter().map(String::as_str).collect();
        let sealed: Vec<_> = self.sealed.iter().map(String::as_str).collect();
        let writing: Vec<_> = self.writing.iter().map(String::as_str).collect();
        use_options(&Options { library: &library, sealed: &sealed, writing: &writing, rules: &self.rules, pedantic })
    }

    /// Returns the findings that the configuration of the project does not ignore, with permission rules of agents that
    /// are about nothing.
    pub fn findings(&self, project: &Project, config: &Config) -> Vec<Finding> {
        let mut findings = self.check(project, config.check.pedantic);
        findings.extend(find_unused_rules(project, &self.library));
        findings.extend(self.policies.findings.clone());
        let violations = self.violations(project, &self.library, &findings);
        findings.extend(violations.iter().map(|violation| violation.finding.clone()));
        findings.retain(|finding| !is_ignored(finding, &config.check.ignore, &violations));
        findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start));
        findings
    }
}

/// Returns whether a project ignores a finding. What a sealed policy finds, and attempts to replace one, cannot be ignored.
pub fn is_ignored(finding: &Finding, ignored: &[String], violations: &[Violation]) -> bool {
    let is_sealed = |violation: &Violation| violation.sealing == Sealing::Sealed && violation.finding == *finding;
    let code = finding.diagnostic.code;
    ignored.iter().any(|other| other == code) && code != rule::SEALED_POLICY.code && !violations.iter().any(is_sealed)
}
