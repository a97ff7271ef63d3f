//! Derives the events of a run from its inputs, so that a live run and the playback of its recording emit the same.

use super::{FailureReport, INTERRUPTED, RunEventKind};
use crate::message::conversation::{Message, ToolCall};
use crate::message::request::{Delta, FinishReason, Reply};
use crate::run::{Run, RunInput, RunOutcome, Step};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// The events emitted for one run so far.
#[derive(Debug, Default)]
pub struct EventLog {
    model: String,
    bindings: String,
    /// How many messages of the conversation were searched for results without an event.
    seen_messages: usize,
    /// The calls whose end was emitted.
    finished_calls: HashSet<String>,
    /// The call that approval was requested for.
    asked_call: Option<String>,
    /// The number of the last model call that was emitted.
    model_call: u32,
    /// Whether a piece of the current reply's text was emitted.
    has_text: AtomicBool,
    /// Whether a piece of its reasoning was emitted.
    has_thought: AtomicBool,
    is_finished: bool,
}

impl EventLog {
    /// Returns the events of a run with a model and a hash of its bindings, before any of them.
    pub fn new(model: &str, bindings: &str) -> Self {
        Self { model: model.to_owned(), bindings: bindings.to_owned(), ..Self::default() }
    }

    /// Returns the events of a run that starts.
    pub fn start(&mut self, run: &Run) -> Vec<RunEventKind> {
        self.seen_messages = run.conversation().len();
        self.finished_calls = run.finished_call_ids().map(str::to_owned).collect();
        let mut events = vec![RunEventKind::Started {
            model: self.model(run),
            bindings: self.bindings.clone(),
            is_structured: run.spec().returns.is_some(),
        }];
        self.advance(run, &mut events);
        events
    }

    /// Returns the model that the run calls.
    fn model(&self, run: &Run) -> String {
        run.fallback().unwrap_or(&self.model).to_owned()
    }

    /// Returns the event of a piece of a reply.
    pub fn piece(&self, delta: Delta) -> Option<RunEventKind> {
        match delta {
            Delta::Text { text } => {
                self.has_text.store(true, Ordering::Relaxed);
                Some(RunEventKind::Text { text })
            }
            Delta::Thought { text } => {
                self.has_thought.store(true, Ordering::Relaxed);
                Some(RunEventKind::Thought { text })
            }
            Delta::Waiting { seconds, because } => Some(RunEventKind::Waiting { seconds, because }),
            Delta::Call { .. } | Delta::Arguments { .. } => None,
        }
    }

    /// Returns the events of an input that the run just received.
    pub fn input(&mut self, run: &Run, input: &RunInput) -> Vec<RunEventKind> {
        let mut events = Vec::new();
        match input {
            RunInput::ModelReplied { reply, .. } => {
                // The reasoning and the text of a reply that was not streamed are one event each.
                if !self.has_thought.load(Ordering::Relaxed) && !reply.thought.is_empty() {
                    events.push(RunEventKind::Thought { text: reply.thought.clone() });
                }
                if !self.has_text.load(Ordering::Relaxed) && !reply.text.is_empty() {
                    events.push(RunEventKind::Text { text: reply.text.clone() });
                }
                events.push(RunEventKind::Replied {
                    model: self.model(run),
                    usage: reply.usage,
                    calls: reply.calls.len(),
                    finish: reply.finish.name().to_owned(),
                });
                events.extend(incomplete(reply));
            }
            RunInput::ReplyInterrupted { text } if !text.trim().is_empty() => {
                events.push(RunEventKind::Incomplete {
                    finish: INTERRUPTED.to_owned(),
                    message: "the reply was interrupted; the part that was received is kept".to_owned(),
                });
            }
            RunInput::CallStarted { call_id, .. } => {
                let call = run.started_calls().find(|call| call.id == *call_id);
                events.extend(call.map(|call| RunEventKind::ToolStarted {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                    arguments: call.arguments.clone(),
                }));
            }
            RunInput::CallFinished { call_id, outcome, duration_ms, usage, model_calls, .. } => {
                // The replies to a called agent are events of its own run.
                if *model_calls > 0 && !run.is_workflow() {
                    events.push(RunEventKind::Sampled {
                        call_id: call_id.clone(),
                        model: self.model(run),
                        model_calls: *model_calls,
                        usage: *usage,
                    });
                }
                let calls = run.conversation().iter().rev().flat_map(Message::calls);
                let tool = calls.into_iter().find(|call: &&ToolCall| call.id == *call_id).map(|call| call.tool.clone());
                events.push(RunEventKind::ToolFinished {
                    call_id: call_id.clone(),
                    tool: tool.unwrap_or_default(),
                    outcome: outcome.clone(),
                    duration_ms: *duration_ms,
                    unstarted: None,
                });
                self.finished_calls.insert(call_id.clone());
            }
            RunInput::FellBack { from, to, because, .. } => {
                events.push(RunEventKind::FellBack { from: from.clone(), to: to.clone(), because: because.clone() });
            }
            RunInput::Compacted {
                compaction: Message::Compacted { summary, kept_from, result_chars }, usage, ..
            } => {
                events.push(RunEventKind::Compacted {
                    model: self.model(run),
                    left_out: *kept_from,
                    summary: summary.clone(),
                    result_chars: *result_chars,
                    usage: *usage,
                });
            }
            RunInput::Charged { interrupted: true, .. } => {
                events.push(RunEventKind::CostUnknown { model: self.model(run) });
            }
            RunInput::Resumed { .. } => {
                *self = Self::new(&self.model, &self.bindings);
                return self.start(run);
            }
            RunInput::StepsPlanned { .. }
            | RunInput::ReplyInterrupted { .. }
            | RunInput::ModelFailed { .. }
            | RunInput::CallApproved { .. }
            | RunInput::CallRefused { .. }
            | RunInput::Cancelled { .. }
            | RunInput::Charged { .. }
            | RunInput::LimitReached { .. }
            | RunInput::ContextExceeded { .. }
            | RunInput::Compacted { .. }
            | RunInput::LimitsChanged { .. }
            | RunInput::ClockTicked { .. } => {}
        }
        self.advance(run, &mut events);
        events
    }

