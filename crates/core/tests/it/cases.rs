//! Cases: how they are read, in all formats, and what is said of mistakes.

use patter_core::case::{Case, CaseFormat, Check, read};
use serde_json::{Value as Json, json};

use CaseFormat::{Csv, Gram, JsonLines};

/// Reads cases that are without fault.
pub(crate) fn good(format: CaseFormat, text: &str) -> Vec<Case> {
    let (cases, problems) = read("c", format, text.as_bytes());
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    cases
}

/// Returns what is wrong with a text, as `line: message (hint)`.
pub(crate) fn problems(format: CaseFormat, text: &[u8]) -> Vec<String> {
    let shown = read("c", format, text).1.into_iter().map(|problem| {
        let place = problem.place.trim_start_matches("c:").to_owned();
        format!("{place}: {} ({})", problem.message, problem.hint.unwrap_or_default())
    });
    shown.collect()
}

/// Reads one check, in gram and as JSON, which are the same, and returns its words.
fn check(gram: &str, json: &Json) -> Check {
    let case = good(Gram, &format!("[:Cases | [a:Case {{input: 'x'}} | {gram}]]")).remove(0);
    let parsed = Check::parse(json).unwrap();
    assert_eq!(case.checks, std::slice::from_ref(&parsed), "{gram} {json}");
    assert_eq!(Check::parse(&parsed.to_json()).unwrap(), parsed, "{json}");
    parsed
}

#[test]
fn all_sorts_of_checks() {
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
            r#"equals "Yes" in capital or small letters"#,
        ),
        ("(:Matches {pattern: '^\\\\d+$'})", json!({"matches": r"^\d+$"}), r#"matches "^\\d+$""#),
        (
            "(:Schema {schema: json`{\"type\": \"object\"}`})",
            json!({"schema": {"type": "object"}}),
            r#"fits the schema {"type":"object"}"#,
        ),
        (
            "(:Schema {schema: {type: 'object'}})",
            json!({"schema": {"schema": {"type": "object"}}}),
            r#"fits the schema {"type":"object"}"#,
        ),
        (
            "(:Schema {schema: true, not: true})",
            json!({"schema": {"schema": true, "not": true}}),
            "does not fit the schema true",
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
            "has nothing at $.a",
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
        ("(:Command {run: ['python3', 'ok.py']})", json!({"command": ["python3", "ok.py"]}), "passes python3 ok.py"),
        ("(:Command {run: 'ok', timeout: 5s})", json!({"command": {"run": ["ok"], "timeout": "5s"}}), "passes ok"),
    ];
    for (gram, json, words) in table {
        assert_eq!(check(gram, json).to_string(), *words);
    }
}

#[test]
fn the_three_formats_mean_the_same() {
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
    let with_place = |format, text, places: [&str; 3]| {
        let cases = good(format, text);
        assert_eq!(cases.iter().map(|case| case.place.as_str()).collect::<Vec<_>>(), places);
        cases.iter().map(Case::to_json).collect::<Vec<_>>()
    };
    let expected = with_place(Gram, gram, ["c:5", "c:7", "c:8"]);
    assert_eq!(expected[1]["input"][1], "What,\nis my name?");
    assert_eq!(with_place(JsonLines, lines, ["c:1", "c:3", "c:4"]), expected);
    assert_eq!(with_place(Csv, table, ["c:2", "c:4", "c:6"]), expected);
}

#[test]
fn texts_in_fences_lose_their_layout() {
    let text = "[:Cases | [a:Case {input: ```\n    Two\n      lines.\n    ```}]]";
    assert_eq!(good(Gram, text)[0].turns, ["Two\n  lines."]);
}

#[test]
fn names_that_are_left_out_are_lines() {
    let ids = |cases: Vec<Case>| cases.into_iter().map(|case| case.id).collect::<Vec<_>>();
    assert_eq!(
        ids(good(JsonLines, "{\"input\": \"a\"}\n\n{\"input\": \"b\"}\n{\"input\": \"c\", \"id\": 9}")),
        ["1", "3", "9"]
    );
    assert_eq!(ids(good(Csv, "input\na\n\"b\nb\"\nc")), ["2", "3", "5"]);
}

