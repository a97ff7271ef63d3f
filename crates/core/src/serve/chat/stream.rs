//! Streamed chat completions.

use super::response::{ChatMeta, approval_text, extension, finish_reason, tool_calls, usage};
use crate::event::{RunEvent, RunEventKind};
use crate::serve::read::set;
use crate::serve::{ApiError, TurnEnd, TurnOutcome};
use serde_json::{Value as Json, json};

/// Turns the events of a run into the chunks of a stream. Each text that it returns is the data of a server-sent event.
///
/// ```
/// use patter_core::event::{RunEvent, RunEventKind};
/// use patter_core::serve::chat::{ChatMeta, ChatStream};
/// let meta = ChatMeta { id: "c1".into(), created: 0, model: "greeter".into(), session: None };
/// let mut stream = ChatStream::new(meta);
/// let first = stream.start();
/// assert!(first.contains(r#""delta":{"role":"assistant","content":""}"#), "{first}");
/// let kind = RunEventKind::Text { text: "Hello".into() };
/// let chunks = stream.event(&RunEvent::new("greeter", &vec![], kind));
/// assert!(chunks[0].contains(r#""delta":{"content":"Hello"}"#));
/// ```
#[derive(Debug, Clone)]
pub struct ChatStream {
    meta: ChatMeta,
    include_usage: bool,
    /// Whether the answer is a value: then only the answer is sent, and not what the model says on the way.
    is_structured: bool,
    sends_events: bool,
    sends_thoughts: bool,
    texts: Texts,
    /// What surrounds the delta of a chunk that neither ends the stream nor has anything else to say. It is the same for all.
    frame: Option<(String, String)>,
}

/// The texts that the model said, reply by reply.
#[derive(Debug, Clone, Default)]
struct Texts {
    /// Whether text was sent.
    has_text: bool,
    /// Whether the next piece of text starts another reply.
    is_new_reply: bool,
}

impl ChatStream {
    /// Returns the stream of a turn.
    pub fn new(meta: ChatMeta) -> Self {
        Self {
            meta,
            include_usage: false,
            is_structured: false,
            sends_events: false,
            sends_thoughts: false,
            texts: Texts::default(),
            frame: None,
        }
    }

    /// Sends the tokens used at the end.
    #[must_use]
    pub fn with_usage(mut self, include_usage: bool) -> Self {
        self.include_usage = include_usage;
        self
    }

    /// Sends only the answer, because it is a value.
    #[must_use]
    pub fn with_structured_answer(mut self, is_structured: bool) -> Self {
        self.is_structured = is_structured;
        self
    }

    /// Sends each event of the run too, as the member `patter` of an empty chunk.
    #[must_use]
    pub fn with_events(mut self, sends_events: bool) -> Self {
        self.sends_events = sends_events;
        self
    }

    /// Sends the reasoning of the model, as `reasoning_content`.
    #[must_use]
    pub fn with_thoughts(mut self, sends_thoughts: bool) -> Self {
        self.sends_thoughts = sends_thoughts;
        self
    }

    /// Returns the first chunk.
    pub fn start(&mut self) -> String {
        self.chunk(r#"{"role":"assistant","content":""}"#)
    }

    /// Returns the chunks of an event.
    pub fn event(&mut self, event: &RunEvent) -> Vec<String> {
        let mut chunks = Vec::new();
        if event.run.is_empty() {
            match &event.kind {
                RunEventKind::ModelCalled { .. } => self.texts.is_new_reply = self.texts.has_text,
                RunEventKind::Text { text } if !self.is_structured => {
                    chunks.push(self.text(text));
                }
                RunEventKind::Thought { text } if self.sends_thoughts => {
                    chunks.push(self.chunk(&format!(r#"{{"reasoning_content":{}}}"#, quoted(text))));
                }
                _ => {}
            }
        }
        let is_piece = matches!(event.kind, RunEventKind::Text { .. } | RunEventKind::Thought { .. });
        if self.sends_events && (!is_piece || !event.run.is_empty()) {
            let mut chunk = self.chunk_json(&json!({}), None);
            set(&mut chunk, "patter", json!(event));
            chunks.push(chunk.to_string());
        }
        chunks
    }

    /// Returns the chunks of the end. If the turn failed, the last one is an error, and the stream does not end regularly.
    pub fn end(&mut self, end: &TurnEnd) -> Vec<String> {
        if let Some(error) = end.error() {
            return vec![Self::error(&error)];
        }
        let mut chunks = Vec::new();
        if let TurnOutcome::Answered { text, .. } = &end.outcome
            && self.is_structured
        {
            chunks.push(self.text(text));
        }
        if let Some(text) = approval_text(end) {
            self.texts.is_new_reply = self.texts.has_text;
            chunks.push(self.text(&text));
        }
        let calls = tool_calls(&self.meta, end);
        if !calls.is_empty() {
            let indexed = calls.into_iter().enumerate().map(|(index, mut call)| {
                set(&mut call, "index", index);
                call
            });
            chunks.push(self.chunk(&json!({"tool_calls": indexed.collect::<Vec<_>>()}).to_string()));
        }
        let mut last = self.chunk_json(&json!({}), Some(finish_reason(end)));
        if let Some(patter) = extension(&self.meta, end) {
            set(&mut last, "patter", patter);
        }
        chunks.push(last.to_string());
        if self.include_usage {
            let mut chunk = self.chunk_json(&json!({}), None);
            set(&mut chunk, "choices", json!([]));
            set(&mut chunk, "usage", usage(end.usage));
            chunks.push(chunk.to_string());
        }
        chunks.push("[DONE]".to_owned());
        chunks
    }

    /// Returns the data of an error, after which the stream ends.
    pub fn error(error: &ApiError) -> String {
        error.to_json().to_string()
    }

    fn text(&mut self, text: &str) -> String {
        let separator = if self.texts.is_new_reply { "\n\n" } else { "" };
        self.texts = Texts { has_text: true, is_new_reply: false };
        let text = if separator.is_empty() { quoted(text) } else { quoted(&format!("{separator}{text}")) };
        self.chunk(&format!(r#"{{"content":{text}}}"#))
    }

    /// Returns a chunk with a delta in JSON. Most chunks are such, so only the delta is written anew.
    fn chunk(&mut self, delta: &str) -> String {
        const DELTA: &str = "\"delta\":";
        if self.frame.is_none() {
            let chunk = self.chunk_json(&Json::Null, None).to_string();
            let frame = chunk.split_once(&format!("{DELTA}null"));
            self.frame = frame.map(|(head, tail)| (format!("{head}{DELTA}"), tail.to_owned()));
        }
        let (head, tail) = self.frame.as_ref().map(|(head, tail)| (head.as_str(), tail.as_str())).unwrap_or_default();
        [head, delta, tail].concat()
    }

    fn chunk_json(&self, delta: &Json, finish: Option<&str>) -> Json {
        let mut chunk = json!({
            "id": self.meta.id,
            "object": "chat.completion.chunk",
            "created": self.meta.created,
            "model": self.meta.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        });
        if self.include_usage {
            set(&mut chunk, "usage", Json::Null);
        }
        chunk
    }
}

/// Returns a text as JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
