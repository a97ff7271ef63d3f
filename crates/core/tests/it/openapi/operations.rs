//! Operations: which are imported, their names, servers and pages.

use super::{PETSTORE, document, import_sound, only_tool, with_operation};
use patter_core::openapi::ImportOptions;
use patter_core::text::Glob;
use serde_json::{Value as Json, json};

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
