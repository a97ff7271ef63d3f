//! Runs without their contents.

use super::call::Slot;
use super::{FailureKind, PendingCall, Run, RunFailure, RunInput, RunOutcome, RunSpec, RunStart, State};
use crate::message::conversation::{Conversation, Usage};
use crate::message::redact::{REDACTED, redact_attachments, redact_text};

/// What is the same of a run without its contents.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunShape {
    /// The calls that wait for results, and whether each waits for somebody's approval; `None` if there are none.
    open: Option<Vec<(String, bool)>>,
    /// How it ended.
    end: Option<(&'static str, Option<FailureKind>)>,
    messages: usize,
    model_calls: u32,
    tool_calls: u64,
    usage: Usage,
}

impl Run {
    /// Replaces everything that somebody said, a tool returned or an error told.
    pub(crate) fn redact(&mut self) {
        self.spec.redact();
        let messages = self.conversation.iter().cloned().map(|mut message| {
            message.redact();
            message
        });
        self.conversation = messages.collect::<Conversation>();
        match &mut self.state {
            State::Model | State::Compact => {}
            State::Tools(slots) => slots.iter_mut().for_each(Slot::redact),
            State::Done(outcome) => outcome.redact(),
        }
    }

    /// Returns what redacting does not change.
    pub(crate) fn shape(&self) -> RunShape {
        let open = match &self.state {
            State::Tools(slots) => Some(
                slots
                    .iter()
                    .filter(|slot| !slot.is_closed())
                    .map(|slot| (slot.id().to_owned(), matches!(slot, Slot::AwaitingApproval { .. }))),
            ),
            State::Model | State::Compact | State::Done(_) => None,
        };
        let end = self.outcome().map(|outcome| match outcome {
            RunOutcome::Answer { .. } => ("answer", None),
            RunOutcome::Failed(failure) => ("failed", Some(failure.kind)),
            RunOutcome::Cancelled => ("cancelled", None),
        });
        RunShape {
            open: open.map(Iterator::collect),
            end,
            messages: self.conversation.len(),
            model_calls: self.model_calls,
            tool_calls: self.tool_calls,
            usage: self.usage,
        }
    }
}

impl RunSpec {
    /// Removes what a client added, and what decides by contents: the form of answers and of the input, and the plan of a
    /// workflow.
    fn redact(&mut self) {
        self.returns = None;
        self.takes = None;
        self.workflow = None;
        self.client = None;
        self.context = super::ContextSpec::default();
    }
}

impl RunStart {
    /// Replaces the input.
    pub(crate) fn redact(&mut self) {
        self.spec.redact();
        redact_text(&mut self.input);
        redact_attachments(&mut self.attachments);
    }
}

impl Slot {
    fn redact(&mut self) {
        match self {
            Slot::AwaitingApproval { call, because } => {
                call.redact();
                redact_text(because);
            }
            Slot::Open(call) => call.redact(),
            Slot::Closed { outcome, .. } => outcome.redact(),
        }
    }
}

impl PendingCall {
    fn redact(&mut self) {
        self.arguments = serde_json::json!({ "redacted": true });
    }
}

impl RunOutcome {
    fn redact(&mut self) {
        match self {
            RunOutcome::Answer { text, value, .. } => {
                redact_text(text);
                if let Some(value) = value {
                    *value = REDACTED.into();
                }
            }
            RunOutcome::Failed(failure) => failure.redact(),
            RunOutcome::Cancelled => {}
        }
    }
}

impl RunFailure {
    fn redact(&mut self) {
        redact_text(&mut self.message);
    }
}

impl RunInput {
    /// Replaces everything that somebody said, a tool returned or an error told. Times, tokens and costs stay.
    pub(crate) fn redact(&mut self) {
        match self {
            RunInput::ModelReplied { reply, rulings, .. } => {
                reply.redact();
                rulings.iter_mut().for_each(|ruling| redact_text(&mut ruling.because));
            }
            RunInput::StepsPlanned { calls, rulings, .. } => {
                calls.iter_mut().for_each(|planned| planned.call.redact());
                rulings.iter_mut().for_each(|ruling| redact_text(&mut ruling.because));
            }
            RunInput::ReplyInterrupted { text } => redact_text(text),
            RunInput::ModelFailed { failure, .. } | RunInput::LimitReached { failure, .. } => failure.redact(),
            RunInput::CallFinished { outcome, .. } => outcome.redact(),
            RunInput::CallRefused { reason, .. } => redact_text(reason),
            RunInput::FellBack { because, .. } => redact_text(because),
            RunInput::ContextExceeded { message, .. } => redact_text(message),
            RunInput::Compacted { compaction, .. } => compaction.redact(),
            RunInput::CallStarted { .. }
            | RunInput::CallApproved { .. }
            | RunInput::Cancelled { .. }
            | RunInput::Charged { .. }
            | RunInput::ClockTicked { .. }
            | RunInput::LimitsChanged { .. }
            | RunInput::Resumed { .. } => {}
        }
    }
}
