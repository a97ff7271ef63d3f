//! The tools of a project, from all layers.

use super::servers::{ServerProblem, ServerReport, ServerSet};
use super::{CONFIG, Config, Environment, gram_files};
use crate::http::{AllowanceError, HttpClient, Reach};
use crate::tool::mcp::McpServer;
use crate::tool::standard::{fs::Root, standard};
use crate::tool::{Kit, Tool, Workspace, WorkspaceError, declared, merge};
use patter_core::declare::project::{Finding, Project};
use patter_core::library::{Layer, Library, MergeError};
use patter_core::name::FullName;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The tools of a project: the standard library, what the organisation shares, and its own.
#[derive(Default)]
pub struct Tools {
    layers: Vec<(Layer, Workspace)>,
    /// Those of the MCP servers, and those that were added.
    others: Vec<Workspace>,
    servers: Arc<ServerSet>,
    problems: Vec<ToolProblem>,
}

/// Which MCP servers are started and asked for their tools.
#[derive(Debug, Clone, Copy)]
pub enum Servers<'s> {
    /// None.
    None,
    /// All.
    All,
    /// Those that may have the tool of this name.
    For(&'s str),
}

/// A tool that is declared, and cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProblem {
    /// Where it is declared.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// Why the tools of a project cannot be read.
