//! How a turn ended.

use super::rpc::RpcError;
use crate::message::request::FinishReason;
use crate::run::FailureKind;
use crate::serve::{ApiError, ApiErrorKind, TurnEnd, TurnOutcome};

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The agent answered.
    EndTurn,
    /// A limit on tokens was reached.
    MaxTokens,
    /// The limit on model calls or tool calls was reached.
    MaxTurnRequests,
    /// The model refused to answer. What the user said, and what followed, is then not part of the conversation.
    Refusal,
    /// The client cancelled the turn.
    Cancelled,
}

impl StopReason {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurnRequests => "max_turn_requests",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Returns why a turn ended, or the error that ended it.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::run::{FailureKind, RunFailure};
/// use patter_core::serve::acp::{StopReason, stop_reason};
/// use patter_core::serve::{TurnEnd, TurnOutcome};
/// let failed = |kind| {
///     let failure = RunFailure { kind, message: "too much".into() };
///     stop_reason(&TurnEnd { outcome: TurnOutcome::Failed(failure), usage: Usage::default() })
/// };
/// assert_eq!(failed(FailureKind::ModelCalls), Ok(StopReason::MaxTurnRequests));
/// assert_eq!(failed(FailureKind::Model).unwrap_err().message, "too much");
/// ```
pub fn stop_reason(end: &TurnEnd) -> Result<StopReason, RpcError> {
    match &end.outcome {
        TurnOutcome::Answered { finish, .. } => Ok(match finish {
            FinishReason::Length => StopReason::MaxTokens,
            FinishReason::Filtered | FinishReason::Refused => StopReason::Refusal,
            FinishReason::Stop | FinishReason::Malformed | FinishReason::Other(_) => StopReason::EndTurn,
        }),
        TurnOutcome::Cancelled => Ok(StopReason::Cancelled),
        TurnOutcome::Failed(failure) => match failure.kind {
            FailureKind::ModelCalls | FailureKind::ToolCalls => Ok(StopReason::MaxTurnRequests),
            FailureKind::Tokens => Ok(StopReason::MaxTokens),
            FailureKind::Configuration
            | FailureKind::Model
            | FailureKind::Answer
            | FailureKind::Cost
            | FailureKind::Deadline
            | FailureKind::Step
            | FailureKind::Store => {
                let failed = || ApiError::new(ApiErrorKind::Run, failure.message.clone());
                Err(end.error().unwrap_or_else(failed).into())
            }
        },
        TurnOutcome::Waiting(calls) => {
            // The next prompt answers a question.
            if calls.iter().any(|call| call.question.is_some()) {
                return Ok(StopReason::EndTurn);
            }
            let tool = calls.first().map(|call| call.tool.as_str()).unwrap_or_default();
            let message = format!("the session waits for a result of `{tool}`, a tool of another client");
            Err(ApiError::new(ApiErrorKind::Busy, message).into())
        }
    }
}
