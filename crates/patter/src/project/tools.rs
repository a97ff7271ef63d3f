//! The tools of a project, from all layers.

use super::config::{Config, OrgConfig};
use super::environment::Environment;
use super::load::{CONFIG, gram_files};
use super::servers::{ServerProblem, ServerReport, ServerSet};
use super::trust::{
    Definition, TrustStore, config_definitions, guarded_files, guarded_patterns, hook_files, project_definitions,
    server_definitions, state_folder,
};
use crate::file::read_project_file;
use crate::http::{AllowListError, HttpClient, NetworkPolicy};
use crate::os_error::describe;
use crate::tool::mcp::{McpServer, ServerConfig};
use crate::tool::standard::{
    fs::{Guard, Root},
    standard_library,
};
use crate::tool::{DeclaredTools, Hook, Tool, ToolResources, Workspace, WorkspaceError, merge};
use indexmap::IndexSet;
use patter_core::declare::project::{Finding, Project};
use patter_core::library::{Layer, Library, MergeError, library_names};
use patter_core::name::FullName;
use patter_core::query::{Policy, PolicyError};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The tools of a project: the standard library, the organisation's tools and the project's own.
#[derive(Default)]
pub struct Tools {
    layers: Vec<(Layer, Workspace)>,
    /// The tools of MCP servers, and those that were added.
    added: Vec<Workspace>,
    /// The hooks of the project, in order.
    hooks: Vec<Hook>,
    /// The hooks that were added.
    added_hooks: Vec<Hook>,
    servers: Arc<ServerSet>,
    /// The servers whose tools were added.
    started: Vec<String>,
    /// The servers that were last asked for.
    wanted: ServerSelection,
    problems: Vec<ToolProblem>,
    policies: ProjectPolicies,
    /// What needs the trust of the user.
    definitions: Vec<Definition>,
}

/// The policies of a project and of its organisation.
#[derive(Debug, Clone, Default)]
pub struct ProjectPolicies {
    /// Those that apply.
    pub policies: Vec<Policy>,
    /// What is wrong with policies of the project, in view of those of the organisation.
    pub findings: Vec<Finding>,
    /// Policies of the organisation that cannot be read. Those of the project are found by the check.
    pub errors: Vec<PolicyError>,
}

impl ProjectPolicies {
    /// Reads the policies of a project, and of its organisation, if it has one.
    fn read(shared: Option<&Project>, own: &Project) -> Self {
        let read = |project: &Project, layer| {
            let mut errors = Vec::new();
            let mut policies = Vec::new();
            for policy in Policy::read_all(project, layer) {
                match policy {
                    Ok(policy) => policies.push(policy),
                    Err(error) => errors.push(*error),
                }
            }
            (policies, errors)
        };
        let (shared, errors) = shared.map(|shared| read(shared, Layer::Org)).unwrap_or_default();
        let (own, _) = read(own, Layer::Project);
        let (policies, findings) = Policy::merge(shared, own);
        Self { policies, findings, errors }
    }
}

/// The MCP servers to start and list the tools of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServerSelection {
    /// No server.
    #[default]
    None,
    /// All servers.
    All,
    /// The servers that may have the tool with this name.
    ForTool(String),
    /// The servers whose tools an agent of the project may need: the agent with this name, or the main one.
    ForAgent(Option<String>),
    /// The servers whose tools any agent of the project may need.
    ForAgents,
}

/// The names of tools that servers are started for.
enum NeededTools {
    All,
    Named(IndexSet<String>),
}

/// A declared tool that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProblem {
    /// The place of the declaration.
    pub place: String,
    /// The reason.
    pub message: String,
}

