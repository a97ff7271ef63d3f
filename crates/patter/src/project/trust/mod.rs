//! Trust in projects: nothing that a project defines is started, and no key is sent to an address that it names, before
//! the user has agreed to it.
//!
//! [`Tools::definitions`](super::Tools::definitions) lists what needs that agreement. A [`TrustStore`] remembers it by
//! content, per folder, outside of the project.

mod definition;
mod collect;
mod store;

pub use collect::check_definitions;
pub(super) use collect::{
    config_definitions, guarded_files, guarded_patterns, hook_files, project_definitions, server_definitions,
};
pub use definition::{Definition, DefinitionKind, Untrusted};
pub(super) use store::state_folder;
pub use store::{TrustError, TrustRecord, TrustStore};
