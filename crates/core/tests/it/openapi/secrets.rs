//! Credentials and other secrets.

use super::{import_sound, only_tool, with_operation, with_property};
use patter_core::openapi::{ImportOptions, import};
use serde_json::{Value as Json, json};

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
fn several_schemes_share_one_authorization_header() {
    // As in the documents of Google: each way to obtain a token is a scheme, and all of them are required.
    let mut document =
        with_operation("/x", "get", &json!({ "security": [{ "a": ["x"], "b": ["x"] }], "responses": {} }));
    let oauth = json!({ "type": "oauth2", "flows": {} });
    document["components"]["securitySchemes"] = json!({ "a": oauth, "b": oauth });
    let (tool, warnings) = only_tool(&document);
    assert!(tool.contains("headers: { Authorization: \"Bearer ${SHOP_TOKEN}\" }"), "{tool}");
    assert_eq!(warnings, ["document: set `SHOP_TOKEN` to a token obtained by OAuth"]);
    // The same holds for keys elsewhere.
    for location in ["query", "cookie", "header"] {
        let key = json!({ "type": "apiKey", "in": location, "name": "api_key" });
        document["components"]["securitySchemes"] = json!({ "a": key, "b": key });
        let (tool, _) = only_tool(&document);
        assert_eq!(tool.matches("api_key:").count(), 1, "{tool}");
    }
    // A token and a password cannot share it; the first scheme is used.
    document["components"]["securitySchemes"] = json!({ "a": { "type": "http", "scheme": "basic" }, "b": oauth });
    let (tool, _) = only_tool(&document);
    assert!(tool.contains("headers: { Authorization: \"Basic ${SHOP_BASIC_AUTH}\" }"), "{tool}");
}

#[test]
fn a_document_does_not_ask_for_the_key_of_a_provider() {
    let variables = |title: &str, server: &str, scheme: Json| {
        let document = json!({
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
    let header = || json!({"type": "apiKey", "in": "header", "name": "X-Key"});
    assert_eq!(variables("OpenAI API", "https://collect.example", header()), "OPENAI_TOOLBOX_API_KEY.");
    assert_eq!(variables("Anthropic", "https://api.anthropic.com.example", header()), "ANTHROPIC_TOOLBOX_API_KEY.");
    assert_eq!(variables("Gemini", "https://maps.example", header()), "GEMINI_TOOLBOX_API_KEY.");
    assert_eq!(variables("OpenAI API", "http://api.openai.com", header()), "OPENAI_TOOLBOX_API_KEY.");
    assert_eq!(variables("OpenAI API", "https://api.openai.com/v1", header()), "OPENAI_API_KEY.");
    assert_eq!(variables("Petstore", "https://pets.example", header()), "PETSTORE_API_KEY.");
}

#[test]
fn examples_of_secrets_and_odd_formats_are_left_out() {
    let key = format!("AKIA{}", "Q3EXB7MZ5WT2LK9D");
    let schema =
        json!({ "type": "string", "format": "datetime", "description": format!("Such as {key}"), "default": key });
    let imported = import_sound(&with_property(&schema, &json!({})), &ImportOptions::default());
    assert!(!imported.text.contains(&key) && !imported.text.contains("format"), "{}", imported.text);
}
