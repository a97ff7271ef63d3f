//! Replies, whole or streamed.

use super::echo::Received;
use super::usage;
use crate::message::request::FinishReason;
use crate::wire::borrowed_json::BorrowedJson;
use crate::wire::error::{WireError, error_details};
use crate::wire::json::parse;
use crate::wire::reply::{ReplyBuilder, ReplyParser};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A parser for replies with `tools` and with `functions`, whole or streamed: messages and deltas have the same fields.
#[derive(Debug, Default)]
pub(in crate::wire) struct ChatParser {
    /// The calls by index.
    calls: BTreeMap<u64, PendingCall>,
    /// The index of the call that was received last.
    last_index: u64,
    /// An index above those of all calls.
    next_index: u64,
    is_refused: bool,
    received: Received,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    /// A whole message, in which each call occurs once.
    Whole,
    /// A piece of a message, with pieces of calls.
    Delta,
}

/// A call whose name may not have been received yet.
#[derive(Debug, Default)]
struct PendingCall {
    id: String,
    name: String,
    /// The index in the reply, once the name is known.
    index: Option<usize>,
    /// Arguments that were received before the name.
    arguments: String,
    /// What the server wants back with the call.
    extra: Json,
}

impl ReplyParser for ChatParser {
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        match self.parse(reply, builder)? {
            0 => {
                let reply = parse(reply)?;
                Err(WireError::from_reply(&reply).unwrap_or_else(|| match error_details(&reply) {
                    Some((_, message)) => WireError::malformed(format!("missing `choices`: {message}")),
                    None => WireError::malformed("missing `choices`"),
                }))
            }
            _ => Ok(()),
        }
    }

    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        self.parse(event, builder).map(|_| ())
    }

    fn finish(self: Box<Self>, builder: &mut ReplyBuilder<'_>) -> Option<Json> {
        let mut extras = vec![Json::Null; self.calls.len()];
        for call in self.calls.into_values() {
            let index = call.index.unwrap_or_else(|| {
                let index = builder.start_call(Some(&call.id), "");
                builder.push_arguments(index, &call.arguments);
                index
            });
            if let Some(slot) = extras.get_mut(index) {
                *slot = call.extra;
            }
        }
        if self.is_refused {
            builder.finish = Some(FinishReason::Refused);
        }
        self.received.finish(extras)
    }
}

