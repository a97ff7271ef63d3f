//! What several commands find out about agents and tools.

mod bindings;
mod findings;
mod overrides;
mod resolution;
mod signature;

pub(crate) use bindings::{bind_all, drift};
pub(crate) use findings::{add_unbound, read_file};
pub(crate) use overrides::{UsedOverrides, with_called};
pub(crate) use resolution::{Resolution, call_permissions};
pub(crate) use signature::format_signature;
