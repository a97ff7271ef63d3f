//! Tools of MCP servers.
//!
//! The journey: [`ServerConfig`] is what people write; [`ServerConfig::settings`] checks it and puts in variables;
//! [`McpServer`] starts the server when it is needed, and [`McpServer::tools`] makes its tools ordinary ones.
//!
//! A server is another program, which may hang, die, or lie. So each wait has a limit, each answer a bound, its
//! environment is not ours, and what it says of its tools is checked like everything else that comes from outside.

mod config;
mod connection;
mod content;
mod declare;
mod http;
mod process;
mod server;
mod settings;
mod tools;
mod trouble;

pub use config::{ConfigError, ConfigWarning, Mistake, ServerConfig, read_servers, servers_of};
pub use http::http_client;
pub use server::McpServer;
pub use settings::Settings;
pub use tools::{Listing, ToolWarning, declarations};
