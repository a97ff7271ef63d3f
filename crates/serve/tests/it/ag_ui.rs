//! AG-UI: the client for web pages, unmodified, and what it never sends.

use crate::lab::{Lab, Response};
use crate::npm;
use crate::sdk::{self, run_script};
use serde_json::{Value as Json, json};
use std::sync::atomic::Ordering;
use tokio::process::Command;

const PATH: &str = "/agents/clerk/ag-ui";

#[tokio::test]
async fn pages_run_agents() {
    let Some(packages) = npm::installed("ag-ui") else { return };
    let lab = sdk::lab().await;
    let mut command = Command::new("node");
    command.arg(sdk::tests().join("ag-ui").join("runs.mjs"));
    command.arg(format!("http://{}", lab.address)).arg(sdk::TOKEN).arg(packages);
    run_script(command, "runs").await;
    // One call was refused.
    assert_eq!(lab.payments.load(Ordering::SeqCst), 3);
}

fn request(thread: &str, more: Json) -> Json {
    let mut request =
        json!({"threadId": thread, "runId": "r1", "messages": [{"id": "1", "role": "user", "content": "Pay"}]});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

/// Returns the error of a response, with the part of the request that it is about.
fn error(response: &Response) -> String {
    let error = &response.json()["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    format!("{} {}: {}", response.status, text("param"), text("message"))
}

#[tokio::test]
async fn what_is_not_clear_approves_nothing() {
    let lab = Lab::new().await;
    let waiting = lab.post(PATH, &request("t", json!({}))).await;
    let last: Json = serde_json::from_str(waiting.data().last().unwrap()).unwrap();
    assert_eq!(last["outcome"]["type"], "interrupt", "{last}");
    let id = &last["outcome"]["interrupts"][0]["id"];
    for (payload, message) in [
        (json!({"payload": "yes"}), "400 resume[0].payload: is not an object"),
        (json!({"payload": {"approved": "yes"}}), "400 resume[0].payload.approved: is not true or false"),
        (json!({"payload": {}}), r#"400 resume[0].payload: must be {"approved": true} or {"approved": false}"#),
        (json!({}), r#"400 resume[0].payload: must be {"approved": true} or {"approved": false}"#),
        (json!({"status": "fine"}), "400 resume[0].status: must be `resolved` or `cancelled`"),
    ] {
        let mut entry = json!({"interruptId": id, "status": "resolved"});
        entry.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        let response = lab.post(PATH, &request("t", json!({"runId": "r2", "resume": [entry]}))).await;
        assert_eq!(error(&response), message);
    }
    let elsewhere = json!({"interruptId": id, "status": "resolved", "payload": {"approved": true}});
    let response = lab.post(PATH, &request("u", json!({"runId": "r2", "resume": [elsewhere]}))).await;
    assert_eq!(error(&response), "400 threadId: there is no session `u`");
    let here = json!({"interruptId": id, "status": "resolved", "payload": {"approved": true}});
    let response = lab.post("/agents/greeter/ag-ui", &request("t", json!({"runId": "r3", "resume": [here]}))).await;
    assert_eq!(error(&response), "400 threadId: the run that waits is one of `clerk`");
    assert_eq!(lab.payments.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_same_request_is_the_same_run() {
    let lab = Lab::new().await;
    let request = json!({"threadId": "t", "runId": "r1", "messages": [{"id": "1", "role": "user", "content": "Hi"}]});
    let first = lab.post("/agents/greeter/ag-ui", &request).await;
    let second = lab.post("/agents/greeter/ag-ui", &request).await;
    assert_eq!(first.data().first(), second.data().first());
    assert_eq!(first.data().last(), second.data().last());
    assert_eq!(lab.looks.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn wrong_requests_are_explained() {
    let lab = Lab::new().await;
    for (body, message) in [
        (json!({"threadId": "t", "runId": "r"}), "400 messages: is missing"),
        (json!({"threadId": "t", "messages": [{"role": "user", "content": "Hi"}]}), "400 runId: is missing"),
        (
            json!({"threadId": "a b", "runId": "r", "messages": [{"role": "user", "content": "Hi"}]}),
            "400 threadId: `a b` is not",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": [{"type": "audio"}]}]}),
            "400 messages[0].content[0].type: content of type `audio` is not supported; send text, images or documents",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": [{"role": "tool", "toolCallId": "c", "content": "x"}]}),
            "400 messages[0].toolCallId: there is no such call",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": [{"role": "boss", "content": "x"}]}),
            "400 messages[0].role: unknown role `boss`",
        ),
    ] {
        let response = lab.post(PATH, &body).await;
        assert!(error(&response).starts_with(message), "{}", error(&response));
    }
    let request = request("v", json!({"state": {"a": 1}, "forwardedProps": {}}));
    assert_eq!(lab.post(PATH, &request).await.header("x-patter-ignored"), "state");
}
