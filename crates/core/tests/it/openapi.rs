//! Toolboxes from OpenAPI documents.

use patter_core::check::{Options as CheckOptions, check};
use patter_core::declare::Toolbox;
use patter_core::declare::project::Project;
use patter_core::declare::template::Template;
use patter_core::openapi::{Imported, OpenApiError, Options, toolbox};
use patter_core::text::Glob;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const PETSTORE: &str = include_str!("openapi/petstore.json");
const ODD: &str = include_str!("openapi/odd.json");

fn document(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

/// Imports a document and asserts what holds for all of them: the text is formatted gram without findings, the import
/// is stable, every signature reads, and every template names parameters that there are.
fn import(document: &Json, options: &Options) -> Imported {
    let made = toolbox(document, options).unwrap();
    assert_eq!(toolbox(document, options).unwrap(), made, "the same document gives the same bytes");
    assert_sound(&made);
    made
}

fn assert_sound(made: &Imported) {
    assert_eq!(patter_core::gram::format(&made.text).as_deref(), Ok(made.text.as_str()));
    let project = Project::read([("box.gram", made.text.as_str())]);
    let findings: Vec<_> = check(&project, &CheckOptions::default());
    assert!(findings.is_empty(), "{findings:?}\n{}", made.text);
    let tools: Vec<_> = project.files()[0]
        .tree
        .patterns()
        .filter_map(Toolbox::cast)
        .flat_map(|it| it.tools().collect::<Vec<_>>())
        .collect();
    assert_eq!(tools.len(), made.tools);
    for tool in tools {
        let signature = tool.signature(project.records()).unwrap();
        let pattern = tool.pattern().unwrap();
        let mut templates = vec![pattern.value("url").unwrap()];
        for key in ["query", "headers", "body"] {
            match pattern.value(key) {
                Some(patter_core::gram::Value::Map(entries)) => {
                    templates.extend(entries.into_iter().map(|(_, value)| value));
                }
                other => templates.extend(other),
            }
        }
        for template in templates {
            let template = Template::parse(template.as_str().unwrap()).unwrap();
            for name in template.parameters() {
                assert!(signature.parameter(name).is_some(), "{tool} has no parameter {name}");
            }
        }
    }
}

fn shown(made: &Imported) -> String {
    let warnings: Vec<_> = made.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    format!("{}---\n{}", made.text, warnings.concat())
}

macro_rules! snapshot {
    ($name:literal, $shown:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($name, $shown) })
    };
}

#[test]
fn a_pet_store() {
    let made = import(&document(PETSTORE), &Options::default());
    snapshot!("openapi_petstore", shown(&made));
}

#[test]
fn odd_things() {
    let made = import(&document(ODD), &Options::default());
    snapshot!("openapi_odd", shown(&made));
}

/// Returns a document with one operation, `POST /x`, that takes a JSON body with the property `p`.
fn with_property(schema: &Json, schemas: &Json) -> Json {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "t", "version": "1" },
        "servers": [{ "url": "https://example.com" }],
        "paths": { "/x": { "post": {
            "operationId": "x",
            "requestBody": { "content": { "application/json": { "schema": { "type": "object", "properties": { "p": schema } } } } },
            "responses": {}
        } } },
        "components": { "schemas": schemas }
    })
}

/// Returns an operation in a document of its own.
fn with_operation(path: &str, method: &str, operation: &Json) -> Json {
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Shop" },
        "servers": [{ "url": "https://example.com" }],
        "paths": { path: { method: operation } },
        "components": { "securitySchemes": {
            "basic": { "type": "http", "scheme": "basic" },
            "sid": { "type": "apiKey", "in": "cookie", "name": "sid" },
            "one": { "type": "apiKey", "in": "header", "name": "A" },
            "otherKey": { "type": "apiKey", "in": "query", "name": "b" },
            "evil": { "type": "apiKey", "in": "cookie", "name": "${HOME}" }
        } }
    })
}

