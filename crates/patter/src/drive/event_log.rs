//! What is heard of a run, by what it is told: the same while it is driven, and when its recording is played.

use super::{RunEventKind, RunFailure};
use patter_core::message::conversation::{Message, ToolCall};
use patter_core::message::request::Delta;
use patter_core::run::{Run, RunInput, Step};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// What was heard of one run.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    model: String,
    bindings: String,
    /// How much of the conversation was looked at for results that nobody heard of.
    read: usize,
    /// The calls whose end was heard.
    ended: HashSet<String>,
    /// The call that someone is asked about.
    asked: Option<String>,
    /// The call of the model that was heard of.
    called: u32,
    /// Whether a piece of the text of this reply was heard.
    has_text: AtomicBool,
    is_over: bool,
}

impl EventLog {
    pub(crate) fn new(model: &str, bindings: &str) -> Self {
        Self { model: model.to_owned(), bindings: bindings.to_owned(), ..Self::default() }
    }

    /// Returns what is heard when a run begins.
    pub(crate) fn began(&mut self, run: &Run) -> Vec<RunEventKind> {
        self.read = run.conversation().len();
        self.ended = run.closed_calls().map(str::to_owned).collect();
        let mut heard = vec![RunEventKind::Started { model: self.model.clone(), bindings: self.bindings.clone() }];
        self.next(run, &mut heard);
        heard
    }

    /// Returns what is heard of a piece of a reply.
    pub(crate) fn piece(&self, delta: Delta) -> Option<RunEventKind> {
        match delta {
            Delta::Text { text } => {
                self.has_text.store(true, Ordering::Relaxed);
                Some(RunEventKind::Text { text })
            }
            Delta::Thought { text } => Some(RunEventKind::Thought { text }),
            Delta::Waiting { seconds, because } => Some(RunEventKind::Waiting { seconds, because }),
            Delta::Call { .. } | Delta::Arguments { .. } => None,
        }
    }

    /// Returns what is heard of something that the run was just told.
    pub(crate) fn input(&mut self, run: &Run, input: &RunInput) -> Vec<RunEventKind> {
        let mut heard = Vec::new();
        match input {
            RunInput::Reply { reply, .. } => {
                // A reply that came as a whole is heard as a whole.
                if !self.has_text.load(Ordering::Relaxed) && !reply.text.is_empty() {
                    heard.push(RunEventKind::Text { text: reply.text.clone() });
                }
                let (model, usage, calls) = (self.model.clone(), reply.usage, reply.calls.len());
                heard.push(RunEventKind::Replied { model, usage, calls });
            }
            RunInput::Started { call_id } => {
                let call = run.under_way().find(|call| call.id == *call_id);
                heard.extend(call.map(|call| RunEventKind::ToolStarted {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                    arguments: call.arguments.clone(),
                }));
            }
            RunInput::Finished { call_id, outcome, duration_ms, .. } => {
                let calls = run.conversation().iter().rev().flat_map(Message::calls);
                let tool = calls.into_iter().find(|call: &&ToolCall| call.id == *call_id).map(|call| call.tool.clone());
                heard.push(RunEventKind::ToolFinished {
                    call_id: call_id.clone(),
                    tool: tool.unwrap_or_default(),
                    outcome: outcome.clone(),
                    duration_ms: *duration_ms,
                });
                self.ended.insert(call_id.clone());
            }
            RunInput::Resumed { .. } => {
                *self = Self::new(&self.model, &self.bindings);
                return self.began(run);
            }
            RunInput::ModelFailed { .. }
            | RunInput::Approved { .. }
            | RunInput::Refused { .. }
            | RunInput::Cancelled { .. }
            | RunInput::Limited { .. }
            | RunInput::Tick { .. } => {}
        }
        self.next(run, &mut heard);
        heard
    }

    /// Returns what is heard of a run that ended for a reason that lies outside of it.
    pub(crate) fn failed(&mut self, run: &Run) -> Vec<RunEventKind> {
        let mut heard = Vec::new();
        self.next(run, &mut heard);
        heard
    }

    /// Adds the calls that ended without having begun: refused, of tools that do not exist, or cancelled. Then what
    /// is next.
    fn next(&mut self, run: &Run, heard: &mut Vec<RunEventKind>) {
        for message in run.conversation().get(self.read..).unwrap_or_default() {
            if let Message::Tool { call_id, tool, outcome } = message
                && !self.ended.contains(call_id)
            {
                let (call_id, tool, outcome) = (call_id.clone(), tool.clone(), outcome.clone());
                heard.push(RunEventKind::ToolFinished { call_id, tool, outcome, duration_ms: 0 });
            }
        }
        self.read = run.conversation().len();
        match run.step() {
            Step::CallModel { .. } if self.called <= run.model_calls() => {
                self.called = run.model_calls() + 1;
                self.has_text.store(false, Ordering::Relaxed);
                heard.push(RunEventKind::ModelCalled { number: self.called });
            }
            Step::AskApproval { calls } => {
                let question = calls.first().filter(|question| self.asked.as_ref() != Some(&question.call.id));
                heard.extend(question.map(|question| RunEventKind::Asked {
                    call_id: question.call.id.clone(),
                    tool: question.call.tool.clone(),
                    arguments: question.call.arguments.clone(),
                    because: question.because.to_owned(),
                }));
                self.asked = calls.first().map(|question| question.call.id.clone());
            }
            Step::Done(_) if !self.is_over => {
                self.is_over = true;
                heard.push(RunEventKind::Finished {
                    error: RunFailure::of(run),
                    model_calls: run.model_calls(),
                    response: run.response(),
                    usage: run.usage(),
                });
            }
            Step::CallModel { .. } | Step::CallTools { .. } | Step::Done(_) => {}
        }
    }
}