#[test]
fn mistakes_in_lines() {
    let table: &[(&str, &str)] = &[
        (
            "{\"input\": \"a\"",
            "1: this line is no JSON: EOF while parsing an object at column 13 (write each case in one line)",
        ),
        ("7", "1: a case is a JSON object (write `{\"input\": \"Hello!\", \"checks\": [{\"contains\": \"Hello\"}]}`)"),
        ("{}", "1: this case has no input (say what a person says: `input: \"Hello!\"`)"),
        (
            "{\"input\": [\"a\", \" \"]}",
            "1: the input of this case is empty (say what a person says: `input: \"Hello!\"`)",
        ),
        ("{\"input\": 3}", "1: `input` takes a text, or a list of texts, not 3 ()"),
        ("{\"inptu\": \"a\"}", "1: a case has no `inptu` (did you mean `input`?)"),
        ("{\"input\": \"a\", \"weight\": 3}", "1: a case has no `weight` (it may have id, input, tags, checks)"),
        ("{\"input\": \"a\", \"id\": \" \"}", "1: the name of a case is a text in one line, of at most 200 bytes ()"),
        (
            "{\"input\": \"a\", \"checks\": {}}",
            "1: `checks` takes a list of checks (write `\"checks\": [{\"contains\": \"Hello\"}]`)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [\"b\"]}",
            "1: a check is an object with one key, its sort (write `{\"contains\": \"Hello\"}`)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"contians\": \"b\"}]}",
            "1: there is no check `contians` (did you mean `contains`?)",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"called\": {\"tol\": \"b\"}}]}",
            "1: `called` has no `tol` (did you mean `tool`?)",
        ),
        ("{\"input\": \"a\", \"checks\": [{\"judge\": \"b\"}]}", "1: `judge` needs `agent` ()"),
        (
            "{\"input\": \"a\", \"checks\": [{\"order\": [\"b\"]}]}",
            "1: an order has two tools or more (to ask for one call, write the check `Called`)",
        ),
        ("{\"input\": \"a\", \"checks\": [{\"turns\": 0}]}", "1: `most` takes a whole number from 1 on, not 0 ()"),
        (
            "{\"input\": \"a\", \"checks\": [{\"latency\": \"soon\"}]}",
            "1: `most` takes a time such as 2s or 500ms, not \"soon\" ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"cost\": -1}]}",
            "1: `most` takes a number of dollars from 0 to 1000, not -1 ()",
        ),
        ("{\"input\": \"a\", \"checks\": [{\"command\": []}]}", "1: `run` names no program ()"),
        (
            "{\"input\": \"a\", \"checks\": [{\"matches\": \"(\"}]}",
            "1: this is no regular expression: unclosed group ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"schema\": {\"type\": 7}}]}",
            "1: this is no JSON Schema: at /type, 7 is not valid under any of the schemas listed in the 'anyOf' keyword ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"jsonPath\": \"a\"}]}",
            "1: this is no JSON path: a path begins with `$` ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"called\": {\"tool\": \"b\", \"times\": [3, 1]}}]}",
            "1: `times` takes a whole number from 1 on, or a range such as 1..3, not [3,1] ()",
        ),
        (
            "{\"input\": \"a\", \"checks\": [{\"called\": {\"tool\": \"b\", \"with\": 1}}]}",
            "1: `with` takes the arguments of a call, by their names ()",
        ),
        (
            "{\"input\": \"a\", \"id\": \"2\"}\n{\"input\": \"b\"}",
            "2: there are two cases `2` (give one of the two another name)",
        ),
        (
            "",
            "c: there are no cases (write a case in each line: `{\"input\": \"Hello!\", \"checks\": [{\"contains\": \"Hello\"}]}`)",
        ),
    ];
    for (text, problem) in table {
        assert_eq!(problems(JsonLines, text.as_bytes()), [*problem], "{text}");
    }
}

