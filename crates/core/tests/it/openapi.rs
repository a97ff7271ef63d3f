//! Import of OpenAPI documents.

mod errors;
mod hostile;
mod operations;
mod requests;
mod schemas;
mod secrets;

use patter_core::check::{Options as CheckOptions, check};
use patter_core::declare::Toolbox;
use patter_core::declare::project::Project;
use patter_core::declare::template::Template;
use patter_core::openapi::{ImportOptions, ImportedToolbox, import};
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

/// Returns the only tool of a document as one line, without its description.
fn only_tool(document: &Json) -> (String, Vec<String>) {
    let imported = import_sound(document, &ImportOptions::default());
    let (_, tool) = imported.text.split_once(":Http {").unwrap();
    let tool = tool.split_whitespace().collect::<Vec<_>>().join(" ");
    let tool = tool.split_once(", method: ").unwrap().1.trim_end_matches(" ]").replace(" ==>", "==>");
    (tool, imported.warnings.iter().map(ToString::to_string).collect())
}

#[test]
fn imports_swagger() {
    let imported = import_sound(&document(include_str!("openapi/swagger.json")), &ImportOptions::default());
    snapshot!("openapi_swagger", text_and_warnings(&imported));
}
