//! Tools: how agents act on the world.
//!
//! A [`Tool`] is a [`Definition`] with one implementation: a Rust function, an HTTP request, a command, or a tool of an MCP
//! server. Callers do not see the difference. Only the [`Executor`] runs tools.

mod implementation;
mod context;
mod failure;
mod executor;
mod event;
mod question;
mod error;
mod hook;
mod workspace;
mod native;
pub(crate) mod derived;
mod declared;
mod http;
pub mod command;
pub mod mcp;
pub mod sandbox;
pub mod standard;
mod html;
pub(crate) mod idempotency;
pub(crate) mod kept;
pub(crate) mod process;
pub(crate) mod redact;
pub(crate) mod scripts;
pub(crate) mod wait;

pub use context::{Access, Progress, SharedState, ToolContext, VariableLookup};
pub(crate) use declared::{DeclaredSpec, DeclaredTools};
pub use declared::{ToolResources, build_declared};
pub use error::{CallError, Denial};
pub use event::{CallOutcome, ToolEvent, ToolEventKind};
pub use executor::{Approval, CallRequest, Executor};
pub use failure::ToolFailure;
pub use futures_util::future::BoxFuture;
pub use hook::{CommandHook, DEFAULT_HOOK_TIMEOUT, Hook, HookAction, HookCall, HookOutcome, HookStage, HookVerdict};
pub(crate) use http::http_failure;
pub use http::http_tool;
pub use implementation::{DEFAULT_TIMEOUT, Implementation, Tool, ToolKind};
pub use native::Shared;
pub use patter_core::declare::Effect;
pub use patter_core::types::definition::{Definition, DefinitionError};
pub use process::{end_processes, kill_processes};
pub use question::{
    Answer, CallHost, FieldKind, FormField, Question, QuestionKind, Respondent, SampledReply, SamplingRequest,
};
pub use workspace::{Workspace, WorkspaceBuilder, WorkspaceError, merge};

pub use tokio_util::sync::CancellationToken;
