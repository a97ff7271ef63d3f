//! Judgements of observations by checks.

use patter_core::case::{Check, CheckResult, Observation};
use patter_core::provider::price::Cost;
use patter_core::run::{Invocation, InvocationResult};
use serde_json::{Value as Json, json};

const ANSWER: Observation<'static> =
    Observation { content: "", value: None, tools: &[], model_calls: 2, latency_ms: 1_500, cost: None, failure: None };

fn judge(check: &Json, observed: &Observation<'_>) -> CheckResult {
    Check::parse(check).unwrap().judge(observed).unwrap()
}

fn call(tool: &str, args: Json) -> Invocation {
    let result = InvocationResult::Success(Json::Null);
    Invocation { tool_name: tool.to_owned(), args, result, duration_ms: None }
}

#[test]
fn checks_of_texts() {
    let long = "It was a dark and stormy night, and the rain fell in torrents, except at occasional intervals.";
    let table: &[(&str, Json, bool, &str)] = &[
        ("Hello, Alice!", json!({"contains": "Alice"}), true, "the answer contains `Alice`"),
        (
            "Hello, Bob!",
            json!({"contains": "Alice"}),
            false,
            "the answer does not contain `Alice`; it is `Hello, Bob!`",
        ),
        ("", json!({"contains": "Alice"}), false, "the answer does not contain `Alice`; it is empty"),
        (
            "hi alice",
            json!({"contains": "Alice"}),
            false,
            "the answer does not contain `Alice`, but it does when ignoring case",
        ),
        ("hi alice", json!({"contains": {"text": "Alice", "ignoreCase": true}}), true, "the answer contains `Alice`"),
        (
            "hi alice",
            json!({"contains": {"text": "Alice", "not": true}}),
            true,
            "the answer does not contain `Alice`, but it does when ignoring case",
        ),
        ("Alice", json!({"contains": {"text": "Alice", "not": true}}), false, "the answer contains `Alice`"),
        (
            long,
            json!({"contains": "sun"}),
            false,
            "the answer does not contain `sun`; it starts with `It was a dark and stormy night, and the rain fell in torrents, except at occasio…`",
        ),
        (" 42\n", json!({"equals": "42"}), true, "the answer is `42`"),
        ("43", json!({"equals": "42"}), false, "the answer is `43`, not `42`"),
        ("YES", json!({"equals": {"text": "yes", "ignoreCase": true}}), true, "the answer is `yes`"),
        (
            long,
            json!({"equals": long.replace("rain", "snow")}),
            false,
            "the answer differs from character 41 on: `rain fell in torrents, except at occasional intervals.`, not `snow fell in torrents, except at occasional intervals.`",
        ),
        ("call 555-1234", json!({"matches": "\\d{3}-\\d{4}"}), true, "the answer matches `\\d{3}-\\d{4}`"),
        ("call me", json!({"matches": "^\\d"}), false, "the answer does not match `^\\d`; it is `call me`"),
    ];
    for (content, check, passed, why) in table {
        let result = judge(check, &Observation { content, ..ANSWER });
        assert_eq!((result.passed, result.why.as_str()), (*passed, *why), "{content} {check}");
    }
}

#[test]
fn checks_of_values() {
    let table: &[(&str, Json, bool, &str)] = &[
        ("{\"a\": 1}", json!({"schema": {"required": ["a"]}}), true, "the answer matches the schema"),
        (
            "{\"a\": \"x\"}",
            json!({"schema": {"properties": {"a": {"type": "integer"}}}}),
            false,
            "the answer does not match the schema: at /a, \"x\" is not of type \"integer\"",
        ),
        ("Here:\n```json\n[1, 2]\n```", json!({"jsonPath": {"path": "$[1]", "equals": 2.0}}), true, "`$[1]` is 2"),
        ("none", json!({"schema": true}), false, "the answer is not valid JSON; it is `none`"),
        ("none", json!({"schema": {"schema": true, "not": true}}), false, "the answer is not valid JSON; it is `none`"),
        ("{\"a\": [1, 1]}", json!({"jsonPath": {"path": "$.a[*]", "equals": 1}}), true, "`$.a[*]` is 1"),
        ("{\"a\": [1, 2]}", json!({"jsonPath": {"path": "$.a[*]", "equals": 1}}), false, "`$.a[*]` is 2"),
        ("{\"a\": []}", json!({"jsonPath": {"path": "$.a[*]", "equals": 1}}), false, "nothing found at `$.a[*]`"),
        ("{\"a\": null}", json!({"jsonPath": {"path": "$.a", "equals": null}}), true, "`$.a` is null"),
        ("{\"b\": 1}", json!({"jsonPath": {"path": "$.a", "not": true}}), true, "nothing found at `$.a`"),
        (
            "{\"n\": [{\"x\": 1, \"y\": 2}]}",
            json!({"jsonPath": {"path": "$.n", "equals": [{"y": 2, "x": 1}]}}),
            true,
            "`$.n` is [{\"x\":1,\"y\":2}]",
        ),
    ];
    for (content, check, passed, why) in table {
        let result = judge(check, &Observation { content, ..ANSWER });
        assert_eq!((result.passed, result.why.as_str()), (*passed, *why), "{content} {check}");
    }
    let value = json!({"a": 5});
    let structured = Observation { content: "{\"a\": 6}", value: Some(&value), ..ANSWER };
    assert!(
        judge(&json!({"jsonPath": {"path": "$.a", "equals": 5}}), &structured).passed,
        "the value takes precedence over the text"
    );
}