    /// Returns the event of a run that has ended.
    pub fn finished(run: &Run) -> RunEventKind {
        let response = run.response();
        RunEventKind::Finished {
            error: FailureReport::from_run(run),
            finish: response.finish.as_ref().map(|finish| finish.name().to_owned()),
            model_calls: run.model_calls(),
            response,
            usage: run.usage(),
        }
    }

    /// Returns the events of a run that failed for a reason outside of it.
    pub fn failure(&mut self, run: &Run) -> Vec<RunEventKind> {
        let mut events = Vec::new();
        self.advance(run, &mut events);
        events
    }

    /// Adds the events of calls that ended without starting (refused, cancelled, or of unknown tools), and then the event
    /// of the next step.
    fn advance(&mut self, run: &Run, events: &mut Vec<RunEventKind>) {
        for message in run.conversation().since(self.seen_messages) {
            if let Message::Tool { call_id, tool, outcome } = message
                && !self.finished_calls.contains(call_id)
            {
                events.push(RunEventKind::ToolFinished {
                    call_id: call_id.clone(),
                    tool: tool.clone(),
                    outcome: outcome.clone(),
                    duration_ms: 0,
                    unstarted: Some(arguments(run, call_id)),
                });
            }
        }
        self.seen_messages = run.conversation().len();
        match run.step() {
            Step::CallModel { .. } if self.model_call <= run.model_calls() => {
                self.model_call = run.model_calls() + 1;
                self.has_text.store(false, Ordering::Relaxed);
                self.has_thought.store(false, Ordering::Relaxed);
                events.push(RunEventKind::ModelCalled { number: self.model_call });
            }
            Step::AskApproval { calls } => {
                let question = calls.first().filter(|question| self.asked_call.as_ref() != Some(&question.call.id));
                events.extend(question.map(|question| RunEventKind::Asked {
                    call_id: question.call.id.clone(),
                    tool: question.call.tool.clone(),
                    arguments: question.call.arguments.clone(),
                    because: question.because.to_owned(),
                }));
                self.asked_call = calls.first().map(|question| question.call.id.clone());
            }
            Step::Done(outcome) if !self.is_finished => {
                self.is_finished = true;
                // Nothing else says what a workflow answers.
                if let (true, RunOutcome::Answer { text, .. }) = (run.is_workflow(), outcome) {
                    events.push(RunEventKind::Text { text: text.clone() });
                }
                events.push(Self::finished(run));
            }
            Step::CallModel { .. }
            | Step::Compact
            | Step::Plan
            | Step::CallTools { .. }
            | Step::AwaitClient { .. }
            | Step::Done(_) => {}
        }
    }
}

/// Returns the arguments of a call as the model wrote them.
fn arguments(run: &Run, call_id: &str) -> String {
    let calls = run.conversation().iter().rev().flat_map(Message::calls);
    calls.into_iter().find(|call| call.id == call_id).map(|call| call.arguments.clone()).unwrap_or_default()
}

/// Returns the event of a reply that is not complete. Without text and calls it is an error, which ends the run.
fn incomplete(reply: &Reply) -> Option<RunEventKind> {
    let is_empty = reply.text.trim().is_empty() && reply.calls.is_empty();
    let why = reply.finish.incompleteness().filter(|_| !is_empty)?;
    let message = match reply.finish {
        _ if reply.finish.cuts_off() && !reply.calls.is_empty() => format!("{why}; its last call is not made"),
        FinishReason::Length => format!("{why}; `maxTokens` sets it"),
        _ => why,
    };
    Some(RunEventKind::Incomplete { finish: reply.finish.name().to_owned(), message })
}
