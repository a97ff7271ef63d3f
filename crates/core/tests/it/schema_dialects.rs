//! Tests of schemas adapted to the dialects of providers.

use crate::generate::{cases, object, records, signature};
use patter_core::types::dialect::{Fidelity, SchemaDialect, adapt};
use patter_core::types::schema::input_schema;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

const DIALECTS: [SchemaDialect; 3] = [SchemaDialect::OpenAiStrict, SchemaDialect::Anthropic, SchemaDialect::Gemini];

/// Checks an adapted schema, byte for byte, and the changes.
fn check(dialect: SchemaDialect, schema: &Json, expected: &Json, changes: &[(Fidelity, &str)]) {
    let adapted = adapt(schema, dialect);
    assert_eq!(adapted.schema.to_string(), expected.to_string(), "{schema}");
    let found: Vec<_> = adapted.changes.iter().map(|change| (change.fidelity, change.to_string())).collect();
    let expected: Vec<_> = changes.iter().map(|(fidelity, text)| (*fidelity, (*text).to_owned())).collect();
    assert_eq!(found, expected, "{schema}");
    assert!(jsonschema::meta::is_valid(&adapted.schema), "{}", adapted.schema);
}

/// Checks the strict schema of a required property `p`.
fn check_strict(property: &Json, expected: &Json, changes: &[(Fidelity, &str)]) {
    let wrapped = |property: &Json| json!({ "type": "object", "properties": { "p": property }, "required": ["p"], "additionalProperties": false });
    check(SchemaDialect::OpenAiStrict, &wrapped(property), &wrapped(expected), changes);
}

#[test]
fn schemas_that_all_providers_support_are_not_changed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "who" },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 3 }
        },
        "required": ["name", "tags"],
        "additionalProperties": false
    });
    for dialect in DIALECTS {
        check(dialect, &schema, &schema, &[]);
    }
}

#[test]
fn strict_makes_everything_required_and_closed() {
    check(
        SchemaDialect::OpenAiStrict,
        &json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "mode": { "type": "string", "enum": ["a"], "default": "a" },
                "at": { "$ref": "#/$defs/At" },
                "one": { "const": 1 }
            },
            "required": ["name"],
            "$defs": { "At": { "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] } }
        }),
        &json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "mode": { "type": ["string", "null"], "enum": ["a", null], "description": "Default: \"a\"" },
                "at": { "anyOf": [{ "$ref": "#/$defs/At" }, { "type": "null" }] },
                "one": { "anyOf": [{ "const": 1, "type": "integer" }, { "type": "null" }] }
            },
            "required": ["name", "mode", "at", "one"],
            "$defs": {
                "At": {
                    "type": "object",
                    "properties": { "x": { "type": "number" } },
                    "required": ["x"],
                    "additionalProperties": false
                }
            },
            "additionalProperties": false
        }),
        &[
            (Fidelity::Preserved, "`/properties/mode/default`: moved to the description"),
            (Fidelity::Preserved, "`/properties/one`: added the type \"integer\""),
            (Fidelity::Preserved, "`/$defs/At/additionalProperties`: closed; only the listed properties are allowed"),
            (Fidelity::Preserved, "`/properties/mode`: made required; null means omitted"),
            (Fidelity::Preserved, "`/properties/at`: made required; null means omitted"),
            (Fidelity::Preserved, "`/properties/one`: made required; null means omitted"),
            (Fidelity::Preserved, "`/additionalProperties`: closed; only the listed properties are allowed"),
        ],
    );
}

