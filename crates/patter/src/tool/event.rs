//! Events of a call.

use super::{CallError, Hook, HookOutcome, Progress};
use patter_core::name::FullName;
use patter_core::text::{format_duration, milliseconds};
use std::time::Duration;

/// An event of a call.
#[derive(Debug)]
pub struct ToolEvent<'e> {
    /// The id of the call.
    pub call_id: &'e str,
    /// The tool.
    pub tool: &'e FullName,
    /// The kind of event.
    pub kind: ToolEventKind<'e>,
}

/// A kind of event.
#[derive(Debug)]
pub enum ToolEventKind<'e> {
    /// The arguments are valid and the call is permitted, so the tool is called.
    Started {
        /// The size of the arguments as JSON.
        argument_bytes: usize,
        /// The number of defaults that were filled in.
        defaults: usize,
    },
    /// A hook ran.
    Hook {
        /// The hook.
        hook: &'e Hook,
        /// Its outcome.
        outcome: &'e HookOutcome,
        /// How long it took.
        duration: Duration,
    },
    /// The tool reported progress.
    Progress(&'e Progress),
    /// The call ended.
    Finished {
        /// The time since the tool was called, or zero for calls that were refused.
        duration: Duration,
        /// The outcome.
        outcome: CallOutcome<'e>,
    },
}

impl ToolEventKind<'_> {
    /// Describes the outcome of a hook, for people.
    pub fn hook_message(&self) -> Option<String> {
        let ToolEventKind::Hook { hook, outcome, duration } = self else { return None };
        let duration = format_duration(Duration::from_millis(milliseconds(*duration)));
        Some(format!("hook `{}` {} the call {outcome} ({duration})", hook.name, hook.stage.name()))
    }
}

/// The outcome of a call.
#[derive(Debug)]
pub enum CallOutcome<'e> {
    /// A result.
    Value {
        /// Its size as JSON.
        bytes: usize,
    },
    /// An error.
    Error(&'e CallError),
}
