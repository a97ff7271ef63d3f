//! Encodings of arguments for the parts of a request.

use patter_core::text::truncate;

/// Percent-encodes a text for a path segment or a query.
pub(in crate::tool) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Escapes a text as the content of a JSON string.
pub(in crate::tool) fn json_escape(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// A position in a JSON text: within a string or not.
#[derive(Default)]
pub(super) struct JsonPosition {
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonPosition {
    /// Moves past a text.
    pub(super) fn advance(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' if self.is_in_string => self.is_escaped = true,
                '"' => self.is_in_string = !self.is_in_string,
                _ => {}
            }
        }
    }

    /// Encodes a value for this position: within a string as its content, elsewhere as a value.
    pub(super) fn encode(&self, value: &serde_json::Value) -> String {
        match value {
            serde_json::Value::String(text) if self.is_in_string => json_escape(text),
            other if self.is_in_string => json_escape(&other.to_string()),
            other => other.to_string(),
        }
    }
}

/// Returns the start of a server's text on one line, without control characters.
pub(super) fn excerpt(text: &str, max_chars: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    truncate(&words.collect::<Vec<_>>().join(" "), max_chars)
}
