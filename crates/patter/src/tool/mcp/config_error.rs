//! Errors and warnings about the configuration of MCP servers.

use crate::os_error::describe;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// An error in the configuration of MCP servers.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {}", file.display(), describe(error))]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file does not have the expected structure.
    #[error("cannot read the MCP servers in `{}`: {message}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The reason.
        message: String,
    },
    /// The configuration of a server is invalid.
    #[error("`{}`: the MCP server `{server}` {error}", file.display())]
    Server {
        /// The file.
        file: PathBuf,
        /// The server.
        server: String,
        /// The error.
        error: ServerConfigError,
    },
}

/// An error in the configuration of one MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ServerConfigError {
    /// The name cannot be the name of a toolbox.
    #[error("has an invalid name: {0}")]
    Name(String),
    /// The transport is missing.
    #[error("has neither `command` nor `url`")]
    NoTransport,
    /// There are two transports.
    #[error("has both `command` and `url`")]
    TwoTransports,
    /// A setting belongs to the other transport.
    #[error("has `{0}`, which cannot be combined with `{1}`")]
    Misplaced(&'static str, &'static str),
    /// A setting of a sandbox has no effect.
    #[error("has `{0}`, which has no effect without a sandbox")]
    NoSandbox(&'static str),
    /// A variable is not set.
    #[error("needs the variable `{0}`, which is not set")]
    Variable(String),
    /// A `${` is not closed.
    #[error("has an unclosed `${{` in `{0}`")]
    Unclosed(String),
    /// The URL is invalid.
    #[error("has a `url` that is not a valid HTTP URL")]
    Url,
    /// A root is not a folder.
    #[error("has the root `{0}`, which is not a folder")]
    Root(String),
    /// A header is invalid.
    #[error("has an invalid header `{0}`")]
    Header(String),
    /// The settings of the login are invalid.
    #[error("{0}")]
    Oauth(&'static str),
    /// A time limit is out of range.
    #[error("has a `{0}` that is not between 1 ms and 24 h")]
    Time(&'static str),
}

impl ConfigError {
    /// Returns advice on how to fix the error.
    pub fn hint(&self) -> Option<String> {
        let error = match self {
            ConfigError::Unreadable { .. } => return Some("fix `mcp-servers` in patter.toml".to_owned()),
            ConfigError::Malformed { .. } => {
                return Some("write `{\"mcpServers\": {\"name\": {\"command\": …}}}`".to_owned());
            }
            ConfigError::Server { error, .. } => error,
        };
        match error {
            ServerConfigError::Name(_) => Some("use letters, digits, `-` and `_`, but not `__`".to_owned()),
            ServerConfigError::NoTransport => {
                Some("set `command` to start a program, or `url` to connect to a running server".to_owned())
            }
            ServerConfigError::TwoTransports => {
                Some("remove one of them: a server is either started or connected to".to_owned())
            }
            ServerConfigError::Variable(name) => {
                Some(format!("set it, or write `${{{name}:-default}}` to provide a default"))
            }
            ServerConfigError::Url => Some("write the whole address, as in `https://mcp.example.com/mcp`".to_owned()),
            ServerConfigError::Time(_) => Some("write a time such as `30s`".to_owned()),
            ServerConfigError::NoSandbox(_) => {
                Some("add `sandbox = \"read-only\"` or `sandbox = \"workspace\"`, or remove it".to_owned())
            }
            ServerConfigError::Unclosed(_) => Some("close it, as in `${NAME}`".to_owned()),
            ServerConfigError::Oauth(_)
            | ServerConfigError::Header(_)
            | ServerConfigError::Root(_)
            | ServerConfigError::Misplaced(..) => Some("fix or remove it".to_owned()),
        }
    }
}

/// A warning about an entry in the JSON file of another program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigWarning {
    /// A key is not supported.
    #[error("the MCP server `{server}` has an unsupported key `{key}`")]
    UnknownKey {
        /// The server.
        server: String,
        /// The key.
        key: String,
    },
    /// The transport is not supported.
    #[error(
        "the MCP server `{server}` is skipped: it uses `{transport}`, and only `stdio`, `http` and `sse` are supported"
    )]
    Transport {
        /// The server.
        server: String,
        /// The transport.
        transport: String,
    },
}
