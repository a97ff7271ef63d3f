//! Servers that crash, hang, or do not exist.

use super::{SOON, call, installed, pid, server, shell, tool};
use patter::tool::ToolContext;
use serde_json::json;
use std::fs;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Checks the failure of a server that does not start.
async fn check(settings: &str, message: &str, detail: &str) {
    let server = server(settings);
    let failure = tokio::time::timeout(SOON, server.tools()).await.expect("it hangs").unwrap_err();
    assert_eq!(failure.message(), message, "{settings}");
    assert!(failure.detail().unwrap_or_default().contains(detail), "{settings}: {failure:?}");
    assert!(!failure.detail().unwrap_or_default().contains("::"), "{settings}: {failure:?}");
    // For a while there are no more attempts, and the failure is returned at once.
    assert_eq!(server.tools().await.unwrap_err().message(), message, "{settings}");
}

#[tokio::test]
async fn reports_why_a_server_does_not_start() {
    let short = "start-timeout = '300ms'";
    let slow = "the MCP server `demo` was not ready within 300 ms";
    let exited = "the MCP server `demo` exited before it was ready";
    let missing =
        "cannot start the MCP server `demo`: `no-such-program` was not found, or its working folder does not exist";
    check("command = 'no-such-program'", missing, "install it, or fix `command`").await;
    check(&format!("command = 'sleep'\nargs = ['1000']\n{short}"), slow, "it did not exit and was killed").await;
    let deaf = "command = 'sh'\nargs = ['-c', 'echo deaf >&2; exec sleep 1000']\n";
    check(&format!("{deaf}{short}"), slow, "stderr: deaf").await;
    let garbage = "command = 'sh'\nargs = ['-c', 'while :; do echo garbage {; sleep 0.05; done']\n";
    check(&format!("{garbage}{short}"), slow, "").await;
    check("command = 'sh'\nargs = ['-c', 'echo no licence >&2; exit 3']", exited, "exit status: 3; stderr: no licence")
        .await;
    check("command = 'true'", exited, "exit status: 0").await;
    let secret = "command = 'sh'\nargs = ['-c', 'echo key $KEY >&2; exit 3']\nenv = {KEY = '${TOKEN}'}";
    check(secret, exited, "stderr: key [redacted]").await;
    let long = "command = 'sh'\nargs = ['-c', 'head -c 100000 /dev/zero | tr \"\\\\0\" x >&2; echo end >&2; exit 3']";
    let failure = server(long).tools().await.unwrap_err();
    let detail = failure.detail().unwrap();
    assert!(detail.ends_with("xend") && (4000..5000).contains(&detail.len()), "{} {detail}", detail.len());
}

#[tokio::test]
async fn reports_a_program_that_echoes() {
    let server = server("command = 'cat'\nstart-timeout = '300ms'");
    let failure = tokio::time::timeout(SOON, server.tools()).await.expect("it hangs").unwrap_err();
    assert!(failure.message().starts_with("the MCP server `demo` "), "{failure:?}");
}

#[tokio::test]
async fn restarts_a_crashed_server() {
    let Some(program) = installed("server-everything") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = shell("echo $$ > $1/pid; echo alive >&2; exec node $0", &program, folder.path());
    let tool = tool(&server, "trigger-long-running-operation").await;
    let first = pid(&folder.path().join("pid")).await;
    let (sender, mut received) = mpsc::unbounded_channel();
    let context = ToolContext::new("call").with_progress(Arc::new(move |progress| sender.send(progress).unwrap()));
    let kill = async {
        received.recv().await.unwrap();
        rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
        std::future::pending::<()>().await;
    };
    let call_it = tool.implementation.call(json!({"duration": 600, "steps": 6000}), &context);
    let failure = tokio::select! {
        result = tokio::time::timeout(SOON, call_it) => result.expect("it hangs").unwrap_err(),
        () = kill => unreachable!(),
    };
    let broken = "lost the connection to the MCP server `demo` before it responded";
    assert_eq!(failure.message(), broken);
    assert!(failure.detail().unwrap().contains("stderr: alive"), "{failure:?}");
    assert_eq!(call(&server, "echo", json!({"message": "back"})).await.unwrap(), "Echo: back");
    assert_ne!(pid(&folder.path().join("pid")).await, first);
}

#[tokio::test]
async fn gives_up_on_a_server_that_keeps_crashing() {
    let Some(program) = installed("server-everything") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = shell("echo $$ > $1/pid; exec node $0", &program, folder.path());
    for _ in 0..10 {
        match server.tools().await {
            Ok(_) => {
                let pid = pid(&folder.path().join("pid")).await;
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                super::until("its end", || (!super::is_alive(pid)).then_some(())).await;
            }
            Err(failure) if failure.message().contains("lost the connection") => {}
            Err(failure) => {
                let expected = "the MCP server `demo` keeps exiting shortly after it starts";
                assert_eq!(failure.message(), expected);
                return;
            }
        }
    }
    panic!("the server is restarted for ever");
}

#[tokio::test]
async fn reports_a_tool_that_disappeared() {
    let (Some(everything), Some(files)) = (installed("server-everything"), installed("server-filesystem")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let which = folder.path().join("which");
    fs::write(&which, format!("{} {}", files.display(), folder.path().display())).unwrap();
    let server = shell("echo $$ > $1/pid; exec node $(cat $1/which)", &files, folder.path());
    let read = tool(&server, "read_file").await;
    fs::write(&which, everything.display().to_string()).unwrap();
    let pid = pid(&folder.path().join("pid")).await;
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let context = ToolContext::new("call");
    // The first call may notice that the server crashed.
    let mut failure = read.implementation.call(json!({"path": "x"}), &context).await.unwrap_err();
    if failure.message().contains("lost the connection") {
        failure = read.implementation.call(json!({"path": "x"}), &context).await.unwrap_err();
    }
    assert_eq!(failure.message(), "the MCP server `demo` no longer has the tool `read_file`");
    assert!(failure.detail().unwrap().contains("echo, "), "{failure:?}");
}
