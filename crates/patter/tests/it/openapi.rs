//! Reading OpenAPI documents.

use patter::openapi::read;
use serde_json::{Value as Json, json};

#[test]
fn documents_are_json_or_yaml() {
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
    assert_eq!(read(b"z: 1\na: 2\n").unwrap().to_string(), "{\"z\":1,\"a\":2}", "the order stays");
}

#[test]
fn what_is_neither_is_an_error() {
    let check = |bytes: &[u8], expected: &str| {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(b"\xff\xfe", "not UTF-8");
    check(b"a: [1", "neither JSON nor YAML: ");
    check(b"a: 1\na: 2\n", "duplicate");
    check(b"a: 1\n---\nb: 2\n", "neither JSON nor YAML: ");
    // Aliases that multiply, and brackets that nest.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    check(bomb.as_bytes(), "neither JSON nor YAML: ");
    check("[".repeat(100_000).as_bytes(), "neither JSON nor YAML: ");
    check("a: ".repeat(100_000).as_bytes(), "neither JSON nor YAML: ");
}
