//! Arguments as they may stand in the places of a request.

/// Encodes a text so that it stands for itself in a segment of a path, or in a query.
pub(super) fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Writes a text as what stands between the quotes of a JSON string.
pub(super) fn json_inside(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// Follows a text in JSON, and knows whether its end stands within a string.
#[derive(Default)]
pub(super) struct JsonPlace {
    is_inside: bool,
    is_escaped: bool,
}

impl JsonPlace {
    /// Reads on.
    pub(super) fn read(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' if self.is_inside => self.is_escaped = true,
                '"' => self.is_inside = !self.is_inside,
                _ => {}
            }
        }
    }

    /// Writes a value for this place: within a string as its content, else as a value.
    pub(super) fn write(&self, value: &serde_json::Value) -> String {
        match value {
            serde_json::Value::String(text) if self.is_inside => json_inside(text),
            other if self.is_inside => json_inside(&other.to_string()),
            other => other.to_string(),
        }
    }
}

/// Makes a text of a server short and harmless to show: one line, no control characters.
pub(super) fn excerpt(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}