#[test]
fn schemas_become_types() {
    let check = |schema: Json, expected: &str| {
        let made = import(&with_property(&schema, &json!({})), &Options::default());
        let ty = made.text.split("(p::").nth(1).unwrap().split("==>(::Text)").next().unwrap();
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
fn credentials_come_from_the_environment() {
    let check = |security: Json, expected: &str| {
        let repeated = json!([{ "name": "a", "in": "header" }, { "name": "b", "in": "query", "required": true }]);
        let repeated = if security.to_string().contains("one") { repeated } else { json!([]) };
        let operation = json!({ "operationId": "x", "security": security, "parameters": repeated, "responses": {} });
        let made = import(&with_operation("/x", "get", &operation), &Options::default());
        let after = made.text.split("url: \"https://example.com/x\",\n").nth(1).unwrap();
        let found = after.split("result:").next().unwrap().trim().trim_end_matches(',');
        assert_eq!(found, expected, "{security}");
        made.warnings.iter().map(|warning| format!("{warning}\n")).collect::<String>()
    };
    check(json!([]), "");
    check(json!([{}]), "");
    check(
        json!([{ "one": [], "otherKey": [] }]),
        "query: { b: \"${SHOP_OTHER_KEY}\" },\n    headers: { A: \"${SHOP_ONE}\" }",
    );
    check(json!([{ "otherKey": [] }]), "query: { b: \"${SHOP_OTHER_KEY}\" }");
    check(json!([{ "sid": [] }]), "headers: { Cookie: \"sid=${SHOP_SESSION}\" }");
    let said = check(json!([{ "basic": [] }]), "headers: { Authorization: \"Basic ${SHOP_BASIC_AUTH}\" }");
    assert_eq!(said, "document: `SHOP_BASIC_AUTH` holds `user:password`\n");
    let said = check(json!([{ "evil": [] }, { "missing": [] }]), "");
    assert_eq!(said, "GET /x: the security scheme `evil` is left out\n");
}

#[test]
fn only_what_is_asked_for() {
    let check = |globs: &[&str], expected: &[&str]| {
        let options = Options { only: globs.iter().map(|glob| Glob::new(glob)).collect(), ..Options::default() };
        let made = import(&document(PETSTORE), &options);
        let names: Vec<_> = made.text.lines().filter_map(|line| line.trim().strip_suffix(":Http {")).collect();
        assert_eq!(names, expected.iter().map(|name| format!("[{name}")).collect::<Vec<_>>(), "{globs:?}");
    };
    check(&["list_pets"], &["listPets"]);
    check(&["list*", "deletePet"], &["listPets", "deletePet"]);
    check(&["GET /pets/*"], &["getPetById", "getPhoto"]);
    check(&["/subscriptions"], &["subscribe"]);
}

#[test]
fn the_name_and_the_address_can_be_set() {
    let options = Options {
        name: Some("zoo".to_owned()),
        server: Some("http://localhost:8080/${BASE}/".to_owned()),
        only: vec![Glob::new("getPhoto")],
    };
    let made = import(&document(PETSTORE), &options);
    assert!(made.text.contains("[zoo:Toolbox |"), "{}", made.text);
    assert!(made.text.contains("url: \"http://localhost:8080/${BASE}/pets/{petId}/photo\""), "{}", made.text);
    assert!(made.text.contains("// Variables of the environment: BASE, ZOO_API_KEY.\n"), "{}", made.text);
}

#[test]
fn names_stay_apart_and_fit_on_the_wire() {
    let operation = |id: &str| json!({ "operationId": id, "responses": {} });
    let long = "x".repeat(90);
    let mut document = with_operation("/a", "get", &operation(&long));
    document["paths"]["/b"] = json!({ "get": operation(&long), "post": operation("x-x"), "put": operation("x_x") });
    let made = import(&document, &Options::default());
    for name in
        [format!("[{}:", "x".repeat(58)), format!("[{}:", "x".repeat(52)), "[xX:".to_owned(), "[xX2:".to_owned()]
    {
        assert!(made.text.contains(&name), "{name} is not in {}", made.text);
    }
}

#[test]
fn errors_say_what_to_do() {
    let check = |document: &Json, options: &Options, expected: &str| {
        let error = toolbox(document, options).unwrap_err();
        assert_eq!(format!("{error} | {}", error.hint().unwrap_or_default()), expected);
    };
    let named = |name: &str| Options { name: Some(name.to_owned()), ..Options::default() };
    let at = |server: &str| Options { server: Some(server.to_owned()), ..Options::default() };
    let all = Options::default();
    let server = "say the address: `--server https://api.example.com/v1`";
    let with_server = |url: &str| {
        let mut document = document(PETSTORE);
        document["servers"] = json!([{ "url": url, "variables": { "evil": { "default": "${HOME}" } } }]);
        document
    };
    check(
        &json!([]),
        &all,
        "this is not an OpenAPI document: it has no `openapi` with a version | name the document itself, not a page that shows it",
    );
    check(
        &json!({ "swagger": "2.0" }),
        &all,
        "this is a Swagger 2.0 document, and only OpenAPI 3 can be read | convert it to OpenAPI 3 first, with swagger2openapi for example",
    );
    check(&json!({ "openapi": "4.0.0" }), &all, "OpenAPI 4.0.0 cannot be read | 3.0 and 3.1 can be read");
    check(&json!({ "openapi": "3.0.0" }), &all, "the document has no operations | ");
    for name in ["a b", "", "1a", "a__b", "a/b", &"a".repeat(33)] {
        let hint = "a name has at most 32 ASCII letters, digits, `_` and `-`, starts with a letter and has no `__`";
        check(&document(PETSTORE), &named(name), &format!("`{name}` cannot be the name of a toolbox | {hint}"));
    }
    check(&with_server("/v1"), &all, &format!("the address `/v1` is not a whole one | {server}"));
    check(
        &with_server("https://{x}/"),
        &all,
        &format!("the address `https://{{x}}/` has holes that nothing fills | {server}"),
    );
    check(
        &with_server("https://{evil}/"),
        &all,
        &format!("the address `https://{{evil}}/` has holes that nothing fills | {server}"),
    );
    check(
        &document(PETSTORE),
        &at("https://{host}"),
        &format!("the address `https://{{host}}` has holes that nothing fills | {server}"),
    );
    check(&document(PETSTORE), &at("example.com"), &format!("the address `example.com` is not a whole one | {server}"));
    let mut without = document(PETSTORE);
    without["servers"] = json!([]);
    check(&without, &all, &format!("the document does not say at which address its operations are | {server}"));
    let only = Options { only: vec![Glob::new("x*")], ..Options::default() };
    check(
        &document(PETSTORE),
        &only,
        "none of the 8 operations is asked for | the operations are listPets, addPet, getPetById, replacePet, deletePet, …",
    );
    let only = Options { only: vec![Glob::new("uploadPhoto")], ..Options::default() };
    check(&document(PETSTORE), &only, "none of the operations can be a tool | ");
    let Err(OpenApiError::NothingLeft { warnings }) = toolbox(&document(PETSTORE), &only) else { panic!() };
    assert_eq!(
        warnings.last().unwrap().to_string(),
        "POST /pets/{petId}/photo: skipped: a body of `multipart/form-data` cannot be sent"
    );
}

#[test]
fn large_and_hostile_documents_end() {
    let reference = |name: String| json!({ "$ref": format!("#/components/schemas/{name}") });
    let object = |properties: Json| json!({ "type": "object", "properties": properties });
    let with_schemas =
        |schemas: serde_json::Map<String, Json>| with_property(&reference("S0".to_owned()), &Json::Object(schemas));
    let many = |count: usize, schema: &dyn Fn(usize) -> Json| -> serde_json::Map<String, Json> {
        (0..count).map(|index| (format!("S{index}"), schema(index))).collect()
    };
    // A long chain of record types, of aliases, of `allOf`, of alternatives.
    import(
        &with_schemas(many(300, &|index| object(json!({ "next": reference(format!("S{}", index + 1)) })))),
        &Options::default(),
    );
    import(&with_schemas(many(2_000, &|index| reference(format!("S{}", index + 1)))), &Options::default());
    import(
        &with_schemas(many(
            3_000,
            &|index| json!({ "allOf": [reference(format!("S{}", index + 1)), object(json!({ "a": {} }))] }),
        )),
        &Options::default(),
    );
    // Everything refers to everything, in ways that multiply.
    let all = |count: usize, keyword: &str| -> Json {
        json!({ keyword: (0..count).map(|index| reference(format!("S{index}"))).collect::<Vec<_>>() })
    };
    for keyword in ["oneOf", "anyOf", "allOf"] {
        import(&with_schemas(many(12, &|_| all(12, keyword))), &Options::default());
        import(
            &with_schemas(many(12, &|_| {
                object(
                    json!({ "a": all(12, keyword), "b": { "nullable": true, "allOf": [reference("S1".to_owned())] } }),
                )
            })),
            &Options::default(),
        );
    }
    // A list of values that is too long, and a schema that is deep.
    let values: Vec<_> = (0..20_000).map(|index| format!("v{index}")).collect();
    let made = import(&with_property(&json!({ "type": "string", "enum": values }), &json!({})), &Options::default());
    assert_eq!(made.warnings[0].to_string(), "POST /x: a list of 20000 allowed values is too long, and is left out");
    let mut deep = json!({ "type": "string" });
    for _ in 0..500 {
        deep = object(json!({ "x": { "type": "array", "items": deep } }));
    }
    let made = import(&with_property(&deep, &json!({})), &Options::default());
    assert!(made.warnings[0].message.contains("too large"), "{:?}", made.warnings);
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
    assert_eq!(import(&document, &Options::default()).tools, 300);
}

/// Builds JSON from the words of OpenAPI, mostly wrong.
fn soup() -> impl Strategy<Value = Json> {
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
    fn every_import_is_sound(body in soup(), answer in soup(), parameter in soup(), a in soup(), b in soup(), name in "\\PC{0,12}") {
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
        if let Ok(made) = toolbox(&document, &Options::default()) {
            assert_sound(&made);
        }
    }
}
