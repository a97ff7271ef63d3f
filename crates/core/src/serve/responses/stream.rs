//! Responses as they grow: events of a run to items and to events of a stream.

use super::id::approval_id;
use super::response::{ResponseMeta, Status};
use crate::event::{RunEvent, RunEventKind};
use crate::message::conversation::ToolOutcome;
use crate::serve::chat::call_id;
use crate::serve::read::set;
use crate::serve::{ApiError, ApiErrorKind, TurnEnd, TurnOutcome, Waiting};
use serde_json::{Value as Json, json};
use std::collections::HashSet;

/// A response that grows with the events of a run. Each text that it returns is a server-sent event.
///
/// The number of an event depends only on what precedes it in the response and not on the pieces in which a text arrived, so a
/// stream can be continued after any event, even from the log. A piece of text has the number of its last character.
///
/// ```
/// use patter_core::event::{RunEvent, RunEventKind};
/// use patter_core::run::ClientAdditions;
/// use patter_core::serve::responses::{ResponseId, ResponseMeta, ResponseStream};
/// use serde_json::json;
///
/// let meta = ResponseMeta {
///     id: ResponseId::new("monday", 1),
///     created_at: 0,
///     model: "greeter".into(),
///     is_stored: true,
///     background: false,
///     previous: None,
///     client: ClientAdditions::default(),
///     format: json!({"type": "text"}),
///     metadata: json!({}),
/// };
/// let mut stream = ResponseStream::new(meta);
/// assert!(stream.start()[0].starts_with("event: response.created\ndata: {\"type\":\"response.created\""));
/// let kind = RunEventKind::Text { text: "Hello".into() };
/// let events = stream.event(&RunEvent::new("greeter", &vec![], kind));
/// assert!(events[0].starts_with("event: response.output_item.added\n"));
/// assert!(events[2].contains(r#""delta":"Hello""#));
/// assert_eq!(stream.snapshot()["status"], "in_progress");
/// ```
#[derive(Debug, Clone)]
pub struct ResponseStream {
    meta: ResponseMeta,
    /// Whether the answer is a value: then only the answer is a message, and not what the model says on the way.
    is_structured: bool,
    /// The last event that the client has.
    after: Option<u64>,
    /// The number of the next event.
    next: u64,
    /// The items that are complete, and the one that is not.
    output: Vec<Json>,
    message: Option<String>,
    started: HashSet<String>,
    status: Status,
}

impl ResponseStream {
    /// Returns a response before its first event.
    pub fn new(meta: ResponseMeta) -> Self {
        Self {
            meta,
            is_structured: false,
            after: None,
            next: 0,
            output: Vec::new(),
            message: None,
            started: HashSet::new(),
            status: Status::in_progress(),
        }
    }

    /// Sends only the answer, because it is a value.
    #[must_use]
    pub fn with_structured_answer(mut self, is_structured: bool) -> Self {
        self.is_structured = is_structured;
        self
    }

    /// Leaves out the events that the client has, of which this is the last.
    #[must_use]
    pub fn starting_after(mut self, after: Option<u64>) -> Self {
        self.after = after;
        self
    }

    /// Returns the first events.
    pub fn start(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        for name in ["response.created", "response.in_progress"] {
            let response = self.snapshot();
            self.send(&mut sent, name, json!({ "response": response }));
        }
        sent
    }

    /// Returns the events that follow from an event of the run.
    pub fn event(&mut self, event: &RunEvent) -> Vec<String> {
        let mut sent = Vec::new();
        if !event.run.is_empty() {
            return sent;
        }
        match &event.kind {
            RunEventKind::Text { text } if !self.is_structured && !text.is_empty() => self.text(&mut sent, text),
            RunEventKind::Replied { calls, .. } => {
                self.close_message(&mut sent, if *calls > 0 { "commentary" } else { "final_answer" });
            }
            RunEventKind::ModelCalled { .. } | RunEventKind::Finished { .. } => {
                self.close_message(&mut sent, "commentary");
            }
            RunEventKind::ToolStarted { call_id, tool, arguments } => {
                self.started.insert(call_id.clone());
                self.call(&mut sent, call_id, tool, &arguments.to_string());
            }
            RunEventKind::ToolFinished { call_id, tool, outcome, unstarted, .. } => {
                if let Some(arguments) = unstarted.as_ref().filter(|_| !self.started.contains(call_id)) {
                    self.call(&mut sent, call_id, tool, arguments);
                }
                self.output(&mut sent, call_id, outcome);
            }
            _ => {}
        }
        sent
    }

    /// Returns the last events of a response whose turn ended at a time in seconds.
    pub fn end(&mut self, end: &TurnEnd, at: u64) -> Vec<String> {
        let mut sent = Vec::new();
        if let TurnOutcome::Answered { text, .. } = &end.outcome
            && self.is_structured
        {
            self.text(&mut sent, text);
        }
        self.close_message(&mut sent, "final_answer");
        for call in end.client_calls() {
            let id = call_id(Some(&self.meta.id.session), &call.call_id);
            self.call(&mut sent, &id, &call.tool, &call.arguments.to_string());
        }
        let approvals: Vec<_> = end.approvals().collect();
        if !self.meta.is_stored && !approvals.is_empty() {
            let message = "a call needs an approval, for which the response has to be stored";
            sent.extend(self.fail(&ApiError::new(ApiErrorKind::Invalid, message)));
            return sent;
        }
        for call in approvals {
            self.approval(&mut sent, call);
        }
        self.status = Status::ended(end, at);
        self.finish(&mut sent);
        sent
    }

