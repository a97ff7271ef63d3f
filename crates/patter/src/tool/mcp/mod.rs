//! Tools of MCP servers.
//!
//! [`ServerConfig`] is the configuration as written; [`ServerConfig::settings`] validates it and expands variables.
//! [`McpServer`] starts the server on demand, and [`McpServer::tools`] returns its tools as ordinary ones.
//!
//! A server is a foreign program that may hang, crash or lie. Every wait has a time limit and every response a size
//! limit, the server gets only a small part of the environment, and its tools are validated like any other input.

mod config;
mod config_error;
mod settings;
mod server;
mod list;
mod connection_task;
mod connection;
mod auth;
mod listener;
mod requests;
mod tasks;
mod process;
mod http;
mod sse;
mod reconnect;
mod body;
mod failures;
mod tools;
mod operation;
mod content;
mod declare;
mod error;

pub use auth::{Login, LoginError, LoginOptions, LoginPage, LoginStatus, LoginStore, OauthConfig};
pub use config::{ServerConfig, parse_servers, read_servers};
pub use config_error::{ConfigError, ConfigWarning, ServerConfigError};
pub use declare::{ServerDeclarations, declarations};
pub use http::http_client;
pub use server::McpServer;
pub use settings::{HttpProtocol, ServerSettings};
pub use tools::{ServerTools, ToolWarning};
