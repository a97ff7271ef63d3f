//! Requests that are sent again: no tool runs twice.

use crate::lab::{Lab, until};
use serde_json::{Value as Json, json};

const RETRY: (&str, &str) = ("X-Stainless-Retry-Count", "1");

fn ask(text: &str) -> Json {
    json!({"model": "slow", "messages": [{"role": "user", "content": text}]})
}

fn text(response: &crate::lab::Response) -> String {
    response.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_retry_joins_the_turn_of_the_first_request() {
    let lab = Lab::new().await;
    let first = lab.send("/v1/chat/completions", &[], &ask("Go")).await;
    until(async || lab.counts().0 == 1).await;
    // The client gives up and asks again while the turn is under way.
    drop(first);
    let response = lab.post_with("/v1/chat/completions", &[RETRY], &ask("Go")).await;
    assert_eq!(text(&response), "Late.", "{response:?}");
    // And once more, after its end.
    let mut request = ask("Go");
    let response = lab.post_with("/v1/chat/completions", &[RETRY], &request).await;
    assert_eq!(text(&response), "Late.");
    assert_eq!(lab.counts().0, 1);
    // A different request starts a turn of its own, and so does the same request if it is not a retry.
    request["stream"] = json!(true);
    lab.post_with("/v1/chat/completions", &[RETRY], &request).await;
    lab.post("/v1/chat/completions", &ask("Go")).await;
    assert_eq!(lab.counts().0, 3);
}

#[tokio::test]
async fn a_retry_after_a_restart_continues_the_run() {
    let mut lab = Lab::with(|settings| settings.limits.drain_timeout = std::time::Duration::ZERO).await;
    let first = lab.send("/v1/chat/completions", &[], &ask("Go")).await;
    until(async || lab.counts().0 == 1).await;
    lab.restart().await;
    drop(first);
    let response = lab.post_with("/v1/chat/completions", &[RETRY], &ask("Go")).await;
    assert_eq!(text(&response), "Late.", "{response:?}");
    assert_eq!(lab.counts().0, 1, "the call that was made is not repeated");
    lab.restart().await;
    let response = lab.post_with("/v1/chat/completions", &[RETRY], &ask("Go")).await;
    assert_eq!(text(&response), "Late.", "a turn that ended is found too: {response:?}");
    assert_eq!(lab.counts().0, 1);
}

#[tokio::test]
async fn clients_may_choose_a_key() {
    let lab = Lab::new().await;
    let key = [("Idempotency-Key", "order-7")];
    for _ in 0..3 {
        assert_eq!(text(&lab.post_with("/v1/chat/completions", &key, &ask("Go")).await), "Late.");
    }
    assert_eq!(lab.counts().0, 1);
    let start = json!({"agent": "slow", "message": "Go"});
    let first = lab.post_with("/api/sessions", &key, &start).await;
    let second = lab.post_with("/api/sessions", &key, &start).await;
    assert_eq!((first.status, &first.body), (202, &second.body));
}

#[tokio::test]
async fn a_turn_without_a_client_is_cancelled_unless_it_should_go_on() {
    let lab = Lab::new().await;
    for (headers, end) in [(vec![], "cancelled"), (vec![("X-Patter-On-Disconnect", "continue")], "answer")] {
        let session = [("X-Patter-Session", end)];
        let headers: Vec<_> = headers.into_iter().chain(session).collect();
        let before = lab.counts().0;
        let first = lab.send("/v1/chat/completions", &headers, &ask("Go")).await;
        until(async || lab.counts().0 == before + 1).await;
        drop(first);
        let path = format!("/api/sessions/{end}");
        until(async || lab.get(&path).await.json()["state"] == "idle").await;
        let outcome = lab.get(&path).await.json()["turns"][0]["outcome"].to_string();
        assert!(outcome.contains(end), "{outcome}");
    }
}

#[tokio::test]
async fn a_busy_session_refuses_or_queues() {
    let lab = Lab::new().await;
    let session = [("X-Patter-Session", "busy")];
    let first = lab.send("/v1/chat/completions", &session, &ask("One")).await;
    until(async || lab.counts().0 == 1).await;
    let refused = lab.post_with("/v1/chat/completions", &session, &ask("Two")).await;
    assert_eq!((refused.status, refused.header("x-should-retry")), (409, "false"));
    assert_eq!(refused.header("retry-after"), "1");
    let queued = lab.post_with("/v1/chat/completions?when_busy=enqueue", &session, &ask("Two")).await;
    assert_eq!(text(&queued), "Later.", "{queued:?}");
    let wrong = lab.post_with("/v1/chat/completions?when_busy=never", &session, &ask("Two")).await;
    assert_eq!(wrong.error(), "400 must be `reject` or `enqueue`");
    drop(first);
}
