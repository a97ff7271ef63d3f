//! What prevents an import.

use super::{PETSTORE, document, with_operation};
use patter_core::openapi::{ImportOptions, OpenApiError, import};
use patter_core::text::Glob;
use serde_json::{Value as Json, json};

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
