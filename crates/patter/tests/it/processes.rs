//! The processes of command tools: no process is left behind, however a call ends.

use crate::command::{call, tool_in};
use patter::tool::{Tool, ToolContext};
use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Scripts that would run for a minute, and that first write the ids of their processes to the file `ids`.
const ENDLESS: [&str; 6] = [
    "echo $$ > new; mv new ids; sleep 60",
    "trap '' TERM; echo $$ > new; mv new ids; while :; do sleep 60; done",
    "(trap '' TERM; sleep 60) & echo $$ $! > new; mv new ids; wait",
    "(trap '' TERM; sleep 60) & a=$!; sleep 60 & echo $$ $a $! > new; mv new ids; exec 1>&- 2>&-; wait",
    "exec <&- >&- 2>&-; echo $$ > new; mv new ids; sleep 60",
    "(yes >&2) & echo $$ $! > new; mv new ids; wait",
];

fn endless(root: &Path, script: &str) -> Tool {
    tool_in(root, &["sh", "-c", script], ", stdin: \"{a}\"", "(a::Text)==>(::Text)")
}

/// Polls until a condition is met.
async fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(value) = poll() {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} never happened");
}

fn ids(root: &Path) -> Option<Vec<i32>> {
    let text = std::fs::read_to_string(root.join("ids")).ok()?;
    Some(text.split_whitespace().map(|id| id.parse().unwrap()).collect())
}

/// Returns whether a process has ended. Without a reaper of orphans, it may stay as a zombie.
fn is_gone(id: i32) -> bool {
    let is_zombie = std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    is_zombie || !exists(id)
}

fn exists(id: i32) -> bool {
    test_kill_process(Pid::from_raw(id).unwrap()).is_ok()
}

/// Waits for the end of processes. The first one is our child, and must not even stay as a zombie.
async fn wait_for_end(ids: &[i32], script: &str) {
    until(&format!("the end of all of `{script}`"), || ids.iter().all(|id| is_gone(*id)).then_some(())).await;
    until(&format!("waiting for `{script}`"), || (!exists(ids[0])).then_some(())).await;
}

#[tokio::test]
async fn cancelling_a_call_ends_the_whole_group() {
    for script in ENDLESS {
        let root = TempDir::new().unwrap();
        let tool = endless(root.path(), script);
        let context = ToolContext::new("1");
        let stdin = "never read ".repeat(1 << 16);
        let call = tool.implementation.call(json!({ "a": stdin }), &context);
        let ids = tokio::select! {
            result = call => panic!("`{script}` ended: {result:?}"),
            ids = until("the start", || ids(root.path())) => ids,
        };
        wait_for_end(&ids, script).await;
    }
}

#[tokio::test]
async fn terminates_a_program_before_killing_it() {
    let root = TempDir::new().unwrap();
    let script = "trap 'echo bye > goodbye; exit' TERM; echo $$ > new; mv new ids; while :; do sleep 0.01; done";
    let tool = endless(root.path(), script);
    let context = ToolContext::new("1");
    tokio::select! {
        result = tool.implementation.call(json!({"a": ""}), &context) => panic!("ended: {result:?}"),
        _ = until("the start", || ids(root.path())) => {}
    }
    until("the output before the end", || root.path().join("goodbye").exists().then_some(())).await;
}

/// A shell that started the program exits first, which must not cut the cleanup of the program short.
#[tokio::test]
async fn the_whole_group_has_time_to_exit() {
    let root = TempDir::new().unwrap();
    let program =
        "trap 'sleep 0.3; echo bye > goodbye; exit' TERM; echo $$ > new; mv new ids; while :; do sleep 0.01; done";
    std::fs::write(root.path().join("program.sh"), program).unwrap();
    let tool = endless(root.path(), "sh program.sh; true");
    let context = ToolContext::new("1");
    let ids = tokio::select! {
        result = tool.implementation.call(json!({"a": ""}), &context) => panic!("ended: {result:?}"),
        ids = until("the start", || ids(root.path())) => ids,
    };
    until("the end of the program", || is_gone(ids[0]).then_some(())).await;
    assert!(root.path().join("goodbye").exists(), "the program was killed before its cleanup was done");
}

#[test]
fn kills_the_group_at_once_without_a_runtime() {
    for script in ENDLESS {
        let root = TempDir::new().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tool = endless(root.path(), script);
        let context = ToolContext::new("1");
        let mut call = tool.implementation.call(json!({"a": ""}), &context);
        let ids = runtime.block_on(async {
            tokio::select! {
                result = &mut call => panic!("`{script}` ended: {result:?}"),
                ids = until("the start", || ids(root.path())) => ids,
            }
        });
        drop(call);
        runtime.block_on(wait_for_end(&ids, script));
    }
}

#[test]
fn ends_the_group_when_the_runtime_shuts_down() {
    for script in ENDLESS {
        let root = TempDir::new().unwrap();
        let tool = endless(root.path(), script);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.spawn(async move { tool.implementation.call(json!({"a": ""}), &ToolContext::new("1")).await });
        let ids = runtime.block_on(until("the start", || ids(root.path())));
        drop(runtime);
        let another = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        another.block_on(wait_for_end(&ids, script));
    }
}

#[tokio::test]
async fn does_not_wait_for_background_processes() {
    let root = TempDir::new().unwrap();
    let tool = endless(root.path(), "(trap '' TERM; sleep 60) & echo $! > ids; echo now");
    let (result, messages) = call(&tool, json!({"a": ""})).await;
    assert_eq!(result.unwrap(), "now");
    assert!(messages.is_empty(), "{messages:?}");
    let left = ids(root.path()).unwrap();
    until("the end of the background process", || is_gone(left[0]).then_some(())).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn does_not_wait_for_a_process_that_left_the_group() {
    let root = TempDir::new().unwrap();
    let script =
        "setsid sh -c 'echo $$ > new; mv new ids; sleep 60' & while ! [ -e ids ]; do sleep 0.01; done; echo now";
    let (result, messages) = call(&endless(root.path(), script), json!({"a": ""})).await;
    let left = Pid::from_raw(ids(root.path()).unwrap()[0]).unwrap();
    rustix::process::kill_process_group(left, rustix::process::Signal::KILL).unwrap();
    assert_eq!(result.unwrap(), "now");
    assert_eq!(messages, ["a background process keeps the output of the command open; not waiting for it"]);
}
