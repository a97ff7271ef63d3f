//! The server half of the conformance suite of the Model Context Protocol.
//!
//! Its scenarios call tools, prompts and resources by name. The tools are Rust tools of the library, called without an agent;
//! what a project does not have comes from a handler of the application that embeds the server.

mod handler;
mod tools;

use crate::npm;
use handler::Handler;
use patter::live::LiveProject;
use patter::project::Environment;
use patter::tool::CancellationToken;
use patter_serve::{ServeSettings, Server, ToolAccess};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::process::Command;

/// How long the suite may take.
const TIMEOUT: Duration = Duration::from_secs(100);
/// Lets the suite run with older versions of Node.js.
const HOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/conformance/hook.mjs");

/// The scenarios that the version 2026-07-28 requires.
const STATELESS: [&str; 37] = [
    "server-stateless",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
    "caching",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
];

/// The scenarios that the version 2025-11-25 requires.
const OLDER: [&str; 30] = [
    "server-initialize",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "server-sse-multiple-streams",
    "elicitation-sep1330-enums",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
];

/// The scenarios that run, and fail, but that no version requires.
const NOT_REQUIRED: [&str; 11] = [
    // The extension for tasks, which calls do not become: a session of an agent can be continued instead.
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
    // Tools are declared in the notation of Patter, not with these keywords.
    "json-schema-2020-12",
    "http-custom-header-server-validation",
];

/// Starts a server with everything that the scenarios ask for.
async fn start(folder: &Path, stop: &CancellationToken) -> SocketAddr {
    let agents = folder.join("a.gram");
    std::fs::write(&agents, "[greeter:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]").unwrap();
    let project = LiveProject::open(agents).with_tools(tools::tools()).with_environment(Environment::default());
    let project = Arc::new(project.read().await.unwrap());
    let settings = ServeSettings { tools: ToolAccess::Direct, ..ServeSettings::default() };
    let server = Server::new(project, settings).with_mcp_handler(Handler);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = stop.clone();
    tokio::spawn(async move { server.serve(listener, stop).await.unwrap() });
    address
}

/// Runs the scenarios that a version of the protocol requires, and returns what the suite says.
async fn run(revision: &str) -> Option<String> {
    let packages = npm::installed("mcp-conformance")?;
    let folder = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let address = start(folder.path(), &stop).await;
    let mut node = Command::new("node");
    node.arg("--import").arg(HOOK).arg(packages.join("@modelcontextprotocol/conformance/dist/index.js"));
    node.args(["server", "--url", &format!("http://{address}/mcp"), "--requirements", revision, "--timeout", "60000"]);
    node.args(["-o", &folder.path().join("results").display().to_string()]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        node.env_remove(name);
    }
    let output = node.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(TIMEOUT, output).await.expect("the suite takes too long").unwrap();
    Some(format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// Checks that the required scenarios pass, and that no other fails unexpectedly.
fn check(said: &str, required: &[&str]) {
    let summary = said.split("=== SUMMARY ===").nth(1).and_then(|rest| rest.split("Total:").next());
    let lines: Vec<_> = summary.unwrap_or_default().lines().map(str::trim).collect();
    let marked = |mark: &str| -> Vec<&str> {
        let names = lines.iter().filter_map(|line| line.strip_prefix(mark)?.trim().split(':').next());
        names.collect()
    };
    let passed = marked("✓");
    let missing: Vec<_> = required.iter().filter(|name| !passed.contains(name)).collect();
    let unexpected: Vec<_> = marked("✗").into_iter().filter(|name| !NOT_REQUIRED.contains(name)).collect();
    assert!(missing.is_empty() && unexpected.is_empty(), "{missing:?} {unexpected:?}\n{said}");
}

#[tokio::test]
async fn the_stateless_protocol_conforms() {
    let Some(said) = run("2026-07-28").await else { return };
    check(&said, &STATELESS);
}

#[tokio::test]
async fn the_older_protocol_conforms() {
    let Some(said) = run("2025-11-25").await else { return };
    check(&said, &OLDER);
}
