//! A fast path for simple schemas.

use serde_json::{Map, Value as Json};
use std::collections::HashSet;

/// Returns whether a schema uses only common keywords in their simplest form, and refers only to its own definitions. Such a
/// schema is valid in 2020-12, so it need not be compiled, which would take far longer: the schemas of Rust types are of
/// this kind, and the program reads those of the standard library whenever it starts.
pub(super) fn is_plain(schema: &Json) -> bool {
    let no_definitions = Map::new();
    let definitions = match schema.get("$defs") {
        Some(Json::Object(definitions)) => definitions,
        Some(_) => return false,
        None => &no_definitions,
    };
    // A definition that only refers to others might refer to itself.
    let is_definition = |schema: &Json| schema.get("$ref").is_none() && is_plain_part(schema, definitions);
    let Json::Object(entries) = schema else { return false };
    entries.iter().all(|(keyword, value)| keyword == "$defs" || is_plain_entry(keyword, value, definitions))
        && definitions.values().all(is_definition)
}

/// Returns whether a part of a schema with certain definitions is plain.
fn is_plain_part(schema: &Json, definitions: &Map<String, Json>) -> bool {
    match schema {
        Json::Bool(_) => true,
        Json::Object(entries) => entries.iter().all(|(keyword, value)| is_plain_entry(keyword, value, definitions)),
        _ => false,
    }
}

fn is_plain_entry(keyword: &str, value: &Json, definitions: &Map<String, Json>) -> bool {
    let is_part = |part: &Json| is_plain_part(part, definitions);
    match keyword {
        "type" => match value {
            Json::Array(names) => {
                !names.is_empty() && are_unique_names(names) && names.iter().filter_map(Json::as_str).all(is_type)
            }
            _ => value.as_str().is_some_and(is_type),
        },
        "title" | "description" | "format" => value.is_string(),
        "default" | "const" => true,
        "enum" => value.is_array(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
        "uniqueItems" => value.is_boolean(),
        "required" => value.as_array().is_some_and(|names| are_unique_names(names)),
        "additionalProperties" | "items" => is_part(value),
        "properties" => value.as_object().is_some_and(|properties| properties.values().all(is_part)),
        "anyOf" | "oneOf" => value.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part)),
        "$ref" => {
            let name = value.as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
            // Other characters may be escaped.
            let is_simple = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            name.filter(is_simple).is_some_and(|name| definitions.contains_key(name))
        }
        _ => false,
    }
}

fn is_type(name: &str) -> bool {
    matches!(name, "string" | "integer" | "number" | "boolean" | "object" | "array" | "null")
}

/// Returns whether all values are strings, without duplicates.
fn are_unique_names(names: &[Json]) -> bool {
    let mut seen = HashSet::new();
    names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_of_rust_types_are_plain() {
        let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#/$defs/Tree" } } });
        for schema in [
            json!({ "type": ["string", "null"], "format": "date-time" }),
            json!({ "anyOf": [{ "$ref": "#/$defs/Tree" }, { "type": "null" }], "$defs": { "Tree": tree } }),
            json!({ "type": "object", "properties": { "any": true }, "additionalProperties": false }),
        ] {
            assert!(is_plain(&schema), "{schema}");
            assert!(jsonschema::validator_for(&schema).is_ok(), "{schema}");
        }
    }

    #[test]
    fn schemas_that_may_be_invalid_or_of_an_older_draft_are_not_plain() {
        for schema in [
            json!({ "$ref": "#/$defs/Missing", "$defs": {} }),
            json!({ "$ref": "#/$defs/A", "$defs": { "A": { "$ref": "#/$defs/A" } } }),
            json!({ "$ref": "#/properties/a", "properties": { "a": {} } }),
            json!({ "$ref": "https://example.com/schema" }),
            json!({ "$defs": [] }),
            json!({ "properties": { "a": { "$defs": {} } } }),
            json!({ "type": [] }),
            json!({ "type": ["string", "string"] }),
            json!({ "type": ["string", 1] }),
            json!({ "anyOf": [] }),
            json!({ "anyOf": [{ "type": "text" }] }),
            json!({ "items": [{ "type": "string" }] }),
            json!({ "pattern": "(" }),
            json!({ "$schema": "http://json-schema.org/draft-04/schema#" }),
            json!(true),
        ] {
            assert!(!is_plain(&schema), "{schema}");
        }
    }
}
