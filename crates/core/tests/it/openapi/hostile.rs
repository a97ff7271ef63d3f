//! Large, hostile and random documents.

use super::{assert_sound, import_sound, with_operation, with_property};
use patter_core::openapi::{ImportOptions, import};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

#[test]
fn large_and_hostile_documents_terminate() {
    let reference = |name: String| json!({ "$ref": format!("#/components/schemas/{name}") });
    let object = |properties: Json| json!({ "type": "object", "properties": properties });
    let with_schemas =
        |schemas: serde_json::Map<String, Json>| with_property(&reference("S0".to_owned()), &Json::Object(schemas));
    let many = |count: usize, schema: &dyn Fn(usize) -> Json| -> serde_json::Map<String, Json> {
        (0..count).map(|index| (format!("S{index}"), schema(index))).collect()
    };
    // Long chains of record types, aliases, `allOf` and alternatives.
    import_sound(
        &with_schemas(many(300, &|index| object(json!({ "next": reference(format!("S{}", index + 1)) })))),
        &ImportOptions::default(),
    );
    import_sound(&with_schemas(many(2_000, &|index| reference(format!("S{}", index + 1)))), &ImportOptions::default());
    import_sound(
        &with_schemas(many(
            3_000,
            &|index| json!({ "allOf": [reference(format!("S{}", index + 1)), object(json!({ "a": {} }))] }),
        )),
        &ImportOptions::default(),
    );
    // Everything refers to everything, so that paths multiply.
    let all = |count: usize, keyword: &str| -> Json {
        json!({ keyword: (0..count).map(|index| reference(format!("S{index}"))).collect::<Vec<_>>() })
    };
    for keyword in ["oneOf", "anyOf", "allOf"] {
        import_sound(&with_schemas(many(12, &|_| all(12, keyword))), &ImportOptions::default());
        import_sound(
            &with_schemas(many(12, &|_| {
                object(
                    json!({ "a": all(12, keyword), "b": { "nullable": true, "allOf": [reference("S1".to_owned())] } }),
                )
            })),
            &ImportOptions::default(),
        );
    }
    // A list of values that is too long, and a deep schema.
    let values: Vec<_> = (0..20_000).map(|index| format!("v{index}")).collect();
    let imported = import_sound(
        &with_property(&json!({ "type": "string", "enum": values }), &json!({})),
        &ImportOptions::default(),
    );
    assert_eq!(imported.warnings[0].to_string(), "POST /x: a list of 20000 allowed values is too long; left out");
    let mut deep = json!({ "type": "string" });
    for _ in 0..500 {
        deep = object(json!({ "x": { "type": "array", "items": deep } }));
    }
    let imported = import_sound(&with_property(&deep, &json!({})), &ImportOptions::default());
    assert!(imported.warnings[0].message.contains("too large"), "{:?}", imported.warnings);
    // Many operations over many record types.
    let mut document = with_schemas(many(60, &|index| {
        let others = (1..8).map(|step| (format!("f{step}"), reference(format!("S{}", (index * step + 1) % 60))));
        object(Json::Object(others.collect()))
    }));
    let path = |index: usize| {
        let body = json!({ "content": { "application/json": { "schema": reference(format!("S{}", index % 60)) } } });
        (format!("/p{index}/{{id}}"), json!({ "post": { "requestBody": body, "responses": { "200": body } } }))
    };
    document["paths"] = Json::Object((0..300).map(path).collect());
    assert_eq!(import_sound(&document, &ImportOptions::default()).tools, 300);
}

/// Generates JSON from the vocabulary of OpenAPI, mostly invalid.
fn random_schema() -> impl Strategy<Value = Json> {
    let word = prop_oneof![
        Just("string"),
        Just("object"),
        Just("integer"),
        Just("null"),
        Just("array"),
        Just("a\"b`\\"),
        Just("{x}"),
        Just("#/components/schemas/A"),
        Just("#/components/schemas/B"),
        Just("#/nowhere"),
        Just("${X}"),
        Just("é\n\u{1}"),
    ];
    let key = prop_oneof![
        Just("type"),
        Just("properties"),
        Just("required"),
        Just("items"),
        Just("allOf"),
        Just("oneOf"),
        Just("anyOf"),
        Just("enum"),
        Just("const"),
        Just("$ref"),
        Just("nullable"),
        Just("default"),
        Just("minimum"),
        Just("maxLength"),
        Just("additionalProperties"),
        Just("description"),
        Just("pattern"),
        Just("format"),
        Just("readOnly"),
        Just("a b"),
    ];
    let leaf = prop_oneof![
        word.prop_map(Json::from),
        any::<bool>().prop_map(Json::from),
        any::<i8>().prop_map(Json::from),
        Just(Json::Null),
        any::<f32>().prop_map(|float| json!(float)),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|entries| Json::Object(
                entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_import_is_sound(body in random_schema(), answer in random_schema(), parameter in random_schema(), a in random_schema(), b in random_schema(), name in "\\PC{0,12}") {
        let content = |schema: &Json| json!({ "content": { "application/json": { "schema": schema } } });
        let path = format!("/{}/{{{name}}}", name.replace(['{', '}'], ""));
        let mut document = with_operation(&path, "post", &json!({
            "operationId": name, "summary": name, "description": body.to_string(),
            "parameters": [{ "name": name, "in": "query", "schema": parameter }, { "name": name, "in": "header", "schema": parameter }],
            "requestBody": content(&body),
            "responses": { "200": content(&answer), "404": { "description": name } },
        }));
        document["components"]["schemas"] = json!({ "A": a, "B": b });
        document["info"]["title"] = json!(name);
        if let Ok(imported) = import(&document, &ImportOptions::default()) {
            assert_sound(&imported);
        }
    }
}
