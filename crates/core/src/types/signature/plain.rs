//! Schemas that are seen to be schemas at a glance.

use serde_json::Value as Json;
use std::collections::HashSet;

/// Tells whether this is a schema that says only the commonest things, each in its plainest form. Such a one is a schema
/// of 2020-12 and refers to nothing; to compile it would tell the same, and take far longer.
pub(super) fn is_plain(schema: &Json) -> bool {
    let Json::Object(entries) = schema else { return false };
    entries.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value.as_str().is_some_and(is_type),
        "title" | "description" => value.is_string(),
        "default" | "const" => true,
        "enum" => value.is_array(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
        "required" => value.as_array().is_some_and(|names| are_names(names)),
        "additionalProperties" => value.is_boolean() || is_plain(value),
        "items" => is_plain(value),
        "properties" => value.as_object().is_some_and(|properties| properties.values().all(is_plain)),
        _ => false,
    })
}

fn is_type(name: &str) -> bool {
    matches!(name, "string" | "integer" | "number" | "boolean" | "object" | "array" | "null")
}

/// Tells whether these are names, none of them twice.
fn are_names(names: &[Json]) -> bool {
    let mut seen = HashSet::new();
    names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}
