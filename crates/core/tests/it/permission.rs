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
