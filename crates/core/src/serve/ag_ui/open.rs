//! What is under way in a run: pages require that everything that starts also ends.

use super::stream::Events;
use crate::session::RunPath;
use serde_json::json;

/// What is under way in a run.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenRun {
    /// The message of the current reply, with its text and its calls. Missing before the first reply of the segment.
    pub(super) message: Option<String>,
    /// Whether it is a workflow, whose calls are not part of a reply.
    pub(super) is_workflow: bool,
    /// Whether its text has started and not ended.
    is_text_open: bool,
    /// The reasoning that has started and not ended.
    reasoning: Option<String>,
    /// The model call that has started and not ended.
    step: Option<u32>,
}

impl OpenRun {
    /// Starts a model call, whose reply is a message.
    pub(super) fn start_reply(&mut self, events: &mut Events, run: &RunPath, number: u32, message: String) {
        self.end_reply(events, run);
        self.message = Some(message);
        self.step = Some(number);
        events.add("STEP_STARTED", run, json!({"stepName": step_name(number)}));
    }

    /// Adds a piece of text to a message.
    pub(super) fn text(&mut self, events: &mut Events, run: &RunPath, message: &str, text: &str) {
        self.end_reasoning(events, run);
        if !self.is_text_open {
            self.is_text_open = true;
            self.message = Some(message.to_owned());
            events.add("TEXT_MESSAGE_START", run, json!({"messageId": message, "role": "assistant"}));
        }
        events.add("TEXT_MESSAGE_CONTENT", run, json!({"messageId": message, "delta": text}));
    }

    pub(super) fn is_reasoning(&self) -> bool {
        self.reasoning.is_some()
    }

    /// Starts reasoning, which is a message of its own.
    pub(super) fn start_reasoning(&mut self, events: &mut Events, run: &RunPath, message: String) {
        events.add("REASONING_START", run, json!({"messageId": message}));
        events.add("REASONING_MESSAGE_START", run, json!({"messageId": message, "role": "reasoning"}));
        self.reasoning = Some(message);
    }

    /// Adds a piece of reasoning.
    pub(super) fn thought(&mut self, events: &mut Events, run: &RunPath, text: &str) {
        events.add("REASONING_MESSAGE_CONTENT", run, json!({"messageId": self.reasoning, "delta": text}));
    }

    /// Ends what is under way.
    pub(super) fn end_reply(&mut self, events: &mut Events, run: &RunPath) {
        self.end_reasoning(events, run);
        if self.is_text_open {
            self.is_text_open = false;
            events.add("TEXT_MESSAGE_END", run, json!({"messageId": self.message}));
        }
        if let Some(number) = self.step.take() {
            events.add("STEP_FINISHED", run, json!({"stepName": step_name(number)}));
        }
    }

    fn end_reasoning(&mut self, events: &mut Events, run: &RunPath) {
        if let Some(id) = self.reasoning.take() {
            events.add("REASONING_MESSAGE_END", run, json!({"messageId": id}));
            events.add("REASONING_END", run, json!({"messageId": id}));
        }
    }
}

fn step_name(number: u32) -> String {
    format!("model {number}")
}
