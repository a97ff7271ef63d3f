//! Answers that have a form.

use super::save::{DEEPEST, is_too_deep};
use crate::types::signature::{Mismatch, Shape, Signature, Type};
use serde_json::{Value as Json, json};

/// Reads the value that a text says, or tells what is wrong with it.
pub(super) fn read(text: &str, schema: &Json) -> Result<Json, String> {
    let made = Signature::from_schemas(&no_arguments(), Some(schema)).map_err(|error| error.to_string())?;
    let returns: &Type = &made.signature.returns;
    let check = |value: Json| match returns.check(&value, &made.records) {
        _ if is_too_deep(&value) => Err(format!("it nests deeper than {DEEPEST} levels")),
        Ok(()) => Ok(value),
        Err(mismatches) => Err(joined(&mismatches)),
    };
    let value = serde_json::from_str(unfenced(text)).map_err(|error| format!("it is not JSON: {error}"));
    let wrong = match value.and_then(check) {
        Ok(value) => return Ok(value),
        Err(wrong) => wrong,
    };
    // Where a text is asked for, models give it as it is.
    match returns.shape {
        Shape::Text => check(Json::String(text.trim().to_owned())).map_err(|_| wrong),
        _ => Err(wrong),
    }
}

/// Returns the schema of a tool that takes nothing.
pub(super) fn no_arguments() -> Json {
    json!({ "type": "object" })
}

/// Returns what stands between the fences, where the whole text is fenced.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some((tag, inside)) = inside.and_then(|inside| inside.split_once('\n')) else { return text };
    let is_json = matches!(tag.trim(), "" | "json" | "JSON");
    if is_json { inside } else { text }
}

fn joined(mismatches: &[Mismatch]) -> String {
    const MOST: usize = 10;
    let mut told: Vec<_> = mismatches.iter().take(MOST).map(ToString::to_string).collect();
    if mismatches.len() > MOST {
        told.push(format!("and {} more", mismatches.len() - MOST));
    }
    told.join("; ")
}
