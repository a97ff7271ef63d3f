//! Structured answers.

use super::save::{MAX_DEPTH, is_too_deep};
use crate::types::signature::{Mismatch, Shape, Signature, Type};
use serde_json::{Value as Json, json};

/// Parses an answer into a value that matches the schema, or describes what is wrong with it.
pub(super) fn parse(text: &str, schema: &Json) -> Result<Json, String> {
    let declared = Signature::from_schemas(&no_arguments(), Some(schema)).map_err(|error| error.to_string())?;
    let returns: &Type = &declared.signature.returns;
    let check = |value: Json| match returns.check(&value, &declared.records) {
        _ if is_too_deep(&value) => Err(format!("it is nested more than {MAX_DEPTH} levels deep")),
        Ok(()) => Ok(value),
        Err(mismatches) => Err(join(&mismatches)),
    };
    let value = serde_json::from_str(unfenced(text)).map_err(|error| format!("it is not valid JSON: {error}"));
    let wrong = match value.and_then(check) {
        Ok(value) => return Ok(value),
        Err(wrong) => wrong,
    };
    // Models often return a requested text without quotes.
    match returns.shape {
        Shape::Text => check(Json::String(text.trim().to_owned())).map_err(|_| wrong),
        _ => Err(wrong),
    }
}

/// Returns a value that matches the schema, or describes what is wrong with it.
pub(super) fn check(value: Json, schema: &Json) -> Result<Json, String> {
    let declared = Signature::from_schemas(&no_arguments(), Some(schema)).map_err(|error| error.to_string())?;
    match declared.signature.returns.check(&value, &declared.records) {
        Ok(()) => Ok(value),
        Err(mismatches) => Err(join(&mismatches)),
    }
}

/// Returns what a person answered as a value that matches the schema, or describes what is wrong with it. Without a schema, it
/// is a text.
pub(crate) fn read_person_answer(value: &Json, schema: Option<&Json>) -> Result<Json, String> {
    match (schema, value) {
        (None, Json::String(text)) if text.trim().is_empty() => Err("it is empty".to_owned()),
        (None, Json::String(_)) => Ok(value.clone()),
        (None, other) => Ok(Json::from(other.to_string())),
        (Some(schema), Json::String(text)) => parse(text, schema),
        (Some(schema), other) => check(other.clone(), schema),
    }
}

/// Returns the schema of a tool without parameters.
pub(super) fn no_arguments() -> Json {
    json!({ "type": "object" })
}

/// Returns the content of a fenced code block, if the whole text is one. Models often write JSON that way.
///
/// ```
/// use patter_core::run::unfenced;
/// assert_eq!(unfenced("```json\n{}\n```").trim(), "{}");
/// ```
pub fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some((tag, inside)) = inside.and_then(|inside| inside.split_once('\n')) else { return text };
    let is_json = matches!(tag.trim(), "" | "json" | "JSON");
    if is_json { inside } else { text }
}

fn join(mismatches: &[Mismatch]) -> String {
    const MAX_SHOWN: usize = 10;
    let mut shown: Vec<_> = mismatches.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    if mismatches.len() > MAX_SHOWN {
        shown.push(format!("and {} more", mismatches.len() - MAX_SHOWN));
    }
    shown.join("; ")
}
