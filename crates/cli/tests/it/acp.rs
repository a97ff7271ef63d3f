//! `patter serve --acp`, driven by the SDKs of the Agent Client Protocol, unmodified. They are installed once.

use crate::folder::{Folder, PATTER};
use crate::{npm, python};
use serde_json::json;
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
    let greeting = json!({"text": "Hello, Ada! How are you?", "expect": {"user": ["[notes.md](file:///work/notes.md)", "Ada"]}});
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
