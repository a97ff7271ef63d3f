//! How runs end, and errors of starting and driving them.

use crate::message::attachment::AttachmentError;
use crate::message::request::FinishReason;
use crate::types::signature::SchemaError;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The model answered.
    Answer {
        /// The text of the answer.
        text: String,
        /// The value of a structured answer.
        #[serde(default, with = "some_json", skip_serializing_if = "Option::is_none")]
        value: Option<Json>,
        /// Why the model stopped: the text may be cut off, for example.
        finish: FinishReason,
    },
    /// The run failed.
    Failed(RunFailure),
    /// The run was cancelled.
    Cancelled,
}

/// A failure that ended a run. The run keeps its conversation up to that point.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct RunFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// What happened, for people to read.
    pub message: String,
}

/// The kind of a [`RunFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Something needed to call the model is missing, such as an API key.
    Configuration,
    /// The model call failed.
    Model,
    /// The model returned no answer, or one that does not match the required schema.
    Answer,
    /// The limit of model calls was reached.
    ModelCalls,
    /// The model requested more tool calls than allowed.
    ToolCalls,
    /// The token limit was reached.
    Tokens,
    /// The limit of the cost was reached, or the budget of the project.
    Cost,
    /// The deadline passed.
    Deadline,
    /// A step of a workflow failed.
    Step,
    /// The run could not be saved. Nothing continues unsaved.
    Store,
}

/// An error starting a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StartError {
    /// The input is empty.
    #[error("the input is empty")]
    EmptyInput,
    /// There are too many files, or they are too large.
    #[error(transparent)]
    Attachments(#[from] AttachmentError),
    /// A message is out of place.
    #[error("message {number} of the conversation is a result of the call `{id}`, which is not open at that point")]
    Conversation {
        /// The number of the message, starting at 1.
        number: usize,
        /// The call it refers to.
        id: String,
    },
    /// The input does not have the type that the agent takes.
    #[error("the input does not match what `{agent}` takes: {message}")]
    Input {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        message: String,
    },
    /// The schema of the answer is invalid.
    #[error("invalid answer schema: {0}")]
    Returns(SchemaError),
}

/// An input that does not fit the state of a run. The run is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
    /// The run is not waiting for the model.
    #[error("no model reply is expected")]
    NoModelCall,
    /// There is no such call.
    #[error("there is no call `{id}`")]
    UnknownCall {
        /// The id that matches no call.
        id: String,
    },
    /// The call already has a result.
    #[error("the call `{id}` already has a result")]
    CallFinished {
        /// The call.
        id: String,
    },
    /// The call must be approved first.
    #[error("the call `{id}` has not been approved")]
    NotApproved {
        /// The call.
        id: String,
    },
    /// A person answered with something else than what was asked for.
    #[error("the answer to `{id}` does not match its type: {message}")]
    WrongAnswer {
        /// The call.
        id: String,
        /// What is wrong with it.
        message: String,
    },
    /// The call does not need approval.
    #[error("the call `{id}` is not waiting for approval")]
    NoApprovalPending {
        /// The call.
        id: String,
    },
}

impl FailureKind {
    /// Returns the error name: `LLMAPIError`, `ToolError`, `ConfigurationError` or `StoreError`.
    ///
    /// ```
    /// use patter_core::run::FailureKind;
    /// assert_eq!(FailureKind::ModelCalls.name(), "ToolError");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Configuration => "ConfigurationError",
            FailureKind::Model | FailureKind::Answer => "LLMAPIError",
            FailureKind::ModelCalls
            | FailureKind::ToolCalls
            | FailureKind::Tokens
            | FailureKind::Cost
            | FailureKind::Deadline
            | FailureKind::Step => "ToolError",
            FailureKind::Store => "StoreError",
        }
    }
}

impl StartError {
    /// Returns the error name: `ValidationError` or `ConfigurationError`.
    pub const fn name(&self) -> &'static str {
        match self {
            StartError::EmptyInput
            | StartError::Attachments(_)
            | StartError::Conversation { .. }
            | StartError::Input { .. } => "ValidationError",
            StartError::Returns(_) => "ConfigurationError",
        }
    }
}

/// Serializes `null` as a value, not as the absence of one.
mod some_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value as Json;

    pub(super) fn serialize<S: Serializer>(value: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
        Json::deserialize(deserializer).map(Some)
    }
}
