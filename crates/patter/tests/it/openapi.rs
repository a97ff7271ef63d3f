//! OpenAPI documents.

use patter::http::{HttpClient, NetworkPolicy};
use patter::openapi::{ImportOptions, import, read};
use patter::project::{Environment, Project};
use patter::tool::{ToolContext, ToolResources, build_declared};
use serde_json::{Value as Json, json};

#[test]
fn reads_json_and_yaml() {
    let check = |text: &str, expected: Json| assert_eq!(read(text.as_bytes()).unwrap(), expected, "{text}");
    check("{\"a\": [1, null]}", json!({ "a": [1, null] }));
    check("\u{feff}{\"a\": 1}", json!({ "a": 1 }));
    check("# a comment\na: 1\nb:\n  - x\n  - ~\n", json!({ "a": 1, "b": ["x", null] }));
    check("{a: 1, b: [x, 'y']}", json!({ "a": 1, "b": ["x", "y"] }));
    check(
        "responses:\n  200: {description: ok}\n  '404': {}\n",
        json!({ "responses": { "200": { "description": "ok" }, "404": {} } }),
    );
    check(
        "enum: [yes, no, on, off, true, 1.5, 0x10, 1e3]\n",
        json!({ "enum": ["yes", "no", "on", "off", true, 1.5, 16, 1000.0] }),
    );
    check(
        "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n",
        json!({ "a": { "b": 1 }, "c": { "b": 1 }, "d": { "b": 1, "e": 2 } }),
    );
    check("text: |\n  one\n  two\nfolded: >\n  one\n  two\n", json!({ "text": "one\ntwo\n", "folded": "one two\n" }));
    check("z: 1\na: 2\n", json!({ "z": 1, "a": 2 }));
    assert_eq!(read(b"z: 1\na: 2\n").unwrap().to_string(), "{\"z\":1,\"a\":2}", "the order is preserved");
}

#[test]
fn rejects_other_documents() {
    let check = |bytes: &[u8], expected: &str| {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(b"\xff\xfe", "not UTF-8");
    check(b"a: [1", "neither JSON nor YAML: ");
    check(b"a: 1\na: 2\n", "duplicate");
    check(b"a: 1\n---\nb: 2\n", "neither JSON nor YAML: ");
    // Aliases that multiply, and deep nesting.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    check(bomb.as_bytes(), "neither JSON nor YAML: ");
    check("[".repeat(100_000).as_bytes(), "neither JSON nor YAML: ");
    check("a: ".repeat(100_000).as_bytes(), "neither JSON nor YAML: ");
}

const ECHO: &str = "openapi: 3.0.0
info: {title: Echo}
servers: [{url: SERVER/v1}]
security: [{key: []}]
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}, basic: {type: http, scheme: basic}}
paths:
  /things/{thing-id}:
    parameters:
      - {name: thing-id, in: path, required: true, schema: {type: string}}
      - {name: X-Trace-Id, in: header, schema: {type: string}}
    get:
      operationId: getThing
      parameters:
        - {name: 'page[size]', in: query, schema: {type: integer}}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
      responses: {200: {description: ok, content: {application/json: {}}}}
    put:
      operationId: putThing
      security: [{basic: []}]
      parameters: [{name: dry, in: query, schema: {type: boolean}}]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}
      responses: {200: {description: ok, content: {application/json: {}}}}
    post:
      operationId: postThing
      requestBody: {content: {application/json: {schema: {type: array, items: {type: integer}}}}}
      responses: {200: {description: ok, content: {application/json: {}}}}
    patch:
      operationId: patchThing
      requestBody: {content: {text/plain: {}}}
      responses: {200: {description: ok, content: {application/json: {}}}}
";

const THING: &str = "  schemas:
    Thing: {type: object, required: [a-b], properties: {a-b: {type: integer}, thing-id: {type: string}, c: {type: array, items: {}}}}
paths:";

const FORMS: &str = "openapi: 3.0.0
info: {title: Echo}
servers: [{url: SERVER/v1}]
security: [{key: []}]
components:
  securitySchemes: {key: {type: apiKey, in: cookie, name: sid}}
