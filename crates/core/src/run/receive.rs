//! Inputs about calls, and about the run as a whole.

use super::call::{PendingCall, Slot};
use super::compact::ContextState;
use super::save::{MAX_DEPTH, is_too_deep};
use super::{ContextSpec, FailureKind, Limits, Run, RunError, RunFailure, RunOutcome, State};
use crate::message::conversation::{Message, ToolOutcome, Usage};
use crate::provider::price::Bill;

impl Run {
    /// Records that a call is about to be made. Call this first, so that after a crash it is known which calls may have
    /// taken effect.
    pub fn call_started(&mut self, call_id: &str) -> Result<(), RunError> {
        self.open_call(call_id)?.started = true;
        Ok(())
    }

    /// Records the outcome and duration of a call. Results may arrive in any order.
    pub fn call_finished(
        &mut self,
        call_id: &str,
        outcome: ToolOutcome,
        duration_ms: u64,
        now: u64,
    ) -> Result<(), RunError> {
        let call = self.open_call(call_id)?.clone();
        let outcome = self.read_answer(&call, outcome)?;
        let outcome = match outcome {
            ToolOutcome::Value { value } if is_too_deep(&value) => {
                let message = format!("the result is nested more than {MAX_DEPTH} levels deep");
                ToolOutcome::Error { message }
            }
            outcome => outcome,
        };
        self.durations.insert(call_id.to_owned(), duration_ms);
        self.close(call_id, outcome, now)
    }

    /// Approves a call.
    pub fn approve(&mut self, call_id: &str) -> Result<(), RunError> {
        let slot = self.unapproved_slot(call_id)?;
        if let Slot::AwaitingApproval { call, .. } = slot {
            *slot = Slot::Open(PendingCall { approved: true, ..call.clone() });
        }
        Ok(())
    }

    /// Refuses a call. The model reads the reason.
    pub fn refuse(&mut self, call_id: &str, reason: &str, now: u64) -> Result<(), RunError> {
        self.unapproved_slot(call_id)?;
        let reason = if reason.trim().is_empty() { "the call was not approved" } else { reason };
        self.close(call_id, ToolOutcome::Denied { message: reason.to_owned() }, now)
    }

    /// Cancels the run. Open calls are marked as cancelled; finished calls keep their results.
    pub fn cancel(&mut self, now: u64) -> Result<(), RunError> {
        self.ensure_running()?;
        self.advance_clock(now);
        self.end(RunOutcome::Cancelled);
        Ok(())
    }

    /// Ends the run because of an external failure. Open calls are marked as cancelled; finished calls keep their
    /// results.
    pub fn fail(&mut self, failure: RunFailure, now: u64) -> Result<(), RunError> {
        self.ensure_running()?;
        self.advance_clock(now);
        self.end(RunOutcome::Failed(failure));
        Ok(())
    }