#[test]
fn strict_removes_unsupported_keywords() {
    let removed = "removed; the provider does not support it";
    for keyword in ["not", "if", "then", "else"] {
        let text = format!("`/properties/p/{keyword}`: {removed}");
        check_strict(
            &json!({ "type": "string", keyword: {} }),
            &json!({ "type": "string" }),
            &[(Fidelity::Weakened, &text)],
        );
    }
    for (keyword, value) in [
        ("dependentRequired", json!({})),
        ("dependentSchemas", json!({})),
        ("allOf", json!([{ "minLength": 1 }, { "maxLength": 2 }])),
        ("uniqueItems", json!(true)),
    ] {
        let text = format!("`/properties/p/{keyword}`: {removed}");
        check_strict(
            &json!({ "type": "string", keyword: value }),
            &json!({ "type": "string" }),
            &[(Fidelity::Weakened, &text)],
        );
    }
    check_strict(
        &json!({ "type": "string", "format": "uri" }),
        &json!({ "type": "string" }),
        &[(Fidelity::Weakened, "`/properties/p/format`: removed; the provider does not support the format \"uri\"")],
    );
    check_strict(&json!({ "type": "string", "format": "uuid" }), &json!({ "type": "string", "format": "uuid" }), &[]);
    check_strict(
        &json!({ "type": "string", "examples": ["a"] }),
        &json!({ "type": "string" }),
        &[(Fidelity::Preserved, "`/properties/p/examples`: removed; it constrains nothing")],
    );
}

#[test]
fn strict_rewrites_combinations() {
    let options = json!([{ "type": "string" }, { "type": "integer" }]);
    check_strict(
        &json!({ "oneOf": options }),
        &json!({ "anyOf": options }),
        &[(Fidelity::Preserved, "`/properties/p/oneOf`: rewritten as anyOf; no value matches two options")],
    );
    let options = json!([{ "type": "number" }, { "type": "integer" }]);
    check_strict(
        &json!({ "oneOf": options }),
        &json!({ "anyOf": options }),
        &[(Fidelity::Weakened, "`/properties/p/oneOf`: rewritten as anyOf; a value may match several options")],
    );
    check_strict(
        &json!({ "allOf": [{ "type": "string" }] }),
        &json!({ "type": "string" }),
        &[(Fidelity::Preserved, "`/properties/p/allOf`: inlined; it has only one part")],
    );
    check_strict(
        &json!({ "$ref": "#/properties/p", "description": "d" }),
        &json!({ "description": "d", "anyOf": [{ "$ref": "#/properties/p" }] }),
        &[(Fidelity::Preserved, "`/properties/p/$ref`: wrapped in anyOf; no keywords are allowed next to it")],
    );
}

#[test]
fn strict_reports_what_it_cannot_express() {
    check_strict(
        &json!({}),
        &json!({}),
        &[(Fidelity::Inexpressible, "`/properties/p`: a schema that allows any value has no type")],
    );
    check_strict(
        &json!(false),
        &json!(false),
        &[(Fidelity::Inexpressible, "`/properties/p`: a schema that allows no value has no type")],
    );
    check_strict(
        &json!({ "type": "array" }),
        &json!({ "type": "array" }),
        &[(Fidelity::Inexpressible, "`/properties/p`: an array must have the type of its items")],
    );
    check_strict(
        &json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        &json!({ "type": "object", "additionalProperties": false, "properties": {}, "required": [] }),
        &[(
            Fidelity::Inexpressible,
            "`/properties/p/additionalProperties`: an object with arbitrary keys cannot be expressed",
        )],
    );
    check_strict(
        &json!({ "type": "object", "properties": {}, "required": ["a"], "additionalProperties": false }),
        &json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }),
        &[(
            Fidelity::Inexpressible,
            "`/properties/p/required`: \"a\" is required but is not a property, and no other properties are allowed",
        )],
    );
    check_strict(
        &json!({ "type": "array", "items": { "type": "string" }, "enum": [[{}]] }),
        &json!({ "type": "array", "items": { "type": "string" }, "enum": [[{}]] }),
        &[(
            Fidelity::Inexpressible,
            "`/properties/p/enum`: objects in an enum may lack properties that are now required",
        )],
    );
}

