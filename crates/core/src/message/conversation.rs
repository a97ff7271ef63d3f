//! Conversations: what was said, which tools were called, and what came of it.
//!
//! A conversation serializes, and is sent to a model anew with each request. It keeps the arguments of a call as the
//! model wrote them, also where they are no JSON, and what a provider wants to have back unchanged.

pub use crate::provider::Usage;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// A message of a conversation.
///
/// ```
/// use patter_core::message::conversation::{Message, ToolCall};
/// let call = ToolCall { id: "1".into(), tool: "sayHello".into(), arguments: r#"{"personName": "Ada"}"#.into() };
/// assert_eq!(call.parsed().unwrap()["personName"], "Ada");
/// let message = Message::assistant("", vec![call]);
/// let json = serde_json::to_string(&message).unwrap();
/// assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What a person said.
    User {
        /// The text.
        text: String,
    },
    /// What the model said.
    Assistant {
        /// The text; empty where there is none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// The tools that it wants to call, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// What the provider wants to have back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque>,
    },
    /// What came of a call. Each call of a message before has exactly one of these, in the order of the calls.
    Tool {
        /// The call.
        call_id: String,
        /// The tool, by the name that the agent has for it.
        tool: String,
        /// What came of it.
        outcome: ToolOutcome,
    },
}

/// A call that a model wants to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Which call it is, unique within the conversation.
    pub id: String,
    /// The tool, by the name that the agent has for it: `weather/current`, not `weather__current`.
    pub tool: String,
    /// The arguments as the model wrote them, JSON or not.
    pub arguments: String,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolOutcome {
    /// A result.
    Value {
        /// It.
        value: Json,
    },
    /// An error that the model may read, and may mend by another call.
    Error {
        /// What went wrong.
        message: String,
    },
    /// It was not permitted.
    Denied {
        /// Why.
        message: String,
    },
    /// It was not made, or not finished, as the run was stopped.
    Cancelled,
}

/// What a provider wants to have back unchanged, such as signatures of its thoughts. Only the provider that gave it gets
/// it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The wire that it came over: `anthropic`, `responses`, `gemini`…
    pub wire: String,
    /// It.
    pub data: Json,
}

impl Message {
    /// Returns what a person said.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { text: text.into() }
    }

    /// Returns what a model said.
    pub fn assistant(text: impl Into<String>, calls: Vec<ToolCall>) -> Self {
        Message::Assistant { text: text.into(), calls, opaque: None }
    }

    /// Returns the calls that it makes; none if the model did not say it.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Message::Assistant { calls, .. } => calls,
            Message::User { .. } | Message::Tool { .. } => &[],
        }
    }
}

impl ToolCall {
    /// Reads the arguments. Nothing at all stands for no arguments.
    pub fn parsed(&self) -> Result<Json, serde_json::Error> {
        if self.arguments.trim().is_empty() {
            return Ok(Json::Object(Map::new()));
        }
        serde_json::from_str(&self.arguments)
    }
}

impl ToolOutcome {
    /// Returns what the model reads: text as it is, other values as JSON, and errors as such.
    pub fn text(&self) -> String {
        match self {
            ToolOutcome::Value { value: Json::String(text) } => text.clone(),
            ToolOutcome::Value { value } => value.to_string(),
            ToolOutcome::Error { message } => format!("error: {message}"),
            ToolOutcome::Denied { message } => format!("not permitted: {message}"),
            ToolOutcome::Cancelled => "cancelled".to_owned(),
        }
    }

    /// Tells whether it is a result.
    pub fn is_value(&self) -> bool {
        matches!(self, ToolOutcome::Value { .. })
    }
}
