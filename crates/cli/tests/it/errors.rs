//! Errors of all commands: exit codes, machine-readable errors, and old spellings of options.

use crate::folder::Folder;
use serde_json::{Value as Json, json};

const AGENT: &str = "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"demo\" } | sayHello]\n";

fn project() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write("a.gram", AGENT);
    let case = json!({"id": "ann", "input": "Hello! My name is Ann.", "checks": [{"contains": "Ann"}]});
    folder.write("cases.jsonl", case.to_string());
    folder
}

/// Runs a command, and returns its exit code and the JSON document on stdout.
fn run_json(folder: &Folder, arguments: &[&str]) -> (i32, Json) {
    let output = folder.output(arguments, "");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let document = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{stdout}"));
    (output.status.code().unwrap(), document)
}

#[test]
fn usage_errors_exit_with_2() {
    let folder = project();
    let api = json!({
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://shop.example.com"}],
        "paths": {"/orders": {"get": {"operationId": "list", "responses": {"200": {"description": "ok"}}}}},
    });
    folder.write("api.json", api.to_string());
    let table: [(&[&str], &str); 32] = [
        (&["nonsense"], "unrecognized subcommand"),
        (&["new", "a/b"], "is not a valid project name"),
        (&["parse"], "required arguments"),
        (&["parse", "a.gram", "--format", "xml"], "invalid value 'xml'"),
        (&["fmt", "-", "--format", "json"], "`--format json` reports on files"),
        (&["check", "--max-errors", "many"], "invalid value 'many'"),
        (&["diff", "a.gram"], "two versions are required"),
        (&["diff", "--git", "a.gram"], "two versions are required"),
        (&["run", "a.gram", "hi", "--timeout", "soon"], "write a time above 0, such as 30s, 2m or 1h"),
        (&["run", "a.gram", "hi", "--timeout", "0"], "write a time above 0, such as 30s, 2m or 1h"),
        (&["run", "a.gram", "hi", "--model", "nonsense/x"], "unknown provider `nonsense`"),
        (&["run", "a.gram", "hi", "--allow", "a//b"], "`a//b` is not a tool name or pattern"),
        (&["run", "a.gram", "hi", "--new", "--continue"], "cannot be used with"),
        (&["run", "a.gram", "hi", "--new", "--session", "Not One"], "Not One"),
        (&["run", "a.gram", "hi", "--continue", "--store", "none"], "sessions are disabled"),
        (&["run", "a.gram", "hi", "--store", "mysql://x"], "`mysql://` is not supported"),
        (&["chat", "a.gram", "--ask", "a//b"], "`a//b` is not a tool name or pattern"),
        (&["resume", "--store", "none"], "sessions are disabled"),
        (&["resume", "--repeat", "--abandon"], "cannot be used with"),
        (&["eval", "a.gram", "-c", "cases.txt"], "is not a supported cases file"),
        (&["eval", "a.gram", "-c", "cases.jsonl", "--deny", "a//b"], "`a//b` is not a tool name or pattern"),
        (&["eval", "a.gram", "-c", "cases.jsonl", "--resume", "latest", "--store", "none"], "sessions are disabled"),
        (&["ab", "a.gram", "-c", "cases.jsonl", "--arm", "a"], "a comparison needs two arms"),
        (&["experiments", "--format", "html"], "can only be printed as text or JSON"),
        (&["replay", "a.jsonl", "--deny", "fs/*"], "apply only to a comparison"),
        (&["sessions", "--format", "json", "--json"], "cannot be used with"),
        (&["why", "sayHello", "--deny", "a//b"], "`a//b` is not a tool name or pattern"),
        (&["import", "openapi", "api.json", "--force"], "required arguments"),
        (&["import", "openapi", "api.json", "--name", "a b"], "`a b`"),
        (&["import", "openapi", "api.json", "--server", "/v1"], "`/v1`"),
        (&["sessions", "fork", "latest", "--id", "Not One"], "Not One"),
        (&["completions", "dos"], "invalid value 'dos'"),
    ];
    folder.run(&["run", "a.gram", "Hello! My name is Ada."]);
    for (arguments, expected) in table {
        let printed = folder.run(arguments);
        let is_error = printed.starts_with("exit 2\n") && printed.contains("--- stderr\nerror: ");
        assert!(is_error && printed.contains(expected), "{arguments:?}\n{printed}");
    }
}

