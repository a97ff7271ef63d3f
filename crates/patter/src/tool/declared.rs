//! Tools that are declared in gram: toolboxes of HTTP requests and commands.

use super::command::command_tool;
use super::http::http_tool;
use super::standard::fs::Root;
use super::{Tool, Workspace};
use crate::http::{HttpClient, Reach};
use crate::project::Environment;
use patter_core::declare::project::{Finding, Project};
use patter_core::declare::{CommandSpec, Conduct, Declares, Effect, HttpSpec, ToolSpec};
use patter_core::gram::{Diagnostic, Pattern};
use std::path::PathBuf;
use std::sync::Arc;

/// What tools that are declared in gram are made with.
#[derive(Clone)]
pub struct Kit {
    /// The root of the project: commands run in it, and `fs` guards what sets it up.
    pub root: PathBuf,
    /// Where `${NAME}` is looked up.
    pub environment: Environment,
    /// What sends requests.
    pub client: HttpClient,
    /// The folders that the toolbox `fs` may touch.
    pub fs_roots: Vec<Root>,
}

impl Kit {
    /// Returns a kit for a folder: public servers, this environment, and `fs` within the folder.
    pub fn new(root: impl Into<PathBuf>, environment: Environment) -> Self {
        let root = root.into();
        let client = HttpClient::new(Reach::default(), |name| environment.get(name));
        let fs_roots = vec![Root::new("project", &root)];
        Self { root, environment, client, fs_roots }
    }
}

/// Makes the tools that the files of a project declare with an implementation. What is wrong with a declaration is
/// returned beside those that are right.
///
/// ```
/// use patter::project::{Environment, Project};
/// use patter::tool::{Kit, declared};
///
/// let text = "[text:Toolbox | [words:Command {description: 'Counts', run: ['wc', '-w'], stdin: '{a}'} | (a::Text)==>(::Int)]]";
/// let project = Project::read([("tools.gram", text)]);
/// let (workspace, findings) = declared(&project, &Kit::new(".", Environment::default()));
/// assert!(findings.is_empty());
/// let (name, tool) = workspace.tools().next().unwrap();
/// assert_eq!((name.as_str(), &*tool.source), ("text/words", "tools.gram:1:17"));
/// ```
pub fn declared(project: &Project, kit: &Kit) -> (Workspace, Vec<Finding>) {
    let mut maker = Maker { project, kit, records: Arc::new(project.records().clone()), findings: Vec::new() };
    let mut workspace = Workspace::default();
    for declaration in project.declarations() {
        let Some(pattern) = project.pattern(declaration) else { continue };
        let (namespace, patterns) = match declaration.declares {
            Declares::Toolbox => (declaration.name.as_str(), pattern.elements().collect()),
            Declares::Implementation => ("", vec![pattern]),
            Declares::Agent | Declares::Tool | Declares::Record | Declares::Cases | Declares::Case => continue,
        };
        for pattern in patterns {
            let Some(tool) = maker.tool(declaration.file, pattern) else { continue };
            // A name that cannot be one is a finding of the check.
            let named = Workspace::builder().toolbox(namespace, |toolbox| toolbox.tool(tool)).build();
            workspace = workspace.and(named.unwrap_or_default());
        }
    }
    (workspace, maker.findings)
}

struct Maker<'m> {
    project: &'m Project,
    kit: &'m Kit,
    records: Arc<patter_core::types::signature::Records>,
    findings: Vec<Finding>,
}

impl Maker<'_> {
    fn tool(&mut self, file: usize, pattern: Pattern<'_>) -> Option<Tool> {
        if Declares::of(pattern) != Some(Declares::Implementation) {
            return None;
        }
        match self.made(pattern) {
            Ok(tool) => {
                let source = self.project.place(file, pattern.span());
                Some(tool?.source(source).revision_of(pattern.syntax().text()))
            }
            Err(diagnostics) => {
                self.findings.extend(diagnostics.into_iter().map(|diagnostic| Finding { file, diagnostic }));
                None
            }
        }
    }

    fn made(&self, pattern: Pattern<'_>) -> Result<Option<Tool>, Vec<Diagnostic>> {
        let Some(spec) = ToolSpec::cast(pattern) else { return Ok(None) };
        let signature = spec.signature(&self.records).map_err(|error| error.diagnostics)?;
        // What has no name or no description is a finding of the check.
        let Ok(definition) = spec.definition(&self.records) else { return Ok(None) };
        let environment = self.kit.environment.clone();
        let variables = Arc::new(move |name: &str| environment.get(name));
        Ok(Some(if pattern.has_label("Command") {
            let command = CommandSpec::read(pattern, &signature)?;
            command_tool(definition, command, &self.kit.root, variables)
        } else {
            let request = HttpSpec::read(pattern, &signature)?;
            http_tool(definition, request, &self.kit.client, variables)
        }))
    }
}

impl Tool {
    /// Sets what a declaration says of the calls, and what a call touches where it says nothing.
    pub(super) fn conducted(self, conduct: &Conduct, effect: Effect) -> Self {
        let mut tool = self.effect(conduct.effect.unwrap_or(effect));
        tool.idempotent = conduct.idempotent.unwrap_or(tool.idempotent);
        tool.timeout = conduct.timeout.unwrap_or(tool.timeout);
        tool.sealed = conduct.sealed;
        match conduct.concurrency {
            Some(calls) => tool.concurrency(calls),
            None => tool,
        }
    }
}
