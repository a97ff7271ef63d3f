//! How what was said before goes into a request: what all wires share.

use super::Wire;
use crate::message::conversation::{Opaque, ToolCall};
use crate::name::WireName;
use serde_json::{Map, Value as Json, json};

/// The key under which arguments go that are no object, where the wire has place for nothing else.
const RAW: &str = "_raw";

/// Returns an id for a call that came without.
pub(super) fn made_up_id(messages: usize, index: usize) -> String {
    format!("call_{messages}_{index}")
}

/// Returns the id of a call, if it can be one that the provider gave.
pub(super) fn given_id(id: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = id.strip_prefix("call_").and_then(|rest| rest.split_once('_'));
    let is_made_up = numbers.is_some_and(|(messages, index)| is_number(messages) && is_number(index));
    (!is_made_up).then_some(id)
}

/// Returns the name of a tool on the wire. A model may have called what cannot go there, and providers refuse the whole
/// conversation for it, so such a name goes as one that is like it.
pub(super) fn wire_name(tool: &str) -> String {
    if let Ok(name) = WireName::of(tool) {
        return name.as_str().to_owned();
    }
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = tool.replace('/', "__").chars().map(allowed).take(64).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Returns the arguments of a call as text, as the model wrote them.
pub(super) fn as_text(call: &ToolCall) -> &str {
    if call.arguments.trim().is_empty() { "{}" } else { &call.arguments }
}

/// Returns the arguments of a call as an object.
pub(super) fn as_object(arguments: &str) -> Json {
    if arguments.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(arguments).ok().filter(Json::is_object).unwrap_or_else(|| json!({ RAW: arguments }))
}

/// Returns what a message has for a wire to have back, if it came over that wire.
pub(super) fn own(opaque: Option<&Opaque>, wire: Wire) -> Option<&Json> {
    opaque.filter(|opaque| opaque.wire == wire.name()).map(|opaque| &opaque.data)
}

/// Puts in what is said.
pub(super) fn put(body: &mut Map<String, Json>, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        body.insert(key.to_owned(), value.into());
    }
}

/// Returns the texts to stop at, if there are any.
pub(super) fn stops(stop: &[String]) -> Option<Json> {
    (!stop.is_empty()).then(|| json!(stop))
}

/// Returns a list, unless it is empty.
pub(super) fn filled(list: Vec<Json>) -> Option<Json> {
    (!list.is_empty()).then_some(Json::Array(list))
}
