//! Properties of all cases: the formats are equivalent, and hostile input is harmless.

use crate::cases::{problems, read_valid};
use patter_core::case::{Case, CaseFormat, Check, Observation, read};
use patter_core::types::signature::json_to_value;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use CaseFormat::{Csv, Gram, JsonLines};

/// Generates values of arguments and answers that gram can express.
fn values() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1_000_000_i32..1_000_000).prop_map(|number| json!(f64::from(number) / 64.0)),
        "\\PC{0,12}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-z$ ]{1,6}", inner, 0..4)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

/// Generates checks by their keys, with all options.
fn checks() -> impl Strategy<Value = (&'static str, Json)> {
    let text = "[a-zA-Z ,\"'`\\\\{}\n]{0,10}[a-z]";
    let arguments = prop::collection::btree_map("[a-z$ ]{1,6}", values(), 0..3);
    let arguments = arguments.prop_map(|entries| Json::Object(entries.into_iter().collect())).boxed();
    prop_oneof![
        (text, any::<bool>(), any::<bool>())
            .prop_map(|(text, ignore, not)| ("contains", json!({"text": text, "ignoreCase": ignore, "not": not}))),
        text.prop_map(|text| ("equals", json!({"text": text}))),
        "[a-z.*+ ]{0,5}[a-z]".prop_filter_map("compiles", |pattern| {
            let check = json!({"matches": pattern});
            Check::parse(&check).is_ok().then_some(("matches", json!({"pattern": pattern})))
        }),
        values().prop_map(|value| ("schema", json!({"schema": {"const": value}}))),
        (values(), any::<bool>())
            .prop_map(|(value, not)| ("jsonPath", json!({"path": "$.a['b c']", "equals": value, "not": not}))),
        (text, arguments.clone(), 1_u32..9)
            .prop_map(|(tool, with, times)| ("called", json!({"tool": tool, "with": with, "times": times}))),
        (text, arguments).prop_map(|(tool, with)| ("notCalled", json!({"tool": tool, "with": with}))),
        prop::collection::vec(text, 2..4).prop_map(|tools| ("order", json!({"tools": tools}))),
        (1_u32..).prop_map(|most| ("turns", json!({"most": most}))),
        (1_u32..).prop_map(|most| ("latency", json!({"most": format!("{most}ms")}))),
        (0_u32..1_000_000).prop_map(|most| ("cost", json!({"most": f64::from(most) / 1_000.0}))),
        (text, text).prop_map(|(agent, criteria)| ("judge", json!({"agent": agent, "criteria": criteria}))),
        prop::collection::vec(text, 1..4).prop_map(|run| ("command", json!({"run": run, "timeout": "3s"}))),
    ]
}

/// Formats a check as a node.
fn node(key: &str, options: &Json) -> String {
    let label = format!("{}{}", key[..1].to_uppercase(), &key[1..]);
    format!("(:{label} {})", json_to_value(options).unwrap())
}

proptest! {
    #[test]
    fn gram_and_json_lines_are_equivalent(
        cases in prop::collection::vec((prop::collection::vec("\\PC{0,9}[a-z]", 1..3), prop::collection::vec(checks(), 0..4)), 1..4),
    ) {
        let patterns = cases.iter().enumerate().map(|(index, (turns, checks))| {
            let checks: Vec<_> = checks.iter().map(|(key, options)| node(key, options)).collect();
            let bar = if checks.is_empty() { "" } else { "|" };
            format!("[case_{index}:Case {{input: {}}} {bar} {}]", json_to_value(&json!(turns)).unwrap(), checks.join(", "))
        });
        let gram = format!("[:Cases | {}]", patterns.collect::<Vec<_>>().join(",\n"));
        let from_gram = read_valid(Gram, &gram);
        prop_assert_eq!(from_gram.len(), cases.len());
        let lines: Vec<_> = from_gram.iter().map(|case| case.to_json().to_string()).collect();
        let from_lines = read_valid(JsonLines, &lines.join("\n"));
        let without_location = |cases: Vec<Case>| -> Vec<Case> {
            cases.into_iter().map(|case| Case { location: String::new(), ..case }).collect()
        };
        prop_assert_eq!(without_location(from_gram), without_location(from_lines));
    }

    #[test]
    fn reading_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), format in 0..3_usize) {
        read("c", [Gram, JsonLines, Csv][format], &bytes);
    }

    #[test]
    fn reading_any_fragments_does_not_panic(fragments in prop::collection::vec(0..FRAGMENTS.len(), 0..25), format in 0..3_usize) {
        let text: String = fragments.iter().map(|fragment| FRAGMENTS[*fragment]).collect();
        for case in read("c", [Gram, JsonLines, Csv][format], text.as_bytes()).0 {
            let observed = Observation {
                content: &text, value: None, tools: &[], model_calls: 1, latency_ms: 1, cost: None, failure: None,
            };
            for check in &case.checks {
                check.judge(&observed);
            }
        }
    }
}

