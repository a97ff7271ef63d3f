//! Compiling an agent: binding its tools, building their schemas, and locking the result.
//!
//! A [`CompiledAgent`] has everything that a run needs and that can be decided before a token is spent. A [`Lock`]
//! records what the tools of agents are bound to, so that every later change is found.

mod lock;
mod agent;

pub use agent::{CompileError, CompiledAgent};
pub use lock::{Drift, DriftKind, LOCK_FILE, Lock, LockError, LockedBinding};
