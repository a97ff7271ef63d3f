//! Gemini's subset.

use super::{Fidelity, Report};
use crate::types::keyword::{collect_references, escape_token, map_references, map_subschemas, pointer};
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

/// Keywords that are kept unchanged.
const UNCHANGED: &[&str] =
    &["type", "format", "title", "description", "minItems", "maxItems", "minimum", "maximum", "required", "$ref"];

/// Keywords that contain schemas and are kept.
const CONTAINERS: &[&str] = &["items", "prefixItems", "anyOf", "oneOf", "properties", "additionalProperties", "$defs"];

/// Rewrites a schema whose root is an object.
pub(super) fn adapt(root: &Map<String, Json>, report: &mut Report) -> Json {
    let root = with_defs(root, report);
    report_recursion(&root, report);
    schema(&root, "", report)
}

/// Renames `definitions`, which the provider ignores.
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
    report.note("/definitions".to_owned(), Fidelity::Preserved, "renamed to $defs");
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
            (keyword, _) if CONTAINERS.contains(&keyword) => {
                if keyword == "oneOf" {
                    let text = "treated as anyOf; a value may match several options";
                    report.note(format!("{at}/oneOf"), Fidelity::Weakened, text);
                }
                let one = Map::from_iter([(keyword.to_owned(), value.clone())]);
                out.extend(map_subschemas(&one, &mut |path, child| schema(child, &format!("{at}{path}"), report)));
            }
            ("enum", Json::Array(values)) if are_plain(values) => {
                out.insert(keyword.clone(), value.clone());
            }
            ("const", value) if are_plain(std::slice::from_ref(value)) && !map.contains_key("enum") => {
                report.note(format!("{at}/const"), Fidelity::Preserved, "rewritten as an enum with one value");
                out.insert("enum".to_owned(), json!([value]));
            }
            (keyword, _) if UNCHANGED.contains(&keyword) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            ("default", _) => {}
            (keyword, _) => report.removed(at, keyword),
        }
    }
    report.describe_default(at, map, &mut out);
    isolate_reference(out, at, report)
}

/// Returns whether an enum may list these values: strings and numbers, and `null`, which counts as a separate type.
fn are_plain(values: &[Json]) -> bool {
    values.iter().all(|value| value.is_string() || value.is_number() || value.is_null())
}

/// Wraps a reference in `anyOf` if there are keywords next to it.
fn isolate_reference(mut out: Map<String, Json>, at: &str, report: &mut Report) -> Json {
    let is_alone = out.keys().all(|keyword| keyword.starts_with('$'));
    if !is_alone
        && !out.contains_key("anyOf")
        && let Some(reference) = out.shift_remove("$ref")
    {
        report.note(format!("{at}/$ref"), Fidelity::Preserved, "wrapped in anyOf; no keywords are allowed next to it");
        out.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
    }
    Json::Object(out)
}

/// Reports recursive definitions, which the provider expands only a few times.
fn report_recursion(root: &Json, report: &mut Report) {
    let Some(Json::Object(definitions)) = root.get("$defs") else { return };
    for name in definitions.keys() {
        let target = format!("/$defs/{}", escape_token(name));
        if is_recursive(root, &target) {
            let text = "recursive; the provider expands it only a few times, and not through required properties";
            report.note(target, Fidelity::Inexpressible, text);
        }
    }
}

fn is_recursive(root: &Json, target: &str) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![target.to_owned()];
    while let Some(next) = open.pop() {
        let mut found = Vec::new();
        root.pointer(&next).into_iter().for_each(|schema| collect_references(schema, &mut found));
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
