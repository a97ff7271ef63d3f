//! Parsing, reading and writing JSON of providers.

use super::error::WireError;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// The largest reply, in bytes.
pub(super) const MAX_REPLY_BYTES: usize = 64 << 20;

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Parses JSON.
pub(super) fn parse<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, WireError> {
    if bytes.len() > MAX_REPLY_BYTES {
        return Err(too_large());
    }
    // Checking all bytes at once is faster than each string by itself.
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    parsed.map_err(|error| WireError::malformed(format!("not valid JSON: {error}")))
}

pub(super) fn too_large() -> WireError {
    WireError::malformed("larger than 64 MiB")
}

/// Returns whether a body starts like JSON.
pub(super) fn is_json(body: &[u8]) -> bool {
    matches!(strip_start(body), [b'{' | b'[', ..])
}

/// Removes a byte order mark and whitespace from the start of a body.
pub(super) fn strip_start(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii_start()
}

/// Returns the string under a key, or an empty one.
pub(super) fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// Returns the list under a key, or an empty one.
pub(super) fn list<'j>(json: &'j Json, key: &str) -> &'j [Json] {
    json.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the number at a pointer, or 0.
pub(super) fn number(json: &Json, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Json::as_u64).unwrap_or_default()
}

/// Inserts a value, if there is one.
pub(super) fn insert_some(body: &mut Map<String, Json>, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        body.insert(key.to_owned(), value.into());
    }
}

/// Returns a list, unless it is empty.
pub(super) fn non_empty<T: Into<Json>>(items: impl Iterator<Item = T>) -> Option<Json> {
    let list: Vec<Json> = items.map(Into::into).collect();
    (!list.is_empty()).then_some(Json::Array(list))
}
