//! Runs of agents called by other agents.

use super::{CallTarget, Limits, PendingCall, Run, RunError, RunSpec, StartError, State};
use crate::message::conversation::Conversation;
use serde_json::Value as Json;
use thiserror::Error;

/// An error starting the run of a called agent. The message is suitable for the calling model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChildError {
    /// The call is not open.
    #[error(transparent)]
    Call(#[from] RunError),
    /// The call is to a tool.
    #[error("`{tool}` is not an agent")]
    NotAnAgent {
        /// The tool.
        tool: String,
    },
    /// The arguments do not contain an input for the agent.
    #[error("the agent `{agent}` expects an object with a text field `input`")]
    NoInput {
        /// The agent.
        agent: String,
    },
    /// The run cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Run {
    /// Starts the run of an agent that this run called, in a new conversation. Its input is the argument `input` or
    /// `message`. It may use no more than what is left of this run's limits.
    ///
    /// Report its answer or failure with [`Run::call_finished`], and its usage with [`Run::add_usage`].
    pub fn start_child(&self, call_id: &str, spec: RunSpec, now: u64) -> Result<Run, ChildError> {
        self.start_child_with(call_id, spec, Conversation::default(), now)
    }

    /// Starts the run of an agent that this run called, continuing the conversation of the agent that handed over to it.
    pub fn start_child_with(
        &self,
        call_id: &str,
        mut spec: RunSpec,
        conversation: Conversation,
        now: u64,
    ) -> Result<Run, ChildError> {
        let call = self.find_open_call(call_id)?;
        let CallTarget::Agent { name } = &call.target else {
            return Err(ChildError::NotAnAgent { tool: call.tool.clone() });
        };
        let input = match &spec.takes {
            Some(schema) if is_object(schema) => Some(call.arguments.to_string()),
            _ => input(&call.arguments),
        };
        let input = input.ok_or_else(|| ChildError::NoInput { agent: name.clone() })?;
        let Limits { max_depth, max_tokens, max_cost, .. } = self.spec.limits;
        let used = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        let limits = &mut spec.limits;
        limits.max_depth = limits.max_depth.min(max_depth.saturating_sub(1));
        limits.deadline_ms = min_limit(limits.deadline_ms, self.time_left(now));
        limits.max_tokens = min_limit(limits.max_tokens, max_tokens.map(|limit| limit.saturating_sub(used)));
        let cost_left = max_cost.map(|limit| limit.saturating_sub(self.spent.known()));
        limits.max_cost = min_limit(limits.max_cost, cost_left);
        let depth = self.depth.saturating_add(1);
        let continues = call.continues.clone();
        Ok(Run { depth, continues, ..Run::start(spec, conversation, &input, now)? })
    }

    pub(crate) fn find_open_call(&self, call_id: &str) -> Result<&PendingCall, RunError> {
        let id = || call_id.to_owned();
        let slots = match &self.state {
            State::Tools(slots) => slots.as_slice(),
            State::Model | State::Compact => &[],
            State::Done(_) => return Err(RunError::Ended),
        };
        let slot = slots.iter().find(|slot| slot.id() == call_id).ok_or_else(|| RunError::UnknownCall { id: id() })?;
        match slot.approval_request() {
            Some(_) => Err(RunError::NotApproved { id: id() }),
            None => slot.open().ok_or_else(|| RunError::CallFinished { id: id() }),
        }
    }
}

/// The arguments that contain the input of an agent that is called, in the order in which they are looked up.
pub(crate) const INPUT_ARGUMENTS: [&str; 2] = ["input", "message"];

fn input(arguments: &Json) -> Option<String> {
    match INPUT_ARGUMENTS.into_iter().find_map(|name| arguments.get(name))? {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns whether the arguments of a call are the input itself, because it is an object.
fn is_object(schema: &Json) -> bool {
    schema.get("type").and_then(Json::as_str) == Some("object") || schema.get("$ref").is_some()
}

fn min_limit<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
