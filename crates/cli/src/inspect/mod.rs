//! What several commands find out about agents and tools.

mod bindings;
mod findings;
mod resolution;
mod signature;

pub(crate) use bindings::{bind_all, drift, lock_path};
pub(crate) use findings::{KnownTools, add_unbound, read_file};
pub(crate) use resolution::{Resolution, call_permissions};
pub(crate) use signature::format_signature;
