//! The document: its version, references and texts.

use super::error::OpenApiError;
use super::warning::Warnings;
use crate::text::mask_secrets;
use crate::types::keyword::pointer;
use serde_json::{Map, Value as Json};

/// The maximum number of references in a chain.
const MAX_CHAIN: usize = 16;
/// The maximum length of the description of a parameter or a field.
pub(super) const MAX_DESCRIPTION: usize = 300;

pub(super) struct Document<'d> {
    root: &'d Json,
}

impl<'d> Document<'d> {
    pub(super) fn read(root: &'d Json, warnings: &mut Warnings) -> Result<Self, OpenApiError> {
        if let Some(version) = version(root, "swagger") {
            return Err(OpenApiError::Swagger(version));
        }
        let version = version(root, "openapi").ok_or(OpenApiError::NotOpenApi)?;
        if !version.starts_with("3.") {
            return Err(OpenApiError::UnsupportedVersion(version));
        }
        if !version.starts_with("3.0") && !version.starts_with("3.1") {
            warnings.add_at("document", format!("OpenAPI {version} is read as 3.1"));
        }
        if root.get("webhooks").and_then(Json::as_object).is_some_and(|webhooks| !webhooks.is_empty()) {
            warnings.add_at("document", "`webhooks` are requests sent by the server; left out");
        }
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &'d Json {
        self.root
    }

    pub(super) fn title(&self) -> &'d str {
        self.root.pointer("/info/title").and_then(Json::as_str).unwrap_or_default()
    }

    /// Resolves an object that may be a reference within the document. The error is the unresolved reference.
    pub(super) fn resolve(&self, value: &'d Json) -> Result<&'d Map<String, Json>, &'d str> {
        let mut value = value;
        for _ in 0..MAX_CHAIN {
            let Some(map) = value.as_object() else { return Err("") };
            let Some(reference) = map.get("$ref").and_then(Json::as_str) else { return Ok(map) };
            value = pointer(reference).and_then(|target| self.root.pointer(&target)).ok_or(reference)?;
        }
        Err(value.get("$ref").and_then(Json::as_str).unwrap_or_default())
    }
}

fn version(root: &Json, key: &str) -> Option<String> {
    match root.get(key)? {
        Json::String(version) => Some(version.clone()),
        Json::Number(version) => Some(version.to_string()),
        _ => None,
    }
}

/// Returns whether a document has version 2.0, which was called Swagger. YAML reads the version as a number.
pub(super) fn is_swagger(root: &Json) -> bool {
    version(root, "swagger").is_some_and(|version| version == "2" || version.starts_with("2."))
}

/// Returns a text on a single line of at most `max` characters, with examples of secrets masked.
pub(super) fn single_line(text: &str, max: usize) -> String {
    let text = &mask_secrets(text);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    let mut length = 0;
    for word in words {
        let needed = word.chars().count() + usize::from(length > 0);
        if length + needed > max {
            // Only the first word is truncated; later ones are left out.
            let cut = if length == 0 { word.chars().take(max.saturating_sub(1)).collect() } else { String::new() };
            line.push_str(&cut);
            line.push('…');
            return line;
        }
        if length > 0 {
            line.push(' ');
        }
        line.push_str(word);
        length += needed;
    }
    line
}

/// Returns a text property on a single line; `None` if it is missing or empty.
pub(super) fn text_property(map: &Map<String, Json>, key: &str, max: usize) -> Option<String> {
    map.get(key).and_then(Json::as_str).map(|text| single_line(text, max)).filter(|text| !text.is_empty())
}
