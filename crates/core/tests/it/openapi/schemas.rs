//! Schemas, as types.

use super::{import_sound, with_property};
use patter_core::openapi::ImportOptions;
use serde_json::{Value as Json, json};

#[test]
fn schemas_become_types() {
    let check = |schema: Json, expected: &str| {
        let imported = import_sound(&with_property(&schema, &json!({})), &ImportOptions::default());
        let ty = imported.text.split("(p::").nth(1).unwrap().split("==>(::Text)").next().unwrap();
        let line = ty.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(format!("(p::{line}"), expected, "{schema}");
    };
    check(json!({}), "(p::Any { optional: true })");
    check(json!(true), "(p::Any { optional: true })");
    check(json!({ "type": "string", "format": "date" }), "(p::Text { format: \"date\", optional: true })");
    check(json!({ "type": "string", "default": "a" }), "(p::Text { default: \"a\" })");
    check(json!({ "type": "integer", "default": "a" }), "(p::Int { optional: true })");
    check(json!({ "type": "integer", "minimum": 5, "default": 1 }), "(p::Int { range: 5..., optional: true })");
    check(
        json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
        "(p::Int { range: 2..., optional: true })",
    );
    check(json!({ "type": "number", "exclusiveMaximum": 1.5 }), "(p::Double { range: ...1.5, optional: true })");
    check(json!({ "type": "integer", "minimum": 9, "maximum": 1 }), "(p::Int { optional: true })");
    check(json!({ "type": "string", "minLength": "3" }), "(p::Text { optional: true })");
    check(json!({ "type": ["string"], "required": true }), "(p::Text { optional: true })");
    check(json!({ "enum": ["a", "b"] }), "(p::Text { enum: [\"a\", \"b\"], optional: true })");
    check(json!({ "enum": [1, 2] }), "(p::Any { enum: [1, 2], optional: true })");
    check(json!({ "type": "string", "enum": [] }), "(p::Text { optional: true })");
    check(json!({ "items": { "type": "boolean" } }), "(p::Array { elementType: \"Bool\", optional: true })");
    check(json!({ "type": "array" }), "(p::Array { elementType: \"Any\", optional: true })");
    check(
        json!({ "allOf": [{ "type": "string" }], "description": "d" }),
        "(p::Text { description: \"d\", optional: true })",
    );
    check(
        json!({ "type": "array", "items": { "type": "string", "nullable": true } }),
        "(p::Array { elementType: \"Maybe Text\", optional: true })",
    );
    check(
        json!({ "allOf": [{ "type": "string" }, { "maxLength": 3 }] }),
        "(p::Any { schema: json`{\"allOf\":[{\"type\":\"string\"},{}]}`, optional: true })",
    );
}

#[test]
fn what_may_be_null_twice_may_be_null_once() {
    let schemas = json!({
        "Maybe": { "type": ["object", "null"], "properties": { "a": { "type": "string" } } },
        "Nothing": { "type": "null" }
    });
    for schema in [
        json!({ "nullable": true, "allOf": [{ "$ref": "#/components/schemas/Maybe" }] }),
        json!({ "anyOf": [{ "$ref": "#/components/schemas/Maybe" }, { "type": "null" }] }),
        json!({ "nullable": true, "allOf": [{ "$ref": "#/components/schemas/Nothing" }] }),
    ] {
        let imported = import_sound(&with_property(&schema, &schemas), &ImportOptions::default());
        assert_eq!(imported.tools, 1, "{schema}");
    }
}
