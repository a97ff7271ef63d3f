//! How runs end, and what cannot be told to one.

use crate::message::request::Finish;
use crate::types::signature::SchemaError;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// With an answer.
    Answer {
        /// What the model said.
        text: String,
        /// What it says, where the answer has a form.
        #[serde(default, with = "some_json", skip_serializing_if = "Option::is_none")]
        value: Option<Json>,
        /// Why the model stopped: the text may be cut off, for one.
        finish: Finish,
    },
    /// Without one.
    Failed(Failure),
    /// It was stopped.
    Cancelled,
}

/// Why a run ended without an answer. The conversation until then stays with the run.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Failure {
    /// What failed.
    pub kind: FailureKind,
    /// What happened.
    pub message: String,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// What is needed to call the model is missing, such as a key.
    Configuration,
    /// The call of the model failed, or it said nothing.
    Model,
    /// The answer has not the form that it must have.
    Answer,
    /// The model was called as often as it may be.
    ModelCalls,
    /// The model asked for more calls than it may.
    ToolCalls,
    /// There were too many tokens.
    Tokens,
    /// It took too long.
    Deadline,
    /// What happens cannot be kept, and nothing is done that is not.
    Store,
}

/// Why a run cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StartError {
    /// There is nothing to answer.
    #[error("the input is empty")]
    EmptyInput,
    /// A message cannot stand where it stands.
    #[error("message {number} of the conversation is the result of a call `{id}` that is not open there")]
    Conversation {
        /// Which message, counted from 1.
        number: usize,
        /// The call that it names.
        id: String,
    },
    /// The form of the answer is none.
    #[error("the schema of the answer is wrong: {0}")]
    Returns(SchemaError),
}

/// Why something cannot be told to a run. The run is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// The run has ended.
    #[error("the run has ended")]
    Over,
    /// The model was not to be called.
    #[error("no reply of the model is awaited")]
    NoModelCall,
    /// The model asked for no such call.
    #[error("there is no call `{id}`")]
    UnknownCall {
        /// What was said to be one.
        id: String,
    },
    /// The call has its result.
    #[error("the call `{id}` has its result already")]
    Finished {
        /// The call.
        id: String,
    },
    /// The call must be approved first.
    #[error("the call `{id}` is not approved")]
    NotApproved {
        /// The call.
        id: String,
    },
    /// Nobody has to approve the call.
    #[error("the call `{id}` waits for no approval")]
    NotAsked {
        /// The call.
        id: String,
    },
}

impl FailureKind {
    /// Returns the name of the kind of error: `LLMAPIError`, `ToolError`, `ConfigurationError` or
    /// `StoreError`.
    ///
    /// ```
    /// use patter_core::run::FailureKind;
    /// assert_eq!(FailureKind::ModelCalls.name(), "ToolError");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Configuration => "ConfigurationError",
            FailureKind::Model | FailureKind::Answer => "LLMAPIError",
            FailureKind::ModelCalls | FailureKind::ToolCalls | FailureKind::Tokens | FailureKind::Deadline => {
                "ToolError"
            }
            FailureKind::Store => "StoreError",
        }
    }
}

impl StartError {
    /// Returns the name of the kind of error: `ValidationError` or `ConfigurationError`.
    pub const fn name(&self) -> &'static str {
        match self {
            StartError::EmptyInput | StartError::Conversation { .. } => "ValidationError",
            StartError::Returns(_) => "ConfigurationError",
        }
    }
}

/// `null` is a value here, and not the lack of one.
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
