//! Nulls that stand for nothing.

use crate::types::keyword::pointer;
use serde_json::{Map, Value as Json};

/// Takes out each null that stands for leaving a property out: where the schema has the property and does not require
/// it.
///
/// OpenAI holds models to a schema only if it requires all properties, so a strict tool is offered with a
/// [view](crate::types::dialect::SchemaView::OpenAiStrict) in which null stands for what may be left out. Whoever offers a tool
/// so applies this to the arguments of a call, with the schema as it was before, and before the arguments are checked.
///
/// ```
/// use patter_core::wire::without_nulls;
/// use serde_json::json;
/// let schema = json!({ "properties": { "city": {}, "unit": {}, "note": {} }, "required": ["city", "note"] });
/// let mut arguments = json!({ "city": "Paris", "unit": null, "note": null });
/// without_nulls(&mut arguments, &schema);
/// assert_eq!(arguments, json!({ "city": "Paris", "note": null }));
/// ```
pub fn without_nulls(arguments: &mut Json, schema: &Json) {
    clean(arguments, &[schema], schema);
}

/// Cleans a value that all of the schemas hold for.
fn clean<'s>(value: &mut Json, schemas: &[&'s Json], root: &'s Json) {
    let parts = parts(value, schemas, root);
    match value {
        Json::Object(map) => {
            let requires = |name: &str| parts.iter().any(|part| requires(part, name));
            let inner = |name: &str| parts.iter().filter_map(|part| part.get("properties")?.get(name)).collect();
            map.retain(|name, value| {
                let schemas: Vec<&Json> = inner(name);
                !value.is_null() || schemas.is_empty() || requires(name)
            });
            for (name, value) in map.iter_mut() {
                let mut schemas = inner(name);
                if schemas.is_empty() {
                    schemas = parts.iter().filter_map(|part| part.get("additionalProperties")).collect();
                }
                clean(value, &schemas, root);
            }
        }
        Json::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let at = |part: &'s Map<String, Json>| {
                    let first = part.get("prefixItems").and_then(|items| items.get(index));
                    first.or_else(|| part.get("items"))
                };
                clean(item, &parts.iter().copied().filter_map(at).collect::<Vec<_>>(), root);
            }
        }
        _ => {}
    }
}

/// Returns the schemas that hold for a value: those given, what they refer to, all that they join, and the first of
/// their choices that fits.
fn parts<'s>(value: &Json, schemas: &[&'s Json], root: &'s Json) -> Vec<&'s Map<String, Json>> {
    let mut found: Vec<&'s Map<String, Json>> = Vec::new();
    let mut open: Vec<&'s Json> = schemas.iter().rev().copied().collect();
    while let Some(schema) = open.pop() {
        let Some(map) = schema.as_object() else { continue };
        // Each schema once, so circles of references end.
        if found.iter().any(|known| std::ptr::eq(*known, map)) {
            continue;
        }
        found.push(map);
        open.extend(referred(map, root));
        open.extend(map.get("allOf").and_then(Json::as_array).into_iter().flatten());
        for choice in ["anyOf", "oneOf"] {
            let mut options = map.get(choice).and_then(Json::as_array).into_iter().flatten();
            open.extend(options.find(|option| fits(value, option, root)));
        }
    }
    found
}

fn referred<'s>(schema: &Map<String, Json>, root: &'s Json) -> Option<&'s Json> {
    root.pointer(&pointer(schema.get("$ref")?.as_str()?)?)
}

fn requires(schema: &Map<String, Json>, name: &str) -> bool {
    let required = schema.get("required").and_then(Json::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Tells whether an option is meant for a value, by what can be seen from outside: its type, its names and its constants.
fn fits(value: &Json, option: &Json, root: &Json) -> bool {
    let Some(option) = option.as_object() else { return false };
    let target = referred(option, root).and_then(Json::as_object).unwrap_or(option);
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
