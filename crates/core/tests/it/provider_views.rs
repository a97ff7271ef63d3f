//! Schemas as providers take them.

use crate::generate::{cases, object, records, signature};
use patter_core::types::dialect::{Effect, SchemaView, view};
use patter_core::types::schema::input_schema;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

const VIEWS: [SchemaView; 3] = [SchemaView::OpenAiStrict, SchemaView::Anthropic, SchemaView::Gemini];

/// Checks a view, byte for byte, and its report.
fn check(which: SchemaView, schema: &Json, expected: &Json, changes: &[(Effect, &str)]) {
    let viewed = view(schema, which);
    assert_eq!(viewed.schema.to_string(), expected.to_string(), "{schema}");
    let found: Vec<_> = viewed.changes.iter().map(|change| (change.effect, change.to_string())).collect();
    let expected: Vec<_> = changes.iter().map(|(effect, text)| (*effect, (*text).to_owned())).collect();
    assert_eq!(found, expected, "{schema}");
    assert!(jsonschema::meta::is_valid(&viewed.schema), "{}", viewed.schema);
}

/// Checks the strict view of a required property `p`.
fn check_strict(property: &Json, expected: &Json, changes: &[(Effect, &str)]) {
    let wrapped = |property: &Json| json!({ "type": "object", "properties": { "p": property }, "required": ["p"], "additionalProperties": false });
    check(SchemaView::OpenAiStrict, &wrapped(property), &wrapped(expected), changes);
}

#[test]
fn what_all_providers_take_is_not_changed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "who" },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 3 }
        },
        "required": ["name", "tags"],
        "additionalProperties": false
    });
    for which in VIEWS {
        check(which, &schema, &schema, &[]);
    }
}

#[test]
fn strict_makes_everything_required_and_closed() {
    check(
        SchemaView::OpenAiStrict,
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
                "mode": { "type": ["string", "null"], "enum": ["a", null] },
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
            (Effect::Kept, "`/properties/mode/default`: left out, as it has no effect where everything must be given"),
            (Effect::Kept, "`/properties/one`: the type \"integer\" was added"),
            (Effect::Kept, "`/$defs/At/additionalProperties`: other properties than those listed are not given"),
            (Effect::Kept, "`/properties/mode`: must be given, null stands for leaving it out"),
            (Effect::Kept, "`/properties/at`: must be given, null stands for leaving it out"),
            (Effect::Kept, "`/properties/one`: must be given, null stands for leaving it out"),
            (Effect::Kept, "`/additionalProperties`: other properties than those listed are not given"),
        ],
    );
}

#[test]
fn strict_leaves_out_what_it_does_not_take() {
    let left_out = "left out, the provider does not take it";
    for keyword in ["not", "if", "then", "else"] {
        let text = format!("`/properties/p/{keyword}`: {left_out}");
        check_strict(
            &json!({ "type": "string", keyword: {} }),
            &json!({ "type": "string" }),
            &[(Effect::Weakened, &text)],
        );
    }
    for (keyword, value) in [
        ("dependentRequired", json!({})),
        ("dependentSchemas", json!({})),
        ("allOf", json!([{ "minLength": 1 }, { "maxLength": 2 }])),
        ("uniqueItems", json!(true)),
    ] {
        let text = format!("`/properties/p/{keyword}`: {left_out}");
        check_strict(
            &json!({ "type": "string", keyword: value }),
            &json!({ "type": "string" }),
            &[(Effect::Weakened, &text)],
        );
    }
    check_strict(
        &json!({ "type": "string", "format": "uri" }),
        &json!({ "type": "string" }),
        &[(Effect::Weakened, "`/properties/p/format`: left out, the provider does not know the format \"uri\"")],
    );
    check_strict(&json!({ "type": "string", "format": "uuid" }), &json!({ "type": "string", "format": "uuid" }), &[]);
    check_strict(
        &json!({ "type": "string", "examples": ["a"] }),
        &json!({ "type": "string" }),
        &[(Effect::Kept, "`/properties/p/examples`: left out, as it restricts nothing")],
    );
}

#[test]
fn strict_writes_one_of_as_any_of() {
    let options = json!([{ "type": "string" }, { "type": "integer" }]);
    check_strict(
        &json!({ "oneOf": options }),
        &json!({ "anyOf": options }),
        &[(Effect::Kept, "`/properties/p/oneOf`: written as anyOf, as no value fits two options")],
    );
    let options = json!([{ "type": "number" }, { "type": "integer" }]);
    check_strict(
        &json!({ "oneOf": options }),
        &json!({ "anyOf": options }),
        &[(Effect::Weakened, "`/properties/p/oneOf`: written as anyOf, so a value may fit several options")],
    );
    check_strict(
        &json!({ "allOf": [{ "type": "string" }] }),
        &json!({ "type": "string" }),
        &[(Effect::Kept, "`/properties/p/allOf`: written out, as it is only one")],
    );
    check_strict(
        &json!({ "$ref": "#/properties/p", "description": "d" }),
        &json!({ "description": "d", "anyOf": [{ "$ref": "#/properties/p" }] }),
        &[(Effect::Kept, "`/properties/p/$ref`: written as a choice of one, as nothing may stand beside it")],
    );
}

