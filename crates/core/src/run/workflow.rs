//! Runs of workflows: the calls come from the graph of the workflow instead of from a model.
//!
//! Each call has its own result, and those of the agents it calls their own runs. So what one branch receives changes no
//! other: a branch continues while another one waits for a person.

use super::call::{PendingCall, Ruling, Slot};
use super::reply::rule_on;
use super::{CallTarget, FailureKind, Run, RunError, RunFailure, RunOutcome, State, answer};
use crate::message::conversation::{Message, ToolCall, ToolOutcome};
use crate::message::request::FinishReason;
use crate::workflow::{Action, Evaluation};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::HashMap;

/// A call that a workflow makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The call.
    #[serde(flatten)]
    pub call: ToolCall,
    /// The time until which a person has to answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The call whose conversation it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// The most calls of a workflow. Cycles and lists have bounds of their own.
const MAX_CALLS: usize = 10_000;

impl Run {
    /// Returns whether it is the run of a workflow.
    pub fn is_workflow(&self) -> bool {
        self.spec.workflow.is_some()
    }

    /// Returns the calls that the workflow makes next, to be reported with [`Run::steps_planned`]: none if it ends. `now` is
    /// the time in milliseconds.
    pub fn planned_calls(&self, now: u64) -> Vec<PlannedCall> {
        let planned = self.evaluate().calls.into_iter().filter(|call| !self.has_slot(&call.id));
        let calls = planned.map(|call| PlannedCall {
            call: ToolCall { id: call.id, tool: call.callee, arguments: call.arguments.to_string() },
            expires_at: call.expires_ms.map(|expires| now.saturating_add(expires)),
            continues: call.continues,
        });
        calls.collect()
    }

    /// Adds calls of a workflow, and rules on each of them right away; or ends the run, if the workflow has ended.
    pub fn steps_planned(
        &mut self,
        calls: Vec<PlannedCall>,
        now: u64,
        decide: &dyn Fn(&PendingCall) -> Ruling,
    ) -> Result<(), RunError> {
        match &self.state {
            State::Done(_) => return Err(RunError::Ended),
            State::Tools(_) if self.is_workflow() && self.needs_plan => {}
            State::Tools(_) | State::Model | State::Compact => return Err(RunError::NoModelCall),
        }
        self.advance_clock(now);
        self.needs_plan = false;
        // A result that is there counts, whatever it took.
        if let Some(failure) = self.limit_failure().filter(|_| !calls.is_empty()) {
            self.end(RunOutcome::Failed(failure));
            return Ok(());
        }
        self.tool_calls = self.tool_calls.saturating_add(calls.len() as u64);
        let slots: Vec<_> = calls
            .iter()
            .filter(|planned| !self.has_slot(&planned.call.id))
            .map(|planned| match self.pending(&planned.call, None) {
                Ok(call) => {
                    let expires_at = planned.expires_at;
                    let continues = planned.continues.clone();
                    rule_on(PendingCall { expires_at, continues, ..call }, decide)
                }
                Err(outcome) => Slot::Closed { id: planned.call.id.clone(), tool: planned.call.tool.clone(), outcome },
            })
            .collect();
        if !calls.is_empty() {
            self.push_calls(calls.into_iter().map(|planned| planned.call).collect());
        }
        if let State::Tools(open) = &mut self.state {
            open.extend(slots);
        }
        self.conclude_workflow();
        Ok(())
    }

    /// Adds calls to the message with the calls of this run, so that their results can follow it in any order.
    fn push_calls(&mut self, calls: Vec<ToolCall>) {
        let last = self.conversation.len().checked_sub(1).filter(|last| *last > self.begin);
        let earlier = last.and_then(|last| match self.conversation.get(last) {
            Some(Message::Assistant { calls, .. }) => Some(calls.clone()),
            _ => None,
        });
        let calls = match earlier {
            Some(mut earlier) => {
                self.conversation.truncate(self.conversation.len() - 1);
                earlier.extend(calls);
                earlier
            }
            None => calls,
        };
        self.conversation.push(Message::assistant(String::new(), calls));
    }

    /// Notes that the workflow makes further calls, or ends. Both happen with [`Run::steps_planned`], so that whoever reports
    /// a result does not end the run.
    pub(super) fn follow_workflow(&mut self) {
        let Evaluation { calls, outcome } = self.evaluate();
        self.needs_plan = outcome.is_some() || calls.iter().any(|call| !self.has_slot(&call.id));
    }

