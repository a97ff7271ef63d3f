//! Replies of the model: answers, and requests for calls.

use super::call::{PendingCall, Ruling, Slot};
use super::save::{MAX_DEPTH, is_too_deep};
use super::{CallTarget, FailureKind, MAX_CALLS_IN_REPLY, Run, RunError, RunFailure, RunOutcome, State, answer};
use crate::message::conversation::{Conversation, Message, ToolCall, ToolOutcome};
use crate::message::request::{FinishReason, Reply};
use crate::permission::Decision;
use crate::text::{nearest, truncate};
use std::collections::HashSet;

impl Run {
    /// Processes a reply of the model. Rules on each valid call it requests right away.
    pub fn model_replied(
        &mut self,
        reply: Reply,
        now: u64,
        decide: &dyn Fn(&PendingCall) -> Ruling,
    ) -> Result<(), RunError> {
        self.count_model_call(now)?;
        self.count_context(reply.usage.input_tokens);
        self.usage += reply.usage;
        if reply.finish == FinishReason::Malformed {
            // Nothing in it can be trusted, so it is left out of the conversation. It still counts as a model call.
            self.call_model();
        } else if reply.opaque.as_ref().is_some_and(|opaque| is_too_deep(&opaque.data)) {
            let message = format!("the reply is nested more than {MAX_DEPTH} levels deep");
            self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::Model, message }));
        } else if reply.calls.is_empty() {
            self.take_answer(reply);
        } else {
            self.take_calls(reply, decide);
        }
        Ok(())
    }

    /// Records the text of a reply that was interrupted. It stays in the conversation, because people have seen it. Report
    /// afterwards how the run ends: by a failure, a cancellation or a deadline.
    pub fn reply_interrupted(&mut self, text: String) -> Result<(), RunError> {
        self.expect_reply()?;
        // Providers reject messages without text.
        if !text.trim().is_empty() {
            self.conversation.push(Message::assistant(text, Vec::new()));
        }
        Ok(())
    }

    /// Ends the run because the model call failed. Retries are up to the caller, before reporting the failure.
    pub fn model_failed(&mut self, failure: RunFailure, now: u64) -> Result<(), RunError> {
        self.count_model_call(now)?;
        self.end(RunOutcome::Failed(failure));
        Ok(())
    }

    fn count_model_call(&mut self, now: u64) -> Result<(), RunError> {
        self.expect_reply()?;
        self.advance_clock(now);
        self.model_calls = self.model_calls.saturating_add(1);
        Ok(())
    }

    pub(super) fn expect_reply(&self) -> Result<(), RunError> {
        match &self.state {
            // A log may have been written with another window.
            State::Model | State::Compact => Ok(()),
            State::Tools(_) => Err(RunError::NoModelCall),
            State::Done(_) => Err(RunError::Ended),
        }
    }

    fn take_calls(&mut self, mut reply: Reply, decide: &dyn Fn(&PendingCall) -> Ruling) {
        make_unique(&mut reply.calls, &self.conversation);
        self.tool_calls = self.tool_calls.saturating_add(reply.calls.len() as u64);
        let too_many = self.spec.limits.max_tool_calls.filter(|limit| self.tool_calls > *limit);
        let last = reply.calls.len().saturating_sub(1);
        let slots = reply.calls.iter().enumerate().map(|(index, call)| {
            // Calls are written one after the other, so only the last one can lack a part of its arguments.
            let cut_off = reply.finish.incompleteness().filter(|_| index == last && reply.finish.cuts_off());
            let pending = match too_many {
                Some(_) => Err(ToolOutcome::Cancelled),
                None if index >= MAX_CALLS_IN_REPLY => {
                    let message = format!("only the first {MAX_CALLS_IN_REPLY} calls of a reply are executed");
                    Err(ToolOutcome::Error { message })
                }
                None => self.pending(call, cut_off.as_deref()),
            };
            match pending {
                Ok(pending) => rule_on(pending, decide),
                Err(outcome) => Slot::Closed { id: call.id.clone(), tool: call.tool.clone(), outcome },
            }
        });
        self.state = State::Tools(slots.collect());
        self.conversation.push(reply.into_message());
        match too_many {
            Some(limit) => {
                let requested = self.tool_calls;
                let message = format!("the model requested {requested} tool calls (limit: {limit})");
                self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::ToolCalls, message }));
            }
            None => self.settle(),
        }
    }

    /// Returns the pending call, or the outcome that the model reads if it cannot be made. `cut_off` says why its arguments
    /// may be incomplete.
    pub(super) fn pending(&self, call: &ToolCall, cut_off: Option<&str>) -> Result<PendingCall, ToolOutcome> {
        let error = |message| ToolOutcome::Error { message };
        let tool = &call.tool;
        let target = self.spec.target(tool).ok_or_else(|| error(self.unknown_tool(tool)))?;
        let arguments = call.parse_arguments().map_err(|wrong| {
            let cut_off = cut_off.map_or_else(String::new, |why| format!("; {why}"));
            error(format!("the arguments of `{tool}` are not valid JSON: {wrong}{cut_off}"))
        })?;
        // Some providers complete the JSON of arguments that were cut off, so valid JSON proves nothing.
        if let Some(why) = cut_off {
            return Err(error(format!("`{tool}` was not called, because its arguments may be incomplete: {why}")));
        }
        if is_too_deep(&arguments) {
            return Err(error(format!("the arguments of `{tool}` are nested more than {MAX_DEPTH} levels deep")));
        }
        if let (CallTarget::Agent { name }, 0) = (target, self.spec.limits.max_depth) {
            return Err(error(format!("cannot call the agent `{name}`: agents are nested too deeply")));
        }
        Ok(PendingCall {
            id: call.id.clone(),
            tool: tool.clone(),
            arguments,
            target: target.clone(),
            approved: false,
            started: false,
            expires_at: None,
            continues: None,
        })
    }

    fn unknown_tool(&self, tool: &str) -> String {
        const MAX_LISTED: usize = 20;
        let names = || self.spec.tools.iter().map(|callable| callable.name.as_str());
        if let Some(near) = nearest(tool, names()) {
            return format!("there is no tool `{tool}`; did you mean `{near}`?");
        }
        let listed: Vec<_> = names().take(MAX_LISTED).map(|name| format!("`{name}`")).collect();
        let listed = listed.join(", ");
        match names().count() {
            0 => format!("there is no tool `{tool}`; this agent has no tools"),
            count if count > MAX_LISTED => format!("there is no tool `{tool}`; available tools include {listed}"),
            _ => format!("there is no tool `{tool}`; available tools: {listed}"),
        }
    }

    fn take_answer(&mut self, reply: Reply) {
        if reply.text.trim().is_empty() {
            // An empty reply is left out of the conversation: some providers reject it in later requests.
            let message = describe_empty_reply(&reply.finish);
            return self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::Answer, message }));
        }
        if self.spec.returns.is_some() && reply.finish.cuts_off() {
            // Valid JSON proves nothing: `12` may be the start of `123`. Another attempt would be cut off too.
            let message = describe_incomplete_answer(&reply);
            self.conversation.push(reply.into_message());
            return self.end(RunOutcome::Failed(RunFailure { kind: FailureKind::Answer, message }));
        }
        let parsed = self.spec.returns.as_ref().map(|schema| answer::parse(&reply.text, schema));
        let text = reply.text.clone();
        let finish = reply.finish.clone();
        self.conversation.push(reply.into_message());
        match parsed.transpose() {
            Ok(value) => self.end(RunOutcome::Answer { text, value, finish }),
            Err(wrong) => self.retry_answer(&wrong),
        }
    }

    fn retry_answer(&mut self, wrong: &str) {
        let last = if self.answer_retries >= self.spec.limits.max_answer_retries {
            let message = "the answer does not match the required schema".to_owned();
            Some(RunFailure { kind: FailureKind::Answer, message })
        } else {
            self.limit_failure()
        };
        if let Some(RunFailure { kind, message }) = last {
            return self.end(RunOutcome::Failed(RunFailure { kind, message: format!("{message}: {wrong}") }));
        }
        self.answer_retries += 1;
        // Every model follows instructions in user messages, so the complaint is sent as one.
        let complaint = "this answer does not match the required schema";
        let request = "answer again with only the requested JSON";
        self.conversation.push(Message::user(format!("{complaint}: {wrong}; {request}")));
        self.state = self.model_state();
    }
}

