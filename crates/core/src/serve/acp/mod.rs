//! The Agent Client Protocol, version 1: an editor talks to agents, over JSON-RPC with one message per line.
//!
//! Each agent is a mode of a session, so people choose among them in the editor. A call that needs approval becomes a
//! `session/request_permission`. What an editor shows of a session that it loads is derived from the log, in the same way as
//! what it shows of a turn under way.

mod agents;
mod end;
mod permission;
mod prompt;
mod replay;
mod request;
mod rpc;
mod tool;
mod update;

pub use agents::{AgentChoice, AgentMode, initialize_result};
pub use end::{StopReason, stop_reason};
pub use permission::{PermissionOutcome, permission_params};
pub use prompt::read_prompt;
pub use replay::Replay;
pub use request::{AGENT_OPTION, ClientNotification, ClientRequest, SessionSetup};
pub use rpc::{InvalidMessage, RpcError, RpcMessage, notification_line, request_line, response_line};
pub use tool::{ToolKind, ToolKinds};
pub use update::{UpdateStream, mode_update, notice, option_update, session_info};
