//! The SDKs of OpenAI for Python and JavaScript, unmodified, against the server. They are installed once.

use crate::lab::Lab;
use crate::{npm, python};
use patter_serve::{Token, TokenHash};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

pub(crate) const TOKEN: &str = "a-token-that-is-long-enough";
/// How long a script may take.
const TIMEOUT: Duration = Duration::from_secs(45);

/// An SDK that is installed.
pub(crate) enum Sdk {
    Python(PathBuf),
    JavaScript(PathBuf),
}

/// Returns the SDK for Python, unless it cannot be had.
pub(crate) fn in_python() -> Option<Sdk> {
    python::installed("openai-python").map(Sdk::Python)
}

/// Returns the SDK for JavaScript, unless it cannot be had.
pub(crate) fn in_javascript() -> Option<Sdk> {
    npm::installed("openai").map(Sdk::JavaScript)
}

impl Sdk {
    /// Runs a script, which fails if anything is not as it expects it.
    pub(crate) async fn run(&self, script: &str, address: SocketAddr, arguments: &[&str]) {
        let tests = tests();
        let base = format!("http://{address}/v1");
        let mut command = match self {
            Self::Python(python) => {
                let mut command = Command::new(python);
                command.arg(tests.join("openai-python").join(format!("{script}.py"))).args([&base, TOKEN]);
                command
            }
            Self::JavaScript(packages) => {
                let mut command = Command::new("node");
                let script = tests.join("openai").join(format!("{script}.mjs"));
                command.arg(script).args([&base, TOKEN]).arg(packages);
                command
            }
        };
        command.args(arguments);
        run_script(command, &format!("{script} {arguments:?}")).await;
    }
}

/// Returns the folder with scripts.
pub(crate) fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Runs a script, which prints `ok` if everything is as it expects it.
pub(crate) async fn run_script(command: Command, name: &str) {
    run_script_within(command, name, TIMEOUT).await;
}

/// Runs a script that may take longer than others.
pub(crate) async fn run_script_within(mut command: Command, name: &str, timeout: Duration) {
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name);
    }
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(timeout, command.output()).await.expect("the script takes too long").unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim() == "ok", "{name}: {said}\n{complaint}");
}

/// Starts a server that wants a token, and waits for clients that come back as long as servers do by default.
pub(crate) async fn lab() -> Lab {
    Lab::with(|settings| {
        settings.tokens.push(Token::new("test", TokenHash::of(TOKEN)));
        settings.limits.disconnect_grace = Duration::from_secs(10);
    })
    .await
}

/// Starts a proxy that breaks the first connection of each pair once the request had its effect, and returns its address.
async fn breaking_proxy(server: SocketAddr, payments: &Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let payments = Arc::clone(payments);
    tokio::spawn(async move {
        let mut breaks = true;
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(server).await.unwrap();
            if !breaks {
                breaks = true;
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
                continue;
            }
            breaks = false;
            let before = payments.load(Ordering::SeqCst);
            let (mut from_client, _to_client) = client.split();
            let effect = async {
                while payments.load(Ordering::SeqCst) == before {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                _ = tokio::io::copy(&mut from_client, &mut server) => {}
                () = effect => {}
            }
            let _ = server.shutdown().await;
        }
    });
    address
}

/// Forces an SDK to send requests again, and checks that each had its effect once.
async fn force_retries(sdk: &Sdk, route: &str) {
    let lab = lab().await;
    sdk.run("retries", lab.address, &["impatient", route]).await;
    assert_eq!(lab.counts().0, 1, "the client gave up and asked again");
    let proxy = breaking_proxy(lab.address, &lab.payments).await;
    sdk.run("retries", proxy, &["broken", route]).await;
    assert_eq!(lab.counts().0, 3, "the connection of two requests broke");
    sdk.run("retries", lab.address, &["hopeless", route]).await;
    assert!(lab.counts().0 <= 4, "the client gave up");
}

#[tokio::test]
async fn python_chats() {
    let Some(sdk) = in_python() else { return };
    let lab = lab().await;
    sdk.run("chat", lab.address, &[]).await;
    assert_eq!(lab.counts(), (0, 6));
}

#[tokio::test]
async fn javascript_chats() {
    let Some(sdk) = in_javascript() else { return };
    let lab = lab().await;
    sdk.run("chat", lab.address, &[]).await;
    assert_eq!(lab.counts(), (0, 4));
}

#[tokio::test]
async fn python_retries_without_repeated_effects() {
    let Some(sdk) = in_python() else { return };
    force_retries(&sdk, "chat").await;
    force_retries(&sdk, "responses").await;
}

#[tokio::test]
async fn javascript_retries_without_repeated_effects() {
    let Some(sdk) = in_javascript() else { return };
    force_retries(&sdk, "chat").await;
    force_retries(&sdk, "responses").await;
}

#[tokio::test]
async fn python_gets_responses() {
    let Some(sdk) = in_python() else { return };
    let lab = lab().await;
    sdk.run("responses", lab.address, &[]).await;
    assert_eq!(lab.counts(), (3, 5));
}

#[tokio::test]
async fn javascript_gets_responses() {
    let Some(sdk) = in_javascript() else { return };
    let lab = lab().await;
    sdk.run("responses", lab.address, &[]).await;
    assert_eq!(lab.counts(), (2, 4));
}