pub(super) fn rule_on(call: PendingCall, decide: &dyn Fn(&PendingCall) -> Ruling) -> Slot {
    let Ruling { decision, because } = decide(&call);
    match decision {
        Decision::Allow => Slot::Open(call),
        Decision::Ask => Slot::AwaitingApproval { call, because },
        Decision::Deny => {
            let outcome = ToolOutcome::Denied { message: because };
            Slot::Closed { id: call.id, tool: call.tool, outcome }
        }
    }
}

/// Replaces missing and duplicate call ids, since results refer to calls by id.
fn make_unique(calls: &mut [ToolCall], conversation: &Conversation) {
    let mut used = HashSet::with_capacity(calls.len());
    // The number only grows, so that many calls with the same id take linear time.
    let mut number = 1u64;
    for call in calls {
        if call.id.trim().is_empty() {
            call.id = "call".to_owned();
        }
        let base = call.id.clone();
        while conversation.has_call(&call.id) || !used.insert(call.id.clone()) {
            number += 1;
            call.id = format!("{base}-{number}");
        }
    }
}

/// Describes why a structured answer is not usable.
fn describe_incomplete_answer(reply: &Reply) -> String {
    const MAX_REFUSAL_CHARS: usize = 300;
    let why = reply.finish.incompleteness().unwrap_or_default();
    match reply.finish {
        FinishReason::Length => format!("{why}, so there is no complete answer; raise `maxTokens`"),
        FinishReason::Refused => format!("{why}: {}", truncate(reply.text.trim(), MAX_REFUSAL_CHARS)),
        _ => format!("{why}, so there is no complete answer"),
    }
}

/// Describes why a reply has neither text nor calls.
fn describe_empty_reply(finish: &FinishReason) -> String {
    match finish {
        FinishReason::Stop | FinishReason::Malformed => "the model returned an empty answer".to_owned(),
        FinishReason::Length => "the model reached `maxTokens` before producing any text".to_owned(),
        FinishReason::Filtered => "the provider withheld the answer".to_owned(),
        FinishReason::Refused => "the model refused to answer".to_owned(),
        FinishReason::Other(why) => format!("the model returned no answer: it stopped with `{why}`"),
    }
}