impl ChatParser {
    /// Parses a reply or an event, and returns the number of its choices.
    fn parse(&mut self, bytes: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<usize, WireError> {
        let event: BorrowedJson<'_> = parse(bytes)?;
        if (!event.get("error").is_null() || event.get("object").text() == "error")
            && let Some(error) = WireError::from_reply(&parse(bytes)?)
        {
            return Err(error);
        }
        let choices = event.get("choices").list();
        let choice = choices.first().unwrap_or(&BorrowedJson::Null);
        // Groq and Moonshot have places of their own for the counts of streamed replies.
        let places = [event.get("usage"), event.get("x_groq").get("usage"), choice.get("usage")];
        if let Some(usage) = places.into_iter().find_map(usage::parse) {
            builder.usage = usage;
        }
        let reason = choice.get("finish_reason").text();
        let delta = choice.get("delta");
        let message = choice.get("message");
        if delta.is_object() {
            self.parse_message(delta, MessageKind::Delta, builder);
        }
        // Perplexity repeats everything so far as a message beside each delta.
        let is_alone = !delta.is_object() || (!reason.is_empty() && builder.is_empty() && self.calls.is_empty());
        if message.is_object() && is_alone {
            self.parse_message(message, MessageKind::Whole, builder);
        }
        // Some servers send an empty reason with each delta.
        if !reason.is_empty() {
            builder.finish = Some(finish_reason(reason, choice)?);
            builder.is_complete = true;
        }
        Ok(choices.len())
    }

    fn parse_message(&mut self, message: &BorrowedJson<'_>, kind: MessageKind, builder: &mut ReplyBuilder<'_>) {
        self.received.push_message(message, builder);
        builder.push_text(message.get("content").text());
        // Some servers send a list of parts, as in requests. With Mistral, some of them are reasoning.
        for part in message.get("content").list() {
            match part.get("thinking") {
                BorrowedJson::Null => builder.push_text(part.get("text").text()),
                _ => self.received.push_thinking(part, builder),
            }
        }
        let refusal = message.get("refusal").text();
        if !refusal.is_empty() {
            builder.push_text(refusal);
            self.is_refused = true;
        }
        let calls = message.get("tool_calls").list();
        for call in calls {
            let id = call.get("id").text();
            let index = match kind {
                MessageKind::Whole => self.next_index,
                MessageKind::Delta => self.call_index(call, id, builder),
            };
            self.push_call(index, id, call, builder);
        }
        // If both are present, they contain the same call.
        let function = message.get("function_call");
        if function.is_object() && calls.is_empty() {
            self.push_function(0, "", function, builder);
        }
    }

    /// Returns the index under which a piece of a call is stored. Some servers omit the index, so that a new call is only
    /// recognisable by its id or name. Others send the same index for all calls, which then differ in id and name.
    fn call_index(&self, call: &BorrowedJson<'_>, id: &str, builder: &ReplyBuilder<'_>) -> u64 {
        let name = call.get("function").get("name").text();
        let Some(index) = call.get("index").integer() else {
            let last = self.calls.get(&self.last_index);
            let is_continuation = last.is_some_and(|last| last.is_continued_by(id, name, builder));
            return if is_continuation { self.last_index } else { self.next_index };
        };
        let is_different =
            |other: &PendingCall| !name.is_empty() && other.index.is_some() && !id.is_empty() && other.id != id;
        if self.calls.get(&index).is_some_and(is_different) { self.next_index } else { index }
    }

    fn push_call(&mut self, index: u64, id: &str, call: &BorrowedJson<'_>, builder: &mut ReplyBuilder<'_>) {
        self.push_function(index, id, call.get("function"), builder);
        let extra = call.get("extra_content");
        if let Some(pending) = self.calls.get_mut(&index).filter(|_| extra.is_object()) {
            pending.extra = serde_json::to_value(extra).unwrap_or_default();
        }
    }

    fn push_function(&mut self, index: u64, id: &str, function: &BorrowedJson<'_>, builder: &mut ReplyBuilder<'_>) {
        self.last_index = index;
        self.next_index = self.next_index.max(index.saturating_add(1));
        let call = self.calls.entry(index).or_default();
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let name = function.get("name").text();
        let arguments = match function.get("arguments") {
            BorrowedJson::Text(text) => Cow::Borrowed(&**text),
            BorrowedJson::Null => Cow::Borrowed(""),
            // Some servers send the arguments themselves instead of their text.
            other => Cow::Owned(serde_json::to_string(other).unwrap_or_default()),
        };
        match call.index {
            Some(index) => builder.push_arguments(index, &arguments),
            None if name.is_empty() => call.arguments.push_str(&arguments),
            None => {
                let index = builder.start_call(Some(&call.id), name);
                call.index = Some(index);
                name.clone_into(&mut call.name);
                builder.push_arguments(index, &std::mem::take(&mut call.arguments));
                builder.push_arguments(index, &arguments);
            }
        }
    }
}

impl PendingCall {
    /// Returns whether a piece without an index belongs to this call, which is the last one. Some servers repeat its id, and
    /// some also its name; others use one id for all calls, each of which is then sent as a whole.
    fn is_continued_by(&self, id: &str, name: &str, builder: &ReplyBuilder<'_>) -> bool {
        if id.is_empty() {
            return name.is_empty();
        }
        let is_whole = || {
            let arguments = self.index.map_or(self.arguments.as_str(), |index| builder.arguments(index));
            serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
        };
        id == self.id && (name.is_empty() || (name == self.name && !is_whole()))
    }
}

/// Returns the reason, in the words of OpenAI, of compatible servers, and of models behind them.
fn finish_reason(reason: &str, choice: &BorrowedJson<'_>) -> Result<FinishReason, WireError> {
    let reason = match reason.to_ascii_lowercase().as_str() {
        "stop" | "tool_calls" | "function_call" | "tool_call" | "tool_use" | "eos" | "eos_token" | "end_turn"
        | "stop_sequence" | "complete" => FinishReason::Stop,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => FinishReason::Length,
        "content_filter" | "content-filter" | "safety" | "sensitive" | "recitation" => FinishReason::Filtered,
        "refusal" => FinishReason::Refused,
        // The server failed in the middle, so what was received is not an answer.
        kind @ ("error" | "insufficient_system_resource" | "network_error") => {
            let message = choice.get("error").get("message").text();
            return Err(WireError::reported(kind, message));
        }
        // Gemini behind this wire adds its own reason.
        other if other.starts_with("content_filter:") => FinishReason::Filtered,
        other if other.starts_with("function_call_filter:") => FinishReason::Malformed,
        _ => FinishReason::Other(reason.to_owned()),
    };
    Ok(reason)
}
