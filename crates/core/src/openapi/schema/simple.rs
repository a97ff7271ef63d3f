//! Schemas of single values: what of their keywords a type can say.

use super::super::Notes;
use serde_json::{Map, Number, Value as Json, json};

/// The types of JSON Schema.
const TYPES: &[&str] = &["string", "integer", "number", "boolean", "array", "object", "null"];
/// How many values may be listed.
const MOST_VALUES: usize = 250;

/// Tells whether a schema allows nothing but `null`.
pub(super) fn is_null(schema: &Json) -> bool {
    schema.get("type").is_some_and(|name| name == "null") || schema.get("enum") == Some(&json!([null]))
}

/// Tells whether a schema says itself that `null` is allowed.
pub(super) fn is_nullable(map: &Map<String, Json>) -> bool {
    let list = |keyword: &str| map.get(keyword).and_then(Json::as_array).into_iter().flatten();
    map.get("nullable") == Some(&Json::Bool(true))
        || list("type").any(|name| name == "null")
        || list("oneOf").chain(list("anyOf")).any(is_null)
        || (!map.contains_key("type") && list("enum").any(Json::is_null))
}

/// Returns a schema that allows `null` too.
pub(super) fn with_null(mut schema: Map<String, Json>) -> Map<String, Json> {
    match schema.get("type").cloned() {
        Some(Json::Array(mut names)) => {
            names.push("null".into());
            schema.insert("type".to_owned(), Json::Array(names));
        }
        Some(name) => drop(schema.insert("type".to_owned(), json!([name, "null"]))),
        None if schema.is_empty() || schema.contains_key("enum") => {}
        None => return super::keywords([("anyOf", json!([schema, { "type": "null" }]))]),
    }
    if let Some(Json::Array(allowed)) = schema.get_mut("enum") {
        allowed.push(Json::Null);
    }
    schema
}

/// Returns the schema of the values of a map, if an object is one.
pub(super) fn map_values(map: &Map<String, Json>) -> Option<&Json> {
    map.get("additionalProperties").filter(|values| values.as_object().is_some_and(|values| !values.is_empty()))
}

/// Returns alternatives that are only texts to choose from as a list of them.
pub(super) fn alternatives(options: &[&Json]) -> Option<Map<String, Json>> {
    let mut allowed: Vec<Json> = Vec::new();
    for option in options {
        match (option.get("const"), option.get("enum")) {
            (Some(Json::String(only)), None) => allowed.push(only.as_str().into()),
            (None, Some(Json::Array(listed))) if listed.iter().all(Json::is_string) => {
                allowed.extend(listed.iter().cloned());
            }
            _ => return None,
        }
    }
    let is_short = !allowed.is_empty() && allowed.len() <= MOST_VALUES;
    is_short.then(|| super::keywords([("type", "string".into()), ("enum", Json::Array(allowed))]))
}

/// Returns what a type can say of a single value or of an array, but not of its items.
pub(super) fn keywords(map: &Map<String, Json>, notes: &mut Notes) -> Map<String, Json> {
    let mut made = Map::new();
    let names: Vec<&str> = match map.get("type") {
        Some(Json::String(name)) => vec![name],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).filter(|name| *name != "null").collect(),
        _ if map.contains_key("items") => vec!["array"],
        _ if are_texts(map) => vec!["string"],
        _ => Vec::new(),
    };
    if let Some(unknown) = names.iter().find(|name| !TYPES.contains(name)) {
        notes.add(format!("there is no type `{unknown}`, and it is taken for anything"));
        return made;
    }
    match names.as_slice() {
        [] => {}
        [one] => drop(made.insert("type".to_owned(), (*one).into())),
        several => drop(made.insert("type".to_owned(), json!(several))),
    }
    listed(map, &mut made, notes);
    let only = if let [one] = names.as_slice() { one } else { "" };
    match only {
        "string" => {
            lengths(map, &mut made, ["minLength", "maxLength"]);
            if let Some(format) = map.get("format").filter(|format| format.is_string()) {
                made.insert("format".to_owned(), format.clone());
            }
            match map.get("pattern").and_then(Json::as_str) {
                Some(pattern) if regex::Regex::new(pattern).is_ok() => {
                    made.insert("pattern".to_owned(), pattern.into());
                }
                Some(pattern) => notes.add(format!("the pattern `{pattern}` cannot be checked, and is left out")),
                None => {}
            }
        }
        "integer" | "number" => bounds(map, &mut made, only == "integer"),
        "array" => lengths(map, &mut made, ["minItems", "maxItems"]),
        _ => {}
    }
    if let Some(default) = map.get("default").filter(|default| is_fitting(default, only, &made)) {
        made.insert("default".to_owned(), default.clone());
    }
    for keyword in ["not", "if", "prefixItems", "contains"] {
        if map.contains_key(keyword) {
            notes.add(format!("`{keyword}` is left out of a type"));
        }
    }
    made
}

