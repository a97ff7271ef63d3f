//! Errors of calls.

use super::ToolFailure;
use patter_core::library::ResolveError;
use patter_core::name::FullName;
use patter_core::text::format_duration;
use patter_core::types::signature::Mismatch;
use std::time::Duration;
use thiserror::Error;

/// The error of a call. Its message is for the model; [`CallError::detail`] is for the operator.
#[derive(Debug, Error)]
pub enum CallError {
    /// There is no such tool.
    #[error("{error}{}", error.hint().map(|hint| format!("; {hint}")).unwrap_or_default())]
    NotFound {
        /// The error of the lookup.
        error: ResolveError,
    },
    /// The call is not permitted.
    #[error("the call to `{tool}` is not permitted: {denial}")]
    PermissionDenied {
        /// The tool.
        tool: FullName,
        /// The reason.
        denial: Denial,
    },
    /// The arguments do not match the signature.
    #[error("invalid arguments for `{tool}`: {}", joined(mismatches))]
    InvalidInput {
        /// The tool.
        tool: FullName,
        /// All mismatches.
        mismatches: Vec<Mismatch>,
    },
    /// The result does not match the signature.
    #[error("`{tool}` returned a result that does not match its declaration: {}", joined(mismatches))]
    InvalidOutput {
        /// The tool.
        tool: FullName,
        /// All mismatches.
        mismatches: Vec<Mismatch>,
    },
    /// The tool failed.
    #[error("`{tool}` failed: {}", failure.message())]
    Failed {
        /// The tool.
        tool: FullName,
        /// The failure.
        failure: ToolFailure,
    },
    /// The call exceeded its time limit.
    #[error("`{tool}` did not finish within {}", format_duration(*.after))]
    TimedOut {
        /// The tool.
        tool: FullName,
        /// The time limit.
        after: Duration,
        /// The detail for the operator.
        detail: Option<String>,
    },
    /// The call was cancelled.
    #[error("the call to `{tool}` was cancelled")]
    Cancelled {
        /// The tool.
        tool: FullName,
    },
}

/// The reason why a call is not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Denial {
    /// A rule denies the call, or none allows it.
    #[error("{because}")]
    Denied {
        /// The deciding rule, for people.
        because: String,
    },
    /// The call requires an approval that was not given.
    #[error("it requires approval ({because})")]
    NotApproved {
        /// The deciding rule, for people.
        because: String,
    },
    /// A hook refuses the call, or failed.
    #[error("the hook `{hook}` {reason}")]
    Hook {
        /// The hook.
        hook: String,
        /// What it decided, and why.
        reason: String,
        /// A detail for the operator.
        detail: Option<String>,
    },
}

impl CallError {
    /// Returns the kind of error in one word, for machines.
    pub const fn kind(&self) -> &'static str {
        match self {
            CallError::NotFound { .. } => "not_found",
            CallError::PermissionDenied { .. } => "permission_denied",
            CallError::InvalidInput { .. } => "invalid_input",
            CallError::InvalidOutput { .. } => "invalid_output",
            CallError::Failed { .. } => "failed",
            CallError::TimedOut { .. } => "timed_out",
            CallError::Cancelled { .. } => "cancelled",
        }
    }

    /// Returns the detail for the operator.
    pub fn detail(&self) -> Option<&str> {
        match self {
            CallError::Failed { failure, .. } => failure.detail(),
            CallError::TimedOut { detail, .. } => detail.as_deref(),
            CallError::PermissionDenied { denial: Denial::Hook { detail, .. }, .. } => detail.as_deref(),
            _ => None,
        }
    }
}

fn joined(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
