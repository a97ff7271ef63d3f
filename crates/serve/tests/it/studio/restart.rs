//! A page survives a restart of the server.

use super::{packages, slow_down};
use crate::lab::Lab;
use crate::sdk;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

#[tokio::test]
async fn pages_reconnect() {
    let Some(packages) = packages() else { return };
    let mut lab = Lab::with(|settings| settings.limits.drain_timeout = Duration::from_millis(50)).await;
    slow_down(&lab, 4000);
    let mut command = Command::new("node");
    command.arg(sdk::tests().join("studio").join("restart.mjs"));
    command.arg(format!("http://{}", lab.address)).arg(packages);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut node = command.spawn().unwrap();
    let mut input = node.stdin.take().unwrap();
    let mut lines = BufReader::new(node.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let talk = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            match line.as_str() {
                "stop" => lab.shut_down().await,
                "start" => lab.start_again().await,
                other => {
                    said += other;
                    continue;
                }
            }
            input.write_all(b"done\n").await.unwrap();
        }
    };
    tokio::time::timeout(super::TIMEOUT, talk).await.expect("the scenario takes too long");
    let mut output = String::new();
    node.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
    assert_eq!(output.trim(), "ok", "{said}");
}
