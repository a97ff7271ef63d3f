//! The server stops: turns end or are suspended, and none is lost.

use crate::lab::{Lab, until};
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn turns_end_before_the_server_does() {
    let mut lab = Lab::new().await;
    let request = json!({"model": "slow", "messages": [{"role": "user", "content": "Go"}]});
    let mut stream = lab.send("/v1/chat/completions", &[], &request).await;
    until(async || lab.counts().0 == 1).await;
    lab.begin_shut_down();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    assert!(String::from_utf8_lossy(&response).contains("Late."));
    lab.shut_down().await;
    assert!(tokio::net::TcpStream::connect(lab.address).await.is_err());
}

#[tokio::test]
async fn turns_that_take_too_long_are_suspended() {
    let mut lab = Lab::with(|settings| settings.limits.drain_timeout = Duration::from_millis(50)).await;
    let start = json!({"agent": "slow", "message": "Go", "session": "one"});
    assert_eq!(lab.post("/api/sessions", &start).await.status, 202);
    until(async || lab.counts().0 == 1).await;
    lab.restart().await;
    assert_eq!(lab.get("/api/sessions/one").await.json()["state"], "running");
    let resumed = lab.post("/api/sessions/one/resume?wait=true", &json!({})).await.json();
    assert_eq!(resumed["text"], "Late.", "{resumed}");
    assert_eq!(lab.counts().0, 1, "the call that was made is not repeated");
}

#[tokio::test]
async fn health_says_whether_the_server_works() {
    let lab = Lab::new().await;
    assert_eq!(lab.get("/healthz").await.json(), json!({"status": "ok"}));
    assert_eq!(lab.get("/readyz").await.json(), json!({"status": "ready"}));
    assert!(lab.get("/metrics").await.body.contains("patter_requests_total 3"));
}
