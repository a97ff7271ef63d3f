//! Child processes in groups of their own, which end as a whole.

mod group;
mod tail;
mod running;

pub(crate) use group::ProcessGroup;
pub(crate) use running::{ProcessOutcome, ProcessOutput, RunningProcess};
pub(crate) use tail::{OutputTail, read_chunks};