/// Tells whether a schema without a type lists texts.
fn are_texts(map: &Map<String, Json>) -> bool {
    let listed = map.get("enum").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut values = listed.iter().chain(map.get("const")).filter(|value| !value.is_null()).peekable();
    values.peek().is_some() && values.all(Json::is_string)
}

/// Adds the values that are allowed.
fn listed(map: &Map<String, Json>, made: &mut Map<String, Json>, notes: &mut Notes) {
    let allowed: Vec<_> = match (map.get("enum"), map.get("const")) {
        (Some(Json::Array(allowed)), _) => allowed.iter().filter(|value| !value.is_null()).cloned().collect(),
        (_, Some(only)) => vec![only.clone()],
        _ => return,
    };
    if allowed.len() > MOST_VALUES {
        return notes.add(format!("a list of {} allowed values is too long, and is left out", allowed.len()));
    }
    let is_text = made.get("type").is_some_and(|name| name == "string");
    // YAML reads `no` and `1.0` as something else than the text that is meant.
    let meant = |value: Json| {
        if is_text && (value.is_boolean() || value.is_number()) { value.to_string().into() } else { value }
    };
    let allowed: Vec<_> = allowed.into_iter().map(meant).collect();
    if !allowed.is_empty() {
        made.insert("enum".to_owned(), Json::Array(allowed));
    }
}

fn lengths(map: &Map<String, Json>, made: &mut Map<String, Json>, [lower, upper]: [&str; 2]) {
    let bound = |keyword: &str| map.get(keyword).and_then(Json::as_u64);
    let (least, most) = (bound(lower).filter(|least| *least > 0), bound(upper));
    if least.zip(most).is_none_or(|(least, most)| least <= most) {
        made.extend(least.map(|least| (lower.to_owned(), least.into())));
        made.extend(most.map(|most| (upper.to_owned(), most.into())));
    }
}

/// Adds the bounds of a number. An exclusive one is moved by one for whole numbers, and else taken for an inclusive one.
fn bounds(map: &Map<String, Json>, made: &mut Map<String, Json>, is_whole: bool) {
    let bound = |inclusive: &str, exclusive: &str, step: i64| -> Option<Number> {
        let (number, is_exclusive) = match (map.get(inclusive), map.get(exclusive)) {
            (Some(Json::Number(number)), Some(Json::Bool(true))) => (number, true),
            (Some(Json::Number(number)), None | Some(Json::Bool(false))) => (number, false),
            (_, Some(Json::Number(number))) => (number, true),
            _ => return None,
        };
        match number.as_i64() {
            Some(whole) if is_exclusive && is_whole => whole.checked_add(step).map(Number::from),
            None if is_whole && number.is_f64() => whole_number(number),
            _ => Some(number.clone()),
        }
    };
    let least = bound("minimum", "exclusiveMinimum", 1);
    let most = bound("maximum", "exclusiveMaximum", -1);
    let is_empty = least.as_ref().zip(most.as_ref()).is_some_and(|(least, most)| least.as_f64() > most.as_f64());
    if !is_empty {
        made.extend(least.map(|least| ("minimum".to_owned(), Json::Number(least))));
        made.extend(most.map(|most| ("maximum".to_owned(), Json::Number(most))));
    }
}

/// Returns a bound such as `1.0` or `1e6` as a whole number; others bound nothing that is whole more closely.
fn whole_number(number: &Number) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT).map(|float| (float as i64).into())
}

/// Tells whether a default is one that the type allows. The server fills in what is not said anyway.
fn is_fitting(default: &Json, name: &str, made: &Map<String, Json>) -> bool {
    let is_of_type = match name {
        "string" => default.is_string(),
        "integer" => default.is_i64() || default.is_u64(),
        "number" => default.is_number(),
        "boolean" => default.is_boolean(),
        _ => false,
    };
    let within = |keyword: &str, holds: fn(f64, f64) -> bool| {
        let bound = made.get(keyword).and_then(Json::as_f64);
        bound.zip(default.as_f64()).is_none_or(|(bound, value)| holds(value, bound))
    };
    let is_listed = made.get("enum").and_then(Json::as_array).is_none_or(|allowed| allowed.contains(default));
    let is_free_text = !["pattern", "minLength", "maxLength"].iter().any(|keyword| made.contains_key(*keyword));
    is_of_type
        && is_listed
        && (name != "string" || is_free_text)
        && within("minimum", |value, bound| value >= bound)
        && within("maximum", |value, bound| value <= bound)
}
