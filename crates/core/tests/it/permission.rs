//! Tests of permissions.

use patter_core::name::FullName;
use patter_core::permission::{Decision, Permissions, Rule};
use serde_json::{Value as Json, json};

/// Decides on a call, given the declared tools and the rules.
fn decide(declared: &[&str], rules: &[&str], tool: &str, arguments: &Json) -> (Decision, String) {
    let name = |name: &str| FullName::parse(name).unwrap();
    let rules = rules.iter().map(|rule| Rule::parse(rule, "here").unwrap());
    let permissions = Permissions::for_declared(declared.iter().map(|tool| name(tool))).with_all(rules);
    let decided = permissions.decide(&name(tool), arguments.as_object().unwrap());
    (decided.decision, decided.reason.to_string())
}

#[test]
fn decisions() {
    use Decision::{Allow, Ask, Deny};
    let table: &[(&[&str], &[&str], &str, Decision)] = &[
        // Without a matching rule, calls are denied.
        (&[], &[], "fs/read", Deny),
        (&["fs/read"], &[], "fs/write", Deny),
        (&[], &["allow text/*"], "fs/read", Deny),
        // Declared tools are allowed.
        (&["fs/read"], &[], "fs/read", Allow),
        (&["fs/read"], &["allow text/*"], "fs/read", Allow),
        (&[], &["allow fs/read"], "fs/read", Allow),
        // Toolboxes, organisations, everything.
        (&[], &["allow fs/*"], "fs/read", Allow),
        (&[], &["allow fs/*"], "fsx/read", Deny),
        (&[], &["allow fs/*"], "fs", Deny),
        (&[], &["allow acme/*"], "acme/fs/read", Allow),
        (&[], &["allow acme/fs/*"], "acme/fs/read", Allow),
        (&[], &["allow fs/*"], "acme/fs/read", Deny),
        (&[], &["allow *"], "acme/fs/read", Allow),
        // The strictest match wins, in any order.
        (&["fs/read"], &["ask fs/*"], "fs/read", Ask),
        (&["fs/read"], &["deny fs/*"], "fs/read", Deny),
        (&[], &["allow fs/read", "ask fs/*"], "fs/read", Ask),
        (&[], &["ask fs/*", "allow fs/read"], "fs/read", Ask),
        (&[], &["deny *", "ask fs/*", "allow fs/read"], "fs/read", Deny),
        // A bare name asks and denies in any toolbox, but allows only itself.
        (&["fs/write"], &["deny write"], "fs/write", Deny),
        (&[], &["allow write"], "fs/write", Deny),
        (&[], &["allow write"], "write", Allow),
    ];
    for (declared, rules, tool, expected) in table {
        let (decision, reason) = decide(declared, rules, tool, &json!({}));
        assert_eq!(decision, *expected, "{declared:?} {rules:?} {tool}: {reason}");
    }
}