#[test]
fn errors_are_json_in_json_format() {
    let folder = project();
    let cases = ["-c", "cases.jsonl", "--store", "none"];
    let eval = [&["eval", "none.gram"], &cases[..]].concat();
    let ab = [&["ab", "none.gram", "--arm", "a", "--arm", "b"], &cases[..]].concat();
    let table: [(&[&str], i32, &str); 21] = [
        (&["parse", "none.gram"], 1, "failure"),
        (&["fmt", "-"], 2, "usage"),
        (&["explain", "P2"], 1, "failure"),
        (&["show", "none.gram"], 1, "failure"),
        (&["schema", "a.gram", "nothing"], 1, "failure"),
        (&["diff", "a.gram", "none.gram"], 1, "failure"),
        (&["diff", "a.gram"], 2, "usage"),
        (&["run", "none.gram", "hi"], 1, "failure"),
        (&["run", "a.gram#other", "hi"], 1, "ToolError"),
        (&["run", "a.gram", "hi", "--model", "OpenAI/x"], 1, "ConfigurationError"),
        (&["run", "a.gram", " "], 1, "ValidationError"),
        (&["run", "a.gram", "hi", "--session", "none"], 1, "StoreError"),
        (&["resume"], 1, "StoreError"),
        (&eval, 1, "failure"),
        (&ab, 1, "failure"),
        (&["experiments", "latest"], 1, "StoreError"),
        (&["replay", "none.jsonl"], 1, "failure"),
        (&["sessions", "show", "none"], 1, "StoreError"),
        (&["sessions", "export", "none"], 1, "StoreError"),
        (&["call", "nothing"], 3, "not_found"),
        (&["why", "nothing"], 1, "failure"),
    ];
    for (arguments, code, kind) in table {
        let (found, document) = run_json(&folder, &[arguments, &["--format", "json"]].concat());
        let error = &document["error"];
        assert_eq!((found, error["kind"].as_str()), (code, Some(kind)), "{arguments:?}\n{document:#}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{arguments:?}\n{document:#}");
    }
    // The configuration is read by the commands that use the project.
    folder.write("patter.toml", "[chekc]\n");
    let commands: [&[&str]; 5] =
        [&["check"], &["tools"], &["call", "sayHello"], &["sessions"], &["run", "a.gram", "hi"]];
    for arguments in commands {
        let (code, document) = run_json(&folder, &[arguments, &["--format", "json"]].concat());
        let error = &document["error"];
        assert_eq!((code, error["kind"].as_str()), (1, Some("ConfigurationError")), "{arguments:?}");
        assert_eq!(
            (&error["place"]["file"], error["hint"].is_string()),
            (&json!("patter.toml"), true),
            "{arguments:?}"
        );
    }
}

#[test]
fn usage_errors_are_json_too() {
    let folder = project();
    let (code, document) = run_json(&folder, &["run", "--format", "json"]);
    let message = "the following required arguments were not provided: <FILE[#AGENT]>";
    assert_eq!((code, document), (2, json!({"error": {"kind": "usage", "message": message}})));
    let (code, document) = run_json(&folder, &["check", "--format=json", "--denywarnings"]);
    assert_eq!((code, &document["error"]["kind"]), (2, &json!("usage")));
    assert!(document["error"]["hint"].as_str().unwrap().contains("--deny-warnings"), "{document:#}");
}

#[test]
fn details_and_places_are_in_the_document() {
    let folder = project();
    folder.write("unbound.gram", "[a:Agent { instruction: 'x', model: 'demo' } | nothing, nowhere]\n");
    let (code, document) = run_json(&folder, &["run", "unbound.gram", "hi", "--format", "json"]);
    let details = document["error"]["details"].as_array().unwrap();
    assert_eq!((code, &document["error"]["kind"], details.len()), (1, &json!("ToolError"), 2));
    assert!(details[0]["message"].as_str().unwrap().contains("`nothing`") && details[0]["hint"].is_string());
    folder.write("broken.gram", "[a:Agent { instruction: 'x', model: 'demo', maxTurn: 1 }]\n");
    let (_, document) = run_json(&folder, &["run", "broken.gram", "hi", "--format", "json"]);
    let detail = &document["error"]["details"][0];
    assert_eq!(detail["level"], "error", "{document:#}");
    assert_eq!(detail["place"], json!({"file": "broken.gram", "line": 1, "column": 45}), "{document:#}");
    folder.write("bad.jsonl", "{\"id\": \"a\"}\n");
    let (_, document) = run_json(&folder, &["eval", "a.gram", "-c", "bad.jsonl", "--format", "json"]);
    assert_eq!(document["error"]["place"], json!({"file": "bad.jsonl", "line": 1}), "{document:#}");
}

#[test]
fn errors_are_sarif_notifications_in_sarif_format() {
    let folder = project();
    folder.write("patter.toml", "[chekc]\n");
    let (code, document) = run_json(&folder, &["check", "--format", "sarif"]);
    let invocation = &document["runs"][0]["invocations"][0];
    assert_eq!((code, &invocation["executionSuccessful"]), (1, &json!(false)));
    let properties = &invocation["toolExecutionNotifications"][0]["properties"];
    assert_eq!(properties["kind"], "ConfigurationError");
}

