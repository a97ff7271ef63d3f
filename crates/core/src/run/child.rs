//! Agents that are called by agents.

use super::{Limits, PendingCall, Run, RunError, RunSpec, StartError, State, Target};
use serde_json::Value as Json;
use thiserror::Error;

/// Why a called agent cannot run. What it displays is fit for the model that called it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChildError {
    /// The call is not open.
    #[error(transparent)]
    Call(#[from] RunError),
    /// The call is one of a tool.
    #[error("`{tool}` is no agent")]
    NotAnAgent {
        /// The tool.
        tool: String,
    },
    /// The arguments do not say what the agent is asked.
    #[error("the agent `{agent}` takes an object with `input`, the text for it")]
    NoInput {
        /// The agent.
        agent: String,
    },
    /// It cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Run {
    /// Starts the run of an agent that this one called, by what is known of that agent. It begins a conversation of its
    /// own, with the `input` or the `message` of the arguments, and is bound by what this run has left of its limits.
    ///
    /// Its answer, or its failure, is then told with [`Run::finished`], and what it cost with [`Run::add_usage`].
    pub fn child(&self, call_id: &str, mut spec: RunSpec, now: u64) -> Result<Run, ChildError> {
        let call = self.called(call_id)?;
        let Target::Agent { name } = &call.target else {
            return Err(ChildError::NotAnAgent { tool: call.tool.clone() });
        };
        let input = input(&call.arguments).ok_or_else(|| ChildError::NoInput { agent: name.clone() })?;
        let Limits { max_depth, max_tokens, .. } = self.spec.limits;
        let used = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        let limits = &mut spec.limits;
        limits.max_depth = limits.max_depth.min(max_depth.saturating_sub(1));
        limits.deadline_ms = least(limits.deadline_ms, self.time_left(now));
        limits.max_tokens = least(limits.max_tokens, max_tokens.map(|most| most.saturating_sub(used)));
        Ok(Run { depth: self.depth.saturating_add(1), ..Run::start(spec, Vec::new(), &input, now)? })
    }

    fn called(&self, call_id: &str) -> Result<&PendingCall, RunError> {
        let id = || call_id.to_owned();
        let slots = match &self.state {
            State::Tools(slots) => slots.as_slice(),
            State::Model => &[],
            State::Done(_) => return Err(RunError::Over),
        };
        let slot = slots.iter().find(|slot| slot.id() == call_id).ok_or_else(|| RunError::UnknownCall { id: id() })?;
        match slot.question() {
            Some(_) => Err(RunError::NotApproved { id: id() }),
            None => slot.open().ok_or_else(|| RunError::Finished { id: id() }),
        }
    }
}

fn input(arguments: &Json) -> Option<String> {
    match arguments.get("input").or_else(|| arguments.get("message"))? {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
