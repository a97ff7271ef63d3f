//! The MCP servers of a project, each with settings that are right or wrong.

use super::{CONFIG, Config, Environment, strip_dot};
use crate::tool::mcp::{ConfigError, ConfigWarning, McpServer, ServerConfig, http_client, read_servers};
use crate::tool::{Failure, Tool};
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An MCP server that could not be asked for its tools.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}, so its tools are missing")]
pub struct ServerProblem {
    /// The server, or the file that should list servers.
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

    fn of_config(server: &str, error: &ConfigError) -> Self {
        Self { server: server.to_owned(), message: error.to_string(), detail: error.hint() }
    }

    fn of_failure(server: &str, failure: &Failure) -> Self {
        let detail = failure.detail().map(str::to_owned);
        Self { server: server.to_owned(), message: failure.message().to_owned(), detail }
    }
}

/// What is to be said about MCP servers that were asked for their tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// The servers that could not be asked.
    pub problems: Vec<ServerProblem>,
    /// What was left out or changed of what the others offer.
    pub warnings: Vec<String>,
}

/// The servers of a project. What is wrong with one is told when it is asked for, and the others go on.
#[derive(Default)]
pub(super) struct ServerSet {
    servers: Vec<(String, Result<McpServer, ServerProblem>)>,
    /// What is wrong with the file that lists servers.
    file: Option<ServerProblem>,
    /// Servers that the file lists and that cannot be reached in their way, with what is to be said.
    unsupported: Vec<(String, String)>,
}

impl ServerSet {
    pub(super) fn read(root: &Path, config: &Config, environment: &Environment) -> Self {
        let mut set = Self::default();
        let file = strip_dot(root.join(CONFIG));
        let ours = config.mcp.iter().map(|(name, server)| (name.clone(), server.clone(), file.clone()));
        let mut all: Vec<_> = ours.collect();
        if let Some(file) = &config.mcp_servers {
            all.extend(set.listed(&strip_dot(root.join(file)), config));
        }
        all.retain(|(_, server, _)| !server.disabled);
        if all.is_empty() {
            return set;
        }
        let variable = |name: &str| environment.get(name);
        let client = http_client();
        let made = |name: &str, server: &ServerConfig, file: &Path| {
            let settings = server.settings(name, file, &variable);
            let settings = settings.map_err(|error| ServerProblem::of_config(name, &error))?;
            let client = client.as_ref().map_err(|error| ServerProblem {
                server: name.to_owned(),
                message: format!("cannot set up encrypted connections: {error}"),
                detail: None,
            })?;
            Ok(McpServer::new(settings, client.clone()))
        };
        set.servers = all.iter().map(|(name, server, file)| (name.clone(), made(name, server, file))).collect();
        set
    }

    /// Reads the servers of a file. One of `patter.toml` takes the place of one of the same name.
    fn listed(&mut self, file: &Path, config: &Config) -> Vec<(String, ServerConfig, PathBuf)> {
        let (listed, warnings) = match read_servers(file) {
            Ok(read) => read,
            Err(error) => {
                self.file = Some(ServerProblem::of_config(&file.display().to_string(), &error));
                return Vec::new();
            }
        };
        for warning in warnings {
            let told = warning.to_string();
            match warning {
                ConfigWarning::Transport { server, .. } if !config.mcp.contains_key(&server) => {
                    self.unsupported.push((server, told));
                }
                // Files of other programs hold much that is not for us.
                _ => tracing::warn!(file = %file.display(), "{told}"),
            }
        }
        let others = listed.into_iter().filter(|(name, _)| !config.mcp.contains_key(name));
        others.map(|(name, server)| (name, server, file.to_owned())).collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn get(&self, name: &str) -> Option<Result<&McpServer, &ServerProblem>> {
        let (_, server) = self.servers.iter().find(|(known, _)| known == name)?;
        Some(server.as_ref())
    }

    /// Starts the servers that are wanted, all at once. Returns their tools, and what is to be said.
    pub(super) async fn ask(&self, is_wanted: impl Fn(&str) -> bool) -> (Vec<(&str, Vec<Tool>)>, ServerReport) {
        let mut report = ServerReport::default();
        let unsupported = self.unsupported.iter().filter(|(server, _)| is_wanted(server));
        report.warnings.extend(unsupported.map(|(_, told)| told.clone()));
        let mut asked = Vec::new();
        for (name, server) in self.servers.iter().filter(|(name, _)| is_wanted(name)) {
            match server {
                Ok(server) => asked.push(async move { (name.as_str(), server.tools().await) }),
                Err(problem) => report.problems.push(problem.clone()),
            }
        }
        let mut found = Vec::new();
        for (name, listing) in join_all(asked).await {
            match listing {
                Ok(listing) => {
                    let told = listing.warnings.iter().map(|warning| format!("the MCP server `{name}`: {warning}"));
                    report.warnings.extend(told);
                    found.push((name, listing.tools));
                }
                Err(failure) => report.problems.push(ServerProblem::of_failure(name, &failure)),
            }
        }
        (found, report)
    }

    /// Returns what is wrong with the file that lists servers.
    pub(super) fn file_problem(&self) -> Option<&ServerProblem> {
        self.file.as_ref()
    }
}
