//! The parameters of a tool, as its schema tells them.

use super::word::{name_words, number};
use serde_json::Value as Json;

/// A parameter, or a field of an object.
#[derive(Debug, Clone)]
pub(super) struct Parameter<'s> {
    pub(super) name: &'s str,
    /// The words of its name.
    pub(super) words: Vec<String>,
    pub(super) schema: &'s Json,
    pub(super) is_required: bool,
}

/// What values a schema is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Any,
}

/// Returns the parameters of an object schema, in order. What is required has no default.
pub(super) fn parameters<'s>(root: &'s Json, schema: &'s Json) -> Vec<Parameter<'s>> {
    let schema = resolved(root, schema);
    let required = schema.get("required").and_then(Json::as_array);
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return Vec::new() };
    let parameter = |(name, written): (&'s String, &'s Json)| {
        let listed = required.is_some_and(|names| names.iter().any(|listed| listed.as_str() == Some(name)));
        let schema = resolved(root, written);
        let is_free = written.get("default").or_else(|| schema.get("default")).is_some() || is_nullable(written);
        Parameter { name, words: name_words(name), schema, is_required: listed && !is_free }
    };
    properties.iter().map(parameter).collect()
}

/// Follows references, and looks past `null` where something else is possible too.
pub(super) fn resolved<'s>(root: &'s Json, mut schema: &'s Json) -> &'s Json {
    for _ in 0..8 {
        let reference = schema.get("$ref").and_then(Json::as_str).and_then(|to| to.strip_prefix('#'));
        let choice = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.as_array());
        let next = match (reference, choice) {
            (Some(pointer), _) => root.pointer(pointer),
            (None, Some(choices)) if schema.get("type").is_none() => choices.iter().find(|choice| !is_null(choice)),
            _ => None,
        };
        match next {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn is_null(schema: &Json) -> bool {
    schema.get("type").and_then(Json::as_str) == Some("null")
}

fn is_nullable(schema: &Json) -> bool {
    let types = schema.get("type").and_then(Json::as_array);
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Json::as_array);
    types.is_some_and(|types| types.iter().any(|ty| ty == "null"))
        || choices.is_some_and(|choices| choices.iter().any(is_null))
}

/// Returns the sort of values that a schema allows; the first one, where there are several.
pub(super) fn kind(schema: &Json) -> Kind {
    let ty = match schema.get("type") {
        Some(Json::Array(types)) => types.iter().filter_map(Json::as_str).find(|ty| *ty != "null"),
        Some(ty) => ty.as_str(),
        None if schema.get("properties").is_some() => Some("object"),
        None if schema.get("enum").is_some() => Some("string"),
        None => None,
    };
    match ty {
        Some("string") => Kind::Text,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        Some("array") => Kind::Array,
        Some("object") => Kind::Object,
        _ => Kind::Any,
    }
}

/// Tells whether a value keeps to the simple limits of a schema; the executor checks all of them.
pub(super) fn fits(schema: &Json, value: &Json) -> bool {
    if let Some(allowed) = schema.get("enum").and_then(Json::as_array) {
        return allowed.contains(value);
    }
    match value {
        Json::String(text) => {
            let length = text.chars().count() as u64;
            let at = |key: &str| schema.get(key).and_then(Json::as_u64);
            at("minLength").is_none_or(|least| length >= least)
                && at("maxLength").is_none_or(|most| length <= most)
                && schema.get("pattern").and_then(Json::as_str).is_none_or(|pattern| matches(pattern, text))
        }
        Json::Number(found) => {
            let at = |key: &str| schema.get(key).and_then(Json::as_f64);
            let Some(found) = found.as_f64() else { return false };
            (kind(schema) != Kind::Integer || value.is_i64() || value.is_u64())
                && at("minimum").is_none_or(|least| found >= least)
                && at("maximum").is_none_or(|most| found <= most)
                && at("exclusiveMinimum").is_none_or(|least| found > least)
                && at("exclusiveMaximum").is_none_or(|most| found < most)
        }
        _ => true,
    }
}

/// A pattern that cannot be read here restricts nothing here.
fn matches(pattern: &str, text: &str) -> bool {
    let regex = regex::RegexBuilder::new(pattern).size_limit(1 << 16).build();
    regex.map_or(true, |regex| regex.is_match(text))
}

/// Returns a text as a value of a schema, if it can be one.
pub(super) fn value_of(schema: &Json, text: &str) -> Option<Json> {
    let value = match kind(schema) {
        Kind::Text => enumerated(schema, text).cloned().unwrap_or_else(|| text.into()),
        Kind::Integer | Kind::Number => Json::Number(number(text)?),
        Kind::Boolean => super::word::truth(text)?.into(),
        Kind::Any => number(text).map_or_else(|| text.into(), Json::Number),
        Kind::Array | Kind::Object => return None,
    };
    fits(schema, &value).then_some(value)
}

/// Returns the value of an enumeration that is written so, whatever the case.
fn enumerated<'s>(schema: &'s Json, text: &str) -> Option<&'s Json> {
    let same = |value: &&Json| value.as_str().is_some_and(|value| value.to_lowercase() == text.to_lowercase());
    schema.get("enum")?.as_array()?.iter().find(same)
}
