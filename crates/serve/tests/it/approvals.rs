//! Approvals: they wait in the store, and nothing is approved by itself.

use crate::lab::{Lab, until};
use serde_json::{Value as Json, json};
use std::time::Duration;

async fn pending(lab: &Lab) -> Json {
    lab.get("/api/approvals").await.json()["approvals"].clone()
}

#[tokio::test]
async fn a_call_waits_for_its_approval() {
    let mut lab = Lab::new().await;
    let request = json!({"model": "clerk", "messages": [{"role": "user", "content": "Pay"}]});
    let body = lab.post("/v1/chat/completions", &request).await.json();
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let text = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(text, r#"(waiting for approval of `pay` with {"euros":5})"#);
    assert_eq!(body["patter"]["status"], "waiting");
    lab.restart().await;
    assert_eq!(lab.counts(), (0, 0));
    let call = pending(&lab).await[0].clone();
    assert_eq!((&call["tool"], &call["arguments"]), (&json!("pay"), &json!({"euros": 5})));
    let session = call["session"].as_str().unwrap();
    let path = format!("/api/sessions/{session}/answers");
    let listed = lab.get("/api/sessions?state=waiting").await.json();
    assert_eq!(listed["sessions"][0]["id"], session);

    for (answer, expected) in [
        (json!({"call_id": call["call_id"], "decision": "approve"}), "400 is missing: an approval is about"),
        (
            json!({"call_id": call["call_id"], "decision": "approve", "hash": "0"}),
            "409 the answer is about another call",
        ),
        (json!({"call_id": "other", "decision": "approve", "hash": call["hash"]}), "409 no call `other` waits"),
        (json!({"call_id": call["call_id"], "decision": "maybe"}), "400 must be `approve`, `refuse` or `result`"),
        (json!({"call_id": call["call_id"], "decision": "result", "result": "paid"}), "409 the call `"),
    ] {
        let response = lab.post(&path, &answer).await;
        assert!(response.error().starts_with(expected), "{answer}: {response:?}");
    }
    assert_eq!(lab.counts(), (0, 0));
    let approve = json!({"call_id": call["call_id"], "decision": "approve", "hash": call["hash"]});
    let response = lab.post(&format!("{path}?wait=true"), &approve).await.json();
    assert_eq!((&response["status"], &response["text"]), (&json!("answered"), &json!("Done.")));
    assert_eq!(lab.counts(), (1, 0));
    assert_eq!(lab.post(&path, &approve).await.status, 409);
    assert_eq!(lab.counts(), (1, 0));
}

#[tokio::test]
async fn refused_and_cancelled_calls_are_not_made() {
    let lab = Lab::new().await;
    for end in ["refuse", "cancel"] {
        let start = json!({"agent": "clerk", "message": "Pay"});
        let started = lab.post("/api/sessions?wait=true", &start).await.json();
        assert_eq!(started["status"], "waiting");
        let session = started["session"].as_str().unwrap();
        let busy = lab.post(&format!("/api/sessions/{session}/messages"), &json!({"message": "Now?"})).await;
        assert_eq!((busy.status, busy.header("x-should-retry")), (409, "false"), "{busy:?}");
        if end == "cancel" {
            assert_eq!(lab.post(&format!("/api/sessions/{session}/cancel"), &json!({})).await.status, 200);
        } else {
            let call = &started["waiting"][0];
            let refuse = json!({"call_id": call["call_id"], "decision": "refuse", "reason": "too much"});
            let path = format!("/api/sessions/{session}/answers?wait=true");
            assert_eq!(lab.post(&path, &refuse).await.json()["text"], "Done.");
        }
        assert_eq!(pending(&lab).await, json!([]));
    }
    assert_eq!(lab.counts(), (0, 0));
}

#[tokio::test]
async fn approvals_expire() {
    let lab = Lab::with(|settings| {
        settings.approval_expiry = Duration::from_millis(1);
        settings.limits.expiry_interval = Duration::from_millis(50);
    })
    .await;
    let started = lab.post("/api/sessions?wait=true", &json!({"agent": "clerk", "message": "Pay"})).await.json();
    let path = format!("/api/sessions/{}", started["session"].as_str().unwrap());
    until(async || lab.get(&path).await.json()["state"] == "idle").await;
    let session = lab.get(&path).await.json();
    assert_eq!(session["messages"][2]["outcome"]["message"], "nobody approved the call in time");
    assert_eq!(lab.counts(), (0, 0));
}
