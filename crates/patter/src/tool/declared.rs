//! Tools declared in gram: HTTP requests and commands.

use super::command::{command_scripts, command_tool_in};
use super::http::http_tool;
use super::sandbox::SandboxPolicy;
use super::scripts::ScriptHashes;
use super::standard::fs::{Guard, Root};
use super::{Tool, VariableLookup, Workspace};
use crate::http::{HttpClient, NetworkPolicy};
use crate::project::Environment;
use patter_core::declare::project::{Finding, Project};
use patter_core::declare::{CommandSpec, DeclarationKind, HttpSpec, ToolSpec};
use patter_core::gram::{Diagnostic, Pattern, Syntax};
use patter_core::name::FullName;
use patter_core::rule;
use patter_core::types::definition::DefinitionError;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The resources that tools are built with.
#[derive(Clone)]
pub struct ToolResources {
    /// The root of the project, in which commands run.
    pub root: PathBuf,
    /// The variables that `${NAME}` refers to.
    pub environment: Environment,
    /// The client that sends requests.
    pub client: HttpClient,
    /// The folders that the toolbox `fs` has access to.
    pub fs_roots: Vec<Root>,
    /// The files that the toolbox `fs` does not write.
    pub guard: Guard,
    /// The sandboxes of commands.
    pub sandbox: SandboxPolicy,
}

impl ToolResources {
    /// Creates the resources for a folder: public servers, this environment, and `fs` within the folder.
    pub fn new(root: impl Into<PathBuf>, environment: Environment) -> Self {
        let root = root.into();
        let client = HttpClient::new(NetworkPolicy::default(), |name| environment.get(name));
        let fs_roots = vec![Root::new("project", &root)];
        let guard = Guard::new(&root);
        Self { root, environment, client, fs_roots, guard, sandbox: SandboxPolicy::default() }
    }
}

/// Builds the HTTP and command tools that a project declares. Invalid declarations are returned as findings.
///
/// ```
/// use patter::project::{Environment, Project};
/// use patter::tool::{ToolResources, build_declared};
///
/// let text = "[text:Toolbox | [words:Command {description: 'Counts', run: ['wc', '-w'], stdin: '{a}'} | (a::Text)==>(::Int)]]";
/// let project = Project::read([("tools.gram", text)]);
/// let (workspace, findings) = build_declared(&project, &ToolResources::new(".", Environment::default()));
/// assert!(findings.is_empty());
/// let (name, tool) = workspace.tools().next().unwrap();
/// assert_eq!((name.as_str(), &*tool.source), ("text/words", "tools.gram:1:17"));
/// ```
pub fn build_declared(project: &Project, resources: &ToolResources) -> (Workspace, Vec<Finding>) {
    let DeclaredTools { workspace, findings, .. } = DeclaredTools::build(project, resources);
    (workspace, findings)
}

/// The HTTP and command tools that a project declares, with what they do.
pub(crate) struct DeclaredTools {
    pub(crate) workspace: Workspace,
    /// The invalid declarations.
    pub(crate) findings: Vec<Finding>,
    /// What the valid declarations do, by the full names of the tools.
    pub(crate) specs: Vec<(String, DeclaredSpec)>,
}

/// What a declared tool does, as far as trust depends on it. A toolbox may have thousands of requests, so of these only that
/// is kept.
pub(crate) enum DeclaredSpec {
    Command(Box<CommandSpec>),
    Request {
        /// The server, as it is written.
        origin: String,
        /// The names of the variables that it receives.
        variables: BTreeSet<String>,
    },
}

