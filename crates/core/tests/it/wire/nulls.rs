//! Nulls that stand for leaving something out.

use patter_core::types::dialect::{SchemaView, view};
use patter_core::wire::without_nulls;
use serde_json::{Value as Json, json};

fn check(schema: &Json, mut arguments: Json, expected: &Json) {
    without_nulls(&mut arguments, schema);
    assert_eq!(arguments, *expected);
}

#[test]
fn only_what_may_be_left_out_is_taken_out() {
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
        (json!("no object"), json!("no object")),
    ];
    for (arguments, expected) in cases {
        check(&schema, arguments, &expected);
    }
}

#[test]
fn circles_end() {
    let circle = json!({ "$ref": "#", "allOf": [{ "$ref": "#" }, { "$ref": "#" }], "anyOf": [{ "$ref": "#" }], "properties": { "x": {} } });
    check(&circle, json!({ "x": null }), &json!({}));
    check(&json!(true), json!({ "x": null }), &json!({ "x": null }));
}

/// What a model writes by the strict view is what it would have written by the schema itself.
#[test]
fn the_strict_view_is_undone() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "options": { "type": "object", "properties": { "unit": { "type": "string" } } },
        },
        "required": ["city"],
    });
    let viewed = view(&schema, SchemaView::OpenAiStrict).schema;
    assert_eq!(viewed["required"], json!(["city", "options"]));
    check(&schema, json!({ "city": "Paris", "options": null }), &json!({ "city": "Paris" }));
    check(&schema, json!({ "city": "Paris", "options": { "unit": null } }), &json!({ "city": "Paris", "options": {} }));
}
