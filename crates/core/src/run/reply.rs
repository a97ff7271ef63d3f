//! What the model says, and what becomes of it.

use super::call::{PendingCall, Ruling, Slot};
use super::save::{DEEPEST, is_too_deep};
use super::{Failure, FailureKind, MAX_CALLS_IN_REPLY, Run, RunError, RunOutcome, State, Target, answer};
use crate::message::conversation::{self, Message, ToolCall};
use crate::message::request::{Finish, Reply};
use crate::permission::Decision;
use crate::text::nearest;
use std::collections::HashSet;

impl Run {
    /// Tells what the model said. Each call that it wants to make, and that can be made, is decided on at once.
    pub fn reply(&mut self, reply: Reply, now: u64, decide: &dyn Fn(&PendingCall) -> Ruling) -> Result<(), RunError> {
        self.model_answered(now)?;
        self.usage += reply.usage;
        if reply.finish == Finish::Malformed {
            // Nothing in it can be trusted, so it stays out of the conversation. It counts all the same.
            self.call_model();
        } else if reply.opaque.as_ref().is_some_and(|opaque| is_too_deep(&opaque.data)) {
            let message = format!("the reply of the model nests deeper than {DEEPEST} levels");
            self.end(RunOutcome::Failed(Failure { kind: FailureKind::Model, message }));
        } else if reply.calls.is_empty() {
            self.answer(reply);
        } else {
            self.calls(reply, decide);
        }
        Ok(())
    }

    /// Tells that the model could not be called, or not to the end. The run ends; trying again is up to whoever calls
    /// the model, before this is told.
    pub fn model_failed(&mut self, failure: Failure, now: u64) -> Result<(), RunError> {
        self.model_answered(now)?;
        self.end(RunOutcome::Failed(failure));
        Ok(())
    }

    fn model_answered(&mut self, now: u64) -> Result<(), RunError> {
        match &self.state {
            State::Model => {}
            State::Tools(_) => return Err(RunError::NoModelCall),
            State::Done(_) => return Err(RunError::Over),
        }
        self.at(now);
        self.model_calls = self.model_calls.saturating_add(1);
        Ok(())
    }

    fn calls(&mut self, mut reply: Reply, decide: &dyn Fn(&PendingCall) -> Ruling) {
        make_unique(&mut reply.calls, &self.conversation);
        self.tool_calls = self.tool_calls.saturating_add(reply.calls.len() as u64);
        let too_many = self.spec.limits.max_tool_calls.filter(|most| self.tool_calls > *most);
        let slots = reply.calls.iter().enumerate().map(|(index, call)| {
            let pending = match too_many {
                Some(_) => Err(conversation::ToolOutcome::Cancelled),
                None if index >= MAX_CALLS_IN_REPLY => {
                    let message = format!("only {MAX_CALLS_IN_REPLY} calls of one reply are made");
                    Err(conversation::ToolOutcome::Error { message })
                }
                None => self.pending(call, &reply.finish),
            };
            match pending {
                Ok(pending) => decided(pending, decide),
                Err(outcome) => Slot::Closed { id: call.id.clone(), tool: call.tool.clone(), outcome },
            }
        });
        self.state = State::Tools(slots.collect());
        self.conversation.push(reply.message());
        match too_many {
            Some(most) => {
                let asked = self.tool_calls;
                let message = format!("the model asked for {asked} calls of tools, and {most} are allowed");
                self.end(RunOutcome::Failed(Failure { kind: FailureKind::ToolCalls, message }));
            }
            None => self.settle(),
        }
    }

    /// Returns the call, or what the model is told instead.
    fn pending(&self, call: &ToolCall, finish: &Finish) -> Result<PendingCall, conversation::ToolOutcome> {
        let error = |message| conversation::ToolOutcome::Error { message };
        let ToolCall { id, tool, .. } = call;
        let target = self.spec.target(tool).ok_or_else(|| error(self.unknown(tool)))?;
        let arguments = call.parsed().map_err(|wrong| {
            let cut = if *finish == Finish::Length { "; they are cut off, as the reply was too long" } else { "" };
            error(format!("the arguments of `{tool}` are not JSON: {wrong}{cut}"))
        })?;
        if is_too_deep(&arguments) {
            return Err(error(format!("the arguments of `{tool}` nest deeper than {DEEPEST} levels")));
        }
        if let (Target::Agent { name }, 0) = (target, self.spec.limits.max_depth) {
            return Err(error(format!("the agent `{name}` is not called, as too many agents called one another")));
        }
        let (id, tool, target) = (id.clone(), tool.clone(), target.clone());
        Ok(PendingCall { id, tool, arguments, target, approved: false, started: false })
    }

