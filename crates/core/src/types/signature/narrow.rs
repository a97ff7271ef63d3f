//! What the keywords of a JSON Schema say about a single value.

use super::read::BUILT_IN;
use super::value::{json_of, value_of};
use super::{Bounds, Shape, Type};
use crate::types::keyword::is_silent;
use serde_json::{Map, Number, Value as Json};

/// How deep a value may nest to be written beside a type.
const DEEPEST_VALUE: usize = 5;

/// Tells whether a schema has no keyword but these and annotations.
pub(super) fn only(map: &Map<String, Json>, keywords: &[&str]) -> bool {
    map.keys().all(|keyword| keywords.contains(&keyword.as_str()) || is_silent(keyword))
}

/// Tells whether a schema of an object leaves other properties free.
pub(super) fn is_open(map: &Map<String, Json>) -> bool {
    match map.get("additionalProperties") {
        None | Some(Json::Bool(true)) => true,
        Some(Json::Object(others)) => others.is_empty(),
        Some(_) => false,
    }
}

/// Returns the one type that a schema names, if any, and whether it names `null` beside it.
pub(super) fn types(map: &Map<String, Json>) -> Option<(Option<&str>, bool)> {
    match map.get("type") {
        None => Some((None, false)),
        Some(Json::String(name)) => Some((Some(name), false)),
        Some(Json::Array(names)) => match names.as_slice() {
            [Json::String(name)] => Some((Some(name), false)),
            [Json::String(name), Json::String(null)] | [Json::String(null), Json::String(name)] if null == "null" => {
                Some((Some(name), true))
            }
            _ => None,
        },
        Some(_) => None,
    }
}

/// Returns the text of a keyword.
pub(super) fn text(map: &Map<String, Json>, keyword: &str) -> Option<String> {
    map.get(keyword).and_then(Json::as_str).map(str::to_owned)
}

/// Tells whether a name can be that of a record type.
pub(crate) fn is_type_name(name: &str) -> bool {
    let is_built_in = BUILT_IN.iter().any(|(first, other)| [*first, *other].contains(&name));
    !name.is_empty() && name.trim() == name && !name.starts_with("Maybe ") && !is_built_in
}

/// Tells whether a value can be written in gram, and read back as it was.
pub(super) fn is_sayable(value: &Json) -> bool {
    fn is_shallow(value: &Json, left: usize) -> bool {
        match value {
            Json::Array(items) => left > 0 && items.iter().all(|item| is_shallow(item, left - 1)),
            Json::Object(entries) => left > 0 && entries.values().all(|item| is_shallow(item, left - 1)),
            _ => true,
        }
    }
    is_shallow(value, DEEPEST_VALUE) && value_of(value).as_ref().and_then(json_of).as_ref() == Some(value)
}

/// Adds what a schema says beside the type. `None` where it says more than facets can.
pub(super) fn narrow(ty: &mut Type, map: &Map<String, Json>, null: bool) -> Option<()> {
    ty.facets.nullable = null;
    match (map.get("enum"), map.get("const")) {
        (None, None) => {}
        (Some(Json::Array(listed)), None) => allow(ty, listed, null)?,
        (None, Some(only)) => {
            if ty.shape == Shape::Any {
                ty.shape = shape_of(only);
            }
            allow(ty, std::slice::from_ref(only), null)?;
        }
        _ => return None,
    }
    ty.facets.range = range(&ty.shape, map)?;
    if let Some(pattern) = text(map, "pattern") {
        ty.facets.pattern = Some(pattern).filter(|pattern| regex::Regex::new(pattern).is_ok());
        ty.facets.pattern.as_ref()?;
    }
    // On other types a format only hints at how a number is stored.
    if matches!(ty.shape, Shape::Text | Shape::Any) {
        ty.facets.format = text(map, "format");
    }
    Some(())
}

/// Allows only the listed values that are of the type, which may not list values itself.
pub(super) fn allow(ty: &mut Type, listed: &[Json], null: bool) -> Option<()> {
    if ty.facets.allowed.is_some() || matches!(ty.shape, Shape::Schema(_)) {
        return None;
    }
    ty.facets.nullable = listed.contains(&Json::Null) && (null || ty.shape == Shape::Any);
    let mut allowed: Vec<Json> = Vec::new();
    for value in listed {
        if !value.is_null() && ty.allows_shallow(value) && !allowed.contains(value) {
            allowed.push(value.clone());
        }
    }
    ty.facets.allowed = Some(allowed).filter(|allowed| !allowed.is_empty() && allowed.iter().all(is_sayable));
    ty.facets.allowed.as_ref().map(|_| ())
}

fn shape_of(value: &Json) -> Shape {
    match value {
        Json::String(_) => Shape::Text,
        Json::Bool(_) => Shape::Boolean,
        Json::Number(number) if number.is_f64() => Shape::Number,
        Json::Number(_) => Shape::Integer,
        _ => Shape::Any,
    }
}

/// Returns the bounds of a value. The outer `None` says that no range can say them.
fn range(shape: &Shape, map: &Map<String, Json>) -> Option<Option<Bounds>> {
    let (lower, upper) = match shape {
        Shape::Text => ("minLength", "maxLength"),
        Shape::Array(_) => ("minItems", "maxItems"),
        _ => ("minimum", "maximum"),
    };
    let bound = |keyword: &str| match map.get(keyword) {
        Some(Json::Number(number)) if *shape == Shape::Number => Some(Some(number.clone())),
        Some(Json::Number(number)) => whole(number).map(Some),
        _ => Some(None),
    };
    let bounds = Bounds { lower: bound(lower)?, upper: bound(upper)? };
    match (&bounds.lower, &bounds.upper) {
        (None, None) => Some(None),
        (Some(lower), Some(upper)) if lower.as_f64() > upper.as_f64() => None,
        _ => Some(Some(bounds)),
    }
}

/// Returns a number as a whole one, if it is.
fn whole(number: &Number) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        _ if !number.is_f64() => Some(number.clone()),
        Some(float) if float.fract() == 0.0 && float.abs() <= EXACT => Some((float as i64).into()),
        _ => None,
    }
}
