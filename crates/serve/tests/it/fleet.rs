//! Several servers with one store.

use crate::lab::{Lab, until};
use patter::store::{self, NewWork, SessionId, StoreLocation};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Two servers that know each other.
async fn two(change: impl FnOnce(&mut patter_serve::ServeSettings)) -> (Lab, Lab) {
    let first = Lab::with(change).await;
    let second = first.beside().await;
    until(async || fleet(&first).await["workers"].as_array().unwrap().len() == 2).await;
    (first, second)
}

async fn fleet(lab: &Lab) -> Json {
    lab.get("/api/fleet").await.json()
}

async fn enqueue(lab: &Lab, agent: &str, session: &str) -> Json {
    let body = json!({"agent": agent, "message": "Hi", "session": session});
    let response = lab.post("/api/sessions?background=true", &body).await;
    assert_eq!(response.status, 202, "{response:?}");
    response.json()
}

async fn session(lab: &Lab, id: &str) -> Json {
    lab.get(&format!("/api/sessions/{id}")).await.json()
}

async fn is_done(lab: &Lab, id: &str) -> bool {
    let session = session(lab, id).await;
    session["state"] == "idle" && session["work"].is_null()
}

fn last_text(session: &Json) -> &str {
    session["messages"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap()
}

#[tokio::test]
async fn background_turns_run_on_any_server() {
    let (first, second) = two(|_| {}).await;
    assert_eq!(enqueue(&first, "greeter", "one").await, json!({"session": "one", "status": "queued"}));
    until(async || is_done(&second, "one").await).await;
    assert_eq!(last_text(&session(&first, "one").await), "Hello!");
    let more = second.post("/api/sessions/one/messages?background=true", &json!({"message": "And?"})).await;
    assert_eq!(more.json()["status"], "queued");
    until(async || last_text(&session(&first, "one").await) == "Hello again!").await;
    // The same request is the same session, whether it is done or not.
    let body = json!({"agent": "greeter", "message": "Hi"});
    let key = [("Idempotency-Key", "k1")];
    let path = "/api/sessions?background=true";
    let id = first.post_with(path, &key, &body).await.json()["session"].clone();
    assert_eq!(second.post_with(path, &key, &body).await.json()["session"], id);
    until(async || is_done(&second, id.as_str().unwrap()).await).await;
    assert_eq!(second.post_with(path, &key, &body).await.json()["session"], id);
    let metrics = first.get("/metrics").await.body;
    assert!(
        metrics.contains("patter_workers 2\n") && metrics.contains("patter_work{state=\"queued\"} 0\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_queued_session_can_be_seen_and_cancelled() {
    let (first, second) = two(|settings| {
        settings.turn_limits.agents.insert("slow".to_owned(), 1);
    })
    .await;
    for name in ["one", "two", "three"] {
        enqueue(&first, "slow", name).await;
    }
    let queued = async |name: &str| session(&second, name).await["state"] == "queued";
    until(async || session(&second, "one").await["state"] == "running").await;
    assert!(queued("two").await && queued("three").await);
    let cancelled = first.post("/api/sessions/three/cancel", &json!({})).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    assert_eq!(first.get("/api/sessions/three").await.error(), "404 there is no session `three`");
    assert_eq!(fleet(&first).await["queue"]["running"], 1);
    // Whoever asks for events of a session that waits for a server gets them once it starts.
    let events = first.request("GET", "/api/sessions/two/events", &[("Connection", "close")], "");
    let events = tokio::time::timeout(Duration::from_secs(8), events);
    let ended = until(async || is_done(&first, "two").await);
    let (streamed, ()) = tokio::join!(events, ended);
    assert!(streamed.is_err(), "a stream of events goes on");
    assert_eq!(first.counts().0, 2);
}

#[tokio::test]
async fn a_turn_is_cancelled_wherever_it_runs() {
    let (first, second) = two(|_| {}).await;
    let started = first.post("/api/sessions", &json!({"agent": "slow", "message": "Hi", "session": "one"})).await;
    assert_eq!(started.status, 202);
    until(async || first.counts().0 == 1).await;
    let response = second.post("/api/sessions/one/cancel", &json!({})).await;
    assert_eq!(response.status, 200, "{response:?}");
    until(async || is_done(&second, "one").await).await;
    let turns = session(&second, "one").await["turns"].clone();
    assert_eq!(turns[0]["outcome"], "cancelled", "{turns}");
}

#[tokio::test]
async fn a_server_that_stops_hands_over_at_the_next_step() {
    let (mut first, second) = two(|_| {}).await;
    let started = first.post("/api/sessions", &json!({"agent": "slow", "message": "Hi", "session": "one"})).await;
    assert_eq!(started.status, 202);
    until(async || first.counts().0 == 1).await;
    first.shut_down().await;
    until(async || is_done(&second, "one").await).await;
    assert_eq!(last_text(&session(&second, "one").await), "Late.");
    // Nothing was repeated, and nothing failed.
    assert_eq!(second.counts().0, 1);
    assert_eq!(fleet(&second).await["workers"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn calls_that_nobody_approves_in_time_are_refused() {
    let (first, second) = two(|settings| settings.approval_expiry = Duration::from_millis(600)).await;
    enqueue(&first, "clerk", "one").await;
    until(async || session(&second, "one").await["work"][0]["state"] == "waiting").await;
    until(async || is_done(&second, "one").await).await;
    assert_eq!((last_text(&session(&first, "one").await), first.counts().0), ("Done.", 0));
    // An answer reaches a run on any server.
    enqueue(&first, "clerk", "two").await;
    until(async || session(&second, "two").await["state"] == "waiting").await;
    let call = session(&second, "two").await["waiting"][0].clone();
    let answer = json!({"call_id": call["call_id"], "hash": call["hash"], "decision": "approve"});
    let answered = second.post("/api/sessions/two/answers?wait=true", &answer).await.json();
    assert_eq!((&answered["status"], first.counts().0), (&json!("answered"), 1), "{answered}");
    until(async || is_done(&first, "two").await).await;
}

#[tokio::test]
async fn work_that_cannot_be_done_is_parked() {
    let lab = Lab::new().await;
    let store = store::open(&StoreLocation::Sqlite(lab.folder.path().join("s.db"))).await.unwrap();
    let work = NewWork {
        key: "odd".to_owned(),
        session: SessionId::parse("one").unwrap(),
        agent: "greeter".to_owned(),
        tenant: String::new(),
        task: "{}".to_owned(),
        worker: None,
        due_ms: None,
    };
    let id = store.queue().unwrap().add(work).await.unwrap().unwrap();
    let parked = async || {
        let fleet = fleet(&lab).await;
        fleet["work"][0]["state"] == "parked"
            && fleet["work"][0]["reason"].as_str().unwrap().starts_with("it cannot be read: ")
    };
    until(parked).await;
    assert_eq!(lab.post(&format!("/api/fleet/work/{id}/retry"), &json!({})).await.status, 204);
    until(parked).await;
    assert_eq!(lab.request("DELETE", &format!("/api/fleet/work/{id}"), &[], "").await.status, 204);
    let gone = lab.request("DELETE", &format!("/api/fleet/work/{id}"), &[], "").await;
    assert_eq!(gone.error(), format!("404 there is no work {id} that waits for a worker or is parked"));
    assert_eq!(fleet(&lab).await["work"], json!([]));
}