#[test]
fn strict_says_what_it_cannot_express() {
    check_strict(
        &json!({}),
        &json!({}),
        &[(Effect::Inexpressible, "`/properties/p`: a place for anything has no type")],
    );
    check_strict(
        &json!(false),
        &json!(false),
        &[(Effect::Inexpressible, "`/properties/p`: a place for nothing has no type")],
    );
    check_strict(
        &json!({ "type": "array" }),
        &json!({ "type": "array" }),
        &[(Effect::Inexpressible, "`/properties/p`: an array must say what its items are")],
    );
    check_strict(
        &json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        &json!({ "type": "object", "additionalProperties": false, "properties": {}, "required": [] }),
        &[(
            Effect::Inexpressible,
            "`/properties/p/additionalProperties`: an object with keys of any name cannot be said",
        )],
    );
    check_strict(
        &json!({ "type": "object", "properties": {}, "required": ["a"], "additionalProperties": false }),
        &json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }),
        &[(
            Effect::Inexpressible,
            "`/properties/p/required`: \"a\" is required but no property, and other properties are not allowed",
        )],
    );
    check_strict(
        &json!({ "type": "array", "items": { "type": "string" }, "enum": [[{}]] }),
        &json!({ "type": "array", "items": { "type": "string" }, "enum": [[{}]] }),
        &[(Effect::Inexpressible, "`/properties/p/enum`: listed objects do not fit objects with all properties")],
    );
}

#[test]
fn strict_has_limits() {
    let limit = |schema: &Json, expected: &str| {
        let changes = view(schema, SchemaView::OpenAiStrict).changes;
        let found = changes.iter().filter(|change| change.effect == Effect::Inexpressible);
        assert_eq!(found.map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    };
    let text = json!({ "type": "string" });
    let many: Map<_, _> = (0..5001).map(|index| (format!("p{index}"), text.clone())).collect();
    limit(
        &json!({ "type": "object", "properties": many }),
        "the schema has 5001 properties, the provider takes up to 5000",
    );
    let values: Vec<_> = (0..1001).collect();
    let schema =
        json!({ "type": "object", "properties": { "p": { "type": "integer", "enum": values } }, "required": ["p"] });
    limit(&schema, "the schema has 1001 enum values, the provider takes up to 1000");
    let deep = (0..11).fold(text, |inner, _| json!({ "type": "object", "properties": { "a": inner } }));
    limit(&deep, "the schema has 11 levels, the provider takes up to 10");
}

#[test]
fn the_root_is_an_object_for_everybody() {
    for which in VIEWS {
        check(
            which,
            &json!({ "type": "object", "properties": {}, "additionalProperties": false, "required": [] }),
            &json!({ "type": "object", "properties": {}, "additionalProperties": false, "required": [] }),
            &[],
        );
    }
    let which = SchemaView::Anthropic;
    check(which, &json!(true), &json!({ "type": "object" }), &[(Effect::Kept, "the type object was added")]);
    check(
        which,
        &json!(false),
        &json!({ "type": "object" }),
        &[
            (Effect::Inexpressible, "the schema allows nothing, the provider takes an object"),
            (Effect::Kept, "the type object was added"),
        ],
    );
    check(
        which,
        &json!({ "type": "string" }),
        &json!({ "type": "object" }),
        &[(Effect::Inexpressible, "`/type`: the provider takes an object at the root, not \"string\"")],
    );
    check(
        which,
        &json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        &json!({ "type": "object" }),
        &[(Effect::Weakened, "`/anyOf`: left out, the provider takes no choice at the root")],
    );
    check(
        which,
        &json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "object", "minProperties": 1 } } }),
        &json!({ "type": "object", "minProperties": 1, "$defs": { "A": { "type": "object", "minProperties": 1 } } }),
        &[(Effect::Kept, "`/$ref`: written out, the provider takes an object at the root")],
    );
}

#[test]
fn anthropic_takes_nearly_everything_inside() {
    let schema = json!({
        "type": "object",
        "properties": { "p": { "not": { "oneOf": [{ "type": "string", "default": "x" }] } } },
        "patternProperties": { "^x": {} }
    });
    check(SchemaView::Anthropic, &schema, &schema, &[]);
}

