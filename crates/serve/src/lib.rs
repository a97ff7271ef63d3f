//! Serves the agents of a project over HTTP, in the protocols that clients already speak.
//!
//! A [`Server`] becomes an axum router, which can be part of an application, or listens by itself. It accepts only requests
//! that are meant for it: see [`ServeSettings`].
//!
//! ```
//! use patter::live::LiveProject;
//! use patter_serve::{ServeSettings, Server};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("hello.gram");
//! # std::fs::write(&path, "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]").unwrap();
//! let project = LiveProject::open(&path).read().await.unwrap();
//! let server = Server::new(project.into(), ServeSettings::default());
//! let app: axum::Router = axum::Router::new().nest("/agents", server.router());
//! # drop(app);
//! # }
//! ```

mod settings;
mod token;
mod webhook;
mod metrics;
mod experiment;
mod host;
mod respond;
mod guard;
mod mcp;
mod acp;
mod studio;
mod api;
mod listen;
mod server;

pub use experiment::{ExperimentRequest, ExperimentRunner};
pub use host::{LastTick, ScheduleStatus, schedule_statuses};
pub use rmcp;
pub use server::Server;
pub use settings::{Editing, Limits, ServeSettings, SystemMessages, ToolAccess, TurnLimits};
pub use token::{Scope, Scopes, Token, TokenFileError, TokenHash, TokenHashError};
pub use webhook::{WebhookSecretError, Webhooks};
