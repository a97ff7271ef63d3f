//! Lists and objects outside of JSON: in queries, paths, headers and forms.

use super::encode::percent_encode;
use crate::tool::ToolFailure;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use patter_core::declare::http::Style;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Writes a value under a name as pairs of a name and an encoded text.
pub(super) fn write_pairs(
    name: &str,
    value: &Json,
    style: Option<Style>,
    encode: &dyn Fn(&str) -> String,
    into: &mut Vec<(String, String)>,
) {
    match (style, value) {
        (_, Json::Null) => {}
        (Some(Style::Json), value) => into.push((name.to_owned(), encode(&value.to_string()))),
        (Some(Style::Brackets), Json::Array(_) | Json::Object(_)) => write_brackets(name, value, encode, into),
        (Some(Style::Fields), Json::Object(fields)) => {
            fields.iter().for_each(|(name, value)| write_pairs(name, value, None, encode, into));
        }
        (Some(style), Json::Array(_) | Json::Object(_)) if style.separator().is_some() => {
            let text = join(value, style, encode);
            // A list without items is not sent, as with names that are repeated.
            into.extend((!text.is_empty()).then(|| (name.to_owned(), text)));
        }
        (_, Json::Array(items)) => {
            let items = items.iter().filter(|item| !item.is_null());
            into.extend(items.map(|item| (name.to_owned(), encode(&text_of(item)))));
        }
        (_, value) => into.push((name.to_owned(), encode(&text_of(value)))),
    }
}

/// Writes the place of each value in brackets. Lists of plain values have empty brackets, which every server reads as a
/// list; other lists need the position, so that the fields of an item stay together.
fn write_brackets(name: &str, value: &Json, encode: &dyn Fn(&str) -> String, into: &mut Vec<(String, String)>) {
    match value {
        Json::Null => {}
        Json::Object(fields) => {
            fields.iter().for_each(|(key, value)| write_brackets(&format!("{name}[{key}]"), value, encode, into));
        }
        Json::Array(items) => {
            let is_plain = !items.iter().any(|item| item.is_array() || item.is_object());
            for (index, item) in items.iter().enumerate() {
                let place = if is_plain { format!("{name}[]") } else { format!("{name}[{index}]") };
                write_brackets(&place, item, encode, into);
            }
        }
        value => into.push((name.to_owned(), encode(&text_of(value)))),
    }
}

/// Returns the text of a value at a place where only text is possible, such as a path or a header.
pub(super) fn text_in(value: &Json, style: Option<Style>, encode: &dyn Fn(&str) -> String) -> String {
    match style {
        Some(Style::Json) => encode(&value.to_string()),
        Some(style) if style.separator().is_some() => join(value, style, encode),
        _ => encode(&text_of(value)),
    }
}

/// Joins the items of a list, or the names and values of an object. Commas separate as they are; other separators are
/// encoded like text.
fn join(value: &Json, style: Style, encode: &dyn Fn(&str) -> String) -> String {
    let items: Vec<String> = match value {
        Json::Array(items) => items.iter().filter(|item| !item.is_null()).map(|item| encode(&text_of(item))).collect(),
        Json::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            fields.flat_map(|(name, value)| [encode(name), encode(&text_of(value))]).collect()
        }
        value => return encode(&text_of(value)),
    };
    let separator = match style.separator() {
        None | Some(',') => ",".to_owned(),
        Some(other) => encode(&other.to_string()),
    };
    items.join(&separator)
}

/// Returns a string unchanged, and any other value as JSON.
pub(super) fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Encodes the fields of a form as `application/x-www-form-urlencoded`.
pub(super) fn encode_form(fields: &[FormField<'_>]) -> String {
    let mut pairs = Vec::new();
    for field in fields {
        write_pairs(&field.name, &field.value, field.style, &percent_encode, &mut pairs);
    }
    let pairs: Vec<_> = pairs.iter().map(|(name, text)| format!("{}={text}", percent_encode(name))).collect();
    pairs.join("&")
}

/// A field of a form.
pub(super) struct FormField<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) value: Json,
    pub(super) style: Option<Style>,
}