#[test]
fn checks_of_calls() {
    let calls = [
        call("find", json!({"query": "tea", "limit": 5, "filter": {"tags": ["hot", "green"], "max": 3.0}})),
        call("find", json!({"query": "milk"})),
        call("buy", json!({"id": 7})),
    ];
    let find = |with: Json| json!({"called": {"tool": "find", "with": with}});
    let table: &[(Json, bool, &str)] = &[
        (json!({"called": "buy"}), true, "`buy` was called once"),
        (json!({"called": "sell"}), false, "`sell` was not called; calls: `find`, `find`, `buy`"),
        (json!({"called": {"tool": "find", "times": 2}}), true, "`find` was called twice"),
        (json!({"called": {"tool": "find", "times": 3}}), false, "`find` was called twice"),
        (
            json!({"called": {"tool": "sell", "times": [0, 1]}}),
            true,
            "`sell` was not called; calls: `find`, `find`, `buy`",
        ),
        (find(json!({"query": "milk"})), true, "`find` was called once with these arguments"),
        (find(json!({"filter": {"max": 3}})), true, "`find` was called once with these arguments"),
        (find(json!({"filter": {"tags": ["hot", "green"]}})), true, "`find` was called once with these arguments"),
        (
            find(json!({"query": "beer"})),
            false,
            "`find` was called with {\"query\":\"tea\",\"limit\":5,\"filter\":{\"tags\":[\"hot\",\"green\"],\"max\":3.0}}: \
             `query` is \"tea\", not \"beer\"; with {\"query\":\"milk\"}: `query` is \"milk\", not \"beer\"",
        ),
        (
            json!({"called": {"tool": "buy", "with": {"id": 7, "count": 1}}}),
            false,
            "`buy` was called with {\"id\":7}: `count` is missing",
        ),
        (json!({"notCalled": "buy"}), false, "`buy` was called with {\"id\":7}"),
        (json!({"notCalled": {"tool": "buy", "with": {"id": 8}}}), true, "`buy` was not called with these arguments"),
        (json!({"notCalled": "sell"}), true, "`sell` was not called"),
        (json!({"order": ["find", "buy"]}), true, "calls: `find`, `find`, `buy`"),
        (
            json!({"order": ["find", "find", "find"]}),
            false,
            "`find` was not called after `find`; calls: `find`, `find`, `buy`",
        ),
        (json!({"order": ["buy", "find"]}), false, "`find` was not called after `buy`; calls: `find`, `find`, `buy`"),
    ];
    for (check, passed, why) in table {
        let result = judge(check, &Observation { tools: &calls, ..ANSWER });
        assert_eq!((result.passed, result.why.as_str()), (*passed, *why), "{check}");
    }
    let mismatch = |with: Json| {
        let result =
            judge(&json!({"called": {"tool": "find", "with": with}}), &Observation { tools: &calls[..1], ..ANSWER });
        result.why.rsplit_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(mismatch(json!({"filter": {"tags": ["hot"]}})), "`filter.tags` has 2 items, not 1");
    assert_eq!(mismatch(json!({"filter": {"tags": ["hot", "black"]}})), "`filter.tags[1]` is \"green\", not \"black\"");
    let none = judge(&json!({"called": "find"}), &ANSWER);
    assert_eq!(none.why, "`find` was not called; no tool was called");
    let odd = [call("find", json!("not json"))];
    let odd = judge(&find(json!({"query": "tea"})), &Observation { tools: &odd, ..ANSWER });
    assert_eq!(odd.why, "`find` was called with \"not json\": the value is \"not json\", not {\"query\":\"tea\"}");
}

#[test]
fn checks_of_limits() {
    let cost = Cost::from_dollars(0.02);
    let table: &[(Json, bool, &str)] = &[
        (json!({"turns": 2}), true, "the model was called twice"),
        (json!({"turns": 1}), false, "the model was called twice"),
        (json!({"latency": "1500ms"}), true, "it took 1.5 s"),
        (json!({"latency": "1s"}), false, "it took 1.5 s"),
        (json!({"cost": 0.02}), true, "it cost $0.02"),
        (json!({"cost": 0.019}), false, "it cost $0.02"),
    ];
    for (check, passed, why) in table {
        let result = judge(check, &Observation { cost, ..ANSWER });
        assert_eq!((result.passed, result.why.as_str()), (*passed, *why), "{check}");
    }
    let unknown = judge(&json!({"cost": 1}), &ANSWER);
    assert!(!unknown.passed && unknown.why.starts_with("the cost is unknown"), "{unknown:?}");
}

#[test]
fn checks_of_runs_without_an_answer() {
    let calls = [call("find", json!({}))];
    let failed = Observation { failure: Some("the provider is busy"), tools: &calls, ..ANSWER };
    for check in [
        json!({"contains": "a"}),
        json!({"contains": {"text": "a", "not": true}}),
        json!({"schema": {"schema": true, "not": true}}),
    ] {
        let result = judge(&check, &failed);
        assert_eq!(
            (result.passed, result.why.as_str()),
            (false, "there is no answer: the provider is busy"),
            "{check}"
        );
    }
    assert!(judge(&json!({"called": "find"}), &failed).passed, "calls are judged without an answer");
}

#[test]
fn checks_with_effects_are_not_judged() {
    for check in [json!({"judge": {"agent": "j", "criteria": "kind"}}), json!({"command": "ok"})] {
        assert_eq!(Check::parse(&check).unwrap().judge(&ANSWER), None);
    }
}

#[test]
fn recursive_schemas_terminate() {
    for schema in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]})] {
        if let Ok(check) = Check::parse(&json!({ "schema": schema })) {
            check.judge(&Observation { content: "[[1]]", ..ANSWER });
        }
    }
}