/// An error while reading the tools of a project.
#[derive(Debug, Error)]
pub enum ToolsError {
    /// A file or folder of the organisation cannot be read.
    #[error("cannot read the organisation's tools in `{}`: {}", path.display(), describe(error))]
    Org {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// An entry of `allow` in `[http]` is invalid.
    #[error("invalid `allow` entry in `{CONFIG}`: {0}")]
    AllowList(#[from] AllowListError),
    /// The name of the organisation is invalid.
    #[error("invalid organisation name: {0}")]
    OrgName(#[from] WorkspaceError),
}

impl NeededTools {
    fn new(project: &Project, wanted: &ServerSelection) -> Self {
        NeededTools::Named(match wanted {
            ServerSelection::All => return NeededTools::All,
            ServerSelection::None => IndexSet::new(),
            ServerSelection::ForTool(tool) => IndexSet::from([tool.clone()]),
            // The caller reports an agent that does not exist.
            ServerSelection::ForAgent(name) => library_names(project.main_agent(name.as_deref()).ok(), project),
            ServerSelection::ForAgents => library_names(project.agents().map(|(_, agent)| agent.clone()), project),
        })
    }
}

impl ToolsError {
    /// Returns advice on how to fix the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            ToolsError::Org { .. } => Some("fix `tools` under `[org]` in patter.toml".to_owned()),
            ToolsError::AllowList(_) => {
                Some("use hosts, addresses or networks, such as `localhost:8080` or `10.0.0.0/8`".to_owned())
            }
            ToolsError::OrgName(_) => Some("fix `name` under `[org]` in patter.toml".to_owned()),
        }
    }
}

impl fmt::Display for ToolProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl Tools {
    /// Builds the tools of a project, except those of MCP servers.
    pub fn read(
        project: &Project,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ToolsError> {
        let root = root.unwrap_or(Path::new("."));
        let servers = Arc::new(ServerSet::read(root, config, environment));
        Self { servers, ..Self::default() }.reread(project, Some(root), config, environment)
    }

    /// Builds the tools again after files changed. The MCP servers stay as they are.
    pub fn reread(
        &self,
        project: &Project,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ToolsError> {
        let root = root.unwrap_or(Path::new("."));
        let shared = config.org.as_ref().map(|org| read_org(root, org)).transpose()?;
        let mut resources = tool_resources(root, config, environment)?;
        let shared = shared.map(|shared| (DeclaredTools::build(&shared, &resources), shared));
        let own = DeclaredTools::build(project, &resources);
        let declared = shared.iter().map(|(declared, shared)| (shared, declared)).chain([(project, &own)]);
        resources.guard = guard(root, config, environment, declared, &self.servers);
        let policies = ProjectPolicies::read(shared.as_ref().map(|(_, shared)| shared), project);
        let mut tools = Self {
            policies,
            layers: vec![(Layer::Internal, standard_library(&resources))],
            added: self.added.clone(),
            hooks: config.hooks.iter().flat_map(|hook| hook.hooks(root, environment)).collect(),
            added_hooks: self.added_hooks.clone(),
            servers: Arc::clone(&self.servers),
            started: self.started.clone(),
            wanted: self.wanted.clone(),
            problems: Vec::new(),
            definitions: config_definitions(root, config, environment),
        };
        let servers = tools.servers.configs().map(|(name, server, _)| (name, server));
        tools.definitions.extend(server_definitions(servers, environment, &resources.sandbox));
        if let Some((declared, shared)) = shared {
            let workspace = tools.note(&shared, declared, &resources);
            let workspace = match config.org.as_ref().and_then(|org| org.name.as_deref()) {
                Some(name) => workspace.with_org(name)?,
                None => workspace,
            };
            tools.layers.push((Layer::Org, workspace));
        }
        let own = tools.note(project, own, &resources);
        tools.layers.push((Layer::Project, own));
        Ok(tools)
    }

    /// Returns what the project defines and the user has to trust before anything of it is started: commands, servers and
    /// addresses. Creating the tools starts nothing.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// Returns the policies of the project and of its organisation.
    pub fn policies(&self) -> &ProjectPolicies {
        &self.policies
    }

    /// Returns the declared tools that could not be built.
    pub fn problems(&self) -> &[ToolProblem] {
        &self.problems
    }

    /// Iterates over the full names of the sealed tools in the layers below the project, which it must not override.
    pub fn sealed_names(&self) -> impl Iterator<Item = &FullName> {
        let below = self.layers.iter().filter(|(layer, _)| *layer < Layer::Project);
        let tools = below.flat_map(|(_, workspace)| workspace.tools());
        tools.filter(|(_, tool)| tool.sealed).map(|(name, _)| name)
    }

    /// Iterates over the full names of the tools in all layers.
    pub fn names(&self) -> impl Iterator<Item = &FullName> {
        let all = self.layers.iter().map(|(_, workspace)| workspace).chain(&self.added);
        all.flat_map(|workspace| workspace.tools().map(|(name, _)| name))
    }

    /// Iterates over the names of the MCP servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.names()
    }

    /// Iterates over the settings of the MCP servers as written, with their names and the files that have them.
    pub(super) fn server_configs(&self) -> impl Iterator<Item = (&str, &ServerConfig, &Path)> {
        self.servers.configs()
    }

    /// Returns an MCP server, or the problem with its settings.
    pub fn server(&self, name: &str) -> Option<Result<&McpServer, &ServerProblem>> {
        self.servers.get(name)
    }

    /// Returns the names of the servers that [`Tools::add_servers`] would start.
    pub fn needed_servers(&self, project: &Project, wanted: &ServerSelection) -> Vec<&str> {
        let needed = NeededTools::new(project, wanted);
        self.servers().filter(|server| self.is_needed(server, &needed)).collect()
    }

    /// Starts servers concurrently and adds their tools to the project layer. A server that is misconfigured or does
    /// not start is reported, and the tools of the others are added. Servers whose tools were added before are not asked
    /// again.
    ///
    /// A full name such as `files/read` needs the server `files`. Which server has a bare name is not known before it is
    /// asked, so a bare name needs all servers, except those whose `only` and `except` exclude it, if nothing else in the
    /// project has that name.
    pub async fn add_servers(&mut self, project: &Project, wanted: &ServerSelection) -> ServerReport {
        self.add_servers_with(project, wanted, |_| {}).await
    }

    /// Starts the servers that a project needs after it changed, selected as before.
    pub(crate) async fn add_more_servers(&mut self, project: &Project) -> ServerReport {
        let wanted = self.wanted.clone();
        self.add_servers(project, &wanted).await
    }

    /// Adds the tools of servers like [`Tools::add_servers`], and passes on the name of each server that is done.
    pub async fn add_servers_with(
        &mut self,
        project: &Project,
        wanted: &ServerSelection,
        is_done: impl Fn(&str),
    ) -> ServerReport {
        let needed = NeededTools::new(project, wanted);
        let (found, mut report) = self.servers.list_tools(|server| self.is_needed(server, &needed), is_done).await;
        self.wanted = wanted.clone();
        self.started.extend(found.iter().map(|(name, _)| (*name).to_owned()));
        // Names were checked when the tools were listed.
        let workspace = |(name, tools)| Workspace::builder().toolbox(name, |toolbox| toolbox.tools(tools)).build();
        let found: Vec<_> = found.into_iter().map(workspace).collect();
        // An unknown tool may belong to a server that the unreadable file would have listed.
        let is_file_wanted = match &needed {
            NeededTools::All => true,
            NeededTools::Named(names) => names.iter().any(|name| !self.is_known(name)),
        };
        report.problems.extend(self.servers.file_problem().filter(|_| is_file_wanted).cloned());
        self.added.extend(found.into_iter().map(Result::unwrap_or_default));
        report
    }

    /// Adds tools to the project layer, such as tools written in Rust.
    pub fn add(&mut self, workspace: Workspace) {
        self.added.push(workspace);
    }

    /// Adds a hook, such as one written in Rust. It runs after those of the project.
    pub fn add_hook(&mut self, hook: Hook) {
        self.added_hooks.push(hook);
    }

    /// Iterates over the hooks, in order.
    pub fn hooks(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().chain(&self.added_hooks)
    }

    /// Returns whether a name refers to a tool of any layer, or may refer to a tool of a server.
    fn is_known(&self, tool: &str) -> bool {
        let is_of_server = tool.split_once('/').is_some_and(|(namespace, _)| self.servers().any(|it| it == namespace));
        is_of_server || self.names().any(|name| name.as_str() == tool || name.tool_name() == tool)
    }

    fn is_needed(&self, server: &str, needed: &NeededTools) -> bool {
        if self.started.iter().any(|started| started == server) {
            return false;
        }
        match needed {
            NeededTools::All => true,
            NeededTools::Named(names) => names.iter().any(|tool| match tool.split_once('/') {
                Some((namespace, _)) => namespace == server,
                None => {
                    let may_have = |server: &McpServer| server.may_have(tool);
                    let is_elsewhere = self.names().any(|name| {
                        name.tool_name() == tool && !self.servers().any(|other| name.namespace() == Some(other))
                    });
                    !is_elsewhere && self.server(server).and_then(Result::ok).is_none_or(may_have)
                }
            }),
        }
    }

    /// Merges the layers.
    pub fn library(&self) -> Result<Library<Tool>, Vec<MergeError>> {
        let added = self.added.iter().cloned().map(|workspace| (Layer::Project, workspace));
        let missing = self.servers().filter(|name| !self.started.iter().any(|started| started == name));
        let with_hooks = |workspace: Workspace| self.hooks().fold(workspace, Workspace::with_hook);
        let layers = self.layers.iter().cloned().chain(added);
        let library = merge(layers.map(|(layer, workspace)| (layer, with_hooks(workspace))))?;
        let servers = self.servers().map(str::to_owned);
        Ok(library.with_missing_servers(missing.map(str::to_owned)).with_servers(servers))
    }

    /// Notes what the declared tools define, and the problems. Returns the tools.
    fn note(&mut self, project: &Project, declared: DeclaredTools, resources: &ToolResources) -> Workspace {
        let DeclaredTools { workspace, findings, specs } = declared;
        let defined = project_definitions(project, &specs, &resources.environment, &resources.sandbox);
        let new = defined.into_iter().filter(|definition| !self.definitions.contains(definition));
        let new: Vec<_> = new.collect();
        self.definitions.extend(new);
        self.problems.extend(findings.into_iter().map(|Finding { file, diagnostic }| ToolProblem {
            place: project.location(file, diagnostic.span),
            message: diagnostic.message.into_owned(),
        }));
        workspace
    }
}

/// Reads the files of an organisation.
fn read_org(root: &Path, org: &OrgConfig) -> Result<Project, ToolsError> {
    let failed = |(path, error)| ToolsError::Org { path, error };
    let mut unreadable = Vec::new();
    let files: Vec<_> = org.tools.iter().flat_map(|path| gram_files(&root.join(path), &mut unreadable)).collect();
    if let Some(first) = unreadable.into_iter().next() {
        return Err(failed(first));
    }
    let read = |path: PathBuf| match read_project_file(&path) {
        Ok(content) => Ok((path.display().to_string(), content)),
        Err(error) => Err(failed((path, error))),
    };
    Ok(Project::read(files.into_iter().map(read).collect::<Result<Vec<_>, _>>()?))
}

/// Returns the guard of the files that define a project.
fn guard<'p>(
    root: &Path,
    config: &Config,
    environment: &Environment,
    projects: impl IntoIterator<Item = (&'p Project, &'p DeclaredTools)>,
    servers: &ServerSet,
) -> Guard {
    let mut guard = Guard::new(root).with_writable(config.fs.writable.iter().map(String::as_str));
    for (project, declared) in projects {
        guard = guard.with_files(guarded_files(root, project, &declared.specs, servers.all_configs(), environment));
        guard = guard.with_patterns(guarded_patterns(root, &declared.specs));
    }
    let store = TrustStore::of_user().map(|store| store.folder().to_owned());
    guard
        .with_files(hook_files(root, config, environment))
        .with_files(config.mcp_servers.iter().map(|file| root.join(file)))
        .with_folders(store.into_iter().chain(state_folder()))
}

fn tool_resources(root: &Path, config: &Config, environment: &Environment) -> Result<ToolResources, ToolsError> {
    let policy = NetworkPolicy::from_allow_list(config.http.allow.iter().map(String::as_str))?;
    let client = HttpClient::new(policy, |name| environment.get(name));
    let mut resources = ToolResources { client, ..ToolResources::new(root, environment.clone()) };
    if let Some(roots) = &config.fs.roots {
        let named = roots.iter().map(|path| Root::new(path.display().to_string(), root.join(path)));
        resources.fs_roots = named.collect();
    }
    resources.guard = resources.guard.with_writable(config.fs.writable.iter().map(String::as_str));
    resources.sandbox = config.sandbox.policy();
    Ok(resources)
}