#[test]
fn conditions() {
    use Decision::{Allow, Ask, Deny};
    let deny_etc = r#"deny t when path matches "/etc/*""#;
    let table: &[(&str, Json, Decision)] = &[
        (deny_etc, json!({"path": "/etc/passwd"}), Deny),
        (deny_etc, json!({"path": "/etc/a/b"}), Deny),
        (deny_etc, json!({"path": "/home/x"}), Allow),
        (deny_etc, json!({}), Allow),
        // Paths are also normalized.
        (deny_etc, json!({"path": "/tmp/../etc/passwd"}), Deny),
        (deny_etc, json!({"path": "//etc//passwd"}), Deny),
        (deny_etc, json!({"path": "/./etc/passwd"}), Deny),
        (deny_etc, json!({"path": "/../../etc/passwd"}), Deny),
        // One item of a list is enough to deny, and all are needed to allow.
        (deny_etc, json!({"path": ["/home/x", "/etc/passwd"]}), Deny),
        (deny_etc, json!({"path": ["/home/x"]}), Allow),
        (r#"allow t when path matches "docs/*""#, json!({"path": ["docs/a", "docs/b"]}), Allow),
        (r#"allow t when path matches "docs/*""#, json!({"path": ["docs/a", "secret"]}), Deny),
        // Operators are whole words.
        ("deny t when status is notPaid", json!({"status": "notPaid"}), Deny),
        ("deny t when status is notPaid", json!({"status": "Paid"}), Allow),
        ("deny t when status is'open'", json!({"status": "open"}), Deny),
        // To be allowed, a path must match both as written and normalized.
        (r#"allow t when path matches "docs/*""#, json!({"path": "docs/a.md"}), Allow),
        (r#"allow t when path matches "docs/*""#, json!({"path": "docs/../secret"}), Deny),
        (r#"allow t when path matches "docs/*""#, json!({}), Deny),
        (r#"deny t when path does not match "docs/*""#, json!({"path": "docs/../secret"}), Deny),
        (r#"deny t when path does not match "docs/*""#, json!({"path": "docs/a"}), Allow),
        (r#"deny t when path does not match "docs/*""#, json!({}), Deny),
        // Numbers, strings, booleans, nested values, and several conditions.
        ("ask t when amount > 100", json!({"amount": 100}), Allow),
        ("ask t when amount > 100", json!({"amount": 100.5}), Ask),
        ("ask t when amount >= 100", json!({"amount": 100}), Ask),
        ("ask t when amount <= 9007199254740993", json!({"amount": 9007199254740993i64}), Ask),
        ("ask t when amount < 0", json!({"amount": -1}), Ask),
        ("ask t when amount > 100", json!({"amount": "500"}), Allow),
        ("deny t when force is true", json!({"force": true}), Deny),
        ("deny t when mode is not 'read'", json!({"mode": "write"}), Deny),
        ("deny t when mode is not 'read'", json!({"mode": "read"}), Allow),
        ("deny t when mode = 'a b' and n == 1", json!({"mode": "a b", "n": 1.0}), Deny),
        ("deny t when mode = 'a b' and n == 1", json!({"mode": "a b", "n": 2}), Allow),
        ("deny t when order.total > 5", json!({"order": {"total": 6}}), Deny),
        ("deny t when name matches 'a?c*'", json!({"name": "abcd"}), Deny),
        ("deny t when name matches 'a?c*'", json!({"name": "ac"}), Allow),
        ("deny t when name matches '*and*'", json!({"name": "this and that"}), Deny),
    ];
    for (rule, arguments, expected) in table {
        let (decision, reason) = decide(&["t"], &[rule], "t", arguments);
        assert_eq!(decision, *expected, "{rule} {arguments}: {reason}");
    }
}

#[test]
fn rules_are_parsed_and_formatted() {
    for text in [
        "allow *",
        "ask fs/*",
        "deny acme/fs/read",
        r#"deny t when path matches "/e\"tc/*" and n >= 2 and on is not true"#,
    ] {
        assert_eq!(Rule::parse(text, "here").unwrap().to_string(), text);
    }
    let invalid = [
        "",
        "permit fs/*",
        "deny",
        "deny fs/",
        "deny fs//x",
        "deny a/b/c/d",
        "deny fs/* if x",
        "deny t when",
        "deny t when path",
        "deny t when path matches",
        "deny t when status isopen",
        "deny t when path matches 5",
        "deny t when n > 'a'",
        "deny t when n > 1 or m > 1",
        "deny t when path matches \"open",
    ];
    let errors = invalid.map(|text| {
        let error = Rule::parse(text, "here").unwrap_err();
        format!("{text:?}: {error} ({})", error.hint())
    });
    insta::assert_snapshot!(errors.join("\n"));
}

/// A list stands for each of its elements, wherever it is on the path.
#[test]
fn conditions_on_lists_of_objects() {
    use Decision::{Allow, Deny};
    let deny = "deny t when items.path matches 'secret*'";
    let allow = "allow t when items.path matches 'docs/*'";
    let table: &[(&str, Json, Decision)] = &[
        (deny, json!({"items": [{"path": "secret.txt"}]}), Deny),
        (deny, json!({"items": [{"path": "a"}, {"path": "./secret.txt"}]}), Deny),
        (deny, json!({"items": {"path": "secret.txt"}}), Deny),
        (deny, json!({"items": [[{"path": ["a", "secret"]}]]}), Deny),
        (deny, json!({"items": [{"path": "a"}]}), Allow),
        (deny, json!({"items": []}), Allow),
        (allow, json!({"items": [{"path": "docs/a"}, {"path": "docs/b"}]}), Allow),
        (allow, json!({"items": [{"path": "docs/a"}, {"path": "secret"}]}), Deny),
        (allow, json!({"items": [{"path": "docs/a"}, {}]}), Deny),
        // An empty list has no value, and may mean everything to a tool.
        (allow, json!({"items": []}), Deny),
        ("deny t when items.mode is not 'read'", json!({"items": [{"mode": "read"}, {}]}), Deny),
        ("deny t when items.mode is not 'read'", json!({"items": [{"mode": "read"}]}), Allow),
        ("deny t when paths does not match 'docs/*'", json!({"paths": ["docs/a"]}), Allow),
        ("deny t when paths does not match 'docs/*'", json!({"paths": ["docs/a", "b"]}), Deny),
        ("deny t when run matches '*rm*-rf*'", json!({"run": ["rm", "-rf"]}), Deny),
        ("deny t when items matches '*x*a*'", json!({"items": {"x": ["a"]}}), Deny),
        // The name of a parameter may contain a dot.
        ("deny t when a.b is 1", json!({"a.b": 1}), Deny),
        ("deny t when a.b.c is 1", json!({"a": {"b.c": [1]}}), Deny),
    ];
    for (rule, arguments, expected) in table {
        let (decision, reason) = decide(&["t"], &[rule], "t", arguments);
        assert_eq!(decision, *expected, "{rule} {arguments}: {reason}");
    }
}

/// The meaning of conditions, written down as simply as possible: a list stands for each of its elements.
mod meaning {
    use super::*;
    use crate::generate::cases;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use proptest::sample::select;

    /// Returns the value once for each way to pick an element of every list. An empty list has no value. If `with_text`,
    /// a list may also be its text.
    fn picks(value: &Json, with_text: bool) -> Vec<Json> {
        match value {
            Json::Array(items) => {
                let mut all: Vec<_> = items.iter().flat_map(|item| picks(item, with_text)).collect();
                if items.is_empty() {
                    all.push(Json::Null);
                }
                if with_text {
                    all.push(value.to_string().into());
                }
                all
            }
            Json::Object(entries) => entries.iter().fold(vec![json!({})], |all, (key, value)| {
                let picked = picks(value, with_text);
                let extend = |object: &Json, value: &Json| {
                    let mut object = object.clone();
                    object[key] = value.clone();
                    object
                };
                all.iter().flat_map(|object| picked.iter().map(move |value| extend(object, value))).collect()
            }),
            other => vec![other.clone()],
        }
    }

    /// Returns the values at a path of a value without lists. Names may contain dots.
    fn values_at(value: &Json, path: &[&str]) -> Vec<Json> {
        if path.is_empty() {
            return vec![value.clone()];
        }
        let within = |length: usize| Some(values_at(value.get(path[..length].join("."))?, &path[length..]));
        let found: Vec<_> = (1..=path.len()).filter_map(within).flatten().collect();
        if found.is_empty() { vec![Json::Null] } else { found }
    }

    fn holds(value: &Json, operator: &str, expected: &Json) -> bool {
        let number = |value: &Json| value.as_f64();
        match operator {
            "is" => value == expected,
            "is not" => value != expected,
            "<" => number(value).zip(number(expected)).is_some_and(|(value, expected)| value < expected),
            // The pattern is always `*a*`.
            "matches" => !value.is_null() && value.to_string().contains('a'),
            _ => value.is_null() || !value.to_string().contains('a'),
        }
    }

    fn value() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            (0..3_i64).prop_map(Json::from),
            select(vec!["a", "b", ""]).prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 16, 3, |inner| {
            let key = select(vec!["x", "y", "x.y"]).prop_map(str::to_owned);
            prop_oneof![
                vec(inner.clone(), 0..3).prop_map(Json::from),
                btree_map(key, inner, 0..3).prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(cases(2_000))]

        #[test]
        fn rules_mean_what_they_say(
            x in value(),
            y in value(),
            path in select(vec!["x", "y", "x.y", "x.x.y", "y.x.y.x"]),
            (operator, expected) in select(vec![
                ("is", "'a'"), ("is", "1"), ("is not", "'a'"), ("is not", "true"), ("<", "2"), ("matches", "'*a*'"),
                ("does not match", "'*a*'"),
            ]),
            decision in select(vec!["allow", "ask", "deny"]),
        ) {
            let arguments = json!({"x": x, "y": y});
            let text = format!("{decision} t when {path} {operator} {expected}");
            let rule = Rule::parse(&text, "here").unwrap();
            let expected: Json = serde_json::from_str(&expected.replace('\'', "\"")).unwrap();
            let path: Vec<_> = path.split('.').collect();
            let is_strict = decision != "allow";
            let worlds = picks(&arguments, is_strict && operator == "matches");
            let values: Vec<_> = worlds.iter().flat_map(|world| values_at(world, &path)).collect();
            // An object is compared as a whole, with the lists inside it.
            prop_assume!(!values.iter().any(Json::is_object));
            let mut values = values.iter();
            let expected = match is_strict {
                true => values.any(|value| holds(value, operator, &expected)),
                false => values.all(|value| holds(value, operator, &expected)),
            };
            prop_assert_eq!(rule.matches_arguments(arguments.as_object().unwrap()), expected, "{} {}", text, arguments);
        }
    }
}

#[test]
fn reports_conditions_that_are_never_met() {
    use patter_core::permission::KnownTool;
    use patter_core::types::signature::{Records, Signature};
    let signature = Signature::parse(
        "(items::Array {elementType: 'Object', fields: [{name: 'path', type: 'Text'}, {name: 'any', type: 'Any'}]})\
         ==>(amount::Int)==>(force::Bool)==>(currency::Text {enum: ['EUR', 'USD']})==>(free::Any)==>(::Text)",
    )
    .unwrap();
    let records = Records::default();
    let name = FullName::parse("shop/pay").unwrap();
    let tools = [KnownTool { name, parameters: Some(signature.parameters.into()), records: &records }];
    let unused = |text: &str| {
        let rule = Rule::parse(&format!("deny pay when {text}"), "here").unwrap();
        rule.unused(&tools).map(|unused| format!("{unused} ({})", unused.hint()))
    };
    let used = [
        "items.path matches 'a*'",
        "items matches '*a*'",
        "items.any.deep > 5",
        "free.deep is 'x'",
        "amount > 5",
        "amount matches '5*'",
        "force is true",
        "force matches 't*'",
        "currency is 'EUR'",
        "currency is not 'CHF'",
    ];
    for text in used {
        assert_eq!(unused(text), None, "{text}");
    }
    let never = [
        "items.pth matches 'a*'",
        "items.path.deep is 'a'",
        "path matches 'a*'",
        "items is 'a'",
        "items.path > 5",
        "amount is 'five'",
        "force is 'true'",
        "force > 1",
        "currency is 'EURO'",
        "currency matches 'CH*'",
    ];
    insta::assert_snapshot!(never.map(|text| unused(text).unwrap_or_else(|| panic!("{text}"))).join("\n"));
}