#[test]
fn mistakes_in_tables() {
    let table: &[(&str, &str)] = &[
        (
            "id,inputs\na,b",
            "1: the table has no column `input` (the first row names the columns: input, id, tags, and checks such as contains)",
        ),
        ("input,contians\na,b", "1: nothing reads the column `contians` (did you mean `contains`?)"),
        (
            "input\na,b",
            "2: this row has 2 values, and the table 1 columns (put quotes around a text with a comma, a quote or a line break)",
        ),
        ("input\n\"a", "2: this row has a quote that is not closed (write `\"\"` for a quote)"),
        ("input,matches\na,(", "2: this is no regular expression: unclosed group ()"),
        ("input,id\n\"a\nb\",x\n,y", "4: this case has no input (say what a person says: `input: \"Hello!\"`)"),
        ("input,turns\na,many", "2: `most` takes a whole number from 1 on, not \"many\" ()"),
        (
            "input\n\n",
            "c: there are no cases (write a row for each case, after a first row with the names of the columns)",
        ),
    ];
    for (text, problem) in table {
        let found = problems(Csv, text.as_bytes());
        assert_eq!(found.last().map(String::as_str), Some(*problem), "{text}");
    }
    assert_eq!(problems(Csv, b"input\na\n\xff")[0], "3: this line is not UTF-8 (save the table as CSV with UTF-8)");
    let every = "input,contains,equals,matches,schema,jsonPath,called,notCalled,order,turns,latency,cost,command\n\
        a,x,y,z,\"{\"\"type\"\": \"\"string\"\"}\",$.a,t,u,v;w,3,2s,0.5,ok";
    assert_eq!(good(Csv, every)[0].checks.len(), 12);
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
        ("[:Cases | [a:Case {input: 'x'} |\n(:Turns)]]", "2: `Turns` needs `most` ()"),
        (
            "[:Cases | [a:Case {input: 'x'} | (:Turns {most: 2s})]]",
            "1: `most` takes a whole number from 1 on, not \"2s\" ()",
        ),
        (
            "[:Cases | [a:Case {input: 'x'} | (:Schema {schema: json`{`})]]",
            "1: this is no JSON: EOF while parsing an object at line 1 column 1 ()",
        ),
        (
            "[:Cases | [:Case {input: 'x'}]]",
            "1: this case has no name (write the name before the label: `[name:Case …`)",
        ),
        (
            "[:Cases | [:Case {input: 'x', id: 'a'}]]",
            "1: the name of a case is not a property (write it before the label, as in `[greets:Case …`, and remove this)",
        ),
        ("[:Cases {tags: 'x'} | [a:Case {input: 'x'}]]", "1: a list of cases has no `tags` (remove it)"),
        (
            "[:Cases | [a:Csae {input: 'x'}]]",
            "1: the elements of a list of cases are cases (did you mean the label `Case`?)",
        ),
        (
            "[a:Case {input: 'x'}]",
            "1: a case stands in a list of cases (write `[:Cases | [name:Case {…} | …]]` around it)",
        ),
        (
            "[:Cases | [a:Case {input: 'x'}]]\n[:Cases | [a:Case {input: 'y'}]]",
            "2: there are two cases `a` (give one of the two another name)",
        ),
        ("[:Cases | [a:Case {input: 'x'}]", "1: expected `]`, found the end of the file ()"),
        (
            "[hello:Agent]",
            "c: there are no cases (write `[:Cases | [greets:Case { input: \"Hello!\" } | (:Contains { text: \"Hello\" })]]`)",
        ),
    ];
    for (text, problem) in table {
        assert_eq!(problems(Gram, text.as_bytes()), [*problem], "{text}");
    }
}

#[test]
fn the_rest_is_read() {
    let text = "[:Cases | [a:Case {input: 'x'} | (:Nope)], [b:Case {input: 'x'}]]";
    assert_eq!(read("c", Gram, text.as_bytes()).0.len(), 1);
    assert_eq!(read("c", JsonLines, b"{\n{\"input\": \"a\"}\n\xff\n{\"input\": \"b\"}").0.len(), 2);
    assert_eq!(read("c", Csv, b"input,id\na,b,c\nd,e\nf,").0.len(), 2);
}
