//! The parameters of a tool, from its schema.

use super::word::{name_words, parse_number};
use serde_json::Value as Json;

/// A parameter, or a field of an object.
#[derive(Debug, Clone)]
pub(super) struct Parameter<'s> {
    pub(super) name: &'s str,
    /// The words of the name.
    pub(super) words: Vec<String>,
    pub(super) schema: &'s Json,
    pub(super) is_required: bool,
}

/// The kind of values that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Text,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Any,
}

/// Returns the parameters of an object schema, in order. Parameters with a default are not required.
pub(super) fn parameters<'s>(root: &'s Json, schema: &'s Json) -> Vec<Parameter<'s>> {
    let schema = resolve(root, schema);
    let required = schema.get("required").and_then(Json::as_array);
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return Vec::new() };
    let parameter = |(name, declared): (&'s String, &'s Json)| {
        let is_listed = required.is_some_and(|names| names.iter().any(|listed| listed.as_str() == Some(name)));
        let schema = resolve(root, declared);
        let is_optional = declared.get("default").or_else(|| schema.get("default")).is_some() || is_nullable(declared);
        Parameter { name, words: name_words(name), schema, is_required: is_listed && !is_optional }
    };
    properties.iter().map(parameter).collect()
}

/// Follows references, and skips `null` among alternatives.
pub(super) fn resolve<'s>(root: &'s Json, mut schema: &'s Json) -> &'s Json {
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

/// Returns the kind of values that a schema allows; the first one if there are several.
pub(super) fn kind(schema: &Json) -> ParameterKind {
    let ty = match schema.get("type") {
        Some(Json::Array(types)) => types.iter().filter_map(Json::as_str).find(|ty| *ty != "null"),
        Some(ty) => ty.as_str(),
        None if schema.get("properties").is_some() => Some("object"),
        None if schema.get("enum").is_some() => Some("string"),
        None => None,
    };
    match ty {
        Some("string") => ParameterKind::Text,
        Some("integer") => ParameterKind::Integer,
        Some("number") => ParameterKind::Number,
        Some("boolean") => ParameterKind::Boolean,
        Some("array") => ParameterKind::Array,
        Some("object") => ParameterKind::Object,
        _ => ParameterKind::Any,
    }
}

/// Returns whether a value satisfies the simple constraints of a schema. The executor checks all of them.
pub(super) fn is_within_limits(schema: &Json, value: &Json) -> bool {
    if let Some(allowed) = schema.get("enum").and_then(Json::as_array) {
        return allowed.contains(value);
    }
    match value {
        Json::String(text) => {
            let length = text.chars().count() as u64;
            let at = |key: &str| schema.get(key).and_then(Json::as_u64);
            at("minLength").is_none_or(|min| length >= min)
                && at("maxLength").is_none_or(|max| length <= max)
                && schema.get("pattern").and_then(Json::as_str).is_none_or(|pattern| matches(pattern, text))
        }
        Json::Number(found) => {
            let at = |key: &str| schema.get(key).and_then(Json::as_f64);
            let Some(found) = found.as_f64() else { return false };
            (kind(schema) != ParameterKind::Integer || value.is_i64() || value.is_u64())
                && at("minimum").is_none_or(|min| found >= min)
                && at("maximum").is_none_or(|max| found <= max)
                && at("exclusiveMinimum").is_none_or(|min| found > min)
                && at("exclusiveMaximum").is_none_or(|max| found < max)
        }
        _ => true,
    }
}

/// Returns whether a text matches a pattern. Unsupported patterns match everything.
fn matches(pattern: &str, text: &str) -> bool {
    let regex = regex::RegexBuilder::new(pattern).size_limit(1 << 16).build();
    regex.map_or(true, |regex| regex.is_match(text))
}

/// Parses a text as a value of a schema.
pub(super) fn parse_value(schema: &Json, text: &str) -> Option<Json> {
    let value = match kind(schema) {
        ParameterKind::Text => find_enum_value(schema, text).cloned().unwrap_or_else(|| text.into()),
        ParameterKind::Integer | ParameterKind::Number => Json::Number(parse_number(text)?),
        ParameterKind::Boolean => super::word::parse_bool(text)?.into(),
        ParameterKind::Any => parse_number(text).map_or_else(|| text.into(), Json::Number),
        ParameterKind::Array | ParameterKind::Object => return None,
    };
    is_within_limits(schema, &value).then_some(value)
}

/// Returns the value of an enumeration that equals a text, ignoring case.
fn find_enum_value<'s>(schema: &'s Json, text: &str) -> Option<&'s Json> {
    let is_equal = |value: &&Json| value.as_str().is_some_and(|value| value.to_lowercase() == text.to_lowercase());
    schema.get("enum")?.as_array()?.iter().find(is_equal)
}