    /// Ends the run if the workflow has ended.
    fn conclude_workflow(&mut self) {
        let State::Tools(slots) = &self.state else { return };
        if slots.len() > MAX_CALLS {
            let message = format!("the workflow made more than {MAX_CALLS} calls");
            return self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::ToolCalls, message }));
        }
        match self.evaluate().outcome {
            None => self.follow_workflow(),
            Some(Ok(value)) => self.end_workflow(value),
            Some(Err(error)) => {
                self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::Step, message: error.to_string() }));
            }
        }
    }

    /// Puts the calls of a workflow that ends into the order of its steps, so that the conversation does not depend on what
    /// finished first.
    pub(super) fn order_calls(&mut self) {
        let Some(plan) = self.spec.workflow.clone() else { return };
        let State::Tools(slots) = &mut self.state else { return };
        let steps: HashMap<&str, usize> =
            plan.steps.iter().enumerate().map(|(index, step)| (step.name.as_str(), index)).collect();
        let position = |id: &str| {
            let (step, rest) = id.rsplit_once('-').unwrap_or((id, ""));
            let mut numbers = rest.split(['.', '@']).map(|number| number.parse::<u64>().unwrap_or_default());
            (steps.get(step).copied(), numbers.next(), numbers.next())
        };
        slots.sort_by_key(|slot| position(slot.id()));
        let last = self.conversation.len().checked_sub(1).filter(|last| *last > self.begin);
        if let Some(Message::Assistant { calls, .. }) = last.and_then(|last| self.conversation.get(last)) {
            let mut calls = calls.clone();
            calls.sort_by_key(|call| position(&call.id));
            self.conversation.truncate(self.conversation.len() - 1);
            self.conversation.push(Message::assistant(String::new(), calls));
        }
    }

    fn end_workflow(&mut self, value: Json) {
        let text = match &value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        let checked = self.spec.returns.as_ref().map(|schema| answer::check(value.clone(), schema));
        if text.trim().is_empty() || matches!(checked, Some(Err(_))) {
            let wrong = checked.and_then(Result::err).map_or_else(String::new, |wrong| format!(": {wrong}"));
            let message = match text.trim().is_empty() {
                true => "the workflow returned an empty answer".to_owned(),
                false => format!("the result of the workflow does not match its type{wrong}"),
            };
            return self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::Answer, message }));
        }
        let value = match (&self.spec.returns, value) {
            (None, Json::String(_)) => None,
            (_, value) => Some(value),
        };
        // The results of the calls come before the answer.
        self.end(RunOutcome::Answer { text: text.clone(), value, finish: FinishReason::Stop });
        self.conversation.push(Message::assistant(text, Vec::new()));
    }

    fn evaluate(&self) -> Evaluation {
        let Some(plan) = &self.spec.workflow else { return Evaluation::default() };
        let input = match self.new_messages().next() {
            Some(Message::User { text, .. }) => text.as_str(),
            _ => "",
        };
        // Ids are unique in a conversation, which may have earlier runs of the same workflow.
        let suffix = if self.begin == 0 { String::new() } else { format!("@{}", self.begin) };
        let results: HashMap<&str, &ToolOutcome> = self.slots().iter().filter_map(Slot::outcome).collect();
        plan.evaluate(input, &suffix, &|id| results.get(id).copied())
    }

    fn has_slot(&self, id: &str) -> bool {
        self.slots().iter().any(|slot| slot.id() == id)
    }

    /// Returns the JSON Schema of what a person is asked for with a call, or `None` if it is a text.
    pub(crate) fn answer_schema(&self, call: &PendingCall) -> Option<&Json> {
        if call.target != CallTarget::Person {
            return None;
        }
        let steps = self.spec.workflow.iter().flat_map(|plan| &plan.steps);
        steps.filter(|step| step.name == call.tool).find_map(|step| match &step.action {
            Action::Ask { returns, .. } => returns.as_ref(),
            Action::Call { .. } | Action::Each { .. } | Action::Give { .. } => None,
        })
    }

    /// Returns what a person answered as a value of the type that the step declares, or what is wrong with it.
    pub(super) fn read_answer(&self, call: &PendingCall, outcome: ToolOutcome) -> Result<ToolOutcome, RunError> {
        let (CallTarget::Person, ToolOutcome::Value { value }) = (&call.target, &outcome) else { return Ok(outcome) };
        let read = answer::read_person_answer(value, self.answer_schema(call));
        read.map(|value| ToolOutcome::Value { value })
            .map_err(|message| RunError::WrongAnswer { id: call.id.clone(), message })
    }
}
