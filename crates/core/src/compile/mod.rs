//! Compiling an agent: binding its tools, building their schemas, and locking the result.
//!
//! A [`CompiledAgent`] has everything that a run needs and that can be decided before a token is spent. A [`Lock`]
//! records everything that decides what agents do, so that every later change is found.

mod drift;
mod lock;
mod error;
mod input;
mod tools;
mod agent;
mod client;

pub use agent::{CompiledAgent, WORKFLOW, select_agent};
pub use client::ClientToolError;
pub use drift::{Drift, DriftKind};
pub use error::CompileError;
pub use lock::{LOCK_FILE, Lock, LockError, LockedAgent, LockedFile, LockedPolicy, LockedServer, LockedTool};
