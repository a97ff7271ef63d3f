//! What a run gives to whoever asked.

use super::call::Slot;
use super::{Run, RunOutcome, State};
use crate::message::conversation::{self, Message, ToolCall, Usage};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::HashMap;

/// What a run gives to whoever asked. Its JSON has the content and the tools that were used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// What the model answered; empty if it did not.
    pub content: String,
    /// The calls that have a result, in order.
    pub tools_used: Vec<Invocation>,
    /// What it cost.
    #[serde(skip)]
    pub usage: Usage,
    /// How often the model was called.
    #[serde(skip)]
    pub model_calls: u32,
}

/// A call, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invocation {
    /// The tool, by the name that the agent has for it.
    pub tool_name: String,
    /// The arguments; as text where they are not JSON.
    pub args: Json,
    /// What came of it.
    pub result: InvocationResult,
    /// How long it took; nothing for a call that was not made.
    #[serde(skip)]
    pub duration_ms: Option<u64>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationResult {
    /// A result.
    Success(Json),
    /// None, and why.
    Error(String),
}

impl Run {
    /// Returns what the run gives to whoever asked; before its end, what it has so far.
    pub fn response(&self) -> Response {
        let content = match self.outcome() {
            Some(RunOutcome::Answer { text, .. }) => text.clone(),
            Some(RunOutcome::Failed(_) | RunOutcome::Cancelled) | None => String::new(),
        };
        let mut results: HashMap<&str, &conversation::ToolOutcome> = HashMap::new();
        results.extend(self.added().iter().filter_map(|message| match message {
            Message::Tool { call_id, outcome, .. } => Some((call_id.as_str(), outcome)),
            Message::User { .. } | Message::Assistant { .. } => None,
        }));
        if let State::Tools(slots) = &self.state {
            results.extend(slots.iter().filter_map(|slot| match slot {
                Slot::Closed { id, outcome, .. } => Some((id.as_str(), outcome)),
                Slot::Asking { .. } | Slot::Open(_) => None,
            }));
        }
        let calls = self.added().iter().flat_map(Message::calls);
        let tools_used = calls.filter_map(|call| Some(self.invocation(call, results.get(call.id.as_str())?))).collect();
        Response { content, tools_used, usage: self.usage, model_calls: self.model_calls }
    }

    fn invocation(&self, call: &ToolCall, outcome: &conversation::ToolOutcome) -> Invocation {
        Invocation {
            tool_name: call.tool.clone(),
            args: call.parsed().unwrap_or_else(|_| Json::String(call.arguments.clone())),
            result: InvocationResult::from(outcome),
            duration_ms: self.durations.get(&call.id).copied(),
        }
    }
}

impl From<&conversation::ToolOutcome> for InvocationResult {
    fn from(outcome: &conversation::ToolOutcome) -> Self {
        match outcome {
            conversation::ToolOutcome::Value { value } => Self::Success(value.clone()),
            conversation::ToolOutcome::Error { message } => Self::Error(message.clone()),
            conversation::ToolOutcome::Denied { .. } | conversation::ToolOutcome::Cancelled => {
                Self::Error(outcome.text())
            }
        }
    }
}
