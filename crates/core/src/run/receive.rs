//! What is told about calls, and about the run as a whole.

use super::call::{PendingCall, Slot};
use super::save::{DEEPEST, is_too_deep};
use super::{Failure, Limits, Run, RunError, RunOutcome, State};
use crate::message::conversation::{self, Message, Usage};

impl Run {
    /// Tells that a call begins. RunInput before it does, so that after a crash it is known which calls may have been made.
    pub fn started(&mut self, call_id: &str) -> Result<(), RunError> {
        self.open_call(call_id)?.started = true;
        Ok(())
    }

    /// Tells how a call ended, and how long it took. Results may come in any order.
    pub fn finished(
        &mut self,
        call_id: &str,
        outcome: conversation::ToolOutcome,
        duration_ms: u64,
        now: u64,
    ) -> Result<(), RunError> {
        self.open_call(call_id)?;
        let outcome = match outcome {
            conversation::ToolOutcome::Value { value } if is_too_deep(&value) => {
                let message = format!("the result nests deeper than {DEEPEST} levels");
                conversation::ToolOutcome::Error { message }
            }
            outcome => outcome,
        };
        self.durations.insert(call_id.to_owned(), duration_ms);
        self.close(call_id, outcome, now)
    }

    /// Tells that someone approved a call.
    pub fn approved(&mut self, call_id: &str) -> Result<(), RunError> {
        let slot = self.asking(call_id)?;
        if let Slot::Asking { call, .. } = slot {
            *slot = Slot::Open(PendingCall { approved: true, ..call.clone() });
        }
        Ok(())
    }

    /// Tells that someone refused a call, and why, which the model gets to read.
    pub fn refused(&mut self, call_id: &str, why: &str, now: u64) -> Result<(), RunError> {
        self.asking(call_id)?;
        let why = if why.trim().is_empty() { "it was not approved" } else { why };
        self.close(call_id, conversation::ToolOutcome::Denied { message: why.to_owned() }, now)
    }

    /// Stops the run. Calls that have no result are cancelled; what has finished is kept.
    pub fn cancel(&mut self, now: u64) -> Result<(), RunError> {
        self.at_unless_over(now)?;
        self.end(RunOutcome::Cancelled);
        Ok(())
    }

    /// Ends the run for a reason that lies outside of it. Calls that have no result are cancelled; what has finished is
    /// kept.
    pub fn fail(&mut self, failure: Failure, now: u64) -> Result<(), RunError> {
        self.at_unless_over(now)?;
        self.end(RunOutcome::Failed(failure));
        Ok(())
    }

    /// Tells the time. The run ends if its deadline has passed; without this that is seen only before the model is
    /// called again.
    pub fn tick(&mut self, now: u64) -> Result<(), RunError> {
        self.at_unless_over(now)?;
        if let Some(failure) = self.late() {
            self.end(RunOutcome::Failed(failure));
        }
        Ok(())
    }

    /// Tells that the run goes on after it lay still, in a program that ended: that time does not count.
    pub fn resumed(&mut self, now: u64) -> Result<(), RunError> {
        if self.outcome().is_some() {
            return Err(RunError::Over);
        }
        self.clock.start = now.saturating_sub(self.clock.elapsed);
        Ok(())
    }

    /// Holds the run to other limits from now on. They are looked at before the model is called again.
    pub fn limited(&mut self, limits: Limits) -> Result<(), RunError> {
        if self.outcome().is_some() {
            return Err(RunError::Over);
        }
        self.spec.limits = limits;
        if matches!(self.state, State::Model) {
            self.call_model();
        }
        Ok(())
    }

    /// Counts what others used for this run, such as the agents that it called.
    pub fn add_usage(&mut self, usage: Usage) {
        self.usage += usage;
    }

    /// Ends the run: calls that have no result are cancelled.
    pub(super) fn end(&mut self, outcome: RunOutcome) {
        if let State::Tools(slots) = std::mem::replace(&mut self.state, State::Done(outcome)) {
            self.conversation.extend(slots.into_iter().map(Slot::message));
        }
    }

    /// Goes on to the model once all calls have their results.
    pub(super) fn settle(&mut self) {
        match &mut self.state {
            State::Tools(slots) if slots.iter().all(Slot::is_closed) => {
                self.conversation.extend(std::mem::take(slots).into_iter().map(Slot::message));
                self.call_model();
            }
            State::Tools(_) | State::Model | State::Done(_) => {}
        }
    }

    fn at_unless_over(&mut self, now: u64) -> Result<(), RunError> {
        if self.outcome().is_some() {
            return Err(RunError::Over);
        }
        self.at(now);
        Ok(())
    }

    fn close(&mut self, call_id: &str, outcome: conversation::ToolOutcome, now: u64) -> Result<(), RunError> {
        self.slot(call_id)?.close(outcome);
        self.at(now);
        self.settle();
        Ok(())
    }

    pub(super) fn open_call(&mut self, call_id: &str) -> Result<&mut PendingCall, RunError> {
        match self.slot(call_id)? {
            Slot::Open(call) => Ok(call),
            Slot::Asking { .. } => Err(RunError::NotApproved { id: call_id.to_owned() }),
            Slot::Closed { .. } => Err(RunError::Finished { id: call_id.to_owned() }),
        }
    }

    fn asking(&mut self, call_id: &str) -> Result<&mut Slot, RunError> {
        match self.slot(call_id)? {
            slot @ Slot::Asking { .. } => Ok(slot),
            Slot::Open(_) => Err(RunError::NotAsked { id: call_id.to_owned() }),
            Slot::Closed { .. } => Err(RunError::Finished { id: call_id.to_owned() }),
        }
    }

    fn slot(&mut self, call_id: &str) -> Result<&mut Slot, RunError> {
        let id = || call_id.to_owned();
        let slot = match &mut self.state {
            State::Done(_) => return Err(RunError::Over),
            State::Model => None,
            State::Tools(slots) => slots.iter_mut().find(|slot| slot.id() == call_id),
        };
        let is_it = |message: &Message| matches!(message, Message::Tool { call_id: other, .. } if other == call_id);
        match slot {
            Some(slot) => Ok(slot),
            None if self.conversation.iter().any(is_it) => Err(RunError::Finished { id: id() }),
            None => Err(RunError::UnknownCall { id: id() }),
        }
    }
}
