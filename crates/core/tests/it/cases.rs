//! Cases: reading them in all formats, and the messages for mistakes.

use patter_core::case::{Case, CaseFormat, Check, read};
use serde_json::{Value as Json, json};

use CaseFormat::{Csv, Gram, JsonLines};

/// Reads valid cases.
pub(crate) fn read_valid(format: CaseFormat, text: &str) -> Vec<Case> {
    let (cases, problems) = read("c", format, text.as_bytes());
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    cases
}

/// Returns the problems of a text, as `line: message (hint)`.
pub(crate) fn problems(format: CaseFormat, text: &[u8]) -> Vec<String> {
    let (_, problems) = read("c", format, text);
    let described = problems.into_iter().map(|problem| {
        let line = problem.location.trim_start_matches("c:").to_owned();
        format!("{line}: {} ({})", problem.message, problem.hint.unwrap_or_default())
    });
    described.collect()
}

/// Reads one check in gram and as JSON, which must be equal.
fn check(gram: &str, json: &Json) -> Check {
    let case = read_valid(Gram, &format!("[:Cases | [a:Case {{input: 'x'}} | {gram}]]")).remove(0);
    let parsed = Check::parse(json).unwrap();
    assert_eq!(case.checks, std::slice::from_ref(&parsed), "{gram} {json}");
    assert_eq!(Check::parse(&parsed.to_json()).unwrap(), parsed, "{json}");
    parsed
}

