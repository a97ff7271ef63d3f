//! Schemas of structured answers, as providers can enforce them.

use crate::types::dialect::{SchemaDialect, adapt};
use serde_json::Value as Json;

/// The keywords that Anthropic does not enforce and rejects.
const UNSUPPORTED_BY_CLAUDE: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "$ref",
];

/// Returns a schema with all its objects closed, which providers require to enforce it; `None` if they would require more
/// than that. A value of the closed schema is one of the schema itself.
pub(super) fn enforceable(schema: &Json) -> Option<Json> {
    let adapted = adapt(schema, SchemaDialect::OpenAiStrict).schema;
    (opened(&adapted) == opened(schema)).then_some(adapted)
}

/// Returns a schema as Anthropic can enforce it.
pub(super) fn enforceable_by_claude(schema: &Json) -> Option<Json> {
    enforceable(schema).filter(|schema| !has_keyword(schema, &UNSUPPORTED_BY_CLAUDE))
}

/// Returns a schema without the mark of closed objects.
fn opened(schema: &Json) -> Json {
    match schema {
        Json::Object(fields) => {
            let is_mark = |key: &str, value: &Json| key == "additionalProperties" && *value == Json::Bool(false);
            let kept = fields.iter().filter(|(key, value)| !is_mark(key, value));
            kept.map(|(key, value)| (key.clone(), opened(value))).collect()
        }
        Json::Array(items) => items.iter().map(opened).collect(),
        other => other.clone(),
    }
}

/// Returns whether a key occurs anywhere, even as the name of a property.
fn has_keyword(schema: &Json, keywords: &[&str]) -> bool {
    match schema {
        Json::Object(fields) => {
            fields.iter().any(|(key, value)| keywords.contains(&key.as_str()) || has_keyword(value, keywords))
        }
        Json::Array(items) => items.iter().any(|item| has_keyword(item, keywords)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_closed_if_nothing_else_has_to_change() {
        let open = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let mut closed = open.clone();
        closed["additionalProperties"] = json!(false);
        assert_eq!(enforceable(&open), Some(closed.clone()));
        assert_eq!(enforceable(&closed), Some(closed.clone()));
        assert_eq!(enforceable_by_claude(&open), Some(closed));
        // An optional property would become null.
        assert_eq!(enforceable(&json!({"type": "object", "properties": {"n": {"type": "integer"}}})), None);
        assert_eq!(enforceable(&json!({"type": "string"})), None);
        let bounded =
            json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
        assert_eq!(enforceable_by_claude(&bounded), None);
    }
}
