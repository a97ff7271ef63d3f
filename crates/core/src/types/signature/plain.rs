//! A fast path for simple schemas.

use serde_json::Value as Json;
use std::collections::HashSet;

/// Returns whether a schema uses only common keywords in their simplest form. Such a schema is valid in 2020-12 and has no
/// references, so it need not be compiled, which would take far longer.
pub(super) fn is_plain(schema: &Json) -> bool {
    let Json::Object(entries) = schema else { return false };
    entries.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value.as_str().is_some_and(is_type),
        "title" | "description" => value.is_string(),
        "default" | "const" => true,
        "enum" => value.is_array(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
        "required" => value.as_array().is_some_and(|names| are_unique_names(names)),
        "additionalProperties" => value.is_boolean() || is_plain(value),
        "items" => is_plain(value),
        "properties" => value.as_object().is_some_and(|properties| properties.values().all(is_plain)),
        _ => false,
    })
}

fn is_type(name: &str) -> bool {
    matches!(name, "string" | "integer" | "number" | "boolean" | "object" | "array" | "null")
}

/// Returns whether all values are strings, without duplicates.
fn are_unique_names(names: &[Json]) -> bool {
    let mut seen = HashSet::new();
    names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}
