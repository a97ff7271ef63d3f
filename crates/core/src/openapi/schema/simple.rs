//! Schemas of single values: the keywords that types support.

use crate::openapi::warning::Warnings;
use crate::text::find_secrets;
use crate::types::signature::misspelt_format;
use serde_json::{Map, Number, Value as Json, json};

/// The types of JSON Schema.
const TYPES: &[&str] = &["string", "integer", "number", "boolean", "array", "object", "null"];
/// The maximum number of allowed values.
const MAX_VALUES: usize = 250;

/// Returns whether a schema allows only `null`.
pub(super) fn is_null(schema: &Json) -> bool {
    schema.get("type").is_some_and(|name| name == "null") || schema.get("enum") == Some(&json!([null]))
}

/// Returns whether a schema itself allows `null`.
pub(super) fn is_nullable(map: &Map<String, Json>) -> bool {
    let list = |keyword: &str| map.get(keyword).and_then(Json::as_array).into_iter().flatten();
    map.get("nullable") == Some(&Json::Bool(true))
        || list("type").any(|name| name == "null")
        || list("oneOf").chain(list("anyOf")).any(is_null)
        || (!map.contains_key("type") && list("enum").any(Json::is_null))
}

/// Extends a schema to allow `null`, unless it does already, as a reference to a schema with `null` may.
pub(super) fn with_null(mut schema: Map<String, Json>) -> Map<String, Json> {
    match schema.get("type").cloned() {
        Some(Json::Array(names)) if names.iter().any(|name| name == "null") => return schema,
        Some(Json::String(name)) if name == "null" => return schema,
        Some(Json::Array(mut names)) => {
            names.push("null".into());
            schema.insert("type".to_owned(), Json::Array(names));
        }
        Some(name) => drop(schema.insert("type".to_owned(), json!([name, "null"]))),
        None if schema.is_empty() || schema.contains_key("enum") => {}
        None => return schema_of([("anyOf", json!([schema, { "type": "null" }]))]),
    }
    if let Some(Json::Array(allowed)) = schema.get_mut("enum") {
        allowed.push(Json::Null);
    }
    schema
}

/// Returns the schema of the values, if an object is a map.
pub(super) fn map_values(map: &Map<String, Json>) -> Option<&Json> {
    map.get("additionalProperties").filter(|values| values.as_object().is_some_and(|values| !values.is_empty()))
}

/// Combines alternatives that only list texts.
pub(super) fn combine_texts(options: &[&Json]) -> Option<Map<String, Json>> {
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
    let is_short = !allowed.is_empty() && allowed.len() <= MAX_VALUES;
    is_short.then(|| schema_of([("type", "string".into()), ("enum", Json::Array(allowed))]))
}

/// Returns the supported keywords of a single value or of an array, without its items.
pub(super) fn supported_keywords(map: &Map<String, Json>, warnings: &mut Warnings) -> Map<String, Json> {
    let mut result = Map::new();
    let names: Vec<&str> = match map.get("type") {
        Some(Json::String(name)) => vec![name],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).filter(|name| *name != "null").collect(),
        _ if map.contains_key("items") => vec!["array"],
        _ if lists_texts(map) => vec!["string"],
        _ => Vec::new(),
    };
    if let Some(unknown) = names.iter().find(|name| !TYPES.contains(name)) {
        warnings.add(format!("unknown type `{unknown}`; treated as `Any`"));
        return result;
    }
    match names.as_slice() {
        [] => {}
        [one] => drop(result.insert("type".to_owned(), (*one).into())),
        several => drop(result.insert("type".to_owned(), json!(several))),
    }
    add_allowed_values(map, &mut result, warnings);
    let only = if let [one] = names.as_slice() { one } else { "" };
    match only {
        "string" => {
            add_lengths(map, &mut result, ["minLength", "maxLength"]);
            // What resembles a standard format is most likely meant to be it, but may be written in another form.
            let format = map.get("format").and_then(Json::as_str).filter(|format| misspelt_format(format).is_none());
            if let Some(format) = format {
                result.insert("format".to_owned(), format.into());
            }
            match map.get("pattern").and_then(Json::as_str) {
                Some(pattern) if regex::Regex::new(pattern).is_ok() => {
                    result.insert("pattern".to_owned(), pattern.into());
                }
                Some(pattern) => warnings.add(format!("the pattern `{pattern}` is not supported; left out")),
                None => {}
            }
        }
        "integer" | "number" => add_bounds(map, &mut result, only == "integer"),
        "array" => add_lengths(map, &mut result, ["minItems", "maxItems"]),
        _ => {}
    }
    if let Some(default) = map.get("default").filter(|default| is_valid_default(default, only, &result)) {
        result.insert("default".to_owned(), default.clone());
    }
    for keyword in ["not", "if", "prefixItems", "contains"] {
        if map.contains_key(keyword) {
            warnings.add(format!("`{keyword}` is not supported; left out"));
        }
    }
    result
}