#[test]
fn all_kinds_of_checks() {
    let table: &[(&str, Json, &str)] = &[
        ("(:Contains {text: 'Alice'})", json!({"contains": "Alice"}), r#"contains "Alice""#),
        (
            "(:Contains {text: 'a', not: true})",
            json!({"contains": {"text": "a", "not": true}}),
            r#"does not contain "a""#,
        ),
        ("(:Contains {text: 'a', not: false})", json!({"contains": {"text": "a"}}), r#"contains "a""#),
        (
            "(:Equals {text: 'Yes', ignoreCase: true})",
            json!({"equals": {"text": "Yes", "ignoreCase": true}}),
            r#"equals "Yes" (ignoring case)"#,
        ),
        ("(:Matches {pattern: '^\\\\d+$'})", json!({"matches": r"^\d+$"}), r#"matches "^\\d+$""#),
        (
            "(:Schema {schema: json`{\"type\": \"object\"}`})",
            json!({"schema": {"type": "object"}}),
            r#"matches the schema {"type":"object"}"#,
        ),
        (
            "(:Schema {schema: {type: 'object'}})",
            json!({"schema": {"schema": {"type": "object"}}}),
            r#"matches the schema {"type":"object"}"#,
        ),
        (
            "(:Schema {schema: true, not: true})",
            json!({"schema": {"schema": true, "not": true}}),
            "does not match the schema true",
        ),
        (
            "(:JsonPath {path: '$.a[0]', equals: 1})",
            json!({"jsonPath": {"path": "$.a[0]", "equals": 1}}),
            "has 1 at $.a[0]",
        ),
        (
            "(:JsonPath {path: '$.a', equals: null})",
            json!({"jsonPath": {"path": "$.a", "equals": null}}),
            "has null at $.a",
        ),
        (
            "(:JsonPath {path: '$.a', not: true})",
            json!({"jsonPath": {"path": "$.a", "not": true}}),
            "has no value at $.a",
        ),
        ("(:Called {tool: 'sayHello'})", json!({"called": "sayHello"}), "calls sayHello"),
        (
            "(:Called {tool: 'sayHello', with: {personName: 'Alice', tags: [1, 2.5, {a: null}]}, times: 2})",
            json!({"called": {"tool": "sayHello", "with": {"personName": "Alice", "tags": [1, 2.5, {"a": null}]}, "times": 2}}),
            r#"calls sayHello with {"personName":"Alice","tags":[1,2.5,{"a":null}]} twice"#,
        ),
        (
            "(:Called {tool: 'a', times: 1..3})",
            json!({"called": {"tool": "a", "times": [1, 3]}}),
            "calls a 1 to 3 times",
        ),
        (
            "(:Called {tool: 'a', times: 2...})",
            json!({"called": {"tool": "a", "times": [2, null]}}),
            "calls a at least twice",
        ),
        (
            "(:Called {tool: 'a', times: ...2})",
            json!({"called": {"tool": "a", "times": [0, 2]}}),
            "calls a at most twice",
        ),
        ("(:NotCalled {tool: 'rm'})", json!({"notCalled": "rm"}), "does not call rm"),
        (
            "(:NotCalled {tool: 'rm', with: {path: '/'}})",
            json!({"notCalled": {"tool": "rm", "with": {"path": "/"}}}),
            r#"does not call rm with {"path":"/"}"#,
        ),
        ("(:Order {tools: ['find', 'read']})", json!({"order": ["find", "read"]}), "calls find, then read"),
        ("(:Turns {most: 3})", json!({"turns": 3}), "takes at most 3 turns"),
        ("(:Latency {most: 2s})", json!({"latency": "2s"}), "takes at most 2 s"),
        ("(:Latency {most: 1500ms})", json!({"latency": {"most": "1500ms"}}), "takes at most 1.5 s"),
        ("(:Latency {most: 1m})", json!({"latency": 60}), "takes at most 60 s"),
        ("(:Cost {most: 0.01})", json!({"cost": 0.01}), "costs at most $0.01"),
        (
            "(:Judge {agent: 'judges/kind.gram', criteria: 'It is kind.'})",
            json!({"judge": {"agent": "judges/kind.gram", "criteria": "It is kind."}}),
            "judges/kind.gram agrees: It is kind.",
        ),
        (
            "(:Command {run: ['python3', 'ok.py']})",
            json!({"command": ["python3", "ok.py"]}),
            "command succeeds: python3 ok.py",
        ),
        (
            "(:Command {run: 'ok', timeout: 5s})",
            json!({"command": {"run": ["ok"], "timeout": "5s"}}),
            "command succeeds: ok",
        ),
    ];
    for (gram, json, description) in table {
        assert_eq!(check(gram, json).to_string(), *description);
    }
}

#[test]
fn the_three_formats_are_equivalent() {
    let gram = r#"
        // A file may have agents too.
        [hello:Agent {instruction: "Greet.", model: "demo"}]
        [hello_cases:Cases |
          [greets:Case { input: "Hello! My name is \"Alice\".", tags: ["greeting", "name"] } |
            (:Contains { text: "Alice" }), (:Called { tool: "sayHello", with: { personName: "Alice" } }), (:Turns { most: 3 })],
          [remembers:Case { input: ["My name is Bob.", "What,\nis my name?"] } | (:Contains { text: "Bob" })],
          [answers:Case { input: "Hi" }]
        ]"#;
    let lines = r#"{"id": "greets", "input": "Hello! My name is \"Alice\".", "tags": ["greeting", "name"], "checks": [{"contains": "Alice"}, {"called": {"tool": "sayHello", "with": {"personName": "Alice"}}}, {"turns": 3}]}

        {"id": "remembers", "input": ["My name is Bob.", "What,\nis my name?"], "checks": [{"contains": "Bob"}]}
        {"id": "answers", "input": ["Hi"]}"#;
    let table = "\u{feff}id,input,input,tags,contains,called,turns\r\n\
        greets,\"Hello! My name is \"\"Alice\"\".\",,greeting; name,Alice,\"{\"\"tool\"\": \"\"sayHello\"\", \"\"with\"\": {\"\"personName\"\": \"\"Alice\"\"}}\",3\r\n\
        \r\n\
        remembers,My name is Bob.,\"What,\nis my name?\",,Bob,,\r\n\
        answers,Hi,,,,,";
    let check_locations = |format, text, locations: [&str; 3]| {
        let cases = read_valid(format, text);
        assert_eq!(cases.iter().map(|case| case.location.as_str()).collect::<Vec<_>>(), locations);
        cases.iter().map(Case::to_json).collect::<Vec<_>>()
    };
    let expected = check_locations(Gram, gram, ["c:5", "c:7", "c:8"]);
    assert_eq!(expected[1]["input"][1], "What,\nis my name?");
    assert_eq!(check_locations(JsonLines, lines, ["c:1", "c:3", "c:4"]), expected);
    assert_eq!(check_locations(Csv, table, ["c:2", "c:4", "c:6"]), expected);
}

#[test]
fn fenced_texts_are_dedented() {
    let text = "[:Cases | [a:Case {input: ```\n    Two\n      lines.\n    ```}]]";
    assert_eq!(read_valid(Gram, text)[0].turns, ["Two\n  lines."]);
}

#[test]
fn default_names_are_line_numbers() {
    let ids = |cases: Vec<Case>| cases.into_iter().map(|case| case.id).collect::<Vec<_>>();
    assert_eq!(
        ids(read_valid(JsonLines, "{\"input\": \"a\"}\n\n{\"input\": \"b\"}\n{\"input\": \"c\", \"id\": 9}")),
        ["1", "3", "9"]
    );
    assert_eq!(ids(read_valid(Csv, "input\na\n\"b\nb\"\nc")), ["2", "3", "5"]);
}

#[test]
fn mistakes_in_json_lines() {
    let table: &[(&str, &str)] = &[
        ("{\"input\": \"a\"", "1: this line is not complete JSON (write each case on one line)"),
        (
            "7",
            "1: a case must be a JSON object (write `{\"input\": \"Hello!\", \"checks\": [{\"contains\": \"Hello\"}]}`)",
        ),
        ("{}", "1: this case has no input (add the user's message: `input: \"Hello!\"`)"),
        (
            "{\"input\": [\"a\", \" \"]}",
            "1: the input of this case is empty (add the user's message: `input: \"Hello!\"`)",
        ),
        ("{\"input\": 3}", "1: `input` must be a text or a list of texts, not 3 ()"),
        ("{\"inptu\": \"a\"}", "1: a case has no property `inptu` (did you mean `input`?)"),
        (
            "{\"input\": \"a\", \"weight\": 3}",
            "1: a case has no property `weight` (valid properties: id, input, tags, checks)",
        ),
        ("{\"input\": \"a\", \"id\": \" \"}", "1: the name of a case must be a single line of at most 200 bytes ()"),
        (
            "{\"input\": \"a\", \"checks\": {}}",
            "1: `checks` must be a list of checks (write `\"checks\": [{\"contains\": \"Hello\"}]`)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [\"b\"]}",
            "1: a check is an object with one key, the kind of check (write `{\"contains\": \"Hello\"}`)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"contians\": \"b\"}]}",
            "1: there is no check `contians` (did you mean `contains`?)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"called\": {\"tol\": \"b\"}}]}",
            "1: `called` has no property `tol` (did you mean `tool`?)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"judge\": \"b\"}]}",
            "1: `judge` requires `agent` (write `{\"judge\": {\"agent\": \"judge.gram\", \"criteria\": \"…\"}}`)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"order\": [\"b\"]}]}",
            "1: an order requires at least two tools (to check a single call, use `Called`)",
        ),
        ("{\"input\": \"a\", \"checks\": [{\"turns\": 0}]}", "1: `turns` must be a positive whole number, not 0 ()"),
        (
            "{\"input\": \"a\", \"checks\": [{\"latency\": \"soon\"}]}",
            "1: `latency` must be a duration such as 2s or 500ms, not \"soon\" ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"cost\": -1}]}",
            "1: `cost` must be an amount in dollars from 0 to 1000, not -1 ()",
        ),
        ("{\"input\": \"a\", \"checks\": [{\"command\": []}]}", "1: `run` is empty ()"),
        ("{\"input\": \"a\", \"checks\": [{\"matches\": \"(\"}]}", "1: invalid regular expression: unclosed group ()"),
        (
            "{\"input\": \"a\", \"checks\": [{\"schema\": {\"type\": 7}}]}",
            "1: invalid JSON Schema: at /type, 7 is not valid under any of the schemas listed in the 'anyOf' keyword ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"jsonPath\": \"a\"}]}",
            "1: invalid JSON path: a path must start with `$` (for example, `$.items[0].name`)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"jsonPath\": \"$$\"}]}",
            "1: invalid JSON path: unexpected text at character 2 (for example, `$.items[0].name`)",
        ),
        (
            "{\"input\": }",
            "1: this line is not valid JSON, from column 11 (write each case as an object on one line: `{\"input\": \"Hello!\"}`)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"called\": {\"tool\": \"b\", \"times\": [3, 1]}}]}",
            "1: `times` must be a positive whole number or a range such as 1..3, not [3,1] ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"called\": {\"tool\": \"b\", \"with\": 1}}]}",
            "1: `with` must be an object of arguments by name ()",
        ),
        ("{\"input\": \"a\", \"id\": \"2\"}\n{\"input\": \"b\"}", "2: duplicate case `2` (rename one of the two)"),
        (
            "",
            "c: no cases found (write one case per line: `{\"input\": \"Hello!\", \"checks\": [{\"contains\": \"Hello\"}]}`)",
        ),
    ];
    for (text, problem) in table {
        assert_eq!(problems(JsonLines, text.as_bytes()), [*problem], "{text}");
    }
}

#[test]
fn mistakes_in_csv() {
    let table: &[(&str, &str)] = &[
        (
            "id,contains\na,b",
            "1: the table has no column `input` (the first row names the columns: input, id, tags, and checks such as contains)",
        ),
        ("id,inputs\na,b", "1: unknown column `inputs` (did you mean `input`?)"),
        ("input,contians\na,b", "1: unknown column `contians` (did you mean `contains`?)"),
        (
            "input\na,b",
            "2: this row has 2 values, but the header has 1 columns (quote values that contain a comma, a quote or a line break)",
        ),
        ("input\n\"a", "2: this row has an unclosed quote (write `\"\"` for a literal quote)"),
        ("input,matches\na,(", "2: invalid regular expression: unclosed group ()"),
        ("input,id\n\"a\nb\",x\n,y", "4: this case has no input (add the user's message: `input: \"Hello!\"`)"),
        ("input,turns\na,many", "2: `turns` must be a positive whole number, not \"many\" ()"),
        ("id;input\na;b", "1: columns are separated by commas, not by `;` (save the file as CSV with commas)"),
        ("input\n\n", "c: no cases found (write a header row with the column names, then one row per case)"),
    ];
    for (text, problem) in table {
        let found = problems(Csv, text.as_bytes());
        assert_eq!(found.last().map(String::as_str), Some(*problem), "{text}");
    }
    assert_eq!(problems(Csv, b"input\na\n\xff")[0], "3: this line is not UTF-8 (save the file as UTF-8)");
    let all_columns = "input,contains,equals,matches,schema,jsonPath,called,notCalled,order,turns,latency,cost,command\n\
        a,x,y,z,\"{\"\"type\"\": \"\"string\"\"}\",$.a,t,u,v;w,3,2s,0.5,ok";
    assert_eq!(read_valid(Csv, all_columns)[0].checks.len(), 12);
}

#[test]
fn mistakes_in_gram() {
    let table: &[(&str, &str)] = &[
        (
            "[:Cases | [a:Case {input: 'x'} | (:Contians {text: 'y'})]]",
            "1: there is no check `Contians` (did you mean `Contains`?)",
        ),
        (
            "[:Cases | [a:Case {input: 'x'} | [:Contains {text: 'y'}]]]",
            "1: a check is a node with one label (write `(:Contains { text: \"…\" })`)",
        ),
        ("[:Cases | [a:Case {input: 'x'} |\n(:Turns)]]", "2: `Turns` requires `most` ()"),
        (
            "[:Cases | [a:Case {input: 'x'} | (:Turns {most: 2s})]]",
            "1: `most` must be a positive whole number, not \"2s\" ()",
        ),
        (
            "[:Cases | [a:Case {input: 'x'} | (:Schema {schema: json`{`})]]",
            "1: invalid JSON: EOF while parsing an object at line 1 column 1 ()",
        ),
        (
            "[:Cases | [:Case {input: 'x'}]]",
            "1: this case has no name (write the name before the label: `[name:Case …`)",
        ),
        (
            "[:Cases | [:Case {input: 'x', id: 'a'}]]",
            "1: the name of a case is not a property (write it before the label, as in `[greets:Case …`, and remove this property)",
        ),
        ("[:Cases {tags: 'x'} | [a:Case {input: 'x'}]]", "1: a list of cases has no property `tags` (remove it)"),
        (
            "[:Cases | [a:Csae {input: 'x'}]]",
            "1: a list of cases may only contain cases (did you mean the label `Case`?)",
        ),
        (
            "[a:Case {input: 'x'}]",
            "1: a case must be inside a list of cases (wrap it in `[:Cases | [name:Case {…} | …]]`)",
        ),
        (
            "[:Cases | [a:Case {input: 'x'}]]\n[:Cases | [a:Case {input: 'y'}]]",
            "2: duplicate case `a` (rename one of the two)",
        ),
        ("[:Cases | [a:Case {input: 'x'}]", "1: expected `]`, found the end of the file (close it with `]`)"),
        (
            "[hello:Agent]",
            "c: no cases found (write `[:Cases | [greets:Case { input: \"Hello!\" } | (:Contains { text: \"Hello\" })]]`)",
        ),
    ];
    for (text, problem) in table {
        assert_eq!(problems(Gram, text.as_bytes()), [*problem], "{text}");
    }
}

#[test]
fn valid_cases_are_read_despite_others() {
    let text = "[:Cases | [a:Case {input: 'x'} | (:Nope)], [b:Case {input: 'x'}]]";
    assert_eq!(read("c", Gram, text.as_bytes()).0.len(), 1);
    assert_eq!(read("c", JsonLines, b"{\n{\"input\": \"a\"}\n\xff\n{\"input\": \"b\"}").0.len(), 2);
    assert_eq!(read("c", Csv, b"input,id\na,b,c\nd,e\nf,").0.len(), 2);
}
