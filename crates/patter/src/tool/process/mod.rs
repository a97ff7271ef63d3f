//! Child processes in groups of their own, which end as a whole.
//!
//! On Linux, a program that calls [`launch::run_if_launched`](crate::launch::run_if_launched) first in `main` starts each
//! command through a supervisor: a copy of itself that ends everything the command started, however the command or the
//! program ends. Elsewhere, and in programs that do not call it, the process group of the command is ended.

mod command;
mod confine;
mod registry;
mod leader;
mod group;
mod tail;
mod running;
#[cfg(target_os = "linux")]
mod request;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod supervisor;
pub mod launch;

pub(crate) use command::{ProcessCommand, StdinSource};
pub use confine::SandboxSupport;
pub(crate) use confine::{Confinement, Places};
pub(crate) use group::{ProcessGroup, StartedProcess};
pub(crate) use leader::Leader;
pub(crate) use registry::{GroupKind, REGISTRY};
pub use registry::{end_processes, kill_processes};
pub(crate) use running::{ProcessOutcome, ProcessOutput, RunningProcess};
pub(crate) use tail::{OutputTail, read_chunks};