#[test]
fn strict_has_limits() {
    let limit = |schema: &Json, expected: &str| {
        let changes = adapt(schema, SchemaDialect::OpenAiStrict).changes;
        let found = changes.iter().filter(|change| change.fidelity == Fidelity::Inexpressible);
        assert_eq!(found.map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    };
    let text = json!({ "type": "string" });
    let many: Map<_, _> = (0..5001).map(|index| (format!("p{index}"), text.clone())).collect();
    limit(
        &json!({ "type": "object", "properties": many }),
        "the schema has 5001 properties; the provider allows at most 5000",
    );
    let values: Vec<_> = (0..1001).collect();
    let schema =
        json!({ "type": "object", "properties": { "p": { "type": "integer", "enum": values } }, "required": ["p"] });
    limit(&schema, "the schema has 1001 enum values; the provider allows at most 1000");
    let deep = (0..11).fold(text, |inner, _| json!({ "type": "object", "properties": { "a": inner } }));
    limit(&deep, "the schema has 11 levels of nesting; the provider allows at most 10");
}

#[test]
fn the_root_is_always_an_object() {
    for dialect in DIALECTS {
        check(
            dialect,
            &json!({ "type": "object", "properties": {}, "additionalProperties": false, "required": [] }),
            &json!({ "type": "object", "properties": {}, "additionalProperties": false, "required": [] }),
            &[],
        );
    }
    let dialect = SchemaDialect::Anthropic;
    check(dialect, &json!(true), &json!({ "type": "object" }), &[(Fidelity::Preserved, "added the type object")]);
    check(
        dialect,
        &json!(false),
        &json!({ "type": "object" }),
        &[
            (Fidelity::Inexpressible, "the schema allows no value; the provider requires an object"),
            (Fidelity::Preserved, "added the type object"),
        ],
    );
    check(
        dialect,
        &json!({ "type": "string" }),
        &json!({ "type": "object" }),
        &[(Fidelity::Inexpressible, "`/type`: the provider requires an object at the root, not \"string\"")],
    );
    check(
        dialect,
        &json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        &json!({ "type": "object" }),
        &[(Fidelity::Weakened, "`/anyOf`: removed; the provider does not support combinations at the root")],
    );
    check(
        dialect,
        &json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "object", "minProperties": 1 } } }),
        &json!({ "type": "object", "minProperties": 1, "$defs": { "A": { "type": "object", "minProperties": 1 } } }),
        &[(Fidelity::Preserved, "`/$ref`: inlined; the provider requires an object at the root")],
    );
}

#[test]
fn anthropic_supports_everything_inside() {
    let schema = json!({
        "type": "object",
        "properties": { "p": { "not": { "oneOf": [{ "type": "string", "default": "x" }] } } },
        "patternProperties": { "^x": {} }
    });
    check(SchemaDialect::Anthropic, &schema, &schema, &[]);
}

#[test]
fn gemini_keeps_documented_keywords() {
    check(
        SchemaDialect::Gemini,
        &json!({
            "type": "object",
            "properties": {
                "p": { "type": "string", "pattern": "^a", "default": "a" },
                "k": { "const": "x" },
                "t": { "$ref": "#/definitions/T", "description": "a tree" },
                "o": { "oneOf": [{ "type": "string" }, { "type": "null" }] },
                "b": { "enum": [true] }
            },
            "definitions": { "T": { "type": "object", "properties": { "next": { "$ref": "#/definitions/T" } } } }
        }),
        &json!({
            "type": "object",
            "properties": {
                "p": { "type": "string", "description": "Default: \"a\"" },
                "k": { "enum": ["x"] },
                "t": { "description": "a tree", "anyOf": [{ "$ref": "#/$defs/T" }] },
                "o": { "oneOf": [{ "type": "string" }, { "type": "null" }] },
                "b": {}
            },
            "$defs": { "T": { "type": "object", "properties": { "next": { "$ref": "#/$defs/T" } } } }
        }),
        &[
            (Fidelity::Preserved, "`/definitions`: renamed to $defs"),
            (
                Fidelity::Inexpressible,
                "`/$defs/T`: recursive; the provider expands it only a few times, and not through required properties",
            ),
            (Fidelity::Weakened, "`/properties/p/pattern`: removed; the provider does not support it"),
            (Fidelity::Preserved, "`/properties/p/default`: moved to the description"),
            (Fidelity::Preserved, "`/properties/k/const`: rewritten as an enum with one value"),
            (Fidelity::Preserved, "`/properties/t/$ref`: wrapped in anyOf; no keywords are allowed next to it"),
            (Fidelity::Weakened, "`/properties/o/oneOf`: treated as anyOf; a value may match several options"),
            (Fidelity::Weakened, "`/properties/b/enum`: removed; the provider does not support it"),
        ],
    );
}