impl DeclaredTools {
    /// Builds the tools. Each declaration is read once.
    pub(crate) fn build(project: &Project, resources: &ToolResources) -> Self {
        let records = Arc::new(project.records().clone());
        let environment = resources.environment.clone();
        let variables: VariableLookup = Arc::new(move |name: &str| environment.get(name));
        let mut builder = ToolBuilder {
            project,
            resources,
            records,
            variables,
            findings: Vec::new(),
            specs: Vec::new(),
            hashes: ScriptHashes::default(),
        };
        let mut workspace = Workspace::default();
        for declaration in project.declarations() {
            let Some(pattern) = project.pattern(declaration) else { continue };
            let (namespace, patterns) = match declaration.kind {
                DeclarationKind::Toolbox => (declaration.name.as_str(), pattern.elements().collect()),
                DeclarationKind::Implementation => ("", vec![pattern]),
                DeclarationKind::Agent
                | DeclarationKind::Tool
                | DeclarationKind::Toolkit
                | DeclarationKind::Record
                | DeclarationKind::Cases
                | DeclarationKind::Case
                | DeclarationKind::Policy
                | DeclarationKind::Policies
                | DeclarationKind::Schedule => continue,
            };
            for pattern in patterns {
                let Some(tool) = builder.build(declaration.file, namespace, pattern) else { continue };
                let single = Workspace::builder().toolbox(namespace, |toolbox| toolbox.tool(tool)).build();
                match single {
                    Ok(single) => workspace = workspace.with_workspace(single),
                    Err(error) => {
                        let span = pattern.identifier().map_or(pattern.span(), Syntax::span);
                        let diagnostic = rule::BAD_FULL_NAME.at(span, error.to_string());
                        builder.findings.push(Finding { file: declaration.file, diagnostic });
                    }
                }
            }
        }
        Self { workspace, findings: builder.findings, specs: builder.specs }
    }
}

struct ToolBuilder<'b> {
    project: &'b Project,
    resources: &'b ToolResources,
    records: Arc<patter_core::types::signature::Records>,
    /// The variables, shared by all tools.
    variables: VariableLookup,
    findings: Vec<Finding>,
    specs: Vec<(String, DeclaredSpec)>,
    hashes: ScriptHashes,
}

impl ToolBuilder<'_> {
    /// Builds a tool, or notes why it cannot be built.
    fn build(&mut self, file: usize, namespace: &str, pattern: Pattern<'_>) -> Option<Tool> {
        if DeclarationKind::from_pattern(pattern) != Some(DeclarationKind::Implementation) {
            return None;
        }
        match self.try_build(namespace, pattern) {
            Ok(tool) => {
                let source = self.project.location(file, pattern.span());
                Some(tool?.source(source).revision_from(pattern.syntax().text()))
            }
            Err(diagnostics) => {
                self.findings.extend(diagnostics.into_iter().map(|diagnostic| Finding { file, diagnostic }));
                None
            }
        }
    }

    fn try_build(&mut self, namespace: &str, pattern: Pattern<'_>) -> Result<Option<Tool>, Vec<Diagnostic>> {
        let Some(spec) = ToolSpec::cast(pattern) else { return Ok(None) };
        let definition = match spec.definition(&self.records) {
            Ok(definition) => definition,
            Err(DefinitionError::Signature { error, .. }) => return Err(error.diagnostics),
            // `patter check` reports a missing name or description.
            Err(_) => return spec.signature(&self.records).map(|_| None).map_err(|error| error.diagnostics),
        };
        // A tool without a valid full name is reported later, and does not run.
        let name = FullName::join(namespace, &definition.name).ok();
        let note = |spec| self.specs.extend(name.map(|name| (name.to_string(), spec)));
        let variables = Arc::clone(&self.variables);
        Ok(Some(if pattern.has_label("Command") {
            let command = CommandSpec::read(pattern, &definition.signature)?;
            note(DeclaredSpec::Command(Box::new(command.clone())));
            let ToolResources { root, guard, sandbox, .. } = &self.resources;
            let scripts = command_scripts(&command, root, &mut self.hashes).without(|path| guard.allows_changes(path));
            command_tool_in(definition, command, root, variables, sandbox.clone(), scripts)
        } else {
            let request = HttpSpec::read(pattern, &definition.signature)?;
            let used = request.variables().into_iter().map(str::to_owned).collect();
            note(DeclaredSpec::Request { origin: request.url.origin.to_string(), variables: used });
            http_tool(definition, request, &self.resources.client, variables)
        }))
    }
}