#[test]
fn streams_end_with_an_error_event() {
    let folder = project();
    folder.write("script.json", json!([{"error": {"message": "overloaded"}}]).to_string());
    let last = |arguments: &[&str]| {
        let output = folder.output(&[arguments, &["--format", "stream-json"]].concat(), "");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let last: Json = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
        assert_eq!((output.status.code(), &last["event"]), (Some(1), &json!("error")), "{stdout}");
        last["error"].clone()
    };
    assert_eq!(last(&["run", "none.gram", "hi"])["kind"], "failure");
    let failed = last(&["run", "a.gram", "hi", "--model", "scripted/script.json"]);
    assert_eq!((&failed["kind"], &failed["message"]), (&json!("LLMAPIError"), &json!("overloaded")));
    assert_eq!(last(&["replay", "none.jsonl"])["kind"], "failure");
}

#[test]
fn old_spellings_of_formats_work() {
    let folder = project();
    let same = |old: &[&str], new: &[&str]| {
        let old_output = folder.output(old, "");
        assert_eq!(old_output.status.code(), Some(0), "{old:?}");
        assert_eq!(old_output.stdout, folder.output(new, "").stdout, "{old:?}");
    };
    let run = ["run", "a.gram", "Hello! My name is Ada.", "--store", "none"];
    for format in ["text", "json", "stream-json"] {
        let old = [&run[..], &["--output-format", format]].concat();
        let new = [&run[..], &["--format", format]].concat();
        let kinds = |arguments: &[&str]| folder.run(arguments).lines().count();
        assert_eq!(kinds(&old), kinds(&new), "{format}");
    }
    folder.run(&[&run[..], &["--record", "ada.jsonl"]].concat());
    same(&["replay", "ada.jsonl", "--output-format", "json"], &["replay", "ada.jsonl", "--format", "json"]);
    folder.run(&["run", "a.gram", "Hello! My name is Ada.", "--new", "--session", "ada"]);
    same(&["sessions", "--json"], &["sessions", "--format", "json"]);
    same(&["sessions", "--output-format", "json"], &["sessions", "--format", "json"]);
    same(&["parse", "a.gram", "--format", "text"], &["parse", "a.gram"]);
    let resume = folder.run(&["resume", "--output-format", "json"]);
    assert!(resume.contains("\"kind\": \"StoreError\""), "{resume}");
    let help = folder.run(&["sessions", "--help"]) + &folder.run(&["run", "--help"]);
    assert!(!help.contains("--output-format") && !help.contains("--json"), "{help}");
}

#[test]
fn data_is_json_in_json_format() {
    let folder = project();
    let (_, shown) = run_json(&folder, &["show", "a.gram", "--format", "json"]);
    assert_eq!(
        (&shown["agents"][0]["name"], &shown["agents"][0]["tools"][0]["name"]),
        (&json!("greeter"), &json!("sayHello"))
    );
    let (_, why) = run_json(&folder, &["why", "sayHello", "--agent", "a.gram", "--format", "json"]);
    assert_eq!((&why["tool"], &why["permission"]["decision"]), (&json!("sayHello"), &json!("allow")));
    assert_eq!((&why["candidates"][0]["chosen"], &why["declaration"]["valid"]), (&json!(true), &json!(true)));
    let (_, rule) = run_json(&folder, &["explain", "P020", "--format", "json"]);
    assert!(rule["page"].as_str().unwrap().starts_with("# P020"), "{rule}");
    let (_, rules) = run_json(&folder, &["explain", "--format", "json"]);
    assert!(rules["rules"].as_array().unwrap().len() > 20);
    folder.write("b.gram", "( a )");
    let (code, formatted) = run_json(&folder, &["fmt", "--check", "--format", "json"]);
    let states: Vec<_> =
        formatted["files"].as_array().unwrap().iter().map(|file| file["state"].as_str().unwrap()).collect();
    assert_eq!((code, states), (1, vec!["unchanged", "changed"]));
    folder.run(&["eval", "a.gram", "-c", "cases.jsonl", "--model", "demo"]);
    let (_, experiments) = run_json(&folder, &["experiments", "--format", "json"]);
    assert_eq!(experiments.as_array().unwrap().len(), 1);
    folder.run(&["run", "a.gram", "Hello! My name is Ada.", "--new", "--session", "ada"]);
    let (_, session) = run_json(&folder, &["sessions", "show", "ada", "--format", "json"]);
    assert_eq!((&session["id"], session["conversation"].as_array().unwrap().len()), (&json!("ada"), 4));
    let (_, forked) = run_json(&folder, &["sessions", "fork", "ada", "--id", "bob", "--format", "json"]);
    assert_eq!(forked, json!({"id": "bob"}));
    let (_, removed) = run_json(&folder, &["sessions", "rm", "ada", "bob", "--format", "json"]);
    assert_eq!(removed, json!({"removed": ["ada", "bob"]}));
    folder.write("patter.toml", "[mcp.broken]\ncommand = \"/no/such/program\"\n");
    let (code, tools) = run_json(&folder, &["tools", "sayHello", "--format", "json"]);
    assert_eq!((code, &tools["problems"][0]["kind"]), (1, &json!("ConfigurationError")));
    let (code, missing) = run_json(&folder, &["call", "broken/tool", "--format", "json"]);
    assert_eq!((code, missing["error"]["details"].as_array().unwrap().len()), (3, 1), "{missing:#}");
}