    /// Returns the last events of a response that failed.
    pub fn fail(&mut self, error: &ApiError) -> Vec<String> {
        let mut sent = Vec::new();
        self.close_message(&mut sent, "commentary");
        self.status = Status::failed(error);
        self.finish(&mut sent);
        sent
    }

    /// Marks the response as one whose run was interrupted.
    pub fn interrupt(&mut self) {
        self.status = Status::interrupted();
    }

    /// Returns the response as it is now.
    pub fn snapshot(&self) -> Json {
        let open = self.message.as_ref().map(|text| self.message_item(self.output.len(), Some(text), "in_progress"));
        let output: Vec<_> = self.output.iter().cloned().chain(open).collect();
        self.meta.response(&self.status, &output)
    }

    fn finish(&mut self, sent: &mut Vec<String>) {
        let response = self.snapshot();
        self.send(sent, self.status.event(), json!({ "response": response }));
        sent.push("data: [DONE]\n\n".to_owned());
    }

    fn text(&mut self, sent: &mut Vec<String>, text: &str) {
        let index = self.output.len();
        let item_id = self.meta.id.item("msg", index);
        if self.message.is_none() {
            let item = self.message_item(index, None, "in_progress");
            self.send(sent, "response.output_item.added", json!({"output_index": index, "item": item}));
            let part = json!({"item_id": item_id, "output_index": index, "content_index": 0, "part": text_part("")});
            self.send(sent, "response.content_part.added", part);
            self.message = Some(String::new());
        }
        // Each character has a number.
        let count = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let known = self.after.map_or(0, |after| (after + 1).saturating_sub(self.next).min(count));
        let new: String = text.chars().skip(usize::try_from(known).unwrap_or(usize::MAX)).collect();
        self.next += count.saturating_sub(1);
        let delta =
            json!({"item_id": item_id, "output_index": index, "content_index": 0, "delta": new, "logprobs": []});
        self.send(sent, "response.output_text.delta", delta);
        self.message.get_or_insert_default().push_str(text);
    }

    fn close_message(&mut self, sent: &mut Vec<String>, phase: &str) {
        let Some(text) = self.message.take() else { return };
        let index = self.output.len();
        let base = json!({"item_id": self.meta.id.item("msg", index), "output_index": index, "content_index": 0});
        let with = |name: &str, value: Json| {
            let mut event = base.clone();
            set(&mut event, name, value);
            event
        };
        let mut done = with("text", json!(text));
        set(&mut done, "logprobs", json!([]));
        let part = with("part", text_part(&text));
        let mut item = self.message_item(index, Some(&text), "completed");
        set(&mut item, "phase", phase);
        self.send(sent, "response.output_text.done", done);
        self.send(sent, "response.content_part.done", part);
        self.send(sent, "response.output_item.done", json!({"output_index": index, "item": item}));
        self.output.push(item);
    }

    fn call(&mut self, sent: &mut Vec<String>, call_id: &str, tool: &str, arguments: &str) {
        self.close_message(sent, "commentary");
        let index = self.output.len();
        let id = self.meta.id.item("fc", index);
        let item = |arguments: &str, status: &str| {
            let name = tool.replace('/', "__");
            json!({"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments,
                "status": status})
        };
        let added = json!({"output_index": index, "item": item("", "in_progress")});
        self.send(sent, "response.output_item.added", added);
        let delta = json!({"item_id": id, "output_index": index, "delta": arguments});
        self.send(sent, "response.function_call_arguments.delta", delta);
        let done =
            json!({"item_id": id, "output_index": index, "name": tool.replace('/', "__"), "arguments": arguments});
        self.send(sent, "response.function_call_arguments.done", done);
        let item = item(arguments, "completed");
        self.send(sent, "response.output_item.done", json!({"output_index": index, "item": item}));
        self.output.push(item);
    }

    fn output(&mut self, sent: &mut Vec<String>, call_id: &str, outcome: &ToolOutcome) {
        let index = self.output.len();
        let status = if *outcome == ToolOutcome::Cancelled { "incomplete" } else { "completed" };
        let item = json!({"type": "function_call_output", "id": self.meta.id.item("fco", index), "call_id": call_id,
            "output": outcome.text(), "status": status});
        self.add(sent, item);
    }

    fn approval(&mut self, sent: &mut Vec<String>, call: &Waiting) {
        let item = json!({"type": "mcp_approval_request", "id": approval_id(&self.meta.id.session, call),
            "server_label": call.agent, "name": call.tool, "arguments": call.arguments.to_string()});
        self.add(sent, item);
    }

    /// Adds an item that is complete.
    fn add(&mut self, sent: &mut Vec<String>, item: Json) {
        let index = self.output.len();
        for name in ["response.output_item.added", "response.output_item.done"] {
            self.send(sent, name, json!({"output_index": index, "item": item}));
        }
        self.output.push(item);
    }

    fn message_item(&self, index: usize, text: Option<&str>, status: &str) -> Json {
        let content: Vec<_> = text.map(text_part).into_iter().collect();
        let id = self.meta.id.item("msg", index);
        json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": content})
    }

    fn send(&mut self, sent: &mut Vec<String>, name: &str, body: Json) {
        let number = self.next;
        self.next += 1;
        if self.after.is_some_and(|after| number <= after) {
            return;
        }
        let mut event = json!({"type": name, "sequence_number": number});
        if let (Some(members), Json::Object(body)) = (event.as_object_mut(), body) {
            members.extend(body);
        }
        sent.push(format!("event: {name}\ndata: {event}\n\n"));
    }
}

fn text_part(text: &str) -> Json {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
