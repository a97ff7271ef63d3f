//! The toolbox `text`.

use super::check;
use serde_json::{Value as Json, json};

#[test]
fn find_returns_matches() {
    let find = |text: &str, pattern: &str, expected: Json| {
        check("text/find", json!({ "text": text, "pattern": pattern }), expected);
    };
    let one =
        |text: &str, start: u64, groups: &[Option<&str>]| json!({ "text": text, "start": start, "groups": groups });
    find(
        "a1 b22",
        "[a-z](\\d+)",
        json!({ "matches": [one("a1", 0, &[Some("1")]), one("b22", 3, &[Some("22")])], "more": false }),
    );
    find("äö1", "\\d", json!({ "matches": [one("1", 2, &[])], "more": false }));
    find(
        "ab",
        "(a)|(b)",
        json!({ "matches": [one("a", 0, &[Some("a"), None]), one("b", 1, &[None, Some("b")])], "more": false }),
    );
    find("ABC", "(?i)b", json!({ "matches": [one("B", 1, &[])], "more": false }));
    find("abc", "x", json!({ "matches": [], "more": false }));
    find("ab", "", json!({ "matches": [one("", 0, &[]), one("", 1, &[]), one("", 2, &[])], "more": false }));
    check(
        "text/find",
        json!({ "text": "aaa", "pattern": "a", "limit": 2 }),
        json!({ "matches": [one("a", 0, &[]), one("a", 1, &[])], "more": true }),
    );
    find("a", "(", json!("!invalid regular expression: unclosed group"));
    find("a", "(?=a)", json!("!invalid regular expression: look-around"));
    find("a", "((a{100}){100}){100}", json!("!too large when compiled"));
    find("a", &"a".repeat(1_001), json!("!the pattern has 1001 bytes; at most 1000 are allowed"));
    find(&"a".repeat(262_145), "a", json!("!the text has 262145 bytes; at most 262144 are allowed"));
    let all = super::call("text/find", json!({ "text": "a".repeat(20_000), "pattern": "a", "limit": 20_000 })).unwrap();
    assert_eq!((all["matches"].as_array().unwrap().len(), &all["more"]), (10_000, &json!(true)));
    // Backtracking engines take exponential time for this.
    find(&"a".repeat(5_000), "^(a+)+$b", json!({ "matches": [], "more": false }));
}

#[test]
fn replace_expands_groups() {
    let replace = |arguments: Json, expected: Json| check("text/replace", arguments, expected);
    replace(
        json!({ "text": "2024-05-17", "pattern": "(\\d+)-(\\d+)-(?<day>\\d+)", "replacement": "${day}.$2.$1 $$" }),
        json!({ "text": "17.05.2024 $", "count": 1 }),
    );
    replace(
        json!({ "text": "aaa", "pattern": "a", "replacement": "b", "limit": 2 }),
        json!({ "text": "bba", "count": 2 }),
    );
    replace(json!({ "text": "abc", "pattern": "x", "replacement": "y" }), json!({ "text": "abc", "count": 0 }));
    replace(json!({ "text": "äb", "pattern": "b", "replacement": "" }), json!({ "text": "ä", "count": 1 }));
    replace(
        json!({ "text": "a".repeat(10_000), "pattern": "a", "replacement": "a".repeat(10_000) }),
        json!("!the result would be larger than 262144 bytes"),
    );
    replace(json!({ "text": "a", "pattern": "[", "replacement": "" }), json!("!invalid regular expression"));
}

#[test]
fn split_separates_at_matches() {
    let split = |arguments: Json, expected: Json| check("text/split", arguments, expected);
    split(json!({ "text": "a, b,c", "pattern": ",\\s*" }), json!(["a", "b", "c"]));
    split(json!({ "text": "a,b,c", "pattern": ",", "limit": 2 }), json!(["a", "b,c"]));
    split(json!({ "text": "abc", "pattern": "," }), json!(["abc"]));
    split(json!({ "text": "", "pattern": "," }), json!([""]));
    split(json!({ "text": "a", "pattern": "*" }), json!("!invalid regular expression"));
}

#[test]
fn count_returns_characters_words_and_lines() {
    let count = |text: &str, characters: u64, words: u64, lines: u64| {
        let expected = json!({ "characters": characters, "words": words, "lines": lines });
        check("text/count", json!({ "text": text }), expected);
    };
    count("", 0, 0, 0);
    count("one two\nthree\n", 14, 3, 2);
    count("  Zürich\u{a0}und Genf ", 18, 3, 1);
    count("a\r\nb", 4, 2, 2);
    check("text/count", json!({ "text": "a".repeat(262_145) }), json!("!at most 262144 are allowed"));
}
