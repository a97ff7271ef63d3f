//! Requests to a model and its replies, independent of the provider.

pub use super::schema::SharedSchema;

use crate::message::attachment::AttachmentContents;
use crate::message::conversation::{Conversation, Message, Opaque, ToolCall, Usage};
use crate::name::WireName;
use crate::provider::ModelRef;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'r> {
    /// The model.
    pub model: &'r ModelRef,
    /// The instruction.
    pub instruction: &'r str,
    /// The conversation so far. It ends with a message from the user, or with the outcomes of calls.
    pub messages: &'r Conversation,
    /// The contents of the attachments of the conversation.
    pub contents: &'r AttachmentContents,
    /// The tools that the model may call, in declared order.
    pub tools: &'r [OfferedTool],
    /// The settings of the model.
    pub settings: &'r Settings,
    /// The schema of a structured answer.
    pub returns: Option<&'r Json>,
}

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The name on the wire.
    pub name: WireName,
    /// What it does.
    pub description: String,
    /// The schema of the arguments, as the provider accepts it. Computed once, because providers cache by its bytes.
    pub schema: SharedSchema,
    /// The schema that the provider can enforce, if there is one. In it, all parameters are required, and null stands for
    /// those that are omitted.
    pub strict_schema: Option<SharedSchema>,
}

/// The part of a request that stays the same in a run: everything but the conversation. It can be serialized, so that
/// logs show what a model was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestTemplate {
    /// The model.
    pub model: String,
    /// The instruction.
    pub instruction: String,
    /// The tools that the model may call, in declared order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<TemplateTool>,
    /// The settings of the model.
    #[serde(default)]
    pub settings: Settings,
    /// The schema of a structured answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Json>,
}

/// A tool of a [`RequestTemplate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TemplateTool {
    /// The name on the wire.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of the arguments, as the provider accepts it.
    pub schema: SharedSchema,
    /// Whether the provider can enforce the schema.
    pub is_strict: bool,
}

/// The settings of a model. Those that are not set are left to the provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// The randomness of the output, from 0 up.
    pub temperature: Option<f64>,
    /// The share of probability mass to sample from.
    pub top_p: Option<f64>,
    /// The number of most likely tokens to sample from.
    pub top_k: Option<u64>,
    /// The maximum number of output tokens.
    pub max_tokens: Option<u64>,
    /// Texts at which the output stops.
    pub stop: Vec<String>,
    /// The seed for reproducible output.
    pub seed: Option<u64>,
    /// The amount of reasoning: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or `default`, which leaves it to
    /// the provider.
    pub reasoning_effort: Option<String>,
}

/// The reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text, which may be empty.
    pub text: String,
    /// The tools to call, in order.
    pub calls: Vec<ToolCall>,
    /// The reason why the model stopped.
    pub finish: FinishReason,
    /// The tokens that it used.
    pub usage: Usage,
    /// Data that the provider wants back unchanged.
    pub opaque: Option<Opaque>,
    /// The reasoning, if the provider shows it. It is for people: what a provider wants back is in the opaque data.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought: String,
}

/// The reason why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The reply is complete, or tools are to be called.
    Stop,
    /// The limit on output tokens was reached.
    Length,
    /// The provider filtered the reply.
    Filtered,
    /// The model refused to answer.
    Refused,
    /// The model made a mistake that a retry may avoid, such as a call that the provider could not parse.
    Malformed,
    /// Another reason, as the provider names it.
    Other(String),
}

/// A piece of a streamed reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text {
        /// The next piece of text.
        text: String,
    },
    /// More reasoning, if the provider shows it.
    Thought {
        /// The next piece of text.
        text: String,
    },
    /// The start of a call.
    Call {
        /// The index of the call in this reply.
        index: usize,
        /// The id of the call.
        id: String,
        /// The tool, as the agent names it.
        tool: String,
    },
    /// More arguments of a call.
    Arguments {
        /// The index of the call.
        index: usize,
        /// The next piece of JSON text.
        text: String,
    },
    /// A delay before the request is sent, for the first time or again. This is not part of the reply.
    Waiting {
        /// The approximate length of the delay.
        seconds: f64,
        /// The reason.
        because: String,
    },
}

impl Request<'_> {
    /// Returns everything but the conversation.
    pub fn template(&self) -> RequestTemplate {
        let template_tool = |tool: &OfferedTool| TemplateTool {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            schema: tool.strict_schema.as_ref().unwrap_or(&tool.schema).clone(),
            is_strict: tool.strict_schema.is_some(),
        };
        RequestTemplate {
            model: self.model.to_string(),
            instruction: self.instruction.to_owned(),
            tools: self.tools.iter().map(template_tool).collect(),
            settings: self.settings.clone(),
            returns: self.returns.cloned(),
        }
    }
}

impl FinishReason {
    /// Returns the reason as one word, for machines. Reasons that only one provider has keep the name that it gives them.
    ///
    /// ```
    /// use patter_core::message::request::FinishReason;
    /// assert_eq!(FinishReason::Length.name(), "length");
    /// assert_eq!(FinishReason::Other("pause_turn".into()).name(), "pause_turn");
    /// ```
    pub fn name(&self) -> &str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Filtered => "filtered",
            FinishReason::Refused => "refused",
            FinishReason::Malformed => "malformed",
            FinishReason::Other(name) => name,
        }
    }

    /// Describes why a reply is not a whole answer, for people; `None` if it is.
    ///
    /// ```
    /// use patter_core::message::request::FinishReason;
    /// assert_eq!(FinishReason::Stop.incompleteness(), None);
    /// assert_eq!(FinishReason::Refused.incompleteness().unwrap(), "the model refused to answer");
    /// ```
    pub fn incompleteness(&self) -> Option<String> {
        Some(match self {
            FinishReason::Stop => return None,
            FinishReason::Length => "the reply was cut off at its length limit".to_owned(),
            FinishReason::Filtered => "the reply was cut off by the content filter of the provider".to_owned(),
            FinishReason::Refused => "the model refused to answer".to_owned(),
            FinishReason::Malformed => "the reply is malformed".to_owned(),
            FinishReason::Other(name) => format!("the model stopped with `{name}`, so the reply may be incomplete"),
        })
    }

    /// Returns whether the reply certainly ends too early, so that its last call or its value cannot be trusted.
    pub const fn cuts_off(&self) -> bool {
        match self {
            FinishReason::Length | FinishReason::Filtered | FinishReason::Refused => true,
            FinishReason::Stop | FinishReason::Malformed | FinishReason::Other(_) => false,
        }
    }
}

impl Reply {
    /// Converts the reply into a message of the conversation.
    pub fn into_message(self) -> Message {
        Message::Assistant { text: self.text, calls: self.calls, opaque: self.opaque }
    }
}
