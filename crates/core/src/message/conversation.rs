//! Conversations: messages, tool calls and their outcomes.
//!
//! A conversation can be serialized, and is sent to the model with each request. It preserves the arguments of a call
//! as the model wrote them, even if they are not valid JSON, and the data that a provider wants back unchanged.

pub use super::shared::{Conversation, Messages};
pub use crate::provider::Usage;

use super::attachment::{Attachment, UserInput};
use super::media::{Media, media, without_data};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// A message of a conversation.
///
/// ```
/// use patter_core::message::conversation::{Message, ToolCall};
/// let call = ToolCall { id: "1".into(), tool: "sayHello".into(), arguments: r#"{"personName": "Ada"}"#.into() };
/// assert_eq!(call.parse_arguments().unwrap()["personName"], "Ada");
/// let message = Message::assistant("", vec![call]);
/// let json = serde_json::to_string(&message).unwrap();
/// assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A message from the user.
    User {
        /// The text.
        text: String,
        /// The files that belong to it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A message from the model.
    Assistant {
        /// The text, which may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// The tools to call, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// Data that the provider wants back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque>,
    },
    /// The outcome of a call. Each call of the preceding message has exactly one, in the order of the calls.
    Tool {
        /// The id of the call.
        call_id: String,
        /// The tool, as the agent names it.
        tool: String,
        /// The outcome.
        outcome: ToolOutcome,
    },
    /// The messages before this one are no longer all sent to the model, because they do not fit. See
    /// [`sent_messages`](super::context::sent_messages).
    Compacted {
        /// What the model reads instead of the messages that are left out.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
        /// The index of the first message that is still sent.
        kept_from: usize,
        /// The length to which results of tools before this message are shortened, in characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_chars: Option<usize>,
    },
}

/// A tool call requested by a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id, which is unique within the conversation.
    pub id: String,
    /// The tool, as the agent names it: `weather/current`, not `weather__current`.
    pub tool: String,
    /// The arguments as the model wrote them, valid JSON or not.
    pub arguments: String,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolOutcome {
    /// A result.
    Value {
        /// The value.
        value: Json,
    },
    /// An error, which the model can read and correct with another call.
    Error {
        /// What went wrong.
        message: String,
    },
    /// The call was not permitted.
    Denied {
        /// The reason.
        message: String,
    },
    /// The run was stopped before the call was made or finished.
    Cancelled,
}

/// Data that a provider wants back unchanged, such as signatures of reasoning. It is only sent over the wire that it came
/// from, and to the server that it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The name of the wire: `anthropic`, `responses`, `gemini`…
    pub wire: String,
    /// The server, and the vendor of the model if the server has several. Empty if it is not known: any server then counts
    /// as the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// The data.
    pub data: Json,
}

impl Message {
    /// Returns a message from the user.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { text: text.into(), attachments: Vec::new() }
    }

    /// Returns a message from the model.
    pub fn assistant(text: impl Into<String>, calls: Vec<ToolCall>) -> Self {
        Message::Assistant { text: text.into(), calls, opaque: None }
    }

    /// Returns the files of the message; none if it is not from the user.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Message::User { attachments, .. } => attachments,
            Message::Assistant { .. } | Message::Tool { .. } | Message::Compacted { .. } => &[],
        }
    }

    /// Returns the calls of the message; none if it is not from the model.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Message::Assistant { calls, .. } => calls,
            Message::User { .. } | Message::Tool { .. } | Message::Compacted { .. } => &[],
        }
    }
}

impl From<UserInput> for Message {
    fn from(UserInput { text, attachments }: UserInput) -> Self {
        Message::User { text, attachments }
    }
}

impl ToolCall {
    /// Returns whether the model passed no arguments: some write nothing, others `null`.
    pub fn has_no_arguments(&self) -> bool {
        matches!(self.arguments.trim(), "" | "null")
    }

    /// Parses the arguments. Blank text and `null` count as no arguments.
    pub fn parse_arguments(&self) -> Result<Json, serde_json::Error> {
        if self.has_no_arguments() {
            return Ok(Json::Object(Map::new()));
        }
        serde_json::from_str(&self.arguments)
    }
}

impl ToolOutcome {
    /// Returns the images and documents of a result.
    pub fn media(&self) -> Vec<Media<'_>> {
        match self {
            ToolOutcome::Value { value } => media(value),
            ToolOutcome::Error { .. } | ToolOutcome::Denied { .. } | ToolOutcome::Cancelled => Vec::new(),
        }
    }

    /// Returns the text of a result: strings unquoted, other values as JSON, images and documents as descriptions, and errors with a
    /// prefix.
    pub fn text(&self) -> String {
        match self {
            ToolOutcome::Value { value: Json::String(text) } => text.clone(),
            ToolOutcome::Value { value } => without_data(value, None).to_string(),
            ToolOutcome::Error { message } => format!("error: {message}"),
            ToolOutcome::Denied { message } => format!("not permitted: {message}"),
            ToolOutcome::Cancelled => "cancelled".to_owned(),
        }
    }

    /// Returns whether the call returned a result.
    pub fn is_value(&self) -> bool {
        matches!(self, ToolOutcome::Value { .. })
    }
}
