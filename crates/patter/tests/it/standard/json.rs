//! The toolbox `json`.

use super::check;
use serde_json::{Value as Json, json};

fn shop() -> Json {
    json!({ "items": [{ "name": "pen", "price": 2 }, { "name": "ink", "price": 12 }], "a/b": null, "open": true })
}

/// Nests arrays.
fn nested(depth: usize) -> Json {
    (0..depth).fold(json!([]), |inner, _| json!([inner]))
}

#[test]
fn get_follows_pointers() {
    let get = |pointer: &str, expected: Json| {
        check("json/get", json!({ "document": shop(), "pointer": pointer }), expected);
    };
    get("", shop());
    get("/items/1/name", json!("ink"));
    get("/a~1b", json!(null));
    get("items", json!("!a JSON Pointer starts with `/`: use `/items`"));
    get("/item", json!("!`/item` does not exist: the document is an object with `items`, `a/b`, `open`"));
    get("/items/2", json!("!`/items/2` does not exist: `/items` is an array of 2 items, with indices from 0"));
    get("/open/x/y", json!("!`/open/x/y` does not exist: `/open` is neither an object nor an array"));
    check("json/get", json!({ "document": "{\"a\": [1, 2]}", "pointer": "/a/1" }), json!(2));
    check(
        "json/get",
        json!({ "document": "{a}", "pointer": "" }),
        json!("!the document is not valid JSON: key must be a string at line 1 column 2"),
    );
    check("json/get", json!({ "document": "[".repeat(10_000), "pointer": "" }), json!("!recursion limit exceeded"));
    check(
        "json/get",
        json!({ "document": " ".repeat(1_048_577), "pointer": "" }),
        json!("!at most 1048576 are allowed"),
    );
    check("json/get", json!({ "document": vec![0; 50_000], "pointer": "" }), json!("!has 50001 values; at most 50000"));
}

#[test]
fn query_selects_by_path() {
    let query = |document: Json, path: &str, expected: Json| {
        check("json/query", json!({ "document": document, "path": path }), expected);
    };
    let found = |matches: &[(&str, Json)]| {
        let matches: Vec<_> =
            matches.iter().map(|(pointer, value)| json!({ "pointer": pointer, "value": value })).collect();
        json!({ "matches": matches, "more": false })
    };
    query(shop(), "$.items[*].name", found(&[("/items/0/name", json!("pen")), ("/items/1/name", json!("ink"))]));
    query(shop(), "$.items[?@.price < 10].name", found(&[("/items/0/name", json!("pen"))]));
    query(shop(), "$..price", found(&[("/items/0/price", json!(2)), ("/items/1/price", json!(12))]));
    query(shop(), "$['a/b']", found(&[("/a~1b", json!(null))]));
    query(shop(), "$.nothing", found(&[]));
    query(json!("[1, 2]"), "$[-1]", found(&[("/1", json!(2))]));
    check(
        "json/query",
        json!({ "document": [1, 2, 3], "path": "$[*]", "limit": 1 }),
        json!({ "matches": [{ "pointer": "/0", "value": 1 }], "more": true }),
    );
    query(shop(), "$.items[", json!("!invalid path at character "));
    query(shop(), "items", json!("!invalid path at character 1"));
    query(shop(), &format!("$.{}", "a".repeat(500)), json!("!the path has 502 bytes; at most 500 are allowed"));
    query(shop(), "$[?match(@.name, 'x')]", json!("!function name 'match' is not defined"));
    // The parser would run for ever, or overflow the stack.
    query(
        shop(),
        &format!("$[?{}@.a{}]", "@[?".repeat(40), "]".repeat(40)),
        json!("!the path contains `?` 41 times; at most 4"),
    );
    query(
        shop(),
        &format!("$[?{}@.a", "(".repeat(200)),
        json!("!the path contains `(` 200 times; at most 20 are allowed"),
    );
    // Ordinary queries work on large documents.
    let many = vec![json!({ "price": 1, "tags": ["a"] }); 10_000];
    let names = "'a','b','c','d','e','f','g','h','i','j','k','l','m','n','o','p'";
    query(json!(many), &format!("$[?@.price > 1].tags[*]['*'][{names}]"), found(&[]));
    // Each of these would visit the same values again and again.
    let costly = "!the path would visit too many values";
    query(nested(100), "$..*..*..*..*..*", json!(costly));
    query(nested(100), &format!("${}", "[0,0]".repeat(50)), json!(costly));
    query(json!(vec![0; 10_000]), "$[?count($..*) > 1]", json!(costly));
    query(json!(vec![0; 10_000]), "$['?]', ?@ > 1 && $..[?@ == 1]]", json!(costly));
    query(json!(vec![0; 10_000]), "$[?$[?$[?@ > 1]]]", json!(costly));
    check(
        "json/query",
        json!({ "document": nested(120), "path": "$..*..*", "limit": 10_000 }),
        json!("!have more than 50000 values"),
    );
}

#[test]
fn patch_applies_operations_in_order() {
    let patch = |document: Json, operations: Json, expected: Json| {
        check("json/patch", json!({ "document": document, "operations": operations }), expected);
    };
    patch(json!({ "a": 1 }), json!([]), json!({ "a": 1 }));
    patch(
        json!({ "a": 1, "list": [1, 3] }),
        json!([
            { "op": "test", "path": "/a", "value": 1 },
            { "op": "replace", "path": "/a", "value": 2 },
            { "op": "add", "path": "/list/1", "value": 2 },
            { "op": "add", "path": "/list/-", "value": 4 },
            { "op": "copy", "from": "/list/0", "path": "/b" },
            { "op": "move", "from": "/b", "path": "/c" },
            { "op": "remove", "path": "/a" }
        ]),
        json!({ "list": [1, 2, 3, 4], "c": 1 }),
    );
    patch(json!("{\"a\": 1}"), json!([{ "op": "remove", "path": "/a" }]), json!({}));
    let fails_second = json!([{ "op": "add", "path": "/b", "value": 1 }, { "op": "remove", "path": "/x" }]);
    patch(json!({}), fails_second, json!("!operation 2 of the patch failed: "));
    patch(json!({}), json!([{ "op": "test", "path": "", "value": 1 }]), json!("!operation 1 of the patch failed: "));
    patch(json!({}), json!([{ "op": "rename", "path": "/x" }]), json!("!unknown variant `rename`"));
    patch(json!({}), json!([{ "op": "add", "path": "x", "value": 1 }]), json!("!operation 1 of the patch failed: "));
    let double = json!({ "op": "copy", "from": "", "path": "/-" });
    patch(json!([1]), json!(vec![double.clone(); 100]), json!("!would have more than 50000 values"));
    patch(json!([1]), json!(vec![double; 1_001]), json!("!the patch has 1001 operations; at most 1000 are allowed"));
}