    /// Fails the run because it cannot be saved. Unlike other failures, this one also replaces the outcome of a run that has
    /// ended: an answer that is not kept is not an answer.
    pub fn fail_unsaved(&mut self, message: String, now: u64) {
        if self.ensure_running().is_ok() {
            self.advance_clock(now);
        }
        self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::Store, message }));
    }

    /// Advances the clock and ends the run if its deadline has passed. Without ticks, the deadline is only checked before
    /// the next model call.
    pub fn tick(&mut self, now: u64) -> Result<(), RunError> {
        self.ensure_running()?;
        self.advance_clock(now);
        if let Some(failure) = self.deadline_failure() {
            self.end(RunOutcome::Failed(failure));
        }
        Ok(())
    }

    /// Resumes the run after an interruption. The time in between does not count towards the deadline.
    pub fn resume(&mut self, now: u64) -> Result<(), RunError> {
        self.ensure_running()?;
        self.clock.start = now.saturating_sub(self.clock.elapsed);
        Ok(())
    }

    /// Replaces the limits of the run. They are checked before the next model call.
    pub fn set_limits(&mut self, limits: Limits) -> Result<(), RunError> {
        self.ensure_running()?;
        self.spec.limits = limits;
        if matches!(self.state, State::Model | State::Compact) {
            self.call_model();
        }
        Ok(())
    }

    /// Adds tokens used on behalf of this run, such as by agents it called.
    pub fn add_usage(&mut self, usage: Usage) {
        self.usage += usage;
    }

    /// Adds what was spent on behalf of this run: on a reply, or on an agent it called.
    pub fn charge(&mut self, spent: Bill) -> Result<(), RunError> {
        self.ensure_running()?;
        self.spent.add_all(spent);
        Ok(())
    }

    /// Calls another model from now on, because the present one is not available. The conversation then has to fit in the
    /// window of that one, if it is given.
    pub fn fall_back(&mut self, model: String, context: Option<ContextSpec>, now: u64) -> Result<(), RunError> {
        self.expect_reply()?;
        self.advance_clock(now);
        self.fallback = Some(model);
        if let Some(context) = context {
            self.spec.context = context;
            self.context = ContextState::default();
            self.call_model();
        }
        Ok(())
    }

    /// Adds calls of the model that a tool made on behalf of this run. They count towards its limit.
    pub fn add_model_calls(&mut self, calls: u32) {
        self.model_calls = self.model_calls.saturating_add(calls);
    }

    /// Ends the run and marks open calls as cancelled.
    pub(super) fn end(&mut self, outcome: RunOutcome) {
        self.order_calls();
        self.needs_plan = false;
        if let State::Tools(slots) = std::mem::replace(&mut self.state, State::Done(outcome)) {
            self.conversation.extend(slots.into_iter().map(Slot::into_message));
        }
    }

    /// Moves on to the model once all calls have results.
    pub(super) fn settle(&mut self) {
        if self.is_workflow() {
            return self.follow_workflow();
        }
        match &mut self.state {
            State::Tools(slots) if slots.iter().all(Slot::is_closed) => {
                self.conversation.extend(std::mem::take(slots).into_iter().map(Slot::into_message));
                self.call_model();
            }
            State::Tools(_) | State::Model | State::Compact | State::Done(_) => {}
        }
    }

    fn ensure_running(&self) -> Result<(), RunError> {
        match self.outcome() {
            Some(_) => Err(RunError::Ended),
            None => Ok(()),
        }
    }

    fn close(&mut self, call_id: &str, outcome: ToolOutcome, now: u64) -> Result<(), RunError> {
        self.slot(call_id)?.close(outcome);
        self.advance_clock(now);
        self.settle();
        Ok(())
    }

    pub(super) fn open_call(&mut self, call_id: &str) -> Result<&mut PendingCall, RunError> {
        match self.slot(call_id)? {
            Slot::Open(call) => Ok(call),
            Slot::AwaitingApproval { .. } => Err(RunError::NotApproved { id: call_id.to_owned() }),
            Slot::Closed { .. } => Err(RunError::CallFinished { id: call_id.to_owned() }),
        }
    }

    fn unapproved_slot(&mut self, call_id: &str) -> Result<&mut Slot, RunError> {
        match self.slot(call_id)? {
            slot @ Slot::AwaitingApproval { .. } => Ok(slot),
            Slot::Open(_) => Err(RunError::NoApprovalPending { id: call_id.to_owned() }),
            Slot::Closed { .. } => Err(RunError::CallFinished { id: call_id.to_owned() }),
        }
    }

    fn slot(&mut self, call_id: &str) -> Result<&mut Slot, RunError> {
        let id = || call_id.to_owned();
        let slot = match &mut self.state {
            State::Done(_) => return Err(RunError::Ended),
            State::Model | State::Compact => None,
            State::Tools(slots) => slots.iter_mut().find(|slot| slot.id() == call_id),
        };
        let is_result = |message: &Message| matches!(message, Message::Tool { call_id: other, .. } if other == call_id);
        match slot {
            Some(slot) => Ok(slot),
            None if self.conversation.iter().any(is_result) => Err(RunError::CallFinished { id: id() }),
            None => Err(RunError::UnknownCall { id: id() }),
        }
    }
}
