//! Older drafts of JSON Schema, rewritten as 2020-12.

use crate::types::keyword::map_children;
use jsonschema::Draft;
use serde_json::{Map, Value as Json};

/// Returns a schema of a draft as one of 2020-12 that allows the same values.
pub(super) fn modern(schema: &Json, draft: Draft) -> Json {
    let Json::Object(map) = schema else { return schema.clone() };
    let mut map = map_children(map, &mut |_, child| modern(child, draft));
    map.shift_remove("$schema");
    if draft >= Draft::Draft202012 {
        return Json::Object(map);
    }
    // Up to draft 7 nothing counts beside a reference.
    if draft <= Draft::Draft7 && map.contains_key("$ref") {
        map.retain(|keyword, _| {
            matches!(keyword.as_str(), "$ref" | "title" | "description" | "default" | "$defs" | "definitions")
        });
    }
    if draft == Draft::Draft4 {
        exclusive(&mut map, "minimum", "exclusiveMinimum");
        exclusive(&mut map, "maximum", "exclusiveMaximum");
        map.shift_remove("id");
    }
    tuples(&mut map);
    dependencies(&mut map);
    Json::Object(map)
}

/// In draft 4 a flag makes a bound exclusive; since then there is a keyword for it.
fn exclusive(map: &mut Map<String, Json>, bound: &str, flag: &str) {
    if map.shift_remove(flag) == Some(Json::Bool(true))
        && let Some(value) = map.shift_remove(bound)
    {
        map.insert(flag.to_owned(), value);
    }
}

/// Lists of schemas in `items` are called `prefixItems` now, and what comes after them `items`.
fn tuples(map: &mut Map<String, Json>) {
    let after = map.shift_remove("additionalItems");
    if let Some(Json::Array(_)) = map.get("items")
        && let Some(items) = map.shift_remove("items")
    {
        map.insert("prefixItems".to_owned(), items);
        map.extend(after.map(|after| ("items".to_owned(), after)));
    }
}

/// What was `dependencies` is two keywords now.
fn dependencies(map: &mut Map<String, Json>) {
    let Some(Json::Object(all)) = map.shift_remove("dependencies") else { return };
    let (names, schemas): (Map<_, _>, Map<_, _>) = all.into_iter().partition(|(_, needed)| needed.is_array());
    for (keyword, needed) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
        if !needed.is_empty() {
            map.insert(keyword.to_owned(), Json::Object(needed));
        }
    }
}
