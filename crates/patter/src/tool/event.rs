//! What happens in the course of a call.

use super::{CallError, Progress};
use patter_core::name::FullName;
use std::time::Duration;

/// Something that happened in the course of a call.
#[derive(Debug)]
pub struct ToolEvent<'e> {
    /// The call.
    pub call_id: &'e str,
    /// The tool.
    pub tool: &'e FullName,
    /// What happened.
    pub kind: ToolEventKind<'e>,
}

/// What happened.
#[derive(Debug)]
pub enum ToolEventKind<'e> {
    /// The arguments are right and permitted, and the tool is called.
    Started {
        /// The size of the arguments as JSON.
        argument_bytes: usize,
        /// How many defaults were put in.
        defaults: usize,
    },
    /// The tool told how far it is.
    Progress(&'e Progress),
    /// The call ended.
    Finished {
        /// How long it took, from the start of the tool on; nothing for calls that were refused.
        duration: Duration,
        /// How it ended.
        ended: Ended<'e>,
    },
}

/// How a call ended.
#[derive(Debug)]
pub enum Ended<'e> {
    /// With a result.
    Value {
        /// Its size as JSON.
        bytes: usize,
    },
    /// Without one.
    Error(&'e CallError),
}
