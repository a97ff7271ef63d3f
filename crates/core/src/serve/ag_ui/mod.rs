//! The AG-UI protocol, in which web pages talk to agents: a thread is a session.
//!
//! Calls of tools, called agents and reasoning are all visible. A call that needs approval ends the run with an interrupt,
//! which the next run answers; a call of a tool that the page executes ends the run too, and the next one has its result.

mod id;
mod open;
mod request;
mod stream;

pub use id::{call_id, interrupt_id};
pub use request::{AgUiInput, AgUiRequest, InterruptAnswer, ToolResult};
pub use stream::{AgUiMeta, AgUiStream};

/// The version of the protocol.
const VERSION: &str = "1.0";
