//! Tests of the conversion between schemas and signatures.

use crate::generate::{anything, cases, object, records, signature, ty, used, value};
use patter_core::gram::parse;
use patter_core::types::schema::{input_schema, output_schema, type_schema};
use patter_core::types::signature::{ConvertedSignature, Records, SchemaError, Shape, Signature};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn convert(input: &Json, output: Option<&Json>) -> ConvertedSignature {
    Signature::from_schemas(input, output).unwrap_or_else(|error| panic!("{input}: {error}"))
}

/// Returns the input schema for a parameter `p`.
fn with_parameter(schema: &Json) -> Json {
    json!({ "type": "object", "properties": { "p": schema }, "required": ["p"] })
}

/// Checks the type of a parameter with a schema.
fn check(schema: &Json, expected: &str) {
    let converted = convert(&with_parameter(schema), None);
    assert_eq!(converted.signature.to_string(), format!("{expected}==>(::Any)"), "{schema}");
    assert_eq!(converted.residual_schema, None);
}

/// Checks the type of a result with a schema.
fn check_result(schema: &Json, expected: &str) {
    let converted = convert(&json!({}), Some(schema));
    assert_eq!(converted.signature.to_string(), format!("()==>{expected}"), "{schema}");
}

fn reparse(signature: &Signature, records: &Records) -> Signature {
    let text = signature.to_string();
    let (tree, diagnostics) = parse(&text);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    Signature::read(tree.patterns().next().unwrap(), records).unwrap_or_else(|error| panic!("{text}: {error}"))
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_signature_survives_conversion_to_schemas_and_back(signature in signature()) {
        let records = records();
        let input = input_schema(&signature, &records);
        let output = output_schema(&signature, &records);
        let converted = convert(&input, Some(&output));
        prop_assert_eq!(&converted.signature, &signature);
        prop_assert_eq!(converted.residual_schema, None);
        for (name, record) in used(&signature).iter() {
            prop_assert_eq!(converted.records.get(name), Some(record));
        }
    }

    #[test]
    fn a_signature_survives_formatting_and_parsing(signature in signature()) {
        prop_assert_eq!(reparse(&signature, &records()), signature);
    }

    #[test]
    fn schemas_of_signatures_are_valid(signature in signature()) {
        for schema in [input_schema(&signature, &records()), output_schema(&signature, &records())] {
            prop_assert!(jsonschema::meta::is_valid(&schema), "{}", schema);
            prop_assert!(jsonschema::validator_for(&schema).is_ok(), "{}", schema);
        }
    }

    #[test]
    fn a_type_and_its_schema_allow_the_same_values(
        (ty, values) in ty(2).prop_flat_map(|ty| {
            let values = prop::collection::vec(value(&ty, 2), 6);
            (Just(ty), values)
        })
    ) {
        let schema = type_schema(&ty, &records());
        let validator = jsonschema::validator_for(&schema).unwrap();
        for value in values {
            let found = ty.check(&value, &records());
            prop_assert_eq!(found.is_ok(), validator.is_valid(&value), "{} {} {:?}", schema, value, found);
        }
    }

    #[test]
    fn arguments_are_valid_if_and_only_if_their_schema_allows_them(
        (signature, arguments) in signature().prop_flat_map(|signature| {
            let arguments = prop::collection::vec(object(&signature.parameters, 2), 6);
            (Just(signature), arguments)
        })
    ) {
        let schema = input_schema(&signature, &records());
        let validator = jsonschema::validator_for(&schema).unwrap();
        for arguments in arguments {
            let found = signature.validate_arguments(arguments.clone(), &records());
            prop_assert_eq!(found.is_ok(), validator.is_valid(&arguments), "{} {} {:?}", schema, arguments, found);
        }
    }
}

