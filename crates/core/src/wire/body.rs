//! Writing the body of a request, field by field.

use crate::message::request::{OfferedTool, SharedSchema};
use serde::Serialize;

/// The body of a request: an object.
pub(super) struct Body {
    json: Vec<u8>,
}

impl Body {
    pub(super) fn new() -> Self {
        let mut json = Vec::with_capacity(1024);
        json.push(b'{');
        Self { json }
    }

    /// Adds a field.
    pub(super) fn push(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.push_key(key);
        append(&mut self.json, value);
    }

    /// Adds a field, if it has a value.
    pub(super) fn push_some(&mut self, key: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.push(key, &value);
        }
    }

    /// Adds a list. `write` appends its items.
    pub(super) fn push_list(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.push_key(key);
        self.json.push(b'[');
        write(&mut self.json);
        self.json.push(b']');
    }

    /// Adds a list of tools, unless there are none. `write` appends one of them.
    pub(super) fn push_tools(
        &mut self,
        key: &str,
        tools: &[OfferedTool],
        write: impl FnMut(&mut Vec<u8>, &OfferedTool),
    ) {
        if !tools.is_empty() {
            self.push_list(key, |json| append_items(json, tools, write));
        }
    }

    fn push_key(&mut self, key: &str) {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        append(&mut self.json, key);
        self.json.push(b':');
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.json.push(b'}');
        self.json
    }
}

/// Appends a value as JSON. This could only fail for keys that are not strings, and there are none.
pub(super) fn append(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let _ = serde_json::to_writer(json, value);
}

/// Appends items, separated by commas. `write` appends one of them.
pub(super) fn append_items<T>(
    json: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        write(json, item);
    }
}

/// Appends values, separated by commas.
pub(super) fn append_values<T: Serialize>(json: &mut Vec<u8>, values: impl IntoIterator<Item = T>) {
    append_items(json, values, |json, value| append(json, &value));
}

/// Appends the fields that describe a tool in all protocols. The one with the schema is named differently in each.
pub(super) fn append_tool(json: &mut Vec<u8>, tool: &OfferedTool, schema_key: &str, schema: &SharedSchema) {
    json.extend_from_slice(br#""name":"#);
    append(json, tool.name.as_str());
    json.extend_from_slice(br#","description":"#);
    append(json, &tool.description);
    json.push(b',');
    append(json, schema_key);
    json.push(b':');
    json.extend_from_slice(schema.text().as_bytes());
}
