//! The client half of the conformance suite of the Model Context Protocol, with the program as the client.

use crate::npm;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// The files of these tests.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");

/// The scenarios that pass.
const PASSING: [&str; 23] = [
    "initialize",
    "tools_call",
    "sse-retry",
    "elicitation-sep1034-client-defaults",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
];

/// The scenarios about what is not supported.
const UNSUPPORTED: [&str; 3] = [
    // Extensions for clients without a person.
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/cross-app-access-complete-flow",
];

/// Runs the suite with arguments.
fn suite(packages: &Path, arguments: &[&str]) -> Output {
    let mut node = Command::new("node");
    node.arg("--import").arg(Path::new(FILES).join("hook.mjs"));
    node.arg(packages.join("@modelcontextprotocol/conformance/dist/index.js")).args(arguments);
    node.env("PATTER", env!("CARGO_BIN_EXE_patter")).output().unwrap()
}

#[test]
fn the_program_is_a_conformant_client() {
    let Some(packages): Option<PathBuf> = npm::installed("conformance") else { return };
    let results = tempfile::tempdir().unwrap();
    let client = Path::new(FILES).join("client").display().to_string();
    let waiting = Mutex::new(PASSING.to_vec());
    let failures = Mutex::new(Vec::new());
    // Scenarios wait for each other's processes most of the time.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = waiting.lock().unwrap().pop() else { return };
                    let folder = results.path().join(scenario.replace('/', "-")).display().to_string();
                    let arguments =
                        ["client", "--command", &client, "--scenario", scenario, "--timeout", "120000", "-o", &folder];
                    let output = suite(&packages, &arguments);
                    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
                    if !output.status.success() || !text.contains("OVERALL: PASSED") {
                        failures.lock().unwrap().push(format!("{scenario}:\n{text}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_scenario_is_either_run_or_known() {
    let Some(packages) = npm::installed("conformance") else { return };
    let output = suite(&packages, &["list", "--client"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next());
    let mut listed: Vec<_> = names.collect();
    let mut known: Vec<_> = PASSING.iter().chain(&UNSUPPORTED).copied().collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known, "{text}");
}
