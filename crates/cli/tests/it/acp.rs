//! `patter serve --acp`, driven by the SDKs of the Agent Client Protocol, unmodified. They are installed once.

use crate::folder::{Folder, PATTER};
use crate::{npm, python};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a script may take.
const TIMEOUT: Duration = Duration::from_secs(50);

const AGENTS: &str = r#"
[boss:Agent {instruction: 'Ask.', model: 'scripted/boss.json'} | clerk, greeter, slow]
[clerk:Agent {description: 'Pays', instruction: 'Pay.', model: 'scripted/clerk.json', ask: ['till/pay']} | `till/pay`]
[greeter:Agent {instruction: 'Greet.', model: 'scripted/greeter.json'}]
[slow:Agent {instruction: 'Wait.', model: 'scripted/slow.json'}]
"#;

const TOOLS: &str = r#"
[till:Toolbox |
  [pay:Command {description: "Pays", run: ["sh", "-c", "echo paid >> paid.txt; echo paid"]} | (euros::Integer)==>(::Text)]
]
"#;

fn project() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n");
    folder.write("a.gram", AGENTS);
    folder.write("tools.gram", TOOLS);
    let pay = json!({"calls": [{"tool": "till/pay", "arguments": {"euros": 5}}]});
    let mut clerk = vec![pay.clone(), json!({"text": "Paid."})];
    for _ in 0..4 {
        clerk.extend([pay.clone(), json!({"text": "Not paid."})]);
    }
    let ask = json!([{"tool": "clerk", "arguments": {"message": "Pay 5 euros"}}]);
    let boss = json!([{"text": "Let me ask. ", "calls": ask}, {"text": "The clerk has paid."}]);
    let greeting =
        json!({"text": "Hello, Ada! How are you?", "expect": {"user": ["[notes.md](file:///work/notes.md)", "Ada"]}});
    let greeter = json!([greeting, {"error": {"message": "out of order", "status": 400}}]);
    let slow = json!([{"text": "Late.", "delayMs": 30_000}]);
    for (name, script) in [("clerk", json!(clerk)), ("boss", boss), ("greeter", greeter), ("slow", slow)] {
        folder.write(&format!("{name}.json"), script.to_string());
    }
    folder
}

/// Runs a script, which fails if anything is not as it expects it.
fn run(mut command: Command) {
    command.env("PATTER_TRUST", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > TIMEOUT {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&stdout);
    assert!(status.success() && said.trim() == "ok", "{said}\n{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn the_javascript_sdk_drives_sessions() {
    let Some(packages) = npm::installed("acp") else { return };
    let folder = project();
    let mut command = Command::new("node");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/session.mjs"));
    command.arg(PATTER).arg(folder.path()).arg(packages);
    run(command);
}

#[test]
fn the_python_sdk_drives_sessions() {
    let Some(python) = python::installed("acp-python") else { return };
    let folder = project();
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp-python/session.py"));
    command.arg(PATTER).arg(folder.path());
    run(command);
}

#[test]
fn nothing_but_messages_is_printed() {
    let folder = project();
    let new = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}});
    let lines = [
        &new.to_string(),
        "",
        "{",
        "[]",
        r#"{"jsonrpc": "1.0", "id": "a", "method": "initialize"}"#,
        r#"{"jsonrpc": "2.0", "id": {}, "method": "initialize"}"#,
        r#"{"jsonrpc": "2.0", "method": "session/none"}"#,
        r#"{"jsonrpc": "2.0", "id": 77, "result": {}}"#,
        r#"{"jsonrpc": "2.0", "id": null, "method": "session/list", "params": []}"#,
    ];
    let output = folder.output(&["serve", "-v", "--acp"], &(lines.join("\n") + "\n"));
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let responses: Vec<Json> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let errors = responses.iter().filter(|response| response.get("error").is_some());
    let errors: Vec<_> = errors.map(|response| (response["id"].clone(), response["error"]["code"].clone())).collect();
    let expected = [(json!(null), -32700), (json!(null), -32600), (json!("a"), -32600), (json!(null), -32600)];
    let expected = expected.into_iter().chain([(json!(null), -32602)]).map(|(id, code)| (id, json!(code)));
    assert_eq!(errors, expected.collect::<Vec<_>>());
    assert_eq!(responses.iter().filter(|response| response["result"]["sessionId"].is_string()).count(), 1);
}

#[test]
fn other_options_and_disabled_sessions_are_errors() {
    let folder = project();
    for (arguments, expected) in [
        (["--acp", "--mcp"], "the argument '--acp' cannot be used with '--mcp'"),
        (["--acp", "--listen=127.0.0.1:0"], "the argument '--acp' cannot be used with '--listen <ADDRESS>'"),
        (["--acp", "--store=none"], "sessions are disabled (`--store none`)"),
    ] {
        let printed = folder.run(&["serve", arguments[0], arguments[1]]);
        assert!(printed.starts_with("exit 2\n--- stdout\n--- stderr\n") && printed.contains(expected), "{printed}");
    }
}
