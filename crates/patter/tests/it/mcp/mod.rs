//! Tools of MCP servers, against real servers.

mod auth;
mod config;
mod failures;
mod http;
mod limits;
mod questions;
mod real;
mod tasks;
mod unusual;

use crate::npm;
use patter::tool::mcp::{McpServer, ServerConfig, http_client};
use patter::tool::{Tool, ToolContext, ToolFailure};
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The files of these tests.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp");
/// The time limit for events that should happen soon.
const SOON: Duration = Duration::from_secs(30);

/// Returns the program of a real server from npm.
fn installed(server: &str) -> Option<PathBuf> {
    let program = npm::installed("mcp")?.join("@modelcontextprotocol").join(server).join("dist/index.js");
    assert!(program.is_file(), "{} is missing", program.display());
    Some(program)
}

/// Returns a server with settings in TOML.
fn server(settings: &str) -> McpServer {
    let config: ServerConfig = toml::from_str(settings).unwrap();
    let variable = |name: &str| (name == "TOKEN").then(|| "sesame-open".to_owned());
    let settings = config.settings("demo", Path::new("patter.toml"), &variable).unwrap();
    McpServer::new(settings, http_client().unwrap())
}

/// Returns a server that is started by a shell script. `$0` is a program, `$1` a folder.
fn shell(script: &str, program: &Path, folder: &Path) -> McpServer {
    let arguments: Vec<_> = ["-c", script].into_iter().map(Path::new).chain([program, folder]).map(quoted).collect();
    server(&format!("command = 'sh'\nargs = [{}]", arguments.join(", ")))
}

fn node(program: &Path, more: &str) -> McpServer {
    server(&format!("command = 'node'\nargs = [{}]\n{more}", quoted(program)))
}

fn unusual(more: &str) -> Option<McpServer> {
    // The server needs node, which comes with npm.
    installed("server-everything")?;
    Some(node(&Path::new(FILES).join("unusual.mjs"), more))
}

fn quoted(path: &Path) -> String {
    Json::String(path.display().to_string()).to_string()
}

async fn tool(server: &McpServer, name: &str) -> Tool {
    let listing = server.tools().await.unwrap();
    listing.tools.into_iter().find(|tool| tool.name() == name).unwrap_or_else(|| panic!("missing tool {name}"))
}

async fn call(server: &McpServer, name: &str, arguments: Json) -> Result<Json, ToolFailure> {
    let tool = tool(server, name).await;
    tool.implementation.call(arguments, &ToolContext::new("call")).await
}

/// Polls until a condition is met.
async fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        match poll() {
            Some(found) => return found,
            None => assert!(start.elapsed() < SOON, "{what} did not happen"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Reads a process id from a file, once it exists.
async fn pid(file: &Path) -> rustix::process::Pid {
    let read = || rustix::process::Pid::from_raw(fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok()?);
    until("a process id", read).await
}

fn is_alive(pid: rustix::process::Pid) -> bool {
    // A zombie is dead too.
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}
