//! Nulls in place of optional properties.

use crate::types::keyword::pointer;
use serde_json::{Map, Value as Json};

/// Removes each null that stands for an omitted property: one that is in the schema but not required.
///
/// OpenAI only enforces schemas that require all properties, so a strict tool is offered with a
/// [schema](crate::types::dialect::SchemaView::OpenAiStrict) in which optional properties may be null instead. The
/// arguments of a call to such a tool must be passed to this function, with the original schema, before they are
/// validated.
///
/// ```
/// use patter_core::wire::remove_optional_nulls;
/// use serde_json::json;
/// let schema = json!({ "properties": { "city": {}, "unit": {}, "note": {} }, "required": ["city", "note"] });
/// let mut arguments = json!({ "city": "Paris", "unit": null, "note": null });
/// remove_optional_nulls(&mut arguments, &schema);
/// assert_eq!(arguments, json!({ "city": "Paris", "note": null }));
/// ```
pub fn remove_optional_nulls(arguments: &mut Json, schema: &Json) {
    if has_null(arguments) {
        remove_nulls(arguments, &[schema], schema);
    }
}

/// Returns whether a value contains a null. Few arguments do, and those without need no schema.
fn has_null(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.iter().any(has_null),
        Json::Object(map) => map.values().any(has_null),
        Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// Removes nulls from a value to which all of the schemas apply.
fn remove_nulls<'s>(value: &mut Json, schemas: &[&'s Json], root: &'s Json) {
    let parts = applicable_schemas(value, schemas, root);
    match value {
        Json::Object(map) => {
            let is_required = |name: &str| parts.iter().any(|part| requires(part, name));
            let property_schemas =
                |name: &str| parts.iter().filter_map(|part| part.get("properties")?.get(name)).collect();
            map.retain(|name, value| {
                let schemas: Vec<&Json> = property_schemas(name);
                !value.is_null() || schemas.is_empty() || is_required(name)
            });
            for (name, value) in map.iter_mut() {
                let mut schemas = property_schemas(name);
                if schemas.is_empty() {
                    schemas = parts.iter().filter_map(|part| part.get("additionalProperties")).collect();
                }
                remove_nulls(value, &schemas, root);
            }
        }
        Json::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let item_schema = |part: &'s Map<String, Json>| {
                    let positional = part.get("prefixItems").and_then(|items| items.get(index));
                    positional.or_else(|| part.get("items"))
                };
                let schemas: Vec<&Json> = parts.iter().copied().filter_map(item_schema).collect();
                remove_nulls(item, &schemas, root);
            }
        }
        _ => {}
    }
}

/// Returns the schemas that apply to a value: those given, the targets of their references, all of their `allOf`, and
/// the first of their `anyOf` and `oneOf` that matches.
fn applicable_schemas<'s>(value: &Json, schemas: &[&'s Json], root: &'s Json) -> Vec<&'s Map<String, Json>> {
    let mut found: Vec<&'s Map<String, Json>> = Vec::new();
    let mut open: Vec<&'s Json> = schemas.iter().rev().copied().collect();
    while let Some(schema) = open.pop() {
        let Some(map) = schema.as_object() else { continue };
        // Visiting each schema once ends cycles of references.
        if found.iter().any(|known| std::ptr::eq(*known, map)) {
            continue;
        }
        found.push(map);
        open.extend(reference_target(map, root));
        open.extend(map.get("allOf").and_then(Json::as_array).into_iter().flatten());
        for keyword in ["anyOf", "oneOf"] {
            let mut options = map.get(keyword).and_then(Json::as_array).into_iter().flatten();
            open.extend(options.find(|option| matches_option(value, option, root)));
        }
    }
    found
}

fn reference_target<'s>(schema: &Map<String, Json>, root: &'s Json) -> Option<&'s Json> {
    root.pointer(&pointer(schema.get("$ref")?.as_str()?)?)
}

fn requires(schema: &Map<String, Json>, name: &str) -> bool {
    let required = schema.get("required").and_then(Json::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns whether an option matches a value, judged by its type, property names and constants.
fn matches_option(value: &Json, option: &Json, root: &Json) -> bool {
    let Some(option) = option.as_object() else { return false };
    let target = reference_target(option, root).and_then(Json::as_object).unwrap_or(option);
    let kind = match value {
        Json::Object(_) => "object",
        Json::Array(_) => "array",
        _ => return false,
    };
    if target.get("type").is_some_and(|named| named != kind) {
        return false;
    }
    let Json::Object(map) = value else { return true };
    let properties = target.get("properties").and_then(Json::as_object);
    let is_known = |name: &String| properties.is_some_and(|properties| properties.contains_key(name));
    let is_open = target.get("additionalProperties").is_some_and(|more| *more != Json::Bool(false));
    let agrees = |(name, schema): (&String, &Json)| match map.get(name) {
        Some(Json::Null) => true,
        Some(value) => {
            schema.get("const").is_none_or(|only| only == value)
                && schema.get("enum").and_then(Json::as_array).is_none_or(|values| values.contains(value))
        }
        None => !requires(target, name),
    };
    (is_open || map.keys().all(is_known)) && properties.into_iter().flatten().all(agrees)
}