/// The content of a file, given as text or as a `data:` URL.
pub(super) struct FileContent {
    pub(super) bytes: Vec<u8>,
    /// The content type and the file name of the URL.
    pub(super) media_type: Option<String>,
    name: Option<String>,
}

impl FileContent {
    /// Reads the argument of a parameter.
    pub(super) fn read(parameter: &str, text: &str) -> Result<Self, ToolFailure> {
        let Some((head, data)) = text.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
            return Ok(Self { bytes: text.as_bytes().to_vec(), media_type: None, name: None });
        };
        let mut options = head.split(';');
        let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && c != '"');
        let media_type = options.next().filter(|kind| kind.contains('/') && is_plain(kind)).map(str::to_owned);
        let options: Vec<_> = options.collect();
        let bytes = if options.contains(&"base64") {
            let compact: String = data.split_ascii_whitespace().collect();
            let decoded = BASE64_STANDARD.decode(&compact).or_else(|_| BASE64_URL_SAFE.decode(&compact));
            decoded.map_err(|_| ToolFailure::new(format!("`{parameter}` is a `data:` URL with invalid base64")))?
        } else {
            percent_decode(data)
        };
        let name = options.iter().find_map(|option| option.strip_prefix("name="));
        let name = name.map(|name| String::from_utf8_lossy(&percent_decode(name)).into_owned());
        Ok(Self { bytes, media_type, name })
    }
}

fn percent_decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// The fields of a form as `multipart/form-data`.
#[derive(Default)]
pub(super) struct Multipart {
    /// The head and content of each part.
    parts: Vec<(String, Vec<u8>)>,
}

impl Multipart {
    /// Adds a field. A list has a part for each item, and an object is JSON, unless the style says otherwise.
    pub(super) fn add(&mut self, field: &FormField<'_>) -> Result<(), ToolFailure> {
        match (field.style, &field.value) {
            (_, Json::Null) => {}
            (None | Some(Style::Repeat | Style::File), Json::Array(items)) => {
                for item in items {
                    self.add(&FormField { name: Cow::Borrowed(&field.name), value: item.clone(), style: field.style })?;
                }
            }
            (Some(Style::File), value) => {
                let content = FileContent::read(&field.name, &text_of(value))?;
                let file = content.name.as_deref().unwrap_or(&field.name);
                let media_type = content.media_type.as_deref().unwrap_or("application/octet-stream");
                let file = escape(file);
                self.push(&field.name, &format!("; filename=\"{file}\"\r\nContent-Type: {media_type}"), content.bytes);
            }
            (None | Some(Style::Json), value @ Json::Object(_)) | (Some(Style::Json), value) => {
                self.push(&field.name, "\r\nContent-Type: application/json", value.to_string().into_bytes());
            }
            (style, value) => {
                let mut pairs = Vec::new();
                write_pairs(&field.name, value, style, &str::to_owned, &mut pairs);
                for (name, text) in pairs {
                    self.push(&name, "", text.into_bytes());
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, name: &str, more: &str, content: Vec<u8>) {
        self.parts.push((format!("Content-Disposition: form-data; name=\"{}\"{more}", escape(name)), content));
    }

    /// Returns the boundary and the body. The boundary is derived from the content, so that a retry sends the same bytes
    /// and no content can contain it.
    pub(super) fn finish(self) -> (String, Vec<u8>) {
        let mut hash = Sha256::new();
        for (head, content) in &self.parts {
            hash.update((head.len() as u64).to_be_bytes());
            hash.update(head);
            hash.update((content.len() as u64).to_be_bytes());
            hash.update(content);
        }
        let digest: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let boundary = format!("patter-{digest}");
        let mut body = Vec::new();
        for (head, content) in self.parts {
            body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            body.extend_from_slice(&content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (boundary, body)
    }
}

/// Escapes a name in the head of a part, so that it cannot end there.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for c in name.chars() {
        match c {
            '"' => escaped.push_str("%22"),
            '\r' => escaped.push_str("%0D"),
            '\n' => escaped.push_str("%0A"),
            c if c.is_control() => escaped.push('_'),
            c => escaped.push(c),
        }
    }
    escaped
}
