//! Conversations that outgrow the window of the model.

use super::spec::{ContextPolicy, ContextSpec};
use super::{FailureKind, Run, RunError, RunFailure, RunOutcome, State};
use crate::message::context::{
    CompactionPlan, can_be_compacted, estimate_conversation, plan_compaction, sent_messages,
};
use crate::message::conversation::{Conversation, Message};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How often a provider may say that a request is too long until the run fails. Each time, half of it is left out.
const MAX_EXCEEDED: u32 = 3;

/// What a run knows about the length of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ContextState {
    /// How many tokens the last request had by estimate, and how many the provider counted.
    estimated: u64,
    counted: u64,
    /// How often the provider refused the request as too long.
    exceeded: u32,
    /// How often the conversation was compacted since the last reply.
    compactions: u32,
}

impl ContextState {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Run {
    /// Returns the messages that are sent to the model: all of them, unless the conversation was compacted.
    pub fn sent_messages(&self) -> Cow<'_, Conversation> {
        sent_messages(&self.conversation)
    }

    /// Returns about how many tokens the next request has, corrected by what the provider counted for the last one.
    pub fn estimated_tokens(&self) -> u64 {
        let estimated = self.uncorrected_tokens();
        let ContextState { estimated: before, counted, .. } = self.context;
        if before == 0 || counted == 0 {
            return estimated;
        }
        // An estimate that is far off is more likely a count that is.
        let corrected = u128::from(estimated) * u128::from(counted) / u128::from(before);
        u64::try_from(corrected).unwrap_or(u64::MAX).clamp(estimated / 2, estimated.saturating_mul(4))
    }

    /// Returns how the conversation is made to fit, if it has to be, and can be.
    pub fn compaction_plan(&self) -> Option<CompactionPlan> {
        let summarizes = self.spec.context.policy == ContextPolicy::Compact;
        plan_compaction(&self.conversation, self.compaction_goal(), summarizes)
    }

    fn can_be_compacted(&self) -> bool {
        can_be_compacted(&self.conversation, self.compaction_goal())
    }

    /// Returns how many tokens the messages shall have after a compaction, by estimate.
    fn compaction_goal(&self) -> u64 {
        let total = self.estimated_tokens();
        let mut goal = self.available().map_or(total, |available| available / 2);
        if self.context.exceeded > 0 {
            goal = goal.min(total / 2);
        }
        let overhead = self.spec.context.overhead.min(goal / 2);
        // The goal is in tokens of the provider, and the plan in estimated ones.
        let estimated = self.uncorrected_tokens();
        let goal = u128::from(goal) * u128::from(estimated) / u128::from(total.max(1));
        u64::try_from(goal).unwrap_or(u64::MAX).saturating_sub(overhead)
    }

    /// Records that the conversation was compacted: earlier messages are kept, but no longer sent as they are.
    pub fn compacted(&mut self, compaction: Message, now: u64) -> Result<(), RunError> {
        self.expect_reply()?;
        self.advance_clock(now);
        if matches!(compaction, Message::Compacted { .. }) {
            self.conversation.push(compaction);
        }
        self.context.compactions = self.context.compactions.saturating_add(1);
        self.call_model();
        Ok(())
    }

    /// Records that the provider refused the request as too long. The conversation is compacted, if the agent wants that.
    pub fn context_exceeded(&mut self, message: &str, now: u64) -> Result<(), RunError> {
        self.expect_reply()?;
        self.advance_clock(now);
        self.context.exceeded = self.context.exceeded.saturating_add(1);
        let is_hopeless = self.context.exceeded > MAX_EXCEEDED || !self.can_be_compacted();
        if is_hopeless || self.spec.context.policy == ContextPolicy::Error {
            self.end(RunOutcome::Failed(too_long(message)));
        } else {
            self.state = State::Compact;
        }
        Ok(())
    }

    /// Notes how many tokens the provider counted for a request that it replied to.
    pub(super) fn count_context(&mut self, counted: u64) {
        self.context = ContextState::default();
        if self.spec.context.window.is_some() {
            self.context.estimated = self.uncorrected_tokens();
            self.context.counted = counted;
        }
    }

    /// Returns the state of a run whose next step is to call the model.
    pub(super) fn model_state(&self) -> State {
        let Some(available) = self.available() else { return State::Model };
        // If the estimate is wrong, the provider says so.
        if self.context.compactions > 0 {
            return State::Model;
        }
        let tokens = self.estimated_tokens();
        if tokens <= available {
            return State::Model;
        }
        let ContextSpec { policy, window, .. } = self.spec.context;
        if policy == ContextPolicy::Error {
            let window = window.unwrap_or_default();
            let message = format!("the request has about {tokens} tokens, and the window of the model {window}");
            return State::Done(RunOutcome::Failed(too_long(&message)));
        }
        if self.can_be_compacted() { State::Compact } else { State::Model }
    }

    /// Returns about how many tokens the next request has, whatever the provider counted before.
    fn uncorrected_tokens(&self) -> u64 {
        estimate_conversation(&self.sent_messages()).saturating_add(self.spec.context.overhead)
    }

    /// Returns how many tokens a request may have, if that is known.
    fn available(&self) -> Option<u64> {
        let ContextSpec { window, reserve, .. } = self.spec.context;
        window.map(|window| window.saturating_sub(reserve))
    }
}

fn too_long(message: &str) -> RunFailure {
    let message = format!("the conversation is too long for the model: {message}; start a new session, or send less");
    RunFailure { kind: FailureKind::Model, message }
}
