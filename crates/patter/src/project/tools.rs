//! The tools of a project, from all layers.

use super::{CONFIG, Config, Environment, gram_files};
use crate::http::{AllowanceError, HttpClient, Reach};
use crate::tool::mcp::{ConfigError, McpServer, http_client, read_servers};
use crate::tool::standard::{fs::Root, standard};
use crate::tool::{Kit, Tool, Workspace, WorkspaceError, declared, merge};
use futures_util::future::join_all;
use patter_core::library::{Layer, Library, MergeError};
use patter_core::name::FullName;
use patter_core::project::{Finding, Project};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The tools of a project: the standard library, what the organisation shares, and its own.
pub struct Tools {
    layers: Vec<(Layer, Workspace)>,
    servers: Vec<McpServer>,
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

/// An MCP server that could not be asked for its tools.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}, so its tools are missing")]
pub struct ServerProblem {
    /// The server.
    pub server: String,
    /// Why not.
    pub message: String,
    /// What only the operator may read.
    pub detail: Option<String>,
}

impl ServerProblem {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        self.detail.clone()
    }
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
    /// The MCP servers are not set up right.
    #[error(transparent)]
    Servers(#[from] ConfigError),
    /// The client for MCP servers cannot be made.
    #[error("cannot set up encrypted connections: {0}")]
    Client(String),
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
            ToolsError::Servers(error) => error.hint(),
            ToolsError::Client(_) => None,
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
        let kit = kit(root, config, environment)?;
        let mut tools = Self {
            layers: vec![(Layer::Internal, standard(&kit))],
            servers: servers(root, config, environment)?,
            problems: Vec::new(),
        };
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
        self.layers.iter().flat_map(|(_, workspace)| workspace.tools().map(|(name, _)| name))
    }

    /// Iterates over the names of the MCP servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(McpServer::name)
    }

    /// Returns an MCP server.
    pub fn server(&self, name: &str) -> Option<&McpServer> {
        self.servers.iter().find(|server| server.name() == name)
    }

    /// Starts servers, all at once, and adds their tools to the layer of the project. Returns what went wrong.
    pub async fn add_servers(&mut self, wanted: &Servers<'_>) -> Vec<ServerProblem> {
        let servers: Vec<_> = self.servers.iter().filter(|server| self.is_wanted(server.name(), wanted)).collect();
        let listings = join_all(servers.iter().map(|server| server.tools())).await;
        let mut problems = Vec::new();
        for (server, listing) in servers.iter().zip(listings) {
            let name = server.name();
            let listing = match listing {
                Ok(listing) => listing,
                Err(failure) => {
                    problems.push(ServerProblem {
                        server: name.to_owned(),
                        message: failure.message().to_owned(),
                        detail: failure.detail().map(str::to_owned),
                    });
                    continue;
                }
            };
            for warning in &listing.warnings {
                tracing::warn!(server = name, "{warning}");
            }
            // Names were looked at when the tools were listed.
            let workspace = Workspace::builder().toolbox(name, |toolbox| toolbox.tools(listing.tools)).build();
            self.layers.push((Layer::Project, workspace.unwrap_or_default()));
        }
        problems
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
        merge(self.layers.iter().cloned())
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

fn servers(root: &Path, config: &Config, environment: &Environment) -> Result<Vec<McpServer>, ToolsError> {
    let variable = |name: &str| environment.get(name);
    let ours = config.mcp.iter().map(|(name, server)| (name.clone(), server.clone(), root.join(CONFIG)));
    let mut all: Vec<_> = ours.collect();
    if let Some(file) = &config.mcp_servers {
        let file = root.join(file);
        let (listed, warnings) = read_servers(&file)?;
        for warning in warnings {
            tracing::warn!(file = %file.display(), "{warning}");
        }
        // A server of `patter.toml` takes the place of one of the same name.
        let others = listed.into_iter().filter(|(name, _)| !config.mcp.contains_key(name));
        all.extend(others.map(|(name, server)| (name, server, file.clone())));
    }
    all.retain(|(_, server, _)| !server.disabled);
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let client = http_client().map_err(|error| ToolsError::Client(error.to_string()))?;
    let servers = all
        .into_iter()
        .map(|(name, server, file)| Ok(McpServer::new(server.settings(&name, &file, &variable)?, client.clone())));
    servers.collect()
}