/// Fragments of case files, combined in any order.
const FRAGMENTS: [&str; 28] = [
    "[:Cases | ",
    "[a:Case {input: 'x'}",
    " | ",
    "(:Contains {text: 'a'})",
    "(:Schema {schema: json`{}`})",
    "]",
    ",",
    "\n",
    "(:JsonPath {path: '$..a[?@.b]'})",
    "(:Called {tool: 'a', times: 1...})",
    "(:Latency {most: 99999999999999999999s})",
    "{\"input\": \"a\"",
    "}",
    "\"checks\": [",
    "{\"contains\": \"",
    "\"",
    "\"\"",
    "{\"schema\": {\"$ref\": \"#\"}}",
    "input",
    "contains",
    "matches",
    "(((((",
    "\r\n",
    "\u{feff}",
    "é",
    "{\"turns\": 1e99}",
    "{\"cost\": 1e-300}",
    "[[[[[[[[[[",
];

#[test]
fn hostile_texts_are_reported() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(200_000), close.repeat(200_000));
    let lines = [
        format!("{{\"input\": {}}}", deep("[", "]")),
        format!("{{\"input\": \"a\", \"checks\": [{{\"matches\": \"{}\"}}]}}", deep("(", ")")),
        format!("{{\"input\": \"a\", \"checks\": [{{\"matches\": \"{}\"}}]}}", "a{1000}{1000}{1000}"),
        format!("{{\"input\": \"a\", \"checks\": [{{\"jsonPath\": \"${}\"}}]}}", "[?@".repeat(100_000)),
        format!("{{\"input\": \"a\", \"checks\": [{{\"jsonPath\": \"${}\"}}]}}", "[?(".repeat(4)),
        format!("{{\"input\": \"a\", \"checks\": [{{\"jsonPath\": \"${}\"}}]}}", "..*".repeat(3)),
    ];
    for line in lines {
        let (cases, problems) = read("c", JsonLines, line.as_bytes());
        assert_eq!((cases.len(), problems.len()), (0, 1), "{problems:?}");
        assert!(problems[0].message.len() < 1_000, "{}", problems[0]);
    }
    let gram = format!("[:Cases | [a:Case {{input: 'x'}} | (:Called {{tool: 'a', with: {}}})]]", deep("{a: ", "}"));
    assert!(!read("c", Gram, gram.as_bytes()).1.is_empty());
    assert_eq!(problems(Csv, ["input\n", &"\"".repeat(1_000_001)].concat().as_bytes()).len(), 1);
}

#[test]
fn large_files_are_read_completely() {
    const COUNT: usize = 20_000;
    let check = |format, head: &str, row: &dyn Fn(usize) -> String, tail: &str| {
        let rows: Vec<_> = (0..COUNT).map(row).collect();
        let text = format!("{head}{}{tail}", rows.join(if format == Gram { ",\n" } else { "\n" }));
        let cases = read_valid(format, &text);
        assert_eq!((cases.len(), cases[COUNT - 1].checks.len()), (COUNT, 1));
    };
    check(Gram, "[:Cases |", &|row| format!("[c{row}:Case {{input: 'x'}} | (:Contains {{text: '{row}'}})]"), "]");
    check(JsonLines, "", &|row| format!("{{\"input\": \"x\", \"checks\": [{{\"contains\": \"{row}\"}}]}}"), "");
    check(Csv, "input,contains\n", &|row| format!("x,\"{row}\""), "");
}
