//! Conversion of older JSON Schema drafts to 2020-12.

use crate::types::keyword::map_subschemas;
use jsonschema::Draft;
use serde_json::{Map, Value as Json};

/// Converts a schema to a 2020-12 schema that allows the same values.
pub(super) fn upgrade_draft(schema: &Json, draft: Draft) -> Json {
    let Json::Object(map) = schema else { return schema.clone() };
    let mut map = map_subschemas(map, &mut |_, child| upgrade_draft(child, draft));
    map.shift_remove("$schema");
    if draft >= Draft::Draft202012 {
        return Json::Object(map);
    }
    // Up to draft 7, keywords next to a reference are ignored.
    if draft <= Draft::Draft7 && map.contains_key("$ref") {
        map.retain(|keyword, _| {
            matches!(keyword.as_str(), "$ref" | "title" | "description" | "default" | "$defs" | "definitions")
        });
    }
    if draft == Draft::Draft4 {
        upgrade_exclusive_bound(&mut map, "minimum", "exclusiveMinimum");
        upgrade_exclusive_bound(&mut map, "maximum", "exclusiveMaximum");
        map.shift_remove("id");
    }
    upgrade_tuples(&mut map);
    upgrade_dependencies(&mut map);
    Json::Object(map)
}

/// Converts the flag that makes a bound exclusive in draft 4 to a bound.
fn upgrade_exclusive_bound(map: &mut Map<String, Json>, bound: &str, flag: &str) {
    if map.shift_remove(flag) == Some(Json::Bool(true))
        && let Some(value) = map.shift_remove(bound)
    {
        map.insert(flag.to_owned(), value);
    }
}

/// Converts a list of schemas in `items` to `prefixItems`, and `additionalItems` to `items`.
fn upgrade_tuples(map: &mut Map<String, Json>) {
    let after = map.shift_remove("additionalItems");
    if let Some(Json::Array(_)) = map.get("items")
        && let Some(items) = map.shift_remove("items")
    {
        map.insert("prefixItems".to_owned(), items);
        map.extend(after.map(|after| ("items".to_owned(), after)));
    }
}

/// Splits `dependencies` into `dependentRequired` and `dependentSchemas`.
fn upgrade_dependencies(map: &mut Map<String, Json>) {
    let Some(Json::Object(all)) = map.shift_remove("dependencies") else { return };
    let (names, schemas): (Map<_, _>, Map<_, _>) = all.into_iter().partition(|(_, needed)| needed.is_array());
    for (keyword, needed) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
        if !needed.is_empty() {
            map.insert(keyword.to_owned(), Json::Object(needed));
        }
    }
}
