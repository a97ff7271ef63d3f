//! What servers want back with the messages of a model: its reasoning, and signatures of its calls.

use crate::message::conversation::{Opaque, ToolCall};
use crate::provider::Wire;
use crate::wire::borrowed_json::BorrowedJson;
use crate::wire::history::opaque_data;
use crate::wire::reply::ReplyBuilder;
use serde_json::{Map, Value as Json, json};

/// The fields of a message with reasoning as text. Servers that send both send the same text.
const TEXTS: [&str; 2] = ["reasoning_content", "reasoning"];
/// The field of a message with reasoning as a list of parts.
const DETAILS: &str = "reasoning_details";
/// The properties of a part that are streamed in pieces.
const PIECES: [&str; 4] = ["text", "summary", "data", "signature"];

/// What was received so far. It becomes the opaque data of a message:
/// `{"message": {"reasoning_content": …}, "calls": [{"google": …}, null]}`.
#[derive(Debug, Default)]
pub(super) struct Received {
    message: Map<String, Json>,
    /// Reasoning that is part of the content.
    thinking: String,
}

impl Received {
    /// Reads the reasoning of a message or of a piece of one, and shows it.
    pub(super) fn push_message(&mut self, message: &BorrowedJson<'_>, builder: &mut ReplyBuilder<'_>) {
        let mut is_shown = false;
        for key in TEXTS {
            let BorrowedJson::Text(piece) = message.get(key) else { continue };
            // Servers that want reasoning back want it even if it is empty.
            match self.message.get_mut(key) {
                Some(Json::String(text)) => text.push_str(piece),
                _ => drop(self.message.insert(key.to_owned(), Json::from(piece.as_ref()))),
            }
            if !is_shown {
                builder.push_thought(piece);
                is_shown = !piece.is_empty();
            }
        }
        for part in message.get(DETAILS).list() {
            self.push_detail(part);
            if !is_shown {
                builder.push_thought(part.get("text").text());
                builder.push_thought(part.get("summary").text());
            }
        }
    }

    /// Reads a part of the content that is reasoning, and shows it.
    pub(super) fn push_thinking(&mut self, part: &BorrowedJson<'_>, builder: &mut ReplyBuilder<'_>) {
        let thinking = part.get("thinking");
        let pieces = thinking.list().iter().map(|piece| piece.get("text").text()).chain([thinking.text()]);
        for piece in pieces {
            self.thinking.push_str(piece);
            builder.push_thought(piece);
        }
    }

    /// Adds a part of the reasoning, or a piece of the last part.
    fn push_detail(&mut self, part: &BorrowedJson<'_>) {
        let Ok(Json::Object(part)) = serde_json::to_value(part) else { return };
        let details = self.message.entry(DETAILS).or_insert_with(|| json!([]));
        let Json::Array(details) = details else { return };
        let is_same = |last: &&mut Map<String, Json>| {
            let is_equal = |key: &str| last.get(key) == part.get(key);
            part.contains_key("index") && is_equal("index") && is_equal("type")
        };
        let Some(last) = details.last_mut().and_then(Json::as_object_mut).filter(is_same) else {
            details.push(Json::Object(part));
            return;
        };
        for (key, value) in part {
            match (last.get_mut(&key), value) {
                (Some(Json::String(text)), Json::String(piece)) if PIECES.contains(&key.as_str()) => {
                    text.push_str(&piece);
                }
                (Some(_), Json::Null) => {}
                (_, value) => drop(last.insert(key, value)),
            }
        }
    }

    /// Returns the opaque data, if there is any. `calls` has what belongs to each call, or null.
    pub(super) fn finish(mut self, calls: Vec<Json>) -> Option<Json> {
        if self.message.contains_key(DETAILS) || self.message.contains_key("reasoning_content") {
            self.message.shift_remove("reasoning");
        }
        if !self.thinking.is_empty() {
            let text = json!([{ "type": "text", "text": self.thinking }]);
            self.message.insert("content".to_owned(), json!([{ "type": "thinking", "thinking": text }]));
        }
        let mut data = Map::new();
        if !self.message.is_empty() {
            data.insert("message".to_owned(), Json::Object(self.message));
        }
        if calls.iter().any(|call| !call.is_null()) {
            data.insert("calls".to_owned(), Json::Array(calls));
        }
        (!data.is_empty()).then_some(Json::Object(data))
    }
}

/// The data that is sent back with a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Echo<'r> {
    pub(super) reasoning_content: Option<&'r str>,
    pub(super) reasoning: Option<&'r str>,
    pub(super) reasoning_details: Option<&'r Json>,
    /// Parts of the content before the text.
    pub(super) content: Option<&'r Vec<Json>>,
    calls: Option<&'r Vec<Json>>,
}

impl<'r> Echo<'r> {
    /// Returns the data of a message, if it came from the same server.
    pub(super) fn read(opaque: Option<&'r Opaque>, origin: &str, calls: &[ToolCall]) -> Self {
        let Some(data) = opaque_data(opaque, Wire::Chat, origin) else { return Self::default() };
        let field = |key: &str| data.get("message").and_then(|message| message.get(key));
        let text = |key: &str| field(key).and_then(Json::as_str);
        let signatures = data.get("calls").and_then(Json::as_array);
        Self {
            reasoning_content: text("reasoning_content"),
            reasoning: text("reasoning"),
            reasoning_details: field(DETAILS).filter(|details| details.is_array()),
            content: field("content").and_then(Json::as_array),
            calls: signatures.filter(|signatures| signatures.len() == calls.len()),
        }
    }

    /// Returns the data of a call.
    pub(super) fn call(&self, index: usize) -> Option<&'r Json> {
        self.calls?.get(index).filter(|extra| extra.is_object())
    }
}