#[test]
fn a_reference_to_a_removed_part_is_reported() {
    let schema = json!({
        "type": "object",
        "properties": { "p": { "type": "string", "not": { "type": "null" } }, "q": { "$ref": "#/properties/p/not" } }
    });
    let changes = adapt(&schema, SchemaDialect::OpenAiStrict).changes;
    let expected = "the target of the reference `#/properties/p/not` is missing from the adapted schema";
    assert!(changes.iter().any(|change| change.to_string() == expected), "{changes:?}");
}

/// Adds `null` for properties that a strict schema requires, and removes unknown properties.
fn fill_nulls(schema: &Json, value: &Json) -> Json {
    match (value, schema.get("properties"), schema.get("items")) {
        (Json::Object(value), Some(Json::Object(properties)), _) => {
            let field = |(name, property): (&String, &Json)| {
                (name.clone(), value.get(name).map_or(Json::Null, |value| fill_nulls(property, value)))
            };
            Json::Object(properties.iter().map(field).collect())
        }
        (Json::Array(values), _, Some(items)) => values.iter().map(|value| fill_nulls(items, value)).collect(),
        _ => value.clone(),
    }
}

/// Removes optional properties that are `null`.
fn remove_nulls(schema: &Json, value: &Json) -> Json {
    match (value, schema.get("properties"), schema.get("items")) {
        (Json::Object(value), Some(Json::Object(properties)), _) => {
            let required = schema.get("required").and_then(Json::as_array);
            let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
            let kept = value.iter().filter(|(name, value)| !value.is_null() || is_required(name));
            let field = |(name, value): (&String, &Json)| {
                (name.clone(), properties.get(name).map_or_else(|| value.clone(), |schema| remove_nulls(schema, value)))
            };
            Json::Object(kept.map(field).collect())
        }
        (Json::Array(values), _, Some(items)) => values.iter().map(|value| remove_nulls(items, value)).collect(),
        _ => value.clone(),
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn adapted_schemas_are_valid_and_deterministic(signature in signature()) {
        let schema = input_schema(&signature, &records());
        for dialect in DIALECTS {
            let adapted = adapt(&schema, dialect);
            prop_assert!(jsonschema::meta::is_valid(&adapted.schema), "{}", adapted.schema);
            prop_assert!(jsonschema::validator_for(&adapted.schema).is_ok(), "{}", adapted.schema);
            prop_assert_eq!(adapt(&schema, dialect).schema.to_string(), adapted.schema.to_string());
            prop_assert!(!adapted.changes.is_empty() || adapted.schema == schema, "{}", schema);
        }
        prop_assert_eq!(adapt(&schema, SchemaDialect::Anthropic).schema, schema);
    }

    #[test]
    fn adapting_twice_changes_nothing(signature in signature()) {
        for dialect in DIALECTS {
            let once = adapt(&input_schema(&signature, &records()), dialect).schema;
            prop_assert_eq!(adapt(&once, dialect).schema.to_string(), once.to_string());
        }
    }

    #[test]
    fn strict_schemas_allow_the_same_values(
        (signature, values) in signature().prop_flat_map(|signature| {
            let values = prop::collection::vec(object(&signature.parameters, 2), 8);
            (Just(signature), values)
        })
    ) {
        let schema = input_schema(&signature, &records());
        let adapted = adapt(&schema, SchemaDialect::OpenAiStrict);
        let fidelity = adapted.fidelity().unwrap_or(Fidelity::Preserved);
        let text = adapted.schema.to_string();
        // `fill_nulls` does not resolve combinations and references.
        if fidelity == Fidelity::Inexpressible || text.contains("anyOf") || text.contains("$ref") {
            return Ok(());
        }
        let own = jsonschema::validator_for(&schema).unwrap();
        let strict = jsonschema::validator_for(&adapted.schema).unwrap();
        for value in values {
            let filled = fill_nulls(&adapted.schema, &value);
            if own.is_valid(&value) {
                prop_assert!(strict.is_valid(&filled), "{} {} {}", schema, adapted.schema, filled);
            }
            if fidelity == Fidelity::Preserved && strict.is_valid(&filled) {
                prop_assert!(own.is_valid(&remove_nulls(&schema, &filled)), "{} {} {}", schema, adapted.schema, filled);
            }
        }
    }
}
