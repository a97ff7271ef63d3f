//! The studio, in a browser: Debian's Chromium, or the one that `CHROMIUM` names.

use crate::lab::Lab;
use crate::npm;
use crate::sdk::{self, run_script_within};
use patter::store::{self, NewSession, SessionId, SessionState, StoreLocation};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

mod guard;
mod project;
mod restart;
mod types;

/// How long a scenario may take, on a machine that does other things too.
const TIMEOUT: Duration = Duration::from_secs(150);

/// Returns the packages that the scenarios need, if there is a browser.
fn packages() -> Option<PathBuf> {
    let browser = std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from);
    if !browser.exists() {
        assert!(std::env::var_os("CI").is_none(), "`{}` is not there", browser.display());
        eprintln!("skipped: `{}` is not there", browser.display());
        return None;
    }
    npm::installed("studio")
}

/// Runs a scenario against a server.
async fn play(lab: &Lab, packages: &Path, name: &str, arguments: &[&str]) {
    let mut command = Command::new("node");
    command.arg(sdk::tests().join("studio").join(format!("{name}.mjs")));
    command.arg(format!("http://{}", lab.address)).arg(packages).args(arguments);
    run_script_within(command, name, TIMEOUT).await;
}

/// Makes the agent `slow` so slow that a busy machine does not matter.
fn slow_down(lab: &Lab, delay_ms: u64) {
    let call = json!({"tool": "pay", "arguments": {"euros": 5}});
    let script = json!([{"calls": [call]}, {"text": "Late.", "delayMs": delay_ms}]);
    std::fs::write(lab.folder.path().join("slow.json"), script.to_string()).unwrap();
}

#[tokio::test]
async fn pages_have_a_frame() {
    let Some(packages) = packages() else { return };
    play(&Lab::new().await, &packages, "frame", &[]).await;
}

#[tokio::test]
async fn people_log_in() {
    let Some(packages) = packages() else { return };
    play(&sdk::lab().await, &packages, "login", &[sdk::TOKEN]).await;
}

#[tokio::test]
async fn people_talk_to_agents() {
    let Some(packages) = packages() else { return };
    let lab = Lab::new().await;
    slow_down(&lab, 20_000);
    play(&lab, &packages, "talk", &[]).await;
}

#[tokio::test]
async fn people_answer_the_questions_of_workflows() {
    let Some(packages) = packages() else { return };
    let lab = Lab::with_file(crate::workflows::WORKFLOWS, |_| {}, None).await;
    play(&lab, &packages, "question", &[]).await;
}

#[tokio::test]
async fn people_attach_files() {
    let Some(packages) = packages() else { return };
    play(&Lab::new().await, &packages, "attach", &[]).await;
}

#[tokio::test]
async fn people_look_at_runs() {
    let Some(packages) = packages() else { return };
    let lab = Lab::new().await;
    for (agent, session) in [("greeter", "one"), ("counter", "two"), ("boss", "three")] {
        let request = json!({"agent": agent, "message": format!("Hello {agent}"), "session": session});
        assert_eq!(lab.post("/api/sessions?wait=true", &request).await.status, 200);
    }
    let folder = lab.folder.path().display().to_string();
    play(&lab, &packages, "runs", &["one", "two", &folder]).await;
}

/// Stores a session with many messages, some of them hostile.
async fn store_large_session(lab: &Lab, messages: usize) -> usize {
    let started =
        lab.post("/api/sessions?wait=true", &json!({"agent": "counter", "message": "Hi", "session": "small"})).await;
    assert_eq!(started.status, 200);
    let store = store::open(&StoreLocation::Sqlite(lab.folder.path().join("s.db"))).await.unwrap();
    let small = store.read(&SessionId::parse("small").unwrap()).await.unwrap();
    let turn: Vec<Json> = small.entries.iter().map(|entry| serde_json::from_str(entry).unwrap()).collect();
    let mut entries = Vec::new();
    for number in 0..messages {
        let text = match messages - number {
            1 => "</script><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 1\">".to_owned(),
            2 => format!("\u{202e}gnirts\u{202c} {}", "long".repeat(250_000)),
            _ => format!("Message {number}"),
        };
        for entry in turn.iter().filter(|entry| number == 0 || entry["entry"] != "opened") {
            let mut entry = entry.clone();
            if entry["entry"] == "began" {
                entry["beginning"]["input"] = json!(text);
            }
            entries.push(entry.to_string());
        }
    }
    let count = entries.len();
    let id = SessionId::parse("large").unwrap();
    let session = NewSession::new(id, "counter", "Large").with_entries(entries, SessionState::Idle);
    store.create(session, 1).await.unwrap();
    count
}

#[tokio::test]
async fn large_and_hostile_sessions_are_shown() {
    let Some(packages) = packages() else { return };
    let lab = Lab::new().await;
    let count = store_large_session(&lab, 5000).await;
    assert!(count >= 10_000, "{count}");
    play(&lab, &packages, "large", &["large", &count.to_string()]).await;
}
