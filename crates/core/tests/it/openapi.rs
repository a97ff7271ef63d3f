//! Import of OpenAPI documents.

use patter_core::check::{Options as CheckOptions, check};
use patter_core::declare::Toolbox;
use patter_core::declare::project::Project;
use patter_core::declare::template::Template;
use patter_core::openapi::{ImportOptions, ImportedToolbox, OpenApiError, import};
use patter_core::text::Glob;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const PETSTORE: &str = include_str!("openapi/petstore.json");
const ODD: &str = include_str!("openapi/odd.json");

fn document(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

/// Imports a document and asserts the invariants of every import: the text is formatted gram without findings, the import
/// is deterministic, every signature is valid, and every template refers to existing parameters.
fn import_sound(document: &Json, options: &ImportOptions) -> ImportedToolbox {
    let imported = import(document, options).unwrap();
    assert_eq!(import(document, options).unwrap(), imported, "the import is not deterministic");
    assert_sound(&imported);
    imported
}

fn assert_sound(imported: &ImportedToolbox) {
    assert_eq!(patter_core::gram::format(&imported.text).as_deref(), Ok(imported.text.as_str()));
    let project = Project::read([("box.gram", imported.text.as_str())]);
    let findings: Vec<_> = check(&project, &CheckOptions::default());
    assert!(findings.is_empty(), "{findings:?}\n{}", imported.text);
    let tools: Vec<_> = project.files()[0]
        .tree
        .patterns()
        .filter_map(Toolbox::cast)
        .flat_map(|toolbox| toolbox.tools().collect::<Vec<_>>())
        .collect();
    assert_eq!(tools.len(), imported.tools);
    for tool in tools {
        let signature = tool.signature(project.records()).unwrap();
        let pattern = tool.pattern().unwrap();
        let mut templates = vec![pattern.value("url").unwrap()];
        for key in ["query", "headers", "cookies", "body"] {
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

fn text_and_warnings(imported: &ImportedToolbox) -> String {
    let warnings: Vec<_> = imported.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    format!("{}---\n{}", imported.text, warnings.concat())
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($name, $text) })
    };
}

#[test]
fn imports_a_pet_store() {
    let imported = import_sound(&document(PETSTORE), &ImportOptions::default());
    snapshot!("openapi_petstore", text_and_warnings(&imported));
}

#[test]
fn imports_unusual_documents() {
    let imported = import_sound(&document(ODD), &ImportOptions::default());
    snapshot!("openapi_odd", text_and_warnings(&imported));
}

/// Returns a document with one operation, `POST /x`, whose JSON body has the property `p`.
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

/// Returns a document with one operation.
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
fn credentials_come_from_the_environment() {
    let check = |security: Json, expected: &str| {
        let duplicates = json!([{ "name": "a", "in": "header" }, { "name": "b", "in": "query", "required": true }]);
        let duplicates = if security.to_string().contains("one") { duplicates } else { json!([]) };
        let operation = json!({ "operationId": "x", "security": security, "parameters": duplicates, "responses": {} });
        let imported = import_sound(&with_operation("/x", "get", &operation), &ImportOptions::default());
        let after = imported.text.split("url: \"https://example.com/x\",\n").nth(1).unwrap();
        let found = after.split("result:").next().unwrap().trim().trim_end_matches(',');
        assert_eq!(found, expected, "{security}");
        imported.warnings.iter().map(|warning| format!("{warning}\n")).collect::<String>()
    };
    check(json!([]), "");
    check(json!([{}]), "");
    check(
        json!([{ "one": [], "otherKey": [] }]),
        "query: { b: \"${SHOP_OTHER_KEY}\" },\n    headers: { A: \"${SHOP_ONE}\" }",
    );
    check(json!([{ "otherKey": [] }]), "query: { b: \"${SHOP_OTHER_KEY}\" }");
    check(json!([{ "sid": [] }]), "cookies: { sid: \"${SHOP_SESSION}\" }");
    let warnings = check(json!([{ "basic": [] }]), "headers: { Authorization: \"Basic ${SHOP_BASIC_AUTH}\" }");
    assert_eq!(warnings, "document: set `SHOP_BASIC_AUTH` to `user:password`\n");
    let warnings = check(json!([{ "evil": [] }, { "missing": [] }]), "");
    assert_eq!(warnings, "GET /x: the security scheme `evil` is not supported; left out\n");
}

#[test]
fn operations_can_be_selected() {
    let check = |globs: &[&str], expected: &[&str]| {
        let options =
            ImportOptions { only: globs.iter().map(|glob| Glob::new(glob)).collect(), ..ImportOptions::default() };
        let imported = import_sound(&document(PETSTORE), &options);
        let names: Vec<_> = imported.text.lines().filter_map(|line| line.trim().strip_suffix(":Http {")).collect();
        assert_eq!(names, expected.iter().map(|name| format!("[{name}")).collect::<Vec<_>>(), "{globs:?}");
    };
    check(&["list_pets"], &["listPets"]);
    check(&["list*", "deletePet"], &["listPets", "deletePet"]);
    check(&["GET /pets/*"], &["getPetById", "getPhoto"]);
    check(&["/subscriptions"], &["subscribe", "optionsSubscriptions"]);
}

#[test]
fn the_name_and_the_server_can_be_set() {
    let options = ImportOptions {
        name: Some("zoo".to_owned()),
        server: Some("http://localhost:8080/${BASE}/".to_owned()),
        only: vec![Glob::new("getPhoto")],
    };
    let imported = import_sound(&document(PETSTORE), &options);
    assert!(imported.text.contains("[zoo:Toolbox |"), "{}", imported.text);
    assert!(imported.text.contains("url: \"http://localhost:8080/${BASE}/pets/{petId}/photo\""), "{}", imported.text);
    assert!(imported.text.contains("// Environment variables: BASE, ZOO_API_KEY.\n"), "{}", imported.text);
}

#[test]
fn names_are_unique_and_fit_on_the_wire() {
    let operation = |id: &str| json!({ "operationId": id, "responses": {} });
    let long = "x".repeat(90);
    let mut document = with_operation("/a", "get", &operation(&long));
    document["paths"]["/b"] = json!({ "get": operation(&long), "post": operation("x-x"), "put": operation("x_x") });
    let imported = import_sound(&document, &ImportOptions::default());
    for name in
        [format!("[{}:", "x".repeat(58)), format!("[{}:", "x".repeat(52)), "[xX:".to_owned(), "[xX2:".to_owned()]
    {
        assert!(imported.text.contains(&name), "{name} is not in {}", imported.text);
    }
}

#[test]
fn errors_have_hints() {
    let check = |document: &Json, options: &ImportOptions, expected: &str| {
        let error = import(document, options).unwrap_err();
        assert_eq!(format!("{error} | {}", error.hint().unwrap_or_default()), expected);
    };
    let named = |name: &str| ImportOptions { name: Some(name.to_owned()), ..ImportOptions::default() };
    let at = |server: &str| ImportOptions { server: Some(server.to_owned()), ..ImportOptions::default() };
    let all = ImportOptions::default();
    let server = "pass the server address: `--server https://api.example.com/v1`";
    let with_server = |url: &str| {
        let mut document = document(PETSTORE);
        document["servers"] = json!([{ "url": url, "variables": { "evil": { "default": "${HOME}" } } }]);
        document
    };
    check(
        &json!([]),
        &all,
        "not an OpenAPI document: the version `openapi` is missing | pass the document itself, not a page that displays it",
    );
    check(&json!({ "swagger": "1.2" }), &all, "Swagger 1.2 is not supported | supported versions: 2.0, 3.0 and 3.1");
    check(&json!({ "swagger": "2.0" }), &all, "the document has no operations | ");
    check(
        &json!({ "openapi": "4.0.0" }),
        &all,
        "OpenAPI 4.0.0 is not supported | supported versions: 2.0, 3.0 and 3.1",
    );
    check(&json!({ "openapi": "3.0.0" }), &all, "the document has no operations | ");
    for name in ["a b", "", "1a", "a__b", "a/b", &"a".repeat(33)] {
        let hint = "use at most 32 ASCII letters, digits, `_` and `-`, starting with a letter and without `__`";
        check(&document(PETSTORE), &named(name), &format!("invalid toolbox name `{name}` | {hint}"));
    }
    let relative = "it is relative to where the document is published: `--server https://api.example.com/v1`";
    check(&with_server("/v1"), &all, &format!("the server address `/v1` is not absolute | {relative}"));
    check(&with_server("Your URL"), &all, &format!("the server address `Your URL` is not absolute | {server}"));
    check(
        &with_server("https://{x}/"),
        &all,
        &format!("the server address `https://{{x}}/` has placeholders without a value | {server}"),
    );
    check(
        &with_server("https://{evil}/"),
        &all,
        &format!("the server address `https://{{evil}}/` has placeholders without a value | {server}"),
    );
    check(
        &document(PETSTORE),
        &at("https://{host}"),
        &format!("the server address `https://{{host}}` has placeholders without a value | {server}"),
    );
    check(
        &document(PETSTORE),
        &at("example.com"),
        &format!("the server address `example.com` is not absolute | {server}"),
    );
    let mut without = document(PETSTORE);
    without["servers"] = json!([]);
    check(&without, &all, &format!("the document does not name a server | {server}"));
    let only = ImportOptions { only: vec![Glob::new("x*")], ..ImportOptions::default() };
    check(
        &document(PETSTORE),
        &only,
        "none of the 9 operations is selected | available operations: listPets, addPet, getPetById, replacePet, deletePet, …",
    );
    let body = json!({ "required": true, "content": { "multipart/mixed": {} } });
    let mixed = with_operation("/x", "post", &json!({ "requestBody": body, "responses": {} }));
    check(&mixed, &all, "none of the operations can be converted to a tool | ");
    let Err(OpenApiError::NoTools { warnings }) = import(&mixed, &all) else { panic!() };
    assert_eq!(
        warnings.last().unwrap().to_string(),
        "POST /x: skipped: a request body of type `multipart/mixed` is not supported"
    );
}

/// Returns the only tool of a document as one line, without its description.
fn only_tool(document: &Json) -> (String, Vec<String>) {
    let imported = import_sound(document, &ImportOptions::default());
    let (_, tool) = imported.text.split_once(":Http {").unwrap();
    let tool = tool.split_whitespace().collect::<Vec<_>>().join(" ");
    let tool = tool.split_once(", method: ").unwrap().1.trim_end_matches(" ]").replace(" ==>", "==>");
    (tool, imported.warnings.iter().map(ToString::to_string).collect())
}

#[test]
fn several_schemes_share_one_authorization_header() {
    // As in the documents of Google: each way to obtain a token is a scheme, and all of them are required.
    let mut document =
        with_operation("/x", "get", &json!({ "security": [{ "a": ["x"], "b": ["x"] }], "responses": {} }));
    let oauth = json!({ "type": "oauth2", "flows": {} });
    document["components"]["securitySchemes"] = json!({ "a": oauth, "b": oauth });
    let (tool, warnings) = only_tool(&document);
    assert!(tool.contains("headers: { Authorization: \"Bearer ${SHOP_TOKEN}\" }"), "{tool}");
    assert_eq!(warnings, ["document: set `SHOP_TOKEN` to a token obtained by OAuth"]);
    // A token and a password cannot share it; the first scheme is used.
    document["components"]["securitySchemes"] = json!({ "a": { "type": "http", "scheme": "basic" }, "b": oauth });
    let (tool, _) = only_tool(&document);
    assert!(tool.contains("headers: { Authorization: \"Basic ${SHOP_BASIC_AUTH}\" }"), "{tool}");
}

#[test]
fn forms_become_parameters() {
    let field = |schema: Json| json!({ "type": "object", "required": ["p"], "properties": { "p": schema, "q": { "type": "string" } } });
    let check = |kind: &str, media: Json, expected: &str| {
        let body = json!({ "required": true, "content": { kind: media } });
        let (tool, warnings) =
            only_tool(&with_operation("/x", "post", &json!({ "requestBody": body, "responses": {} })));
        let (_, tool) = tool.split_once("url: \"https://example.com/x\", ").unwrap();
        assert_eq!(tool, expected, "{kind} {media}");
        assert!(warnings.is_empty(), "{warnings:?}");
    };
    let form = "application/x-www-form-urlencoded";
    let header = format!("headers: {{ Content-Type: \"{form}\" }}");
    let end = "(q::Text { optional: true })==>(::Text)";
    let text = json!({ "type": "string" });
    let list = json!({ "type": "array", "items": text });
    let record = json!({ "type": "object", "properties": { "a": text } });
    check(
        form,
        json!({ "schema": field(text.clone()) }),
        &format!("{header}, result: \"text\" }} | (p::Text)==>{end}"),
    );
    check(
        form,
        json!({ "schema": field(record), "encoding": { "p": { "style": "deepObject", "explode": true } } }),
        &format!(
            "{header}, styles: {{ p: \"brackets\" }}, result: \"text\" }} | (p::Object {{ fields: [{{ name: \"a\", type: \"Text\", optional: true }}] }})==>{end}"
        ),
    );
    check(
        form,
        json!({ "schema": field(list.clone()), "encoding": { "p": { "explode": false } } }),
        &format!(
            "{header}, styles: {{ p: \"comma\" }}, result: \"text\" }} | (p::Array {{ elementType: \"Text\" }})==>{end}"
        ),
    );
    // A form whose fields are unknown is one object.
    check(
        form,
        json!({}),
        &format!("{header}, body: \"{{body}}\", result: \"text\" }} | (body::Object {{ fields: [] }})==>(::Text)"),
    );
    let header = "headers: { Content-Type: \"multipart/form-data\" }";
    let file = "Content of the file: text, or a data: URL such as data:image/png;name=a.png;base64,…";
    check(
        "multipart/form-data",
        json!({ "schema": field(json!({ "type": "string", "format": "binary" })) }),
        &format!(
            "{header}, styles: {{ p: \"file\" }}, result: \"text\" }} | (p::Text {{ description: \"{file}\" }})==>{end}"
        ),
    );
    check(
        "application/zip",
        json!({}),
        &format!(
            "headers: {{ Content-Type: \"application/zip\" }}, body: \"{{body}}\", styles: {{ body: \"file\" }}, result: \"text\" }} | (body::Text {{ description: \"{file}\" }})==>(::Text)"
        ),
    );
    check(
        "image/*",
        json!({}),
        &format!(
            "body: \"{{body}}\", styles: {{ body: \"file\" }}, result: \"text\" }} | (body::Text {{ description: \"{file}\" }})==>(::Text)"
        ),
    );
}

#[test]
fn parameters_are_written_in_their_style() {
    let check = |parameter: Json, expected: &str| {
        let mut parameter = parameter;
        parameter["name"] = json!("p");
        let path = if parameter["in"] == "path" { "/x/{p}" } else { "/x" };
        let operation = json!({ "parameters": [parameter], "responses": {} });
        let (tool, _) = only_tool(&with_operation(path, "get", &operation));
        let found = tool.split_once("https://example.com").unwrap().1.split(", result:").next().unwrap();
        assert_eq!(found, expected, "{parameter}");
    };
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let record = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    check(json!({ "in": "query", "schema": list }), "/x\"");
    check(json!({ "in": "query", "schema": list, "explode": false }), "/x\", styles: { p: \"comma\" }");
    check(json!({ "in": "query", "schema": list, "style": "pipeDelimited" }), "/x\", styles: { p: \"pipe\" }");
    check(json!({ "in": "query", "schema": list, "style": "spaceDelimited" }), "/x\", styles: { p: \"space\" }");
    check(json!({ "in": "query", "schema": record }), "/x\", styles: { p: \"fields\" }");
    check(json!({ "in": "query", "schema": record, "style": "deepObject" }), "/x\", styles: { p: \"brackets\" }");
    check(json!({ "in": "query", "schema": {}, "style": "deepObject" }), "/x\", styles: { p: \"brackets\" }");
    check(
        json!({ "in": "query", "content": { "application/json": { "schema": list } } }),
        "/x\", styles: { p: \"json\" }",
    );
    check(json!({ "in": "path", "schema": list }), "/x/{p}\", styles: { p: \"comma\" }");
    check(json!({ "in": "path", "schema": { "type": "integer" }, "style": "label" }), "/x/.{p}\"");
    check(json!({ "in": "path", "schema": list, "style": "matrix" }), "/x/;p={p}\", styles: { p: \"comma\" }");
    check(json!({ "in": "header", "schema": list }), "/x\", headers: { p: \"{p}\" }, styles: { p: \"comma\" }");
    check(json!({ "in": "cookie", "schema": { "type": "string" } }), "/x\", cookies: { p: \"{p}\" }");
    // A required parameter with only one possible value needs no argument.
    let only = json!({ "type": "string", "enum": ["{v}"] });
    check(json!({ "in": "query", "required": true, "schema": only }), "/x\", query: { p: \"{{v}}\" }");
    check(json!({ "in": "path", "schema": { "type": "string", "enum": ["v"] } }), "/x/v\"");
    check(json!({ "in": "query", "schema": only }), "/x\"");
}

#[test]
fn operations_on_one_path_may_differ_in_a_fragment() {
    let action = |name: &str| json!({ "name": "Action", "in": "query", "required": true, "schema": { "type": "string", "enum": [name] } });
    let mut document = with_operation("/#Action=A", "get", &json!({ "parameters": [action("A")], "responses": {} }));
    document["paths"]["/#Action=B"] = json!({ "get": { "parameters": [action("B")], "responses": {} } });
    let imported = import_sound(&document, &ImportOptions::default());
    assert_eq!(imported.tools, 2);
    assert_eq!(imported.text.matches("url: \"https://example.com/\"").count(), 2, "{}", imported.text);
    assert!(imported.text.contains("query: { Action: \"B\" }"), "{}", imported.text);
}

#[test]
fn descriptions_say_how_to_get_the_next_page() {
    let check = |parameter: &str, ty: &str, response: Json, expected: Option<&str>| {
        let parameters = json!([{ "name": parameter, "in": "query", "schema": { "type": ty } }]);
        let content = json!({ "application/json": { "schema": { "type": "object", "properties": response } } });
        let operation =
            json!({ "summary": "Lists", "parameters": parameters, "responses": { "200": { "content": content } } });
        let imported = import_sound(&with_operation("/x", "get", &operation), &ImportOptions::default());
        let description = imported.text.split("description: \"").nth(1).unwrap().split('"').next().unwrap();
        let expected = expected.map_or("Lists".to_owned(), |hint| format!("Lists. Returns one page: {hint}"));
        assert_eq!(description, expected);
    };
    let text = json!({ "type": "string" });
    let token = "pass `nextPageToken` of the result as `pageToken` to get the next one.";
    check("pageToken", "string", json!({ "nextPageToken": text }), Some(token));
    check("pageToken", "string", json!({ "items": {} }), None);
    let nested = json!({ "response_metadata": { "type": "object", "properties": { "next_cursor": text } } });
    let cursor = "pass `response_metadata.next_cursor` of the result as `cursor` to get the next one.";
    check("cursor", "string", nested, Some(cursor));
    let after = "while `has_more` is true, pass the id of the last item as `starting_after` to get the next one.";
    check("starting_after", "string", json!({ "has_more": { "type": "boolean" } }), Some(after));
    check("page", "integer", json!({ "items": {} }), Some("`page` is its number."));
    check("page", "string", json!({ "items": {} }), None);
    check("offset", "integer", json!({ "items": {} }), Some("`offset` is the number of items before it."));
}

#[test]
fn addresses_without_a_scheme_are_encrypted() {
    let mut document = with_operation("/x", "get", &json!({ "responses": {} }));
    document["servers"] = json!([{ "url": "/v1" }, { "url": "//api.example.com/v2" }]);
    let (tool, _) = only_tool(&document);
    assert!(tool.contains("url: \"https://api.example.com/v2/x\""), "{tool}");
}

#[test]
fn imports_swagger() {
    let imported = import_sound(&document(include_str!("openapi/swagger.json")), &ImportOptions::default());
    snapshot!("openapi_swagger", text_and_warnings(&imported));
}

#[test]
fn examples_of_secrets_and_odd_formats_are_left_out() {
    let key = format!("AKIA{}", "Q3EXB7MZ5WT2LK9D");
    let schema =
        json!({ "type": "string", "format": "datetime", "description": format!("Such as {key}"), "default": key });
    let imported = import_sound(&with_property(&schema, &json!({})), &ImportOptions::default());
    assert!(!imported.text.contains(&key) && !imported.text.contains("format"), "{}", imported.text);
}

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

#[test]
fn a_document_does_not_ask_for_the_key_of_a_provider() {
    let variables = |title: &str, server: &str, scheme: serde_json::Value| {
        let document = serde_json::json!({
            "openapi": "3.1.0",
            "info": {"title": title, "version": "1"},
            "servers": [{"url": server}],
            "components": {"securitySchemes": {"key": scheme}},
            "security": [{"key": []}],
            "paths": {"/a": {"get": {"operationId": "listAll", "responses": {"200": {"description": "ok"}}}}}
        });
        let text = import(&document, &ImportOptions::default()).unwrap().text;
        text.lines().find_map(|line| line.strip_prefix("// Environment variables: ")).unwrap().to_owned()
    };
    let header = || serde_json::json!({"type": "apiKey", "in": "header", "name": "X-Key"});
    assert_eq!(variables("OpenAI API", "https://collect.example", header()), "OPENAI_TOOLBOX_API_KEY.");
    assert_eq!(variables("Anthropic", "https://api.anthropic.com.example", header()), "ANTHROPIC_TOOLBOX_API_KEY.");
    assert_eq!(variables("Gemini", "https://maps.example", header()), "GEMINI_TOOLBOX_API_KEY.");
    assert_eq!(variables("OpenAI API", "http://api.openai.com", header()), "OPENAI_TOOLBOX_API_KEY.");
    assert_eq!(variables("OpenAI API", "https://api.openai.com/v1", header()), "OPENAI_API_KEY.");
    assert_eq!(variables("Petstore", "https://pets.example", header()), "PETSTORE_API_KEY.");
}
