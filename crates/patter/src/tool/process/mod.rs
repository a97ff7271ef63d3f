//! Child processes in groups of their own, which end as a whole.

mod registry;
mod group;
mod tail;
mod running;

pub(crate) use group::ProcessGroup;
pub(crate) use registry::{GroupKind, REGISTRY};
pub use registry::{end_processes, kill_processes};
pub(crate) use running::{ProcessOutcome, ProcessOutput, RunningProcess};
pub(crate) use tail::{OutputTail, read_chunks};