/// Returns whether a schema without a type lists texts.
fn lists_texts(map: &Map<String, Json>) -> bool {
    let listed = map.get("enum").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut values = listed.iter().chain(map.get("const")).filter(|value| !value.is_null()).peekable();
    values.peek().is_some() && values.all(Json::is_string)
}

/// Adds the allowed values.
fn add_allowed_values(map: &Map<String, Json>, result: &mut Map<String, Json>, warnings: &mut Warnings) {
    let allowed: Vec<_> = match (map.get("enum"), map.get("const")) {
        (Some(Json::Array(allowed)), _) => allowed.iter().filter(|value| !value.is_null()).cloned().collect(),
        (_, Some(only)) => vec![only.clone()],
        _ => return,
    };
    if allowed.len() > MAX_VALUES {
        return warnings.add(format!("a list of {} allowed values is too long; left out", allowed.len()));
    }
    let is_text = result.get("type").is_some_and(|name| name == "string");
    // YAML reads `no` and `1.0` as other types than the intended text.
    let intended = |value: Json| {
        if is_text && (value.is_boolean() || value.is_number()) { value.to_string().into() } else { value }
    };
    let allowed: Vec<_> = allowed.into_iter().map(intended).collect();
    if !allowed.is_empty() {
        result.insert("enum".to_owned(), Json::Array(allowed));
    }
}

fn add_lengths(map: &Map<String, Json>, result: &mut Map<String, Json>, [lower, upper]: [&str; 2]) {
    let bound = |keyword: &str| map.get(keyword).and_then(Json::as_u64);
    let min = bound(lower).filter(|min| *min > 0);
    let max = bound(upper);
    if min.zip(max).is_none_or(|(min, max)| min <= max) {
        result.extend(min.map(|min| (lower.to_owned(), min.into())));
        result.extend(max.map(|max| (upper.to_owned(), max.into())));
    }
}

/// Adds the bounds of a number. An exclusive bound is moved by one for integers, and treated as inclusive otherwise.
fn add_bounds(map: &Map<String, Json>, result: &mut Map<String, Json>, is_integer: bool) {
    let bound = |inclusive: &str, exclusive: &str, step: i64| -> Option<Number> {
        let (number, is_exclusive) = match (map.get(inclusive), map.get(exclusive)) {
            (Some(Json::Number(number)), Some(Json::Bool(true))) => (number, true),
            (Some(Json::Number(number)), None | Some(Json::Bool(false))) => (number, false),
            (_, Some(Json::Number(number))) => (number, true),
            _ => return None,
        };
        match number.as_i64() {
            Some(integer) if is_exclusive && is_integer => integer.checked_add(step).map(Number::from),
            None if is_integer && number.is_f64() => integer_bound(number),
            _ => Some(number.clone()),
        }
    };
    let min = bound("minimum", "exclusiveMinimum", 1);
    let max = bound("maximum", "exclusiveMaximum", -1);
    let is_empty = min.as_ref().zip(max.as_ref()).is_some_and(|(min, max)| min.as_f64() > max.as_f64());
    if !is_empty {
        result.extend(min.map(|min| ("minimum".to_owned(), Json::Number(min))));
        result.extend(max.map(|max| ("maximum".to_owned(), Json::Number(max))));
    }
}

/// Converts a bound such as `1.0` or `1e6` to an integer. Fractional bounds of integers are dropped.
fn integer_bound(number: &Number) -> Option<Number> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MAX_EXACT).map(|float| (float as i64).into())
}

/// Returns whether the type allows a default. The server fills in missing values anyway.
fn is_valid_default(default: &Json, name: &str, result: &Map<String, Json>) -> bool {
    let has_type = match name {
        "string" => default.as_str().is_some_and(|text| find_secrets(text).is_empty()),
        "integer" => default.is_i64() || default.is_u64(),
        "number" => default.is_number(),
        "boolean" => default.is_boolean(),
        _ => false,
    };
    let within = |keyword: &str, holds: fn(f64, f64) -> bool| {
        let bound = result.get(keyword).and_then(Json::as_f64);
        bound.zip(default.as_f64()).is_none_or(|(bound, value)| holds(value, bound))
    };
    let is_listed = result.get("enum").and_then(Json::as_array).is_none_or(|allowed| allowed.contains(default));
    let is_free_text = !["pattern", "minLength", "maxLength"].iter().any(|keyword| result.contains_key(*keyword));
    has_type
        && is_listed
        && (name != "string" || is_free_text)
        && within("minimum", |value, bound| value >= bound)
        && within("maximum", |value, bound| value <= bound)
}

/// Creates a schema from its keywords.
pub(super) fn schema_of<const N: usize>(keywords: [(&str, Json); N]) -> Map<String, Json> {
    keywords.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect()
}
