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

#[tokio::test]
async fn the_stateless_protocol_conforms() {
    let Some(said) = run("2026-07-28").await else { return };
    panic!("{said}");
}

#[tokio::test]
async fn the_older_protocol_conforms() {
    let Some(said) = run("2025-11-25").await else { return };
    panic!("{said}");
}