#[derive(Debug, Error)]
pub enum ToolsError {
    /// A file or folder of the organisation cannot be read.
    #[error("cannot read the tools of the organisation in `{}`: {error}", path.display())]
    Org {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// What `[http]` allows makes no sense.
    #[error("`{CONFIG}` allows what is no address: {0}")]
    Reach(#[from] AllowanceError),
    /// The name of the organisation cannot be one.
    #[error("the organisation cannot be called so: {0}")]
    OrgName(#[from] WorkspaceError),
}

impl ToolsError {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ToolsError::Org { .. } => Some("`tools` in the section [org] of patter.toml names it".to_owned()),
            ToolsError::Reach(_) => {
                Some("write hosts, addresses or networks: `localhost:8080`, `10.0.0.0/8`".to_owned())
            }
            ToolsError::OrgName(_) => Some("`name` in the section [org] of patter.toml names it".to_owned()),
        }
    }
}

impl fmt::Display for ToolProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl Tools {
    /// Makes the tools of a project, without those of MCP servers.
    pub fn read(
        project: &Project,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ToolsError> {
        let root = root.unwrap_or(Path::new("."));
        let servers = Arc::new(ServerSet::read(root, config, environment));
        Self { layers: Vec::new(), others: Vec::new(), servers, problems: Vec::new() }.reread(
            project,
            Some(root),
            config,
            environment,
        )
    }

    /// Makes the tools again, of files that changed. The servers are those that there are.
    pub fn reread(
        &self,
        project: &Project,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ToolsError> {
        let root = root.unwrap_or(Path::new("."));
        let kit = kit(root, config, environment)?;
        let layers = vec![(Layer::Internal, standard(&kit))];
        let (others, servers) = (self.others.clone(), Arc::clone(&self.servers));
        let mut tools = Self { layers, others, servers, problems: Vec::new() };
        if let Some(org) = &config.org {
            let mut unreadable = Vec::new();
            let files: Vec<_> =
                org.tools.iter().flat_map(|path| gram_files(&root.join(path), &mut unreadable)).collect();
            let failed = |(path, error)| ToolsError::Org { path, error };
            if let Some(first) = unreadable.into_iter().next() {
                return Err(failed(first));
            }
            let read = |path: PathBuf| match std::fs::read(&path) {
                Ok(content) => Ok((path.display().to_string(), content)),
                Err(error) => Err(failed((path, error))),
            };
            let shared = Project::read(files.into_iter().map(read).collect::<Result<Vec<_>, _>>()?);
            let workspace = tools.declared(&shared, &kit);
            let workspace = match &org.name {
                Some(name) => workspace.of_org(name)?,
                None => workspace,
            };
            tools.layers.push((Layer::Org, workspace));
        }
        let ours = tools.declared(project, &kit);
        tools.layers.push((Layer::Project, ours));
        Ok(tools)
    }

    /// Returns the tools that are declared and could not be made.
    pub fn problems(&self) -> &[ToolProblem] {
        &self.problems
    }

    /// Iterates over the full names of the tools of all layers.
    pub fn names(&self) -> impl Iterator<Item = &FullName> {
        let all = self.layers.iter().map(|(_, workspace)| workspace).chain(&self.others);
        all.flat_map(|workspace| workspace.tools().map(|(name, _)| name))
    }

    /// Iterates over the names of the MCP servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.names()
    }

    /// Returns an MCP server, or what is wrong with its settings.
    pub fn server(&self, name: &str) -> Option<Result<&McpServer, &ServerProblem>> {
        self.servers.get(name)
    }

    /// Starts servers, all at once, and adds their tools to the layer of the project. Returns what is to be said: a
    /// server that is set up wrongly, or does not start, is no reason to do without the others.
    pub async fn add_servers(&mut self, wanted: &Servers<'_>) -> ServerReport {
        let (found, mut report) = self.servers.ask(|server| self.is_wanted(server, wanted)).await;
        // Names were looked at when the tools were listed.
        let workspace = |(name, tools)| Workspace::builder().toolbox(name, |toolbox| toolbox.tools(tools)).build();
        let found: Vec<_> = found.into_iter().map(workspace).collect();
        // What is not listed may be what is wanted.
        let is_file_wanted = match wanted {
            Servers::None => false,
            Servers::All => true,
            Servers::For(tool) => !self.is_known(tool),
        };
        report.problems.extend(self.servers.file_problem().filter(|_| is_file_wanted).cloned());
        self.others.extend(found.into_iter().map(Result::unwrap_or_default));
        report
    }

    /// Adds tools to the layer of the project, such as those that are written in Rust.
    pub fn add(&mut self, workspace: Workspace) {
        self.others.push(workspace);
    }

    /// Tells whether a name stands for a tool of any layer, or may stand for one of a server.
    fn is_known(&self, tool: &str) -> bool {
        let is_of_server = tool.split_once('/').is_some_and(|(namespace, _)| self.servers().any(|it| it == namespace));
        is_of_server || self.names().any(|name| name.as_str() == tool || name.own() == tool)
    }

    fn is_wanted(&self, server: &str, wanted: &Servers<'_>) -> bool {
        match wanted {
            Servers::None => false,
            Servers::All => true,
            // A full name says which server it is; a bare one may be of any, unless the project itself has it.
            Servers::For(tool) => match tool.split_once('/') {
                Some((namespace, _)) => namespace == server,
                None => !self.layers.iter().any(|(layer, workspace)| {
                    *layer == Layer::Project && workspace.tools().any(|(name, _)| name.own() == *tool)
                }),
            },
        }
    }

    /// Merges the layers.
    pub fn library(&self) -> Result<Library<Tool>, Vec<MergeError>> {
        let others = self.others.iter().cloned().map(|workspace| (Layer::Project, workspace));
        merge(self.layers.iter().cloned().chain(others))
    }

    fn declared(&mut self, project: &Project, kit: &Kit) -> Workspace {
        let (workspace, findings) = declared(project, kit);
        self.problems.extend(findings.into_iter().map(|Finding { file, diagnostic }| ToolProblem {
            place: project.place(file, diagnostic.span),
            message: diagnostic.message.into_owned(),
        }));
        workspace
    }
}

fn kit(root: &Path, config: &Config, environment: &Environment) -> Result<Kit, ToolsError> {
    let reach = Reach::allowing(config.http.allow.iter().map(String::as_str))?;
    let client = HttpClient::new(reach, |name| environment.get(name));
    let mut kit = Kit { client, ..Kit::new(root, environment.clone()) };
    if let Some(roots) = &config.fs.roots {
        let named = roots.iter().map(|path| Root::new(path.display().to_string(), root.join(path)));
        kit.fs_roots = named.collect();
    }
    Ok(kit)
}
