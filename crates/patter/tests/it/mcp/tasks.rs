//! Calls that servers continue as tasks.

use super::{FILES, call, installed, node, tool, until};
use patter::tool::mcp::McpServer;
use patter::tool::{Progress, ToolContext};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn server(folder: &Path, more: &str) -> Option<McpServer> {
    // The server needs node, which comes with npm.
    installed("server-everything")?;
    let log = super::quoted(&folder.join("log"));
    Some(node(&Path::new(FILES).join("tasks.mjs"), &format!("env = {{LOG = {log}, TOKEN = '${{TOKEN}}'}}\n{more}")))
}

#[tokio::test]
async fn the_result_of_a_task_is_the_result_of_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server(folder.path(), "") else { return };
    let progress = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&progress);
    let listener = move |step: Progress| sink.lock().unwrap().push(step.message);
    let context = ToolContext::new("call").with_progress(Arc::new(listener));
    let result = tool(&server, "done").await.implementation.call(json!({}), &context).await.unwrap();
    assert_eq!(result, "after 3 polls");
    assert_eq!(*progress.lock().unwrap(), ["poll 0, [redacted]", "poll 1, [redacted]", "poll 2, [redacted]"]);

    for (name, expected) in [
        ("fails", "the MCP server `demo` returned an error: no luck"),
        ("cancelled", "the MCP server `demo` returned an error: the server cancelled the call"),
        ("other", "the MCP server `demo` sent an invalid response"),
        ("input", "the MCP server `demo` returned an error: the call needs input that cannot be given"),
    ] {
        assert_eq!(call(&server, name, json!({})).await.unwrap_err().message(), expected);
    }
}

#[tokio::test]
async fn a_task_is_cancelled_with_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server(folder.path(), "timeout = '1s'") else { return };
    let failure = call(&server, "endless", json!({})).await.unwrap_err();
    assert!(failure.message().contains("did not respond within 1 s"), "{failure:?}");
    let log = folder.path().join("log");
    let cancelled = || fs::read_to_string(&log).ok().filter(|log| log.contains("cancelled endless"));
    until("the cancellation of the task", cancelled).await;
}
