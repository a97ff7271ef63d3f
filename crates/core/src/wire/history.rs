//! The parts of earlier messages that all wires encode in the same way.

use crate::message::conversation::{Conversation, Message, Opaque, ToolCall, ToolOutcome};
use crate::message::media::without_data;
use crate::name::WireName;
use crate::provider::Wire;
use crate::types::definition::hash;
use serde_json::{Value as Json, json};
use std::borrow::Cow;

/// The key of arguments that are not an object, for wires that only accept objects.
const RAW: &str = "_raw";
/// The note about an image or a document that is described because the wire or the model has none in results.
const NOT_SHOWN: &str = "not shown: this model receives only text from tools";

/// Returns an id for a call that the provider sent without one.
pub(super) fn generate_id(messages: usize, index: usize) -> String {
    format!("call_{messages}_{index}")
}

/// Returns the id of a call, unless it was generated.
pub(super) fn provider_id(id: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = id.strip_prefix("call_").and_then(|rest| rest.split_once('_'));
    let is_generated = numbers.is_some_and(|(messages, index)| is_number(messages) && is_number(index));
    (!is_generated).then_some(id)
}

/// Returns the id of a call as letters and digits of a fixed length, for servers that accept nothing else. Different ids stay
/// different, as far as that is possible.
pub(super) fn fixed_length_id(id: &str, length: usize) -> Cow<'_, str> {
    if id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let hash = hash(id.as_bytes());
    let digits = hash.bytes().rev().filter(u8::is_ascii_alphanumeric).map(char::from);
    Cow::Owned(digits.chain(std::iter::repeat('0')).take(length).collect())
}

/// Returns the name of a tool on the wire. Models sometimes call tools with invalid names, for which providers would
/// reject the whole conversation, so such a name is replaced by a similar one.
pub(super) fn wire_name(tool: &str) -> String {
    if let Ok(name) = WireName::from_full_name(tool) {
        return name.as_str().to_owned();
    }
    let replace = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = tool.replace('/', "__").chars().map(replace).take(64).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Returns the value of a result for a model that receives neither images nor documents.
pub(super) fn value_without_media(value: &Json) -> Cow<'_, Json> {
    without_data(value, Some(NOT_SHOWN))
}

/// Returns the text of a result for a model that receives neither images nor documents.
pub(super) fn text_without_media(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Value { value } if !value.is_string() => value_without_media(value).to_string(),
        _ => outcome.text(),
    }
}

/// Returns the arguments of a call as text.
pub(super) fn arguments_text(call: &ToolCall) -> &str {
    if call.has_no_arguments() { "{}" } else { &call.arguments }
}

/// Returns the arguments of a call as an object.
pub(super) fn arguments_object(arguments: &str) -> Json {
    if matches!(arguments.trim(), "" | "null") {
        return json!({});
    }
    serde_json::from_str(arguments).ok().filter(Json::is_object).unwrap_or_else(|| json!({ RAW: arguments }))
}

/// Returns the index of the first message of the last turn, for wires that send consecutive messages of a sender as one. What
/// precedes it stays the same when messages are added. `sender` returns the sender of a message, unless it is empty, so that
/// it is left out.
pub(super) fn last_turn<S: PartialEq>(messages: &Conversation, sender: impl Fn(&Message) -> Option<S>) -> usize {
    let mut last = None;
    for (index, message) in messages.iter().enumerate().rev() {
        let sender = sender(message);
        if sender.is_some() && last.is_some() && sender != last {
            return index + 1;
        }
        last = last.or(sender);
    }
    0
}

/// Returns the opaque data of a message, if it came over the given wire from the given origin.
pub(super) fn opaque_data<'m>(opaque: Option<&'m Opaque>, wire: Wire, origin: &str) -> Option<&'m Json> {
    let is_same =
        |opaque: &&Opaque| opaque.wire == wire.name() && (opaque.origin.is_empty() || opaque.origin == origin);
    opaque.filter(is_same).map(|opaque| &opaque.data)
}

/// Returns a text as one segment of a path.
pub(super) fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => segment.push(char::from(byte)),
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}
