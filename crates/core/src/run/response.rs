//! The response of a run.

use super::call::Slot;
use super::{Run, RunOutcome, State};
use crate::message::conversation::{Message, ToolCall, ToolOutcome, Usage};
use crate::message::request::FinishReason;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};

/// The response of a run. Its JSON contains the content and the tools used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// The text of the answer; empty if there is none.
    pub content: String,
    /// The calls with a result, in order.
    pub tools_used: Vec<Invocation>,
    /// Why the model stopped, if there is an answer: with anything but `Stop`, the answer may be incomplete.
    #[serde(skip)]
    pub finish: Option<FinishReason>,
    /// The tokens used.
    #[serde(skip)]
    pub usage: Usage,
    /// The number of model calls.
    #[serde(skip)]
    pub model_calls: u32,
}

/// A call and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invocation {
    /// The tool, under the agent's name for it.
    pub tool_name: String,
    /// The arguments, or their text if they are not valid JSON.
    pub args: Json,
    /// The result.
    pub result: InvocationResult,
    /// The duration in milliseconds; `None` for a call that was not made.
    #[serde(skip)]
    pub duration_ms: Option<u64>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationResult {
    /// The returned value.
    Success(Json),
    /// An error message.
    Error(String),
}

impl Run {
    /// Returns the response; before the run has ended, what is known so far.
    pub fn response(&self) -> Response {
        let (content, finish) = match self.outcome() {
            Some(RunOutcome::Answer { text, finish, .. }) => (text.clone(), Some(finish.clone())),
            Some(RunOutcome::Failed(_) | RunOutcome::Cancelled) | None => (String::new(), None),
        };
        let mut results: HashMap<&str, &ToolOutcome> = HashMap::new();
        results.extend(self.new_messages().filter_map(|message| match message {
            Message::Tool { call_id, outcome, .. } => Some((call_id.as_str(), outcome)),
            Message::User { .. } | Message::Assistant { .. } | Message::Compacted { .. } => None,
        }));
        if let State::Tools(slots) = &self.state {
            results.extend(slots.iter().filter_map(|slot| match slot {
                Slot::Closed { id, outcome, .. } => Some((id.as_str(), outcome)),
                Slot::AwaitingApproval { .. } | Slot::Open(_) => None,
            }));
        }
        let calls = self.new_messages().flat_map(Message::calls);
        let tools_used = calls.filter_map(|call| Some(self.invocation(call, results.get(call.id.as_str())?))).collect();
        Response { content, tools_used, finish, usage: self.usage, model_calls: self.model_calls }
    }

    /// Returns how long finished calls took in milliseconds, by call id.
    pub(crate) fn durations_ms(&self) -> &BTreeMap<String, u64> {
        &self.durations
    }

    fn invocation(&self, call: &ToolCall, outcome: &ToolOutcome) -> Invocation {
        Invocation {
            tool_name: call.tool.clone(),
            args: call.parse_arguments().unwrap_or_else(|_| Json::String(call.arguments.clone())),
            result: InvocationResult::from(outcome),
            duration_ms: self.durations.get(&call.id).copied(),
        }
    }
}

impl From<&ToolOutcome> for InvocationResult {
    fn from(outcome: &ToolOutcome) -> Self {
        match outcome {
            ToolOutcome::Value { value } => Self::Success(value.clone()),
            ToolOutcome::Error { message } => Self::Error(message.clone()),
            ToolOutcome::Denied { .. } | ToolOutcome::Cancelled => Self::Error(outcome.text()),
        }
    }
}
