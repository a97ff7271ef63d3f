//! Sessions over the native API.

use crate::lab::{Lab, parse, until};
use serde_json::{Value as Json, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn sessions_are_listed_read_forked_and_deleted() {
    let lab = Lab::new().await;
    let start = json!({"agent": "greeter", "message": "Hi", "session": "one"});
    let turn = lab.post("/api/sessions?wait=true", &start).await.json();
    assert_eq!((&turn["status"], &turn["text"]), (&json!("answered"), &json!("Hello!")), "{turn}");
    let taken = lab.post("/api/sessions?wait=true", &start).await;
    assert_eq!(taken.error(), "409 session `one` already exists");
    let session = lab.get("/api/sessions/one").await.json();
    assert_eq!(session["messages"].as_array().unwrap().len(), 4);
    let fork = lab.post("/api/sessions/one/fork", &json!({"messages": 1, "session": "two"})).await;
    assert_eq!((fork.status, &fork.json()["forked_from"]), (201, &json!("one")));
    assert_eq!(lab.get("/api/sessions/two").await.json()["messages"].as_array().unwrap().len(), 1);
    let message = json!({"message": "And?"});
    assert_eq!(lab.post("/api/sessions/two/messages?wait=true", &message).await.json()["status"], "answered");
    let listed = lab.get("/api/sessions").await.json();
    let ids: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|session| session["id"].as_str()).collect();
    assert_eq!(ids, [Some("two"), Some("one")]);
    assert_eq!(lab.request("DELETE", "/api/sessions/two", &[], "").await.status, 204);
    assert_eq!(lab.get("/api/sessions/two").await.error(), "404 there is no session `two`");
    for (path, body, expected) in [
        ("/api/sessions", json!({"agent": "nobody", "message": "Hi"}), "404 there is no agent `nobody`"),
        ("/api/sessions", json!({"message": "Hi"}), "400 is missing"),
        ("/api/sessions/one/messages", json!({"mesage": "Hi"}), "400 unknown field; did you mean `message`?"),
        ("/api/sessions/one/resume", json!({}), "409 there is nothing to resume: the last run has ended"),
        ("/api/sessions/one/fork", json!({"messages": 99}), "400 the conversation has 4 messages"),
    ] {
        assert_eq!(lab.post(path, &body).await.error(), expected, "{path}");
    }
}

#[tokio::test]
async fn agents_are_described() {
    let lab = Lab::new().await;
    let agent = lab.get("/api/agents/clerk").await.json();
    assert_eq!(agent["tools"][0]["name"], "pay");
    assert_eq!(lab.get("/api/agents").await.json()["agents"].as_array().unwrap().len(), 8);
    assert_eq!(lab.get("/api/experiments").await.json(), json!({"experiments": []}));
    assert_eq!(lab.get("/api/experiments/none").await.error(), "404 there is no experiment `none`");
}

#[tokio::test]
async fn turns_stream_their_events() {
    let lab = Lab::new().await;
    let headers = [("Accept", "text/event-stream")];
    let response = lab.post_with("/api/sessions", &headers, &json!({"agent": "greeter", "message": "Hi"})).await;
    let names: Vec<_> = response.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names.last(), Some(&"end"));
    let first: Json = serde_json::from_str(response.data()[0]).unwrap();
    assert_eq!(first["event"], "started");
}

/// Reads events of a session until none arrives for a while.
async fn read_events(lab: &Lab, session: &str, after: Option<&str>, pause: Duration) -> Vec<(String, Json)> {
    let headers: Vec<_> = after.map(|id| ("Last-Event-ID", id)).into_iter().collect();
    let mut stream = TcpStream::connect(lab.address).await.unwrap();
    let head = lab.head("GET", &format!("/api/sessions/{session}/events"), &headers, "");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(Ok(count)) = tokio::time::timeout(pause, stream.read(&mut buffer)).await {
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
    let body = parse(&bytes).body;
    let event = |message: &str| {
        let id = message.lines().find_map(|line| line.strip_prefix("id: "))?.to_owned();
        let data = message.lines().find_map(|line| line.strip_prefix("data: "))?;
        Some((id, serde_json::from_str(data).unwrap()))
    };
    body.split("\n\n").filter_map(event).collect()
}

#[tokio::test]
async fn events_of_a_session_resume_after_the_last_one() {
    let lab = Lab::new().await;
    lab.post("/api/sessions?wait=true", &json!({"agent": "greeter", "message": "Hi", "session": "one"})).await;
    let pause = Duration::from_millis(300);
    let all = read_events(&lab, "one", None, pause).await;
    let kinds: Vec<_> = all.iter().map(|(_, event)| event["event"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("started", "finished"));
    for (index, (id, _)) in all.iter().enumerate().take(all.len() - 1) {
        assert_eq!(read_events(&lab, "one", Some(id), pause).await, all[index + 1..], "after {id}");
    }
    let wrong = lab.request("GET", "/api/sessions/one/events", &[("Last-Event-ID", "x")], "").await;
    assert_eq!(wrong.error(), "400 is not an event");
    // New events follow while the stream is open.
    let last = all.last().unwrap().0.clone();
    let following = read_events(&lab, "one", Some(&last), Duration::from_secs(3));
    let (following, _) = tokio::join!(following, async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        lab.post("/api/sessions/one/messages?wait=true", &json!({"message": "Again"})).await
    });
    assert!(following.iter().any(|(_, event)| event["event"] == "finished"), "{following:?}");
    until(async || lab.get("/metrics").await.body.contains("patter_turns_active 0")).await;
}
