//! The root of a schema, which every provider requires to be an object.

use super::{Fidelity, Report};
use crate::types::keyword::{is_annotation, is_definitions, pointer};
use serde_json::{Map, Value as Json, json};

/// The maximum number of references to follow at the root.
const MAX_FOLLOWED: usize = 16;

/// Returns the root as the schema of an object, without combinations.
pub(super) fn object_root(schema: &Json, report: &mut Report) -> Map<String, Json> {
    let mut root = match schema {
        Json::Object(map) => map.clone(),
        Json::Bool(true) => Map::new(),
        _ => {
            report.note(
                String::new(),
                Fidelity::Inexpressible,
                "the schema allows no value; the provider requires an object",
            );
            Map::new()
        }
    };
    for _ in 0..MAX_FOLLOWED {
        match inline(schema, &root) {
            Some((next, keyword)) => {
                report.note(
                    format!("/{keyword}"),
                    Fidelity::Preserved,
                    "inlined; the provider requires an object at the root",
                );
                root = next;
            }
            None => break,
        }
    }
    for keyword in ["$ref", "anyOf", "oneOf", "allOf"] {
        if root.shift_remove(keyword).is_some() {
            let text = "removed; the provider does not support combinations at the root";
            report.note(format!("/{keyword}"), Fidelity::Weakened, text);
        }
    }
    require_object(&mut root, report);
    root
}

/// Inlines the target of a root that is only a reference, or a combination with one part.
fn inline(document: &Json, root: &Map<String, Json>) -> Option<(Map<String, Json>, &'static str)> {
    let mut constraints = root.keys().filter(|keyword| !is_annotation(keyword));
    let (only, None) = (constraints.next()?, constraints.next()) else { return None };
    let (target, keyword) = match (only.as_str(), root.get(only)?) {
        ("$ref", Json::String(reference)) => (document.pointer(&pointer(reference)?)?, "$ref"),
        ("allOf", Json::Array(options)) if options.len() == 1 => (options.first()?, "allOf"),
        ("anyOf", Json::Array(options)) if options.len() == 1 => (options.first()?, "anyOf"),
        ("oneOf", Json::Array(options)) if options.len() == 1 => (options.first()?, "oneOf"),
        _ => return None,
    };
    let mut next = target.as_object()?.clone();
    for (keyword, value) in root.iter().filter(|(keyword, _)| *keyword != only) {
        if is_definitions(keyword) || !next.contains_key(keyword) {
            next.insert(keyword.clone(), value.clone());
        }
    }
    Some((next, keyword))
}

/// Makes `object` the only type of the root.
fn require_object(root: &mut Map<String, Json>, report: &mut Report) {
    let is_object = match root.get("type") {
        Some(Json::String(name)) => name == "object",
        Some(Json::Array(names)) => names.iter().any(|name| name == "object"),
        _ => true,
    };
    match root.get("type") {
        Some(Json::String(_)) if is_object => return,
        None => {
            report.note(String::new(), Fidelity::Preserved, "added the type object");
            let mut typed = Map::new();
            typed.insert("type".to_owned(), json!("object"));
            typed.extend(std::mem::take(root));
            *root = typed;
            return;
        }
        Some(_) if is_object => {
            report.note("/type".to_owned(), Fidelity::Preserved, "reduced several types to object");
        }
        Some(name) => {
            let text = format!("the provider requires an object at the root, not {name}");
            report.note("/type".to_owned(), Fidelity::Inexpressible, text);
        }
    }
    root.insert("type".to_owned(), json!("object"));
}