paths:
  /pay:
    post:
      operationId: pay
      parameters: [{name: theme, in: cookie, schema: {type: string}}, {name: Action, in: query, required: true, schema: {type: string, enum: [Pay]}}]
      requestBody:
        content:
          application/x-www-form-urlencoded:
            encoding: {expand: {style: deepObject, explode: true}, card: {style: deepObject, explode: true}, ids: {explode: false}}
            schema:
              type: object
              properties:
                amount: {type: integer}
                expand: {type: array, items: {type: string}}
                card: {type: object, properties: {number: {type: string}, lines: {type: array, items: {type: object, properties: {price: {type: integer}}}}}}
                ids: {type: array, items: {type: integer}}
                'note-text': {type: string}
      responses: {200: {description: ok, content: {application/json: {}}}}
  /photos:
    delete:
      operationId: removePhotos
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {id: {type: integer}}}}}}
      responses: {200: {description: ok, content: {application/json: {}}}}
    put:
      operationId: putPhoto
      requestBody: {content: {'image/*': {}}}
      responses: {200: {description: ok, content: {application/json: {}}}}
  /search/{where}/#a:
    get:
      operationId: search
      parameters:
        - {name: where, in: path, required: true, schema: {type: array, items: {type: string}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object, properties: {color: {type: string}}}}
        - {name: sort, in: query, schema: {type: object, properties: {by: {type: string}}}}
        - {name: tags, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: q, in: query, content: {application/json: {schema: {type: object}}}}
        - {name: X-Kinds, in: header, schema: {type: array, items: {type: string}}}
      responses: {200: {description: ok, content: {application/json: {}}}}
";

/// A document of version 2.0.
const OLD: &str = "swagger: '2.0'
info: {title: Echo}
host: HOST
basePath: /v1
schemes: [http]
paths:
  /old/{id}:
    parameters: [{name: id, in: path, required: true, type: string}]
    get:
      operationId: old
      parameters:
        - {name: csv, in: query, type: array, items: {type: string}}
        - {name: multi, in: query, type: array, items: {type: string}, collectionFormat: multi}
        - {name: pipes, in: query, type: array, items: {type: string}, collectionFormat: pipes}
      responses: {200: {description: ok, schema: {type: string}}}
    post:
      operationId: oldForm
      parameters: [{name: a, in: formData, type: string}, {name: b, in: formData, type: array, items: {type: string}, collectionFormat: multi}]
      responses: {200: {description: ok, schema: {type: string}}}
    put:
      operationId: oldBody
      parameters: [{name: thing, in: body, required: true, schema: {$ref: '#/definitions/Thing'}}]
      responses: {200: {description: ok, schema: {type: string}}}
definitions: {Thing: {type: object, properties: {a: {type: integer}}}}
";

/// Calls a tool of an imported document, and returns the request that the server received.
async fn call_imported(document: &str, name: &str, arguments: Json) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(echo)).await.unwrap() });
    let text = document.replace("SERVER", &format!("http://{host}")).replace("HOST", &host);
    let imported = import(&read(text.as_bytes()).unwrap(), &ImportOptions::default()).unwrap();
    let project = Project::read([("echo.gram", imported.text.as_str())]);
    let environment = Environment::from_variables([("ECHO_SESSION", "session-0123456789")]);
    let client = HttpClient::new(NetworkPolicy::from_allow_list(["127.0.0.1"]).unwrap(), |_| None);
    let (workspace, findings) =
        build_declared(&project, &ToolResources { client, ..ToolResources::new(".", environment) });
    assert!(findings.is_empty(), "{findings:?}\n{}", imported.text);
    let full = format!("echo/{name}");
    let (_, tool) = workspace.tools().find(|(known, _)| known.as_str() == full).unwrap();
    let result = tool.implementation.call(arguments, &ToolContext::new("1")).await;
    result.unwrap_or_else(|failure| panic!("{name}: {}", failure.message())).as_str().unwrap().to_owned()
}

#[tokio::test]
async fn imported_forms_and_styles_are_sent_as_declared() {
    let form = "content-type: application/x-www-form-urlencoded";
    for (document, name, arguments, expected) in [
        (
            FORMS,
            "pay",
            json!({
                "theme": "dark", "amount": 5, "expand": ["a", "b"], "ids": [1, 2], "note_text": "x y",
                "card": { "number": "4", "lines": [{ "price": 1 }] },
            }),
            format!(
                "POST /v1/pay?Action=Pay | cookie: theme=dark; sid=[secret ECHO_SESSION] | {form} | \
                 amount=5&expand%5B%5D=a&expand%5B%5D=b&card%5Bnumber%5D=4&card%5Blines%5D%5B0%5D%5Bprice%5D=1&ids=1,2&note-text=x%20y"
            ),
        ),
        (
            FORMS,
            "removePhotos",
            json!({ "id": 7 }),
            format!("DELETE /v1/photos | cookie: sid=[secret ECHO_SESSION] | {form} | id=7"),
        ),
        (
            FORMS,
            "putPhoto",
            json!({ "body": "data:image/svg+xml,%3Csvg/%3E" }),
            "PUT /v1/photos | cookie: sid=[secret ECHO_SESSION] | content-type: image/svg+xml | <svg/>".to_owned(),
        ),
        (
            FORMS,
            "search",
            json!({
                "where": ["a/b", "c"], "filter": { "color": "r&b" }, "sort": { "by": "x" }, "tags": ["1", "2"],
                "q": { "k": 1 }, "X_Kinds": ["m", "n"],
            }),
            "GET /v1/search/a%2Fb,c/?filter%5Bcolor%5D=r%26b&by=x&tags=1,2&q=%7B%22k%22%3A1%7D | x-kinds: m,n | \
             cookie: sid=[secret ECHO_SESSION] | "
                .to_owned(),
        ),
        (
            OLD,
            "old",
            json!({ "id": "1", "csv": ["a", "b"], "multi": ["a", "b"], "pipes": ["a", "b"] }),
            "GET /v1/old/1?csv=a,b&multi=a&multi=b&pipes=a%7Cb | ".to_owned(),
        ),
        (
            OLD,
            "oldForm",
            json!({ "id": "1", "a": "x", "b": ["1", "2"] }),
            format!("POST /v1/old/1 | {form} | a=x&b=1&b=2"),
        ),
        (
            OLD,
            "oldBody",
            json!({ "id": "1", "a": 5 }),
            "PUT /v1/old/1 | content-type: application/json | {\"a\":5}".to_owned(),
        ),
    ] {
        assert_eq!(call_imported(document, name, arguments).await, expected, "{name}");
    }
}

