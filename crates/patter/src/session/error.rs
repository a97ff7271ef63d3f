//! Errors using a session.

use crate::drive::JournalError;
use crate::live::LiveProjectError;
use crate::model::ModelError;
use crate::store::{SessionId, SessionIdError, StoreError};
use patter_core::compile::{ClientToolError, CompileError};
use patter_core::run::{RunError, StartError};
use patter_core::session::LogError;
use thiserror::Error;

/// An error using a session.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The project cannot be read.
    #[error(transparent)]
    Project(#[from] LiveProjectError),
    /// The agent is ambiguous or missing, or cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The model cannot be called.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model does not read an attachment.
    #[error("{0}")]
    Attachments(ModelError),
    /// The run cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The last run has not ended.
    #[error("the last run has not ended")]
    UnfinishedRun,
    /// The last run has ended.
    #[error("there is nothing to resume: the last run has ended")]
    NoUnfinishedRun,
    /// The contents of the session were removed.
    #[error("session `{0}` cannot be continued: its contents were removed (`patter sessions redact`)")]
    Redacted(SessionId),
    /// The agent no longer exists.
    #[error("the agent `{0}` no longer exists")]
    AgentNotFound(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The session cannot be saved.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A tool of the client cannot be offered to the model.
    #[error(transparent)]
    ClientTool(#[from] ClientToolError),
    /// The call does not wait for this answer.
    #[error("the call `{0}` does not wait for this answer")]
    NotWaiting(String),
    /// A person answered with something else than what was asked for. The question stays.
    #[error(transparent)]
    WrongAnswer(RunError),
    /// The conversation is shorter.
    #[error("there is no message {number}: the conversation has {count}")]
    NoMessage {
        /// The requested message.
        number: usize,
        /// The number of messages.
        count: usize,
    },
}

impl From<SessionIdError> for SessionError {
    fn from(error: SessionIdError) -> Self {
        Self::Store(error.into())
    }
}

impl SessionError {
    /// Returns the name of the kind of error: `ValidationError`, `ToolError`, `ConfigurationError` or `StoreError`.
    pub const fn name(&self) -> &'static str {
        match self {
            SessionError::Start(error) => error.name(),
            SessionError::Compile(_) | SessionError::AgentNotFound(_) => "ToolError",
            SessionError::Project(_) | SessionError::Model(_) | SessionError::Attachments(_) => "ConfigurationError",
            SessionError::UnfinishedRun
            | SessionError::Redacted(_)
            | SessionError::NoUnfinishedRun
            | SessionError::ClientTool(_)
            | SessionError::NotWaiting(_)
            | SessionError::WrongAnswer(_)
            | SessionError::NoMessage { .. } => "ValidationError",
            SessionError::Store(_) | SessionError::Log(_) | SessionError::Journal(_) => "StoreError",
        }
    }
}
