//! Parameters and bodies of requests.

use super::{only_tool, with_operation};
use serde_json::{Value as Json, json};

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
fn long_names_of_parameters_are_shortened() {
    let long = "a".repeat(70);
    let other = format!("{long}b");
    let text = json!({ "type": "string" });
    let parameters = json!([
        { "name": long, "in": "query", "schema": text },
        { "name": other, "in": "query", "schema": text },
        { "name": long, "in": "header", "schema": text },
    ]);
    let (tool, warnings) =
        only_tool(&with_operation("/x", "get", &json!({ "parameters": parameters, "responses": {} })));
    let short = "a".repeat(64);
    let cut = "a".repeat(52);
    let query = format!("query: {{ {long}: \"{{{short}}}\", {other}: \"{{{cut}_query}}\" }}");
    assert!(tool.contains(&query), "{tool}");
    assert!(tool.contains(&format!("headers: {{ {long}: \"{{{cut}_header}}\" }}")), "{tool}");
    assert!(warnings.is_empty(), "{warnings:?}");
    // Fields of a body are sent by their own names.
    let body = json!({ "content": { "application/json": { "schema": { "type": "object", "properties": { long.clone(): text } } } } });
    let (tool, _) = only_tool(&with_operation("/x", "post", &json!({ "requestBody": body, "responses": {} })));
    assert!(tool.contains(&format!("body: {{ {long}: \"{{{short}}}\" }}")), "{tool}");
}