/// Generates schemas of all kinds, with references in all directions, as servers may send them.
fn schema(depth: u32) -> BoxedStrategy<Json> {
    let value =
        prop::sample::select(vec![json!("a"), json!(1), json!(2.5), Json::Null, json!(true), json!({ "a": 1 })]);
    let leaf = prop_oneof![
        prop::sample::select(vec!["string", "integer", "number", "boolean", "null", "array", "object"])
            .prop_map(|name| json!({ "type": name })),
        prop::sample::select(vec![json!(["string", "null"]), json!(["null", "integer"]), json!(["object"])])
            .prop_map(|names| json!({ "type": names })),
        prop::sample::select(vec!["#", "#/$defs/A", "#/$defs/B", "#/definitions/C%20~1", "#/properties/a"])
            .prop_map(|target| json!({ "$ref": target })),
        (value.clone(), value.clone()).prop_map(|(a, b)| json!({ "enum": [a, b] })),
        value.clone().prop_map(|value| json!({ "const": value })),
        (0..4_u32, 0..4_u32)
            .prop_map(|(a, b)| json!({ "type": "string", "minLength": a, "maxLength": b, "title": "t" })),
        (-1..3_i32).prop_map(|a| json!({ "type": "integer", "minimum": a, "format": "int32" })),
        (-1..3_i32).prop_map(|a| json!({ "type": "number", "exclusiveMinimum": a })),
        any::<bool>().prop_map(Json::from),
        Just(json!({})),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let inner = || schema(depth - 1);
    let named =
        prop::collection::vec(("[a-c]", inner()), 0..3).prop_map(|entries| Json::Object(entries.into_iter().collect()));
    let combined = (prop::sample::select(vec!["allOf", "anyOf", "oneOf"]), prop::collection::vec(inner(), 1..3));
    let schema = prop_oneof![
        4 => leaf,
        2 => (named.clone(), "[a-c]").prop_map(|(named, name)| json!({ "type": "object", "properties": named, "required": [name] })),
        2 => named.clone().prop_map(|named| json!({ "type": "object", "properties": named })),
        1 => named.prop_map(|named| json!({ "type": "object", "properties": named, "additionalProperties": false })),
        2 => inner().prop_map(|items| json!({ "type": "array", "items": items })),
        1 => inner().prop_map(|items| json!({ "type": ["array", "null"], "items": items, "maxItems": 2 })),
        2 => combined.prop_map(|(keyword, options)| json!({ keyword: options })),
        1 => inner().prop_map(|not| json!({ "not": not })),
    ];
    (schema, prop::option::weighted(0.2, value), prop::bool::weighted(0.1))
        .prop_map(|(mut schema, default, described)| {
            if let Json::Object(map) = &mut schema {
                map.extend(default.map(|default| ("default".to_owned(), default)));
                map.extend(described.then(|| ("description".to_owned(), json!("what it is"))));
            }
            schema
        })
        .boxed()
}

/// Generates schemas of arguments, with the targets of all references.
fn root() -> BoxedStrategy<Json> {
    let closed = prop::option::weighted(0.1, prop::sample::select(vec![json!(false), json!({ "type": "string" })]));
    let properties = prop::collection::vec(("[bc]", schema(2)), 0..3);
    (properties, schema(2), schema(2), schema(1), schema(1), closed)
        .prop_map(|(properties, own, a, b, c, closed)| {
            let mut all: serde_json::Map<_, _> = properties.into_iter().collect();
            all.insert("a".to_owned(), own);
            let mut root = json!({
                "type": "object", "properties": all, "required": ["b"],
                "$defs": { "A": a, "B": b }, "definitions": { "C /": c }
            });
            if let (Json::Object(map), Some(closed)) = (&mut root, closed) {
                map.insert("additionalProperties".to_owned(), closed);
            }
            root
        })
        .boxed()
}

fn small_value() -> BoxedStrategy<Json> {
    let leaf = prop::sample::select(vec![
        Json::Null,
        json!(true),
        json!(0),
        json!(1),
        json!(2.5),
        json!("a"),
        json!("abc"),
        json!({}),
        json!([]),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            prop::collection::vec(("[a-c]", inner), 0..4).prop_map(|all| Json::Object(all.into_iter().collect())),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn any_schema_and_its_signature_allow_the_same_values(
        root in root(),
        values in prop::collection::vec(small_value(), 12),
    ) {
        // References that only refer to each other are rejected.
        let Ok(validator) = jsonschema::validator_for(&root) else { return Ok(()) };
        let converted = convert(&root, Some(&root));
        prop_assert_eq!(&reparse(&converted.signature, &converted.records), &converted.signature);
        for (name, record) in converted.records.iter() {
            let text = record.declaration(name);
            let (tree, _) = parse(&text);
            let again = patter_core::types::signature::Record::read(tree.patterns().next().unwrap(), &converted.records);
            prop_assert_eq!(again.as_ref(), Ok(record), "{}", text);
        }
        let input = input_schema(&converted.signature, &converted.records);
        let output = output_schema(&converted.signature, &converted.records);
        prop_assert!(jsonschema::meta::is_valid(&input), "{}", input);
        let own = jsonschema::validator_for(&input).unwrap();
        let result = jsonschema::validator_for(&output).unwrap();
        let residual = converted.residual_schema.as_ref().map(|schema| jsonschema::validator_for(schema).unwrap());
        for value in values {
            prop_assert_eq!(result.is_valid(&value), validator.is_valid(&value), "{} {} {}", root, output, value);
            let checked = converted.signature.returns.check(&value, &converted.records);
            prop_assert_eq!(checked.is_ok(), validator.is_valid(&value), "{} {} {}", root, output, value);
            if value.is_object() {
                let both = own.is_valid(&value) && residual.as_ref().is_none_or(|residual| residual.is_valid(&value));
                prop_assert_eq!(both, validator.is_valid(&value), "{} {} {}", root, input, value);
            }
        }
    }

    #[test]
    fn invalid_schemas_never_cause_a_panic(json in anything(), broken in anything()) {
        let _ = Signature::from_schemas(&json, None);
        for keyword in ["type", "properties", "required", "items", "enum", "$ref", "anyOf", "$defs", "pattern", "minimum"] {
            let _ = Signature::from_schemas(&json!({ keyword: broken.clone() }), Some(&json));
            let _ = Signature::from_schemas(&with_parameter(&json!({ keyword: broken.clone() })), None);
        }
    }
}

#[test]
fn simple_schemas_become_types() {
    check(&json!({ "type": "string", "title": "P" }), "(p::Text)");
    check(&json!({ "type": "string", "enum": ["a", "b"] }), r#"(p::Text { enum: ["a", "b"] })"#);
    check(&json!({ "const": "a" }), r#"(p::Text { enum: ["a"] })"#);
    check(
        &json!({ "type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a" }),
        r#"(p::Text { range: 1..5, pattern: "^a" })"#,
    );
    check(&json!({ "type": "string", "format": "date" }), r#"(p::Text { format: "date" })"#);
    check(&json!({ "type": "integer", "format": "uint32", "minimum": 0 }), "(p::Int { range: 0... })");
    check(&json!({ "type": "integer", "maximum": 10.0 }), "(p::Int { range: ...10 })");
    check(&json!({ "type": "number", "description": "how much" }), r#"(p::Double { description: "how much" })"#);
    check(&json!({ "type": "boolean" }), "(p::Bool)");
    check(&json!({ "type": "array" }), r#"(p::Array { elementType: "Any" })"#);
    check(
        &json!({ "type": "array", "items": { "type": ["string", "null"] }, "maxItems": 3 }),
        r#"(p::Array { elementType: "Maybe Text", range: ...3 })"#,
    );
    check(&json!({}), "(p::Any)");
    check(&json!(true), "(p::Any)");
    check(&json!({ "type": "object", "additionalProperties": true }), "(p::Object { fields: [] })");
    check(&json!({ "type": "object", "required": ["id"] }), r#"(p::Object { fields: [{ name: "id", type: "Any" }] })"#);
    check(&json!({ "allOf": [{ "type": "string" }], "description": "d" }), r#"(p::Text { description: "d" })"#);
    check_result(
        &json!({ "anyOf": [{ "type": "object", "properties": {} }, { "type": "null" }] }),
        "(::`Maybe Object` { fields: [] })",
    );
    check_result(&json!({ "type": ["null", "integer"] }), "(::`Maybe Int`)");
    check(&json!({ "type": ["string", "null"] }), "(p::Text { nullable: true })");
    check(
        &json!({ "anyOf": [{ "type": "array", "items": {} }, { "type": "null" }] }),
        r#"(p::Array { elementType: "Any", nullable: true })"#,
    );
}

#[test]
fn the_smallest_inexpressible_part_remains_a_schema() {
    check(&json!({ "type": ["string", "integer"] }), r#"(p::Any { schema: json`{"type":["string","integer"]}` })"#);
    check(
        &json!({ "type": "integer", "exclusiveMinimum": 0 }),
        r#"(p::Any { schema: json`{"type":"integer","exclusiveMinimum":0}` })"#,
    );
    check(
        &json!({ "type": "string", "pattern": "(?=a)" }),
        r#"(p::Any { schema: json`{"type":"string","pattern":"(?=a)"}` })"#,
    );
    check(
        &json!({ "type": "object", "properties": { "a": { "not": {} }, "b": { "type": "string" } } }),
        r#"(p::Object { fields: [{ name: "a", type: "Any", optional: true, schema: json`{"not":{}}` }, { name: "b", type: "Text", optional: true }] })"#,
    );
}

#[test]
fn optional_parameters_have_defaults() {
    let check = |schema: Json, expected: &str| {
        let converted = convert(&json!({ "type": "object", "properties": { "p": schema } }), None);
        assert_eq!(converted.signature.to_string(), format!("{expected}==>(::Any)"));
    };
    check(json!({ "type": "integer", "default": 3 }), "(p::Int { default: 3 })");
    check(json!({ "type": "string" }), "(p::Text { optional: true })");
    // A default that the type does not allow remains in the schema, where it does no harm.
    check(
        json!({ "type": "integer", "default": "x" }),
        r#"(p::Any { schema: json`{"type":"integer","default":"x"}`, optional: true })"#,
    );
    check(
        json!({ "type": ["string", "null"], "default": null }),
        r#"(p::Any { schema: json`{"type":["string","null"],"default":null}`, optional: true })"#,
    );
}

#[test]
fn recursive_schemas_become_record_types() {
    let input = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Args",
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/Tree" }, "at": { "$ref": "#/$defs/Point" } },
        "required": ["tree"],
        "$defs": {
            "Tree": {
                "type": "object",
                "description": "a tree",
                "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
                "required": ["children"]
            },
            "Point": { "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] }
        }
    });
    let converted = convert(
        &input,
        Some(
            &json!({ "$ref": "#/definitions/Tree", "definitions": { "Tree": { "type": "object", "properties": { "next": { "$ref": "#/definitions/Tree" } } } } }),
        ),
    );
    assert_eq!(
        converted.signature.to_string(),
        r#"(tree::Tree)==>(at::Object { fields: [{ name: "x", type: "Double" }], optional: true })==>(::Tree2)"#
    );
    let declared: Vec<_> = converted.records.iter().map(|(name, record)| record.declaration(name)).collect();
    assert_eq!(
        declared,
        [
            r#"[Tree:Object { description: "a tree" } | (children::Array { elementType: "Tree" })]"#,
            "[Tree2:Object | (next::Tree2 { optional: true })]"
        ]
    );
    assert_eq!(converted.residual_schema, None);
}

#[test]
fn a_remaining_schema_includes_its_definitions() {
    let input = json!({
        "type": "object",
        "properties": { "expr": { "$ref": "#/$defs/Expr", "description": "to compute" }, "same": { "$ref": "#/$defs/Expr" } },
        "$defs": { "Expr": { "anyOf": [{ "type": "number" }, { "type": "array", "items": { "$ref": "#/$defs/Expr" } }] } }
    });
    let converted = convert(&input, None);
    let Shape::Schema(schema) = &converted.signature.parameters[0].ty.shape else { panic!() };
    assert!(jsonschema::is_valid(schema, &json!([1, [2]])) && !jsonschema::is_valid(schema, &json!([1, ["x"]])));
    assert_eq!(input_schema(&converted.signature, &converted.records), input);
}

#[test]
fn definitions_with_the_same_name_stay_separate() {
    let list = |item: &str| {
        let own = json!({ "type": "array", "items": { "anyOf": [{ "type": item }, { "$ref": "#/$defs/L" }] } });
        format!(r#"Any {{ schema: json`{}` }}"#, json!({ "$ref": "#/$defs/L", "$defs": { "L": own } }))
    };
    let text = format!("(a::{})==>(b::{})==>(::Any)", list("string"), list("integer"));
    let schema = input_schema(&Signature::parse(&text).unwrap(), &Records::default());
    let check = |arguments: Json, expected: bool| assert_eq!(jsonschema::is_valid(&schema, &arguments), expected);
    check(json!({ "a": ["x", ["y"]], "b": [1, [2]] }), true);
    check(json!({ "a": ["x"], "b": ["y"] }), false);
    check(json!({ "a": [1], "b": [1] }), false);
}

#[test]
fn constraints_on_the_whole_become_the_residual_schema() {
    let check = |schema: Json, expected: &str| {
        let converted = convert(&schema, None);
        assert_eq!(converted.signature.to_string(), expected);
        assert_eq!(converted.residual_schema, Some(schema));
    };
    check(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false }),
        "(a::Text { optional: true })==>(::Any)",
    );
    check(json!({ "type": "object", "minProperties": 1 }), "()==>(::Any)");
    check(json!({ "type": "string" }), "()==>(::Any)");
    check(json!(false), "()==>(::Any)");
}

#[test]
fn older_drafts_are_converted() {
    let draft7 = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/Args",
        "definitions": {
            "Args": { "type": "object", "properties": { "pair": { "type": "array", "items": [{ "type": "string" }], "additionalItems": false } } }
        }
    });
    let expected = r#"(pair::Any { schema: json`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`, optional: true })==>(::Any)"#;
    assert_eq!(convert(&draft7, None).signature.to_string(), expected);
    // Without `$schema`, a schema that is invalid in 2020-12 is read as an older draft.
    check(
        &json!({ "type": "array", "items": [{}] }),
        r#"(p::Any { schema: json`{"type":"array","prefixItems":[{}]}` })"#,
    );
    check(
        &json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": true }),
        r#"(p::Any { schema: json`{"type":"integer","exclusiveMinimum":0}` })"#,
    );
    check(
        &json!({ "dependencies": { "a": ["b"], "c": {} }, "items": [{}] }),
        r#"(p::Any { schema: json`{"prefixItems":[{}],"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{}}}` })"#,
    );
}

#[test]
fn errors_are_described() {
    let check = |schema: Json, expected: &str| {
        let error = Signature::from_schemas(&schema, None).expect_err("an error");
        assert_eq!(error.to_string(), expected);
    };
    check(
        json!({ "type": "strin" }),
        r#"not a valid JSON Schema: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword"#,
    );
    check(json!({ "$ref": "#/nope" }), "not a valid JSON Schema: Pointer '/nope' does not exist");
    check(
        with_parameter(&json!({ "$anchor": "here", "anyOf": [{ "$ref": "#here" }, {}] })),
        "the schema contains an unsupported reference: `#here`",
    );
    let deep = (0..60).fold(json!({}), |inner, _| json!({ "not": { "not": inner } }));
    check(deep, "the schema is nested more than 100 levels deep");
}

#[test]
fn nested_references_do_not_grow_exponentially() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/L{}", level + 1) });
        definitions.insert(format!("L{level}"), json!({ "type": "object", "properties": { "a": next, "b": next } }));
    }
    definitions.insert("L40".to_owned(), json!({ "type": "string" }));
    let input = json!({ "type": "object", "properties": { "p": { "$ref": "#/$defs/L0" } }, "$defs": definitions });
    // Expanded, it would be a trillion types.
    let converted = Signature::from_schemas(&input, None);
    assert!(converted.is_ok_and(|converted| converted.signature.to_string().len() < 5_000_000));
}

#[test]
fn deep_types_can_be_formatted_and_parsed() {
    let deep =
        (0..30).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "object", "properties": { "a": inner } }));
    let converted = convert(&deep, None);
    assert_eq!(reparse(&converted.signature, &converted.records), converted.signature);
    assert_eq!(input_schema(&converted.signature, &converted.records), deep);
}

#[test]
fn invalid_schemas_that_look_simple_are_rejected() {
    for invalid in [
        json!({ "type": 1 }),
        json!({ "type": [] }),
        json!({ "description": 1 }),
        json!({ "enum": "a" }),
        json!({ "minimum": "1" }),
        json!({ "minLength": -1 }),
        json!({ "maxItems": 1.5 }),
        json!({ "required": ["a", "a"] }),
        json!({ "required": [1] }),
        json!({ "additionalProperties": 1 }),
        json!({ "items": { "type": "strin" } }),
        json!({ "properties": [] }),
        json!({ "properties": { "a": 1 } }),
        json!({ "properties": { "a": { "additionalProperties": { "pattern": "(" } } } }),
    ] {
        assert!(jsonschema::validator_for(&invalid).is_err(), "{invalid}");
        let found = Signature::from_schemas(&with_parameter(&invalid), None);
        assert!(matches!(found, Err(SchemaError::Invalid(_))), "{invalid}: {found:?}");
    }
}
