//! The root of a schema: an object, for every provider.

use super::{Effect, Report};
use crate::types::keyword::{is_definitions, is_silent, pointer};
use serde_json::{Map, Value as Json, json};

/// How often references are followed at the root.
const MOST_FOLLOWED: usize = 16;

/// Returns the root as a schema of an object that is no choice.
pub(super) fn object(schema: &Json, report: &mut Report) -> Map<String, Json> {
    let mut root = match schema {
        Json::Object(map) => map.clone(),
        Json::Bool(true) => Map::new(),
        _ => {
            report.note(
                String::new(),
                Effect::Inexpressible,
                "the schema allows nothing, the provider takes an object",
            );
            Map::new()
        }
    };
    for _ in 0..MOST_FOLLOWED {
        match inlined(schema, &root) {
            Some((next, keyword)) => {
                report.note(
                    format!("/{keyword}"),
                    Effect::Kept,
                    "written out, the provider takes an object at the root",
                );
                root = next;
            }
            None => break,
        }
    }
    for keyword in ["$ref", "anyOf", "oneOf", "allOf"] {
        if root.shift_remove(keyword).is_some() {
            let text = "left out, the provider takes no choice at the root";
            report.note(format!("/{keyword}"), Effect::Weakened, text);
        }
    }
    take_object(&mut root, report);
    root
}

/// Puts in what a root refers to, if it is nothing but a reference or a combination of one.
fn inlined(document: &Json, root: &Map<String, Json>) -> Option<(Map<String, Json>, &'static str)> {
    let mut telling = root.keys().filter(|keyword| !is_silent(keyword));
    let (only, None) = (telling.next()?, telling.next()) else { return None };
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

fn take_object(root: &mut Map<String, Json>, report: &mut Report) {
    let is_object = match root.get("type") {
        Some(Json::String(name)) => name == "object",
        Some(Json::Array(names)) => names.iter().any(|name| name == "object"),
        _ => true,
    };
    match root.get("type") {
        Some(Json::String(_)) if is_object => return,
        None => {
            report.note(String::new(), Effect::Kept, "the type object was added");
            let mut typed = Map::new();
            typed.insert("type".to_owned(), json!("object"));
            typed.extend(std::mem::take(root));
            *root = typed;
            return;
        }
        Some(_) if is_object => {
            report.note("/type".to_owned(), Effect::Kept, "only an object is left of several types");
        }
        Some(name) => {
            let text = format!("the provider takes an object at the root, not {name}");
            report.note("/type".to_owned(), Effect::Inexpressible, text);
        }
    }
    root.insert("type".to_owned(), json!("object"));
}
