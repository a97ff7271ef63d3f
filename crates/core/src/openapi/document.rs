//! The document itself: its version, and what its references stand for.

use super::{Notes, OpenApiError};
use crate::types::keyword::pointer;
use serde_json::{Map, Value as Json};

/// How many references may lead to one another.
const LONGEST_CHAIN: usize = 16;

pub(super) struct Document<'d> {
    root: &'d Json,
}

impl<'d> Document<'d> {
    pub(super) fn read(root: &'d Json, notes: &mut Notes) -> Result<Self, OpenApiError> {
        let version = |key: &str| match root.get(key)? {
            Json::String(version) => Some(version.clone()),
            Json::Number(version) => Some(version.to_string()),
            _ => None,
        };
        if let Some(version) = version("swagger") {
            return Err(OpenApiError::Swagger(version));
        }
        let version = version("openapi").ok_or(OpenApiError::NotOpenApi)?;
        if !version.starts_with("3.") {
            return Err(OpenApiError::Version(version));
        }
        if !version.starts_with("3.0") && !version.starts_with("3.1") {
            notes.add_about("document", format!("OpenAPI {version} is read as if it were 3.1"));
        }
        if root.get("webhooks").and_then(Json::as_object).is_some_and(|webhooks| !webhooks.is_empty()) {
            notes.add_about("document", "`webhooks` are calls of the server, and are left out");
        }
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &'d Json {
        self.root
    }

    pub(super) fn title(&self) -> &'d str {
        self.root.pointer("/info/title").and_then(Json::as_str).unwrap_or_default()
    }

    /// Returns what an object stands for: itself, or what it refers to within the document. The error is the reference.
    pub(super) fn resolve(&self, value: &'d Json) -> Result<&'d Map<String, Json>, &'d str> {
        let mut value = value;
        for _ in 0..LONGEST_CHAIN {
            let Some(map) = value.as_object() else { return Err("") };
            let Some(reference) = map.get("$ref").and_then(Json::as_str) else { return Ok(map) };
            value = pointer(reference).and_then(|target| self.root.pointer(&target)).ok_or(reference)?;
        }
        Err(value.get("$ref").and_then(Json::as_str).unwrap_or_default())
    }
}

/// Returns a text on one line, of at most some characters.
pub(super) fn line(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    let mut length = 0;
    for word in words {
        let needed = word.chars().count() + usize::from(length > 0);
        if length + needed > most {
            // A first word that is too long is cut, later ones are left out.
            let cut = if length == 0 { word.chars().take(most.saturating_sub(1)).collect() } else { String::new() };
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

/// Returns the text of an entry, on one line; `None` where there is nothing in it.
pub(super) fn text_of(map: &Map<String, Json>, key: &str, most: usize) -> Option<String> {
    map.get(key).and_then(Json::as_str).map(|text| line(text, most)).filter(|text| !text.is_empty())
}
