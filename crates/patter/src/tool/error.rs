//! How a call ends badly.

use super::Failure;
use patter_core::library::ResolveError;
use patter_core::name::FullName;
use patter_core::types::signature::Mismatch;
use std::time::Duration;
use thiserror::Error;

/// Why a call gave no result. What it displays is fit for the model; [`CallError::detail`] is for the operator.
#[derive(Debug, Error)]
pub enum CallError {
    /// There is no such tool.
    #[error("{error}{}", error.hint().map(|hint| format!("; {hint}")).unwrap_or_default())]
    NotFound {
        /// Why the name stands for none.
        error: ResolveError,
    },
    /// It is not permitted.
    #[error("the call of `{tool}` is not permitted: {denial}")]
    PermissionDenied {
        /// The tool.
        tool: FullName,
        /// Why not.
        denial: Denial,
    },
    /// The arguments are not what the tool takes.
    #[error("the arguments of `{tool}` are wrong: {}", joined(mismatches))]
    InvalidInput {
        /// The tool.
        tool: FullName,
        /// All that is wrong.
        mismatches: Vec<Mismatch>,
    },
    /// The result is not what the tool promises.
    #[error("`{tool}` gave something else than it promises: {}", joined(mismatches))]
    InvalidOutput {
        /// The tool.
        tool: FullName,
        /// All that is wrong.
        mismatches: Vec<Mismatch>,
    },
    /// The tool failed.
    #[error("`{tool}` failed: {}", failure.message())]
    Failed {
        /// The tool.
        tool: FullName,
        /// How.
        failure: Failure,
    },
    /// It took too long.
    #[error("`{tool}` did not end within {}", seconds(*.after))]
    TimedOut {
        /// The tool.
        tool: FullName,
        /// The time that it had.
        after: Duration,
    },
    /// Nobody waits for the result any more.
    #[error("the call of `{tool}` was cancelled")]
    Cancelled {
        /// The tool.
        tool: FullName,
    },
}

/// Why a call is not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Denial {
    /// A rule forbids it, or none allows it.
    #[error("{because}")]
    Denied {
        /// What decided it, for people.
        because: String,
    },
    /// It needs an approval that was not given.
    #[error("it needs an approval ({because})")]
    NotApproved {
        /// What decided it, for people.
        because: String,
    },
}

impl CallError {
    /// Returns the sort of error in one word, for machines.
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

    /// Returns what only the operator may read.
    pub fn detail(&self) -> Option<&str> {
        match self {
            CallError::Failed { failure, .. } => failure.detail(),
            _ => None,
        }
    }
}

fn joined(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