#[test]
fn gemini_keeps_the_keywords_that_it_documents() {
    check(
        SchemaView::Gemini,
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
                "p": { "type": "string" },
                "k": { "enum": ["x"] },
                "t": { "description": "a tree", "anyOf": [{ "$ref": "#/$defs/T" }] },
                "o": { "oneOf": [{ "type": "string" }, { "type": "null" }] },
                "b": {}
            },
            "$defs": { "T": { "type": "object", "properties": { "next": { "$ref": "#/$defs/T" } } } }
        }),
        &[
            (Effect::Kept, "`/definitions`: renamed to $defs"),
            (
                Effect::Inexpressible,
                "`/$defs/T`: contains itself, which the provider unrolls a few times only, and not through what is required",
            ),
            (Effect::Weakened, "`/properties/p/pattern`: left out, the provider does not take it"),
            (Effect::Kept, "`/properties/p/default`: left out, as it restricts nothing"),
            (Effect::Kept, "`/properties/k/const`: written as an enum of one value"),
            (Effect::Kept, "`/properties/t/$ref`: written as a choice of one, as nothing may stand beside it"),
            (Effect::Weakened, "`/properties/o/oneOf`: read as anyOf, so a value may fit several options"),
            (Effect::Weakened, "`/properties/b/enum`: left out, the provider does not take it"),
        ],
    );
}

#[test]
fn a_reference_to_what_is_left_out_is_reported() {
    let schema = json!({
        "type": "object",
        "properties": { "p": { "type": "string", "not": { "type": "null" } }, "q": { "$ref": "#/properties/p/not" } }
    });
    let changes = view(&schema, SchemaView::OpenAiStrict).changes;
    let expected = "the view does not have what `#/properties/p/not` refers to";
    assert!(changes.iter().any(|change| change.to_string() == expected), "{changes:?}");
}

/// Fills in `null` for what a strict schema wants, and leaves out what it does not know.
fn filled(schema: &Json, value: &Json) -> Json {
    match (value, schema.get("properties"), schema.get("items")) {
        (Json::Object(value), Some(Json::Object(properties)), _) => {
            let field = |(name, property): (&String, &Json)| {
                (name.clone(), value.get(name).map_or(Json::Null, |value| filled(property, value)))
            };
            Json::Object(properties.iter().map(field).collect())
        }
        (Json::Array(values), _, Some(items)) => values.iter().map(|value| filled(items, value)).collect(),
        _ => value.clone(),
    }
}

/// Leaves out what is `null` and need not be there.
fn emptied(schema: &Json, value: &Json) -> Json {
    match (value, schema.get("properties"), schema.get("items")) {
        (Json::Object(value), Some(Json::Object(properties)), _) => {
            let required = schema.get("required").and_then(Json::as_array);
            let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
            let kept = value.iter().filter(|(name, value)| !value.is_null() || is_required(name));
            let field = |(name, value): (&String, &Json)| {
                (name.clone(), properties.get(name).map_or_else(|| value.clone(), |schema| emptied(schema, value)))
            };
            Json::Object(kept.map(field).collect())
        }
        (Json::Array(values), _, Some(items)) => values.iter().map(|value| emptied(items, value)).collect(),
        _ => value.clone(),
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn every_view_is_a_schema_and_the_same_each_time(signature in signature()) {
        let schema = input_schema(&signature, &records());
        for which in VIEWS {
            let viewed = view(&schema, which);
            prop_assert!(jsonschema::meta::is_valid(&viewed.schema), "{}", viewed.schema);
            prop_assert!(jsonschema::validator_for(&viewed.schema).is_ok(), "{}", viewed.schema);
            prop_assert_eq!(view(&schema, which).schema.to_string(), viewed.schema.to_string());
            prop_assert!(!viewed.changes.is_empty() || viewed.schema == schema, "{}", schema);
        }
        prop_assert_eq!(view(&schema, SchemaView::Anthropic).schema, schema);
    }

    #[test]
    fn a_view_of_a_view_changes_nothing(signature in signature()) {
        for which in VIEWS {
            let once = view(&input_schema(&signature, &records()), which).schema;
            prop_assert_eq!(view(&once, which).schema.to_string(), once.to_string());
        }
    }

    #[test]
    fn what_a_strict_view_keeps_means_the_same(
        (signature, values) in signature().prop_flat_map(|signature| {
            let values = prop::collection::vec(object(&signature.parameters, 2), 8);
            (Just(signature), values)
        })
    ) {
        let schema = input_schema(&signature, &records());
        let viewed = view(&schema, SchemaView::OpenAiStrict);
        let effect = viewed.effect().unwrap_or(Effect::Kept);
        let text = viewed.schema.to_string();
        // Choices would need a search for the option that a value fits, references one for their target.
        if effect == Effect::Inexpressible || text.contains("anyOf") || text.contains("$ref") {
            return Ok(());
        }
        let (own, strict) = (jsonschema::validator_for(&schema).unwrap(), jsonschema::validator_for(&viewed.schema).unwrap());
        for value in values {
            let filled = filled(&viewed.schema, &value);
            if own.is_valid(&value) {
                prop_assert!(strict.is_valid(&filled), "{} {} {}", schema, viewed.schema, filled);
            }
            if effect == Effect::Kept && strict.is_valid(&filled) {
                prop_assert!(own.is_valid(&emptied(&schema, &filled)), "{} {} {}", schema, viewed.schema, filled);
            }
        }
    }
}
