//! Conversion of JSON Schema keywords to facets.

use super::compact::is_compact;
use super::read::BUILT_IN;
use super::schema_cache::SchemaCache;
use super::validate::check_value;
use super::value::{json_to_value, value_to_json};
use super::value_index::ValueIndex;
use super::{Bounds, Records, Shape, Type};
use crate::types::keyword::is_annotation;
use serde_json::{Map, Number, Value as Json};

/// The maximum nesting of a value in a facet.
const MAX_VALUE_DEPTH: usize = 5;

/// Returns whether a schema has only these keywords and annotations.
pub(super) fn has_only(map: &Map<String, Json>, keywords: &[&str]) -> bool {
    map.keys().all(|keyword| keywords.contains(&keyword.as_str()) || is_annotation(keyword))
}

/// Returns whether an object schema allows any additional properties.
pub(super) fn is_open(map: &Map<String, Json>) -> bool {
    match map.get("additionalProperties") {
        None | Some(Json::Bool(true)) => true,
        Some(Json::Object(others)) => others.is_empty(),
        Some(_) => false,
    }
}

/// Returns the type of a schema, if it has one, and whether it also allows `null`. Returns `None` if there are several.
pub(super) fn type_and_null(map: &Map<String, Json>) -> Option<(Option<&str>, bool)> {
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

/// Returns the string value of a keyword.
pub(super) fn string(map: &Map<String, Json>, keyword: &str) -> Option<String> {
    map.get(keyword).and_then(Json::as_str).map(str::to_owned)
}

/// Returns whether a name can be the name of a record type.
pub(crate) fn is_type_name(name: &str) -> bool {
    let is_built_in = BUILT_IN.iter().any(|(first, other)| [*first, *other].contains(&name));
    !name.is_empty() && name.trim() == name && !name.starts_with("Maybe ") && !is_compact(name) && !is_built_in
}

/// Returns whether a value survives conversion to gram and back.
pub(super) fn is_representable(value: &Json) -> bool {
    fn is_shallow(value: &Json, left: usize) -> bool {
        match value {
            Json::Array(items) => left > 0 && items.iter().all(|item| is_shallow(item, left - 1)),
            Json::Object(entries) => left > 0 && entries.values().all(|item| is_shallow(item, left - 1)),
            _ => true,
        }
    }
    is_shallow(value, MAX_VALUE_DEPTH) && json_to_value(value).as_ref().and_then(value_to_json).as_ref() == Some(value)
}

/// Adds the constraints of a schema to a type as facets. Returns `None` if facets cannot express them.
pub(super) fn add_facets(ty: &mut Type, map: &Map<String, Json>, null: bool) -> Option<()> {
    ty.facets.nullable = null;
    match (map.get("enum"), map.get("const")) {
        (None, None) => {}
        (Some(Json::Array(listed)), None) => add_allowed(ty, listed, null)?,
        (None, Some(only)) => {
            if ty.shape == Shape::Any {
                ty.shape = shape_of(only);
            }
            add_allowed(ty, std::slice::from_ref(only), null)?;
        }
        _ => return None,
    }
    ty.facets.range = range(&ty.shape, map)?;
    if let Some(pattern) = string(map, "pattern") {
        ty.facets.pattern = Some(pattern).filter(|pattern| regex::Regex::new(pattern).is_ok());
        ty.facets.pattern.as_ref()?;
    }
    // For other types, the format is only about how a number is stored.
    if matches!(ty.shape, Shape::Text | Shape::Any) {
        ty.facets.format = string(map, "format");
    }
    remove_impossible(ty)
}

/// Removes listed values that the other constraints rule out. Returns `None` if no value is left.
fn remove_impossible(ty: &mut Type) -> Option<()> {
    if ty.facets.range.is_none() && ty.facets.pattern.is_none() {
        return Some(());
    }
    let Some(listed) = ty.facets.allowed.take() else { return Some(()) };
    let mut cache = SchemaCache::default();
    cache.add(ty);
    let is_possible = |value: &Json| check_value(ty, value, &Records::default(), &cache).is_ok();
    let allowed: Vec<_> = listed.into_iter().filter(is_possible).collect();
    ty.facets.allowed = Some(allowed).filter(|allowed| !allowed.is_empty());
    ty.facets.allowed.as_ref().map(|_| ())
}

/// Restricts a type to those listed values that have the type. Returns `None` if it cannot be restricted further.
pub(super) fn add_allowed(ty: &mut Type, listed: &[Json], null: bool) -> Option<()> {
    if ty.facets.allowed.is_some() || matches!(ty.shape, Shape::Schema(_)) {
        return None;
    }
    ty.facets.nullable = listed.contains(&Json::Null) && (null || ty.shape == Shape::Any);
    let mut allowed: Vec<Json> = Vec::new();
    let mut index = ValueIndex::default();
    for value in listed {
        let is_new = || !index.candidates(&allowed, value).any(|other| other == value);
        if !value.is_null() && ty.allows_shallow(value) && is_new() {
            index.add(allowed.len(), value);
            allowed.push(value.clone());
        }
    }
    ty.facets.allowed = Some(allowed).filter(|allowed| !allowed.is_empty() && allowed.iter().all(is_representable));
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

/// Returns the bounds of a value. The outer `None` means that a range cannot express them.
fn range(shape: &Shape, map: &Map<String, Json>) -> Option<Option<Bounds>> {
    let (lower, upper) = match shape {
        Shape::Text => ("minLength", "maxLength"),
        Shape::Array(_) => ("minItems", "maxItems"),
        _ => ("minimum", "maximum"),
    };
    let bound = |keyword: &str| match map.get(keyword) {
        Some(Json::Number(number)) if *shape == Shape::Number => Some(Some(number.clone())),
        Some(Json::Number(number)) => to_integer(number).map(Some),
        _ => Some(None),
    };
    let bounds = Bounds { lower: bound(lower)?, upper: bound(upper)? };
    match (&bounds.lower, &bounds.upper) {
        (None, None) => Some(None),
        (Some(lower), Some(upper)) if lower.as_f64() > upper.as_f64() => None,
        _ => Some(Some(bounds)),
    }
}

/// Converts a number to an integer, if that is exact.
fn to_integer(number: &Number) -> Option<Number> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        _ if !number.is_f64() => Some(number.clone()),
        Some(float) if float.fract() == 0.0 && float.abs() <= MAX_EXACT => Some((float as i64).into()),
        _ => None,
    }
}
