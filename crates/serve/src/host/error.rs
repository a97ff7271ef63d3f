//! Errors of sessions, as clients receive them.

use patter::session::SessionError;
use patter::store::StoreError;
use patter_core::serve::{ApiError, ApiErrorKind};

/// Returns the error that a client receives.
pub(crate) fn api_error(error: &SessionError) -> ApiError {
    let kind = match error {
        SessionError::Start(_) | SessionError::Attachments(_) | SessionError::NoMessage { .. } => ApiErrorKind::Invalid,
        SessionError::ClientTool(_) => return ApiError::invalid("tools", error.to_string()),
        SessionError::UnfinishedRun | SessionError::NoUnfinishedRun | SessionError::NotWaiting(_) => ApiErrorKind::Busy,
        SessionError::Redacted(_) | SessionError::WrongAnswer(_) => ApiErrorKind::Invalid,
        SessionError::Store(StoreError::Busy { .. } | StoreError::Exists { .. }) => ApiErrorKind::Busy,
        SessionError::Store(StoreError::NotFound { .. }) => ApiErrorKind::NotFound,
        SessionError::Store(_) | SessionError::Journal(_) => ApiErrorKind::Unavailable,
        SessionError::AgentNotFound(_) => ApiErrorKind::UnknownModel,
        SessionError::Model(_) => ApiErrorKind::Model,
        SessionError::Project(_) | SessionError::Compile(_) | SessionError::Log(_) => ApiErrorKind::Server,
    };
    ApiError::new(kind, error.to_string())
}

/// Returns the error about an agent that does not exist, or that the sender may not reach.
pub(crate) fn unknown_agent(name: &str) -> ApiError {
    let message = format!("there is no agent `{name}`");
    ApiError { kind: ApiErrorKind::UnknownModel, param: Some("model".to_owned()), message }
}
