//! The commands, one module each. What several of them need is in the modules beside this one.

use crate::error::{CommandResult, ErrorFormat};

pub(crate) mod ab;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod eval;
pub(crate) mod experiments;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod fmt;
pub(crate) mod graph;
pub(crate) mod import;
pub(crate) mod lock;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod parse;
pub(crate) mod query;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod store;
pub(crate) mod show;
pub(crate) mod studio;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod why;

/// A command with its arguments.
pub(crate) trait Command {
    /// Does the work, and prints the results.
    fn run(&self) -> CommandResult;

    /// Returns how errors are printed.
    fn error_format(&self) -> ErrorFormat {
        ErrorFormat::Text
    }
}
