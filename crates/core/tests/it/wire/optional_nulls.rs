//! Nulls in place of optional properties.

use patter_core::types::dialect::{SchemaDialect, adapt};
use patter_core::wire::remove_optional_nulls;
use serde_json::{Value as Json, json};

fn check(schema: &Json, mut arguments: Json, expected: &Json) {
    remove_optional_nulls(&mut arguments, schema);
    assert_eq!(arguments, *expected);
}

#[test]
fn removes_only_nulls_of_optional_properties() {
    let schema = json!({
        "type": "object",
        "properties": {
            "must": { "type": ["string", "null"] },
            "may": { "type": "string" },
            "inner": { "$ref": "#/$defs/inner" },
            "list": { "type": "array", "items": { "$ref": "#/$defs/inner" } },
            "pair": { "prefixItems": [{ "properties": { "a": {} } }], "items": { "properties": { "b": {} } } },
            "joined": { "allOf": [{ "properties": { "x": {}, "y": {} } }, { "required": ["x"] }] },
            "chosen": { "anyOf": [
                { "type": "object", "properties": { "kind": { "const": "a" }, "x": {} }, "required": ["kind", "x"] },
                { "type": "object", "properties": { "kind": { "const": "b" }, "x": {} }, "required": ["kind"] },
            ] },
            "map": { "additionalProperties": { "$ref": "#/$defs/inner" } },
        },
        "required": ["must"],
        "$defs": { "inner": { "properties": { "deep": {}, "again": { "$ref": "#/$defs/inner" } } } },
    });
    let cases = [
        (json!({ "must": null, "may": null, "unknown": null }), json!({ "must": null, "unknown": null })),
        (json!({ "inner": { "deep": null, "again": { "deep": null } } }), json!({ "inner": { "again": {} } })),
        (json!({ "list": [{ "deep": null }, null, { "deep": 1 }] }), json!({ "list": [{}, null, { "deep": 1 }] })),
        (
            json!({ "pair": [{ "a": null, "b": null }, { "a": null, "b": null }] }),
            json!({ "pair": [{ "b": null }, { "a": null }] }),
        ),
        (json!({ "joined": { "x": null, "y": null } }), json!({ "joined": { "x": null } })),
        (json!({ "chosen": { "kind": "a", "x": null } }), json!({ "chosen": { "kind": "a", "x": null } })),
        (json!({ "chosen": { "kind": "b", "x": null } }), json!({ "chosen": { "kind": "b" } })),
        (json!({ "map": { "k": { "deep": null } } }), json!({ "map": { "k": {} } })),
        (json!("not an object"), json!("not an object")),
    ];
    for (arguments, expected) in cases {
        check(&schema, arguments, &expected);
    }
}

#[test]
fn reference_cycles_end() {
    let cycle = json!({ "$ref": "#", "allOf": [{ "$ref": "#" }, { "$ref": "#" }], "anyOf": [{ "$ref": "#" }], "properties": { "x": {} } });
    check(&cycle, json!({ "x": null }), &json!({}));
    check(&json!(true), json!({ "x": null }), &json!({ "x": null }));
}

/// Arguments that follow the strict schema become arguments that follow the original schema.
#[test]
fn reverses_the_strict_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "options": { "type": "object", "properties": { "unit": { "type": "string" } } },
        },
        "required": ["city"],
    });
    let adapted = adapt(&schema, SchemaDialect::OpenAiStrict).schema;
    assert_eq!(adapted["required"], json!(["city", "options"]));
    check(&schema, json!({ "city": "Paris", "options": null }), &json!({ "city": "Paris" }));
    check(&schema, json!({ "city": "Paris", "options": { "unit": null } }), &json!({ "city": "Paris", "options": {} }));
}