/// Responds with the request as text.
async fn echo(request: axum::extract::Request) -> String {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 10_000).await.unwrap();
    let mut text = format!("{} {}", head.method, head.uri);
    for name in ["x-trace-id", "x-key", "x-kinds", "cookie", "authorization", "content-type"] {
        let value = head.headers.get(name).map(|value| value.to_str().unwrap());
        text.extend(value.map(|value| format!(" | {name}: {value}")));
    }
    format!("{text} | {}", String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn imported_tools_send_requests() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(echo)).await.unwrap() });
    let document = read(ECHO.replace("SERVER", &base).replace("paths:", THING).as_bytes()).unwrap();
    let imported = import(&document, &ImportOptions::default()).unwrap();
    let project = Project::read([("echo.gram", imported.text.as_str())]);
    let environment =
        Environment::from_variables([("ECHO_API_KEY", "key-0123456789"), ("ECHO_BASIC_AUTH", "ada:lovelace")]);
    let client = HttpClient::new(NetworkPolicy::from_allow_list(["127.0.0.1"]).unwrap(), |_| None);
    let (workspace, findings) =
        build_declared(&project, &ToolResources { client, ..ToolResources::new(".", environment) });
    assert!(findings.is_empty(), "{findings:?}\n{}", imported.text);
    for (name, arguments, expected) in [
        (
            "getThing",
            json!({ "thing_id": "a/b c", "page_size": 3, "tags": ["x", "y&z"], "X_Trace_Id": "t1" }),
            "GET /v1/things/a%2Fb%20c?page%5Bsize%5D=3&tags=x&tags=y%26z | x-trace-id: t1 | x-key: [secret ECHO_API_KEY] | ",
        ),
        ("getThing", json!({ "thing_id": "1" }), "GET /v1/things/1 | x-key: [secret ECHO_API_KEY] | "),
        (
            "putThing",
            json!({ "thing_id": "1", "a_b": 5, "thing_id_body": "2", "c": [1, "x"], "dry": true }),
            "PUT /v1/things/1?dry=true | authorization: Basic [secret ECHO_BASIC_AUTH] | content-type: application/json | \
             {\"a-b\":5,\"thing-id\":\"2\",\"c\":[1,\"x\"]}",
        ),
        (
            "postThing",
            json!({ "thing_id": "1", "body": [1, 2] }),
            "POST /v1/things/1 | x-key: [secret ECHO_API_KEY] | content-type: application/json | [1,2]",
        ),
        (
            "patchThing",
            json!({ "thing_id": "1", "body": "hi" }),
            "PATCH /v1/things/1 | x-key: [secret ECHO_API_KEY] | content-type: text/plain | hi",
        ),
    ] {
        let full = format!("echo/{name}");
        let (_, tool) = workspace.tools().find(|(known, _)| known.as_str() == full).unwrap();
        let result = tool.implementation.call(arguments, &ToolContext::new("1")).await.unwrap();
        assert_eq!(result, expected, "{name}");
    }
}

#[test]
fn reads_large_yaml_and_yaml_with_control_characters() {
    let items: String = (0..260_000).map(|_| "- a\n").collect();
    let document = read(format!("openapi: 3.1.0\nx-items:\n{items}").as_bytes()).unwrap();
    assert_eq!(document["x-items"].as_array().map(Vec::len), Some(260_000));
    let document = read("openapi: 3.1.0\ninfo: {title: \"a\u{80}b\u{9f}\"}\n".as_bytes()).unwrap();
    assert_eq!(document["info"]["title"], "a b ");
}
