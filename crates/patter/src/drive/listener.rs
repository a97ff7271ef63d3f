//! Listeners, which receive the events of runs.

use patter_core::event::{RunEvent, RunEventKind};
use patter_core::session::RunPath;
use std::sync::Arc;

/// Receives the events of runs.
pub type Listener = Arc<dyn Fn(&RunEvent) + Send + Sync>;

pub(super) fn emit(listener: &Listener, agent: &str, run: &RunPath, kind: RunEventKind) {
    listener(&RunEvent::new(agent, run, kind));
}
