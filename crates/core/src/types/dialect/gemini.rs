//! The subset of Gemini.

use super::{Effect, Report};
use crate::types::keyword::{escaped, map_children, map_references, pointer, references};
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

/// Keywords that pass as they are.
const KEPT: &[&str] =
    &["type", "format", "title", "description", "minItems", "maxItems", "minimum", "maximum", "required", "$ref"];

/// Keywords that hold schemas and pass.
const HOLDING: &[&str] = &["items", "prefixItems", "anyOf", "oneOf", "properties", "additionalProperties", "$defs"];

/// Rewrites a schema, whose root is an object.
pub(super) fn view(root: &Map<String, Json>, report: &mut Report) -> Json {
    let root = with_defs(root, report);
    circles(&root, report);
    schema(&root, "", report)
}

/// Renames `definitions`, which the provider does not look at.
fn with_defs(root: &Map<String, Json>, report: &mut Report) -> Json {
    let mut root = root.clone();
    let Some(Json::Object(older)) = root.get("definitions").cloned() else { return Json::Object(root) };
    let defs = root.entry("$defs").or_insert_with(|| json!({}));
    let Json::Object(defs) = defs else { return Json::Object(root) };
    if older.keys().any(|name| defs.contains_key(name)) {
        return Json::Object(root);
    }
    defs.extend(older);
    root.shift_remove("definitions");
    report.note("/definitions".to_owned(), Effect::Kept, "renamed to $defs");
    map_references(&Json::Object(root), &mut |reference| match reference.strip_prefix("#/definitions/") {
        Some(name) => format!("#/$defs/{name}"),
        None => reference.to_owned(),
    })
}

fn schema(json: &Json, at: &str, report: &mut Report) -> Json {
    let Json::Object(map) = json else { return json.clone() };
    let mut out = Map::new();
    for (keyword, value) in map {
        match (keyword.as_str(), value) {
            (keyword, _) if HOLDING.contains(&keyword) => {
                if keyword == "oneOf" {
                    let text = "read as anyOf, so a value may fit several options";
                    report.note(format!("{at}/oneOf"), Effect::Weakened, text);
                }
                let one = Map::from_iter([(keyword.to_owned(), value.clone())]);
                out.extend(map_children(&one, &mut |way, child| schema(child, &format!("{at}{way}"), report)));
            }
            ("enum", Json::Array(values)) if are_plain(values) => {
                out.insert(keyword.clone(), value.clone());
            }
            ("const", value) if are_plain(std::slice::from_ref(value)) && !map.contains_key("enum") => {
                report.note(format!("{at}/const"), Effect::Kept, "written as an enum of one value");
                out.insert("enum".to_owned(), json!([value]));
            }
            (keyword, _) if KEPT.contains(&keyword) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            (keyword, _) => report.drop(at, keyword),
        }
    }
    alone(out, at, report)
}

/// The provider lists values that are texts or numbers; `null` beside them is a type of its own.
fn are_plain(values: &[Json]) -> bool {
    values.iter().all(|value| value.is_string() || value.is_number() || value.is_null())
}

/// Moves a reference into a choice of one where something stands beside it.
fn alone(mut out: Map<String, Json>, at: &str, report: &mut Report) -> Json {
    let is_alone = out.keys().all(|keyword| keyword.starts_with('$'));
    if !is_alone
        && !out.contains_key("anyOf")
        && let Some(reference) = out.shift_remove("$ref")
    {
        report.note(format!("{at}/$ref"), Effect::Kept, "written as a choice of one, as nothing may stand beside it");
        out.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
    }
    Json::Object(out)
}

/// Reports definitions that contain themselves: the provider unrolls them a few times only.
fn circles(root: &Json, report: &mut Report) {
    let Some(Json::Object(definitions)) = root.get("$defs") else { return };
    for name in definitions.keys() {
        let target = format!("/$defs/{}", escaped(name));
        if leads_to(root, &target) {
            let text = "contains itself, which the provider unrolls a few times only, and not through what is required";
            report.note(target, Effect::Inexpressible, text);
        }
    }
}

fn leads_to(root: &Json, target: &str) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![target.to_owned()];
    while let Some(next) = open.pop() {
        let mut found = Vec::new();
        root.pointer(&next).into_iter().for_each(|schema| references(schema, &mut found));
        for other in found.into_iter().filter_map(pointer) {
            if other == target {
                return true;
            }
            if seen.insert(other.clone()) {
                open.push(other);
            }
        }
    }
    false
}
