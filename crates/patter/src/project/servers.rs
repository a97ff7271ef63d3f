//! The MCP servers of a project, with valid or invalid settings.

use super::config::Config;
use super::environment::Environment;
use super::load::{CONFIG, strip_dot};
use crate::tool::mcp::{ConfigError, ConfigWarning, LoginStore, McpServer, ServerConfig, http_client, read_servers};
use crate::tool::{Tool, ToolFailure};
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An MCP server whose tools are not available.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}, so its tools are missing")]
pub struct ServerProblem {
    /// The server, or the file that lists servers.
    pub server: String,
    /// The reason.
    pub message: String,
    /// Details for the operator.
    pub detail: Option<String>,
}

impl ServerProblem {
    /// Returns advice on how to fix the problem.
    pub fn hint(&self) -> Option<String> {
        self.detail.clone()
    }

    fn from_config_error(server: &str, error: &ConfigError) -> Self {
        Self { server: server.to_owned(), message: error.to_string(), detail: error.hint() }
    }

    fn from_failure(server: &str, failure: &ToolFailure) -> Self {
        let text = failure.message();
        // What to do about it is the last part of the text, in the words of a connection's problem or of a setting.
        let advice = text.rsplit_once("; ").filter(|(_, last)| last.ends_with('?') || last.starts_with("check "));
        let (message, advice) = advice.map_or((text, None), |(message, advice)| (message, Some(advice)));
        let detail = advice.or(failure.detail()).map(str::to_owned);
        Self { server: server.to_owned(), message: message.to_owned(), detail }
    }
}

/// The problems found while listing the tools of MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// The servers whose tools are not available.
    pub problems: Vec<ServerProblem>,
    /// Warnings about the tools of the other servers.
    pub warnings: Vec<String>,
}

/// The servers of a project. An invalid server is reported when its tools are requested; the others still work.
#[derive(Default)]
pub(super) struct ServerSet {
    servers: Vec<(String, Result<McpServer, ServerProblem>)>,
    /// The settings of the servers as written, with the file that has them.
    configs: Vec<(String, ServerConfig, PathBuf)>,
    /// The settings of disabled servers: a person may enable them later.
    disabled: Vec<(String, ServerConfig, PathBuf)>,
    /// The problem with the file that lists servers.
    file_problem: Option<ServerProblem>,
    /// Servers of that file with an unsupported transport, each with a warning.
    unsupported: Vec<(String, String)>,
}

impl ServerSet {
    pub(super) fn read(root: &Path, config: &Config, environment: &Environment) -> Self {
        let mut set = Self::default();
        let file = strip_dot(root.join(CONFIG));
        let own = config.mcp.iter().map(|(name, server)| (name.clone(), server.clone(), file.clone()));
        let mut all: Vec<_> = own.collect();
        if let Some(file) = &config.mcp_servers {
            all.extend(set.read_file(&strip_dot(root.join(file)), config));
        }
        set.disabled = all.extract_if(.., |(_, server, _)| server.disabled).collect();
        if all.is_empty() {
            return set;
        }
        let variable = |name: &str| environment.get(name);
        let client = http_client();
        let build = |name: &str, server: &ServerConfig, file: &Path| {
            let settings = server.settings(name, file, &variable);
            let settings = settings.map_err(|error| ServerProblem::from_config_error(name, &error))?;
            let settings = settings.with_logins(LoginStore::of_user(), &config.http.allow);
            let client = client.as_ref().map_err(|error| ServerProblem {
                server: name.to_owned(),
                message: error.to_string(),
                detail: None,
            })?;
            let declared = server.declared_sandbox().unwrap_or_default();
            let settings = settings.with_policy(&config.sandbox.policy(), declared.as_ref());
            Ok(McpServer::new(settings, client.clone()))
        };
        set.servers = all.iter().map(|(name, server, file)| (name.clone(), build(name, server, file))).collect();
        set.configs = all;
        set
    }

    /// Reads the servers of a file, except those that `patter.toml` defines too.
    fn read_file(&mut self, file: &Path, config: &Config) -> Vec<(String, ServerConfig, PathBuf)> {
        let (listed, warnings) = match read_servers(file) {
            Ok(read) => read,
            Err(error) => {
                self.file_problem = Some(ServerProblem::from_config_error(&file.display().to_string(), &error));
                return Vec::new();
            }
        };
        for warning in warnings {
            let message = warning.to_string();
            match warning {
                ConfigWarning::Transport { server, .. } if !config.mcp.contains_key(&server) => {
                    self.unsupported.push((server, message));
                }
                // Files of other programs contain keys that only they understand.
                _ => tracing::warn!(file = %file.display(), "{message}"),
            }
        }
        let others = listed.into_iter().filter(|(name, _)| !config.mcp.contains_key(name));
        others.map(|(name, server)| (name, server, file.to_owned())).collect()
    }

    /// Iterates over the settings of the servers as written, with their names and the files that have them.
    pub(super) fn configs(&self) -> impl Iterator<Item = (&str, &ServerConfig, &Path)> {
        self.configs.iter().map(|(name, server, file)| (name.as_str(), server, file.as_path()))
    }

    /// Iterates over the settings of all servers, including those that are disabled.
    pub(super) fn all_configs(&self) -> impl Iterator<Item = (&str, &ServerConfig, &Path)> {
        let disabled = self.disabled.iter().map(|(name, server, file)| (name.as_str(), server, file.as_path()));
        self.configs().chain(disabled)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn get(&self, name: &str) -> Option<Result<&McpServer, &ServerProblem>> {
        let (_, server) = self.servers.iter().find(|(known, _)| known == name)?;
        Some(server.as_ref())
    }

    /// Starts the wanted servers concurrently and lists their tools. Passes on the name of each server that is done.
    pub(super) async fn list_tools(
        &self,
        is_wanted: impl Fn(&str) -> bool,
        is_done: impl Fn(&str),
    ) -> (Vec<(&str, Vec<Tool>)>, ServerReport) {
        let mut report = ServerReport::default();
        let unsupported = self.unsupported.iter().filter(|(server, _)| is_wanted(server));
        report.warnings.extend(unsupported.map(|(_, warning)| warning.clone()));
        let mut requests = Vec::new();
        let is_done = &is_done;
        for (name, server) in self.servers.iter().filter(|(name, _)| is_wanted(name)) {
            match server {
                Ok(server) => requests.push(async move {
                    let listed = server.tools().await;
                    is_done(name);
                    (name.as_str(), listed)
                }),
                Err(problem) => report.problems.push(problem.clone()),
            }
        }
        let mut found = Vec::new();
        for (name, result) in join_all(requests).await {
            match result {
                Ok(listed) => {
                    let unenforced = self.servers.iter().filter(|(server, _)| server == name);
                    let unenforced = unenforced.filter_map(|(_, server)| server.as_ref().ok()?.sandbox_warning());
                    report.warnings.extend(unenforced.map(|warning| format!("the MCP server `{name}`: {warning}")));
                    let warnings = listed.warnings.iter().map(|warning| format!("the MCP server `{name}`: {warning}"));
                    report.warnings.extend(warnings);
                    found.push((name, listed.tools));
                }
                Err(failure) => report.problems.push(ServerProblem::from_failure(name, &failure)),
            }
        }
        (found, report)
    }

    /// Returns the problem with the file that lists servers, if there is one.
    pub(super) fn file_problem(&self) -> Option<&ServerProblem> {
        self.file_problem.as_ref()
    }
}
