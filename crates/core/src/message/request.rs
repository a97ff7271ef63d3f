//! What is asked of a model, and what it replies, whoever runs it.

use crate::message::conversation::{Message, Opaque, ToolCall, Usage};
use crate::name::WireName;
use crate::provider::ModelRef;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;

/// What is asked of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'r> {
    /// The model.
    pub model: &'r ModelRef,
    /// What it is told.
    pub instruction: &'r str,
    /// The conversation so far. It ends with what a person said, or with what came of calls.
    pub messages: &'r [Message],
    /// The tools that it may call, in declared order.
    pub tools: &'r [OfferedTool],
    /// How it should work.
    pub settings: &'r Settings,
    /// The schema of the answer, where it has a form.
    pub returns: Option<&'r Json>,
}

/// A tool as a model gets to see it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The name on the wire.
    pub name: WireName,
    /// What it does.
    pub description: String,
    /// The schema of the arguments, as the provider takes it: made once, since providers cache by its bytes.
    pub schema: Arc<Json>,
    /// Whether the schema is one that the provider can hold the model to.
    pub is_strict: bool,
}

/// What a model is given beside the conversation: the part of a request that stays the same in a run. It serializes, so
/// that it can be told later what a model was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The model.
    pub model: String,
    /// What it is told.
    pub instruction: String,
    /// The tools that it may call, in declared order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<FramedTool>,
    /// How it should work.
    #[serde(default)]
    pub settings: Settings,
    /// The schema of the answer, where it has a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Json>,
}

/// A tool of a [`Frame`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FramedTool {
    /// The name on the wire.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of the arguments, as the provider takes it.
    pub schema: Arc<Json>,
    /// Whether the schema is one that the provider can hold the model to.
    pub is_strict: bool,
}

/// How a model should work. What is not said is left to the provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// How free it is, from 0 on.
    pub temperature: Option<f64>,
    /// The part of the likely words that it chooses from.
    pub top_p: Option<f64>,
    /// How many likely words it chooses from.
    pub top_k: Option<u64>,
    /// How many tokens it may write.
    pub max_tokens: Option<u64>,
    /// Texts at which it stops.
    pub stop: Vec<String>,
    /// What makes it repeat itself.
    pub seed: Option<u64>,
    /// How much it thinks.
    pub reasoning_effort: Option<String>,
}

/// What a model replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text; empty where there is none.
    pub text: String,
    /// The tools that it wants to call, in order.
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it cost.
    pub usage: Usage,
    /// What the provider wants to have back unchanged.
    pub opaque: Option<Opaque>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It is done, or wants to call tools.
    Stop,
    /// It wrote as much as it may.
    Length,
    /// The provider held something back.
    Filtered,
    /// It refused.
    Refused,
    /// It made a mistake that another try may mend, such as a call that the provider could not read.
    Malformed,
    /// Something else, in the words of the provider.
    Other(String),
}

/// A piece of a reply, as it comes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text {
        /// It.
        text: String,
    },
    /// More of its thoughts, where the provider shows them.
    Thought {
        /// It.
        text: String,
    },
    /// A call begins.
    Call {
        /// Which one, counted from 0 in this reply.
        index: usize,
        /// Its name in the conversation.
        id: String,
        /// The tool, by the name that the agent has for it.
        tool: String,
    },
    /// More arguments of a call.
    Arguments {
        /// Which call.
        index: usize,
        /// The next piece of JSON text.
        text: String,
    },
    /// No piece: the request waits before it is sent, for the first time or again.
    Waiting {
        /// How long, more or less.
        seconds: f64,
        /// Why.
        because: String,
    },
}

impl Request<'_> {
    /// Returns all of it but the conversation.
    pub fn frame(&self) -> Frame {
        let framed = |tool: &OfferedTool| FramedTool {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            schema: Arc::clone(&tool.schema),
            is_strict: tool.is_strict,
        };
        Frame {
            model: self.model.to_string(),
            instruction: self.instruction.to_owned(),
            tools: self.tools.iter().map(framed).collect(),
            settings: self.settings.clone(),
            returns: self.returns.cloned(),
        }
    }
}

impl Reply {
    /// Returns the reply as a message of the conversation.
    pub fn message(self) -> Message {
        Message::Assistant { text: self.text, calls: self.calls, opaque: self.opaque }
    }
}