    fn unknown(&self, tool: &str) -> String {
        const MOST: usize = 20;
        let names = || self.spec.tools.iter().map(|callable| callable.name.as_str());
        if let Some(near) = nearest(tool, names()) {
            return format!("there is no tool `{tool}`; did you mean `{near}`?");
        }
        let some: Vec<_> = names().take(MOST).map(|name| format!("`{name}`")).collect();
        match names().count() {
            0 => format!("there is no tool `{tool}`; there are no tools"),
            count if count > MOST => format!("there is no tool `{tool}`; some of the tools are {}", some.join(", ")),
            _ => format!("there is no tool `{tool}`; the tools are {}", some.join(", ")),
        }
    }

    fn answer(&mut self, reply: Reply) {
        if reply.text.trim().is_empty() {
            // What says nothing stays out of the conversation: some providers refuse to have it back.
            let message = silence(&reply.finish);
            return self.end(RunOutcome::Failed(Failure { kind: FailureKind::Model, message }));
        }
        let read = self.spec.returns.as_ref().map(|schema| answer::read(&reply.text, schema));
        let (text, finish) = (reply.text.clone(), reply.finish.clone());
        self.conversation.push(reply.message());
        match read.transpose() {
            Ok(value) => self.end(RunOutcome::Answer { text, value, finish }),
            Err(wrong) => self.retry_answer(&wrong),
        }
    }

    fn retry_answer(&mut self, wrong: &str) {
        let last = if self.answer_retries >= self.spec.limits.max_answer_retries {
            let message = "the answer has not the form that it must have".to_owned();
            Some(Failure { kind: FailureKind::Answer, message })
        } else {
            self.limit()
        };
        if let Some(Failure { kind, message }) = last {
            return self.end(RunOutcome::Failed(Failure { kind, message: format!("{message}: {wrong}") }));
        }
        self.answer_retries += 1;
        // Only what a person says is read by every model as something to follow, so it goes as such.
        let complaint = "this answer has not the form that it must have";
        let please = "answer again, with nothing but the JSON that was asked for";
        self.conversation.push(Message::user(format!("{complaint}: {wrong}; {please}")));
        self.state = State::Model;
    }
}

fn decided(call: PendingCall, decide: &dyn Fn(&PendingCall) -> Ruling) -> Slot {
    let Ruling { decision, because } = decide(&call);
    match decision {
        Decision::Allow => Slot::Open(call),
        Decision::Ask => Slot::Asking { call, because },
        Decision::Deny => {
            let outcome = conversation::ToolOutcome::Denied { message: because };
            Slot::Closed { id: call.id, tool: call.tool, outcome }
        }
    }
}

/// Gives calls other names where they have none, or one that another call has: results are told by them.
fn make_unique(calls: &mut [ToolCall], conversation: &[Message]) {
    let before = conversation.iter().flat_map(Message::calls);
    let mut used: HashSet<String> = before.map(|call| call.id.clone()).collect();
    // The number only grows, so that many calls of one name take no more than linear time.
    let mut number = 1u64;
    for call in calls {
        if call.id.trim().is_empty() {
            call.id = "call".to_owned();
        }
        let name = call.id.clone();
        while !used.insert(call.id.clone()) {
            number += 1;
            call.id = format!("{name}-{number}");
        }
    }
}

/// Says why there is neither text nor a call.
fn silence(finish: &Finish) -> String {
    match finish {
        Finish::Stop | Finish::Malformed => "the model gave an empty answer".to_owned(),
        Finish::Length => "the model used up its `maxTokens` before it said anything".to_owned(),
        Finish::Filtered => "the provider held the answer back".to_owned(),
        Finish::Refused => "the model refused to answer".to_owned(),
        Finish::Other(why) => format!("the model gave no answer: it stopped with `{why}`"),
    }
}
