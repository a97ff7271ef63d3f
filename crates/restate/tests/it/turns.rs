//! Turns, approvals and cancellation.

use crate::shop::Shop;
use patter::session::Log;
use serde_json::json;

#[test]
fn a_turn_runs_to_its_end() {
    let Some(shop) = Shop::open(1, None, &[]) else { return };
    let answered = shop.call("a", "turn", Some(&json!({"agent": "clerk", "message": "a"})));
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(answered.body["status"], "answered");
    assert_eq!(answered.body["text"], "3 of 3 a");
    let order = shop.world.order("a");
    assert_eq!(order.results, [0, 2, 3], "the model was asked once for each reply");
    for tool in ["pay", "look", "ship"] {
        assert_eq!(order.calls(tool), 1, "{tool}");
        let key = order.keys[tool].first().unwrap();
        assert!(key.starts_with("a/1/") && key.ends_with(&format!("{tool}-a")), "{key}");
    }
    let read = shop.call("a", "read", Some(&json!({"after": 2})));
    assert_eq!(read.body["state"], "idle", "{read:?}");
    let entries = shop.stored("a").unwrap().entries;
    assert_eq!(read.body["next"], entries.len());
    assert_eq!(read.body["entries"].as_array().unwrap().len(), entries.len() - 2);

    // The session continues, and what is wrong with a request is reported.
    let again = shop.call("a", "turn", Some(&json!({"message": "b"})));
    assert_eq!(again.body["status"], "answered", "{again:?}");
    let log = Log::read(shop.stored("a").unwrap().entries).unwrap();
    assert_eq!(log.turns().len(), 2);
    for (session, handler, body, status, message) in [
        ("b", "turn", json!({"agent": "nobody", "message": "b"}), 400, "nobody"),
        ("b", "turn", json!({"agent": "clerk", "mesage": "b"}), 400, "did you mean `message`?"),
        ("b", "turn", json!({"agent": "clerk", "message": ""}), 400, "`message`: is empty"),
        ("B!", "turn", json!({"agent": "clerk", "message": "b"}), 400, "B!"),
        ("nobody", "read", json!({}), 404, "nobody"),
        ("a", "answer", json!({"call_id": "x", "decision": "refuse"}), 409, "no call `x` waits in the session `a`"),
    ] {
        let refused = shop.call(&session.replace('!', "%21"), handler, Some(&body));
        assert_eq!(refused.status, status, "{handler} {body}: {refused:?}");
        assert!(refused.body["message"].as_str().unwrap().contains(message), "{handler} {body}: {refused:?}");
    }
}

#[test]
fn a_call_waits_for_an_approval() {
    let Some(shop) = Shop::open(2, None, &[]) else { return };
    for (session, decision, text) in [("a", "approve", "3 of 3 a"), ("b", "refuse", "2 of 3 b")] {
        shop.send("careful", session);
        let log = shop.wait_for(session, Log::is_waiting);
        let waiting = shop.call(session, "read", Some(&json!({}))).body["waiting"].clone();
        assert_eq!(waiting[0]["tool"], "ship", "{waiting}");
        assert_eq!(shop.world.order(session).calls("ship"), 0);
        let call_id = &log.waiting_calls()[0].call.id;
        let wrong = json!({"call_id": call_id, "hash": "other", "decision": "approve"});
        assert_eq!(shop.call(session, "answer", Some(&wrong)).status, 409);
        let answer = json!({"call_id": call_id, "hash": waiting[0]["hash"], "decision": decision});
        let answered = shop.call(session, "answer", Some(&answer));
        assert_eq!(answered.status, 200, "{answered:?}");
        let log = shop.wait_for(session, |log| log.open_run().is_none());
        assert_eq!(log.last_run().unwrap().response().content, text);
        assert_eq!(shop.call(session, "answer", Some(&answer)).status, 409, "it is decided once");
    }
}

#[test]
fn a_workflow_calls_an_agent_and_asks_a_person() {
    let Some(shop) = Shop::open(2, None, &[]) else { return };
    shop.send("desk", "a");
    let log = shop.wait_for("a", Log::is_waiting);
    assert_eq!(shop.world.order("a").results, [0, 2, 3], "the steps of the called agent are taken one by one, too");
    let call = log.waiting_calls()[0].clone();
    assert!(call.call.expires_at.is_some());
    let answer = json!({"run": call.run, "call_id": call.call.id, "decision": "result", "result": "Yes, it is."});
    let answered = shop.call("a", "answer", Some(&answer));
    assert_eq!(answered.status, 200, "{answered:?}");
    let log = shop.wait_for("a", |log| log.open_run().is_none());
    assert_eq!(log.last_run().unwrap().response().content, "Yes, it is.");
    assert_eq!(shop.world.order("a").calls("pay"), 1);
}

#[test]
fn an_approval_expires() {
    let Some(shop) = Shop::open(1, None, &["--approval-expiry", "1s"]) else { return };
    let answered = shop.call("a", "turn", Some(&json!({"agent": "careful", "message": "a"})));
    assert_eq!(answered.body["text"], "2 of 3 a", "{answered:?}");
    assert_eq!(shop.world.order("a").calls("ship"), 0);
    let read = shop.call("a", "read", Some(&json!({})));
    assert!(read.body.to_string().contains("nobody approved the call in time"), "{read:?}");
}

#[test]
fn a_turn_is_cancelled_in_the_middle_of_a_step() {
    let Some(shop) = Shop::open(2, None, &[]) else { return };
    shop.world.set_silent(true);
    shop.send("clerk", "a");
    shop.world.wait("a", |order| order.results == [0]);
    // The model does not answer, so only the cancellation ends this.
    let cancelled = shop.call("a", "cancel", None);
    assert_eq!((cancelled.status, cancelled.body["status"].as_str()), (200, Some("cancelled")), "{cancelled:?}");
    shop.wait_for("a", |log| log.open_run().is_none());
    shop.world.set_silent(false);
    // So does it end a turn that waits, and the session continues after that.
    shop.send("careful", "b");
    shop.wait_for("b", Log::is_waiting);
    let cancelled = shop.call("b", "cancel", None);
    assert_eq!(cancelled.body["status"], "cancelled", "{cancelled:?}");
    assert_eq!(shop.world.order("b").calls("ship"), 0);
    let next = shop.call("b", "turn", Some(&json!({"agent": "clerk", "message": "c"})));
    assert_eq!(next.body["status"], "answered", "{next:?}");
}

#[test]
fn a_worker_that_stops_finishes_its_step() {
    let Some(mut shop) = Shop::open(1, None, &[]) else { return };
    shop.send("clerk", "a");
    shop.world.wait("a", |order| order.calls("pay") == 1);
    shop.workers[0].signal("-TERM");
    shop.replace_worker(0);
    let log = shop.wait_for("a", |log| log.open_run().is_none());
    assert_eq!(log.last_run().unwrap().response().content, "3 of 3 a", "no result is unknown");
    let order = shop.world.order("a");
    assert_eq!((order.calls("pay"), order.calls("look"), order.calls("ship")), (1, 1, 1));
}
