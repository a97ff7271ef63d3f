//! Workers that register themselves, and the commands of the guide.

use crate::request;
use crate::restate::Restate;
use crate::shop::WorkerProcess;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use patter_restate::{OnConflict, register};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use tokio::net::TcpListener;

/// A folder with an agent that needs nobody.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let agent = "[digest:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]\n";
    fs::write(folder.path().join("digest.gram"), agent).unwrap();
    folder
}

fn admin(restate: &Restate) -> String {
    format!("http://127.0.0.1:{}", restate.admin)
}

/// Returns the addresses of the workers that Restate knows.
fn addresses(restate: &Restate) -> Vec<String> {
    let deployments = request::get(restate.admin, "/deployments").unwrap().body;
    let deployments = deployments["deployments"].as_array().unwrap_or_else(|| panic!("{deployments}")).clone();
    deployments.iter().filter_map(|deployment| deployment["uri"].as_str().map(str::to_owned)).collect()
}

#[test]
fn the_commands_of_the_guide_work() {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet.md")).unwrap();
    let section = guide.split("\n## ").find(|section| section.starts_with("On Restate")).unwrap();
    let commands: Vec<_> = section.lines().filter(|line| line.starts_with("curl ")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let Some(restate) = Restate::start() else { return };
    let folder = project();
    let worker = WorkerProcess::start(folder.path(), &["--store", "s.db", "--register", &admin(&restate)]);
    worker.wait_for_line("registered");
    for command in commands {
        let command = command.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", restate.ingress));
        let output = Command::new("sh").args(["-c", &format!("{command} --silent --fail-with-body")]).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command}: {output:?}"));
        assert!(answer["status"].is_string() || answer["state"].is_string(), "{command}: {answer}");
    }
}

/// A service that is no version of the worker.
struct Other;

#[restate_sdk::service(name = "Other")]
impl Other {
    #[handler]
    async fn ping(&self, _: Context<'_>) -> Result<(), HandlerError> {
        Ok(())
    }
}

#[test]
fn an_address_is_registered_once_for_each_version() {
    let Some(restate) = Restate::start() else { return };
    let folder = project();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let admin = admin(&restate);
    let refused =
        runtime.block_on(register(&admin.parse().unwrap(), &"http://127.0.0.1:1".parse().unwrap(), OnConflict::Fail));
    let refused = refused.unwrap_err();
    assert!(refused.message.starts_with("Restate did not accept `http://127.0.0.1:1/`"), "{refused:?}");
    assert!(refused.hint.unwrap().contains("--advertise"));

    // Something else is at the address first.
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = runtime.spawn(async move {
        let endpoint = HyperEndpoint::new(Endpoint::builder().bind(Other).build());
        while let Ok((stream, _)) = listener.accept().await {
            let connection = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), endpoint.clone()));
        }
    });
    let url = format!("http://{address}/");
    let conflict = runtime.block_on(register(&admin.parse().unwrap(), &url.parse().unwrap(), OnConflict::Fail));
    let conflict = conflict.unwrap_err().message;
    assert_eq!(conflict, format!("`{url}` is registered with other services, or another version"));
    other.abort();
    drop(runtime);

    let options = ["--store", "s.db", "--listen", &address, "--register", &admin];
    let mut worker = WorkerProcess::start(folder.path(), &options);
    worker.wait_for_line("hint: give each version of the workers an address of its own");
    worker.wait();
    let replacing = [&options[..], &["--replace"]].concat();
    let worker = WorkerProcess::start(folder.path(), &replacing);
    worker.wait_for_line("registered");
    assert_eq!(addresses(&restate), std::slice::from_ref(&url));
    drop(worker);
    // Registering the same again changes nothing.
    let worker = WorkerProcess::start(folder.path(), &options);
    worker.wait_for_line("registered");
    assert_eq!(addresses(&restate), std::slice::from_ref(&url));
}
