//! Why something was not done.

use patter::session::SessionError;
use patter::store::{SessionIdError, StoreError};
use patter_core::serve::{ApiError, ApiErrorKind};
use restate_sdk::errors::{HandlerError, TerminalError};
use std::fmt;

/// Why something was not done. It is not an `Error`, because Restate repeats whatever fails with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Trying again may help. Restate does that.
    Passing(String),
    /// Trying again is of no use.
    Final {
        /// The HTTP status that says what is wrong.
        status: u16,
        /// The message for the sender.
        message: String,
    },
}

impl Failure {
    /// Returns that a request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Final { status: 400, message: message.into() }
    }

    /// Returns that a request does not fit the state of its session.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::Final { status: 409, message: message.into() }
    }

    /// Returns an error of a session before anything was accepted: whoever sent the request learns about it.
    pub fn of_request(error: &SessionError) -> Self {
        match error {
            SessionError::Store(StoreError::NotFound { .. }) => Self::Final { status: 404, message: error.to_string() },
            SessionError::Store(_) | SessionError::Journal(_) => Self::Passing(error.to_string()),
            SessionError::UnfinishedRun | SessionError::NoUnfinishedRun | SessionError::NotWaiting(_) => {
                Self::conflict(error.to_string())
            }
            SessionError::Project(_) | SessionError::Model(_) | SessionError::Log(_) => {
                Self::Final { status: 500, message: error.to_string() }
            }
            _ => Self::invalid(error.to_string()),
        }
    }

    /// Returns an error of a session whose run has started: it has to end, so it is tried again until that is possible.
    pub fn of_run(error: &SessionError) -> Self {
        Self::Passing(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passing(message) | Self::Final { message, .. } => f.write_str(message),
        }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        match error.kind {
            ApiErrorKind::NotFound => Self::Final { status: 404, message: error.to_string() },
            _ => Self::invalid(error.to_string()),
        }
    }
}

impl From<SessionIdError> for Failure {
    fn from(error: SessionIdError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<Failure> for HandlerError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Final { status, message } => TerminalError::new_with_code(status, message).into(),
            Failure::Passing(message) => message.into(),
        }
    }
}
