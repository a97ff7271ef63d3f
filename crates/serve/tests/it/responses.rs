//! Responses: their state, their events, approvals and what is in the background.

use crate::lab::{Lab, until};
use crate::open_responses::{check, check_stream};
use patter_serve::{Scope, Token, TokenHash};
use serde_json::{Value as Json, json};

const RETRY: (&str, &str) = ("X-Stainless-Retry-Count", "1");

async fn create(lab: &Lab, request: Json) -> Json {
    let response = lab.post("/v1/responses", &request).await;
    assert_eq!(response.status, 200, "{response:?}");
    let response = response.json();
    check(&response);
    response
}

async fn read(lab: &Lab, id: &Json) -> Json {
    let response = lab.get(&format!("/v1/responses/{}", id.as_str().unwrap())).await;
    assert_eq!(response.status, 200, "{response:?}");
    let response = response.json();
    check(&response);
    response
}

fn types(response: &Json) -> Vec<&str> {
    response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

fn text(response: &Json) -> &str {
    let items = response["output"].as_array().unwrap();
    items.iter().rfind(|item| item["type"] == "message").unwrap()["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn calls_of_the_agent_are_visible() {
    let lab = Lab::new().await;
    let response = create(&lab, json!({"model": "greeter", "input": "Hi", "metadata": {"a": "b"}})).await;
    assert_eq!(types(&response), ["message", "function_call", "function_call_output", "message"]);
    let output = &response["output"];
    assert_eq!(output[0]["content"][0]["text"], "Let me look.");
    assert_eq!((&output[1]["name"], &output[2]["output"]), (&json!("look"), &json!("seen")));
    assert_eq!(output[1]["call_id"], output[2]["call_id"]);
    assert_eq!((&response["usage"]["total_tokens"], &response["metadata"]["a"]), (&json!(26), &json!("b")));
    let stored = read(&lab, &response["id"]).await;
    assert_eq!(stored["output"], response["output"]);
    assert_eq!(stored["usage"], response["usage"]);
}

#[tokio::test]
async fn streams_are_in_order_and_can_be_continued_anywhere() {
    let mut lab = Lab::new().await;
    let request = json!({"model": "greeter", "input": "Hi", "stream": true});
    let events = check_stream(&lab.post("/v1/responses", &request).await);
    let mut names: Vec<_> =
        events.iter().map(|event| event["type"].as_str().unwrap().replace("response.", "")).collect();
    names.dedup();
    let message = [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ];
    let call =
        ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"];
    let start = ["created", "in_progress"];
    let result = ["output_item.added", "output_item.done"];
    let expected = [&start[..], &message, &call, &result, &message, &["completed"]].concat();
    assert_eq!(names, expected);
    let id = events[0]["response"]["id"].as_str().unwrap();
    lab.restart().await;
    for after in [0, 1, 4, 10, 16, 17, 30] {
        let path = format!("/v1/responses/{id}?stream=true&starting_after={after}");
        let rest = check_stream(&lab.get(&path).await);
        // A text is not in the same pieces, and may be continued in its middle; everything else is the same.
        let is_later = |event: &&Json| event["sequence_number"].as_u64().unwrap() > after;
        let is_whole = |event: &&Json| event["type"] != "response.output_text.delta";
        let expected: Vec<_> = events.iter().filter(is_later).filter(is_whole).collect();
        let rest: Vec<_> = rest.iter().filter(is_whole).collect();
        assert_eq!(rest.len(), expected.len(), "after {after}");
        for (event, expected) in rest.iter().zip(expected) {
            assert_eq!(
                (&event["sequence_number"], &event["type"], &event["item"]),
                (&expected["sequence_number"], &expected["type"], &expected["item"])
            );
        }
    }
    let middle = check_stream(&lab.get(&format!("/v1/responses/{id}?stream=true&starting_after=6")).await);
    assert_eq!(middle[0]["delta"], " me look.");
}

#[tokio::test]
async fn responses_continue_each_other() {
    let lab = Lab::new().await;
    let first = create(&lab, json!({"model": "greeter", "input": "Hi"})).await;
    let next = json!({"model": "greeter", "input": "Again", "previous_response_id": first["id"]});
    let second = create(&lab, next.clone()).await;
    assert_eq!((text(&second), &second["previous_response_id"]), ("Hello again!", &first["id"]));
    assert_eq!(second["conversation"], first["conversation"]);
    // A response that was continued can be continued in another way.
    let third = create(&lab, next).await;
    assert_eq!(text(&third), "Hello again!");
    assert_ne!(third["conversation"], first["conversation"]);
    // The output of a response is an input.
    let mut input = vec![json!({"role": "user", "content": "Hi"})];
    input.extend(first["output"].as_array().unwrap().clone());
    input.push(json!({"role": "user", "content": "Again"}));
    let request = json!({"model": "greeter", "input": input, "store": false});
    let fourth = create(&lab, request).await;
    assert_eq!(
        (text(&fourth), &fourth["store"], &fourth["conversation"]),
        ("Hello again!", &json!(false), &Json::Null)
    );
    assert_eq!(lab.get(&format!("/v1/responses/{}", fourth["id"].as_str().unwrap())).await.status, 404);
    // Without storing what follows.
    let request = json!({"model": "greeter", "input": "X", "previous_response_id": second["id"], "store": false});
    assert_eq!(lab.post("/v1/responses", &request).await.status, 502, "the script has ended");
    // By name.
    for (input, answer) in [("Hi", "Hello!"), ("Again", "Hello again!")] {
        let request = json!({"model": "greeter", "input": input, "conversation": {"id": "monday"}});
        assert_eq!(text(&create(&lab, request).await), answer);
    }
    assert_eq!(lab.get("/v1/responses/resp_monday_2").await.status, 200);
}

#[tokio::test]
async fn approvals_are_items() {
    let mut lab = Lab::new().await;
    let ask = json!({"model": "clerk", "input": "Pay"});
    let waiting = create(&lab, ask.clone()).await;
    assert_eq!((types(&waiting), &waiting["status"]), (vec!["mcp_approval_request"], &json!("completed")));
    let item = &waiting["output"][0];
    assert_eq!((&item["name"], &item["arguments"]), (&json!("pay"), &json!(r#"{"euros":5}"#)));
    lab.restart().await;
    assert_eq!(read(&lab, &waiting["id"]).await["output"], waiting["output"]);
    let decide = |approve: bool, id: &Json| {
        let answer = json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve});
        json!({"model": "clerk", "input": [answer], "previous_response_id": waiting["id"]})
    };
    for (request, expected) in [
        (
            json!({"model": "clerk", "input": "Now?", "previous_response_id": waiting["id"]}),
            "waits for answers: `mcpr_",
        ),
        (decide(true, &json!("mcpr_other_1")), "the answers are for another conversation"),
        (decide(true, &json!(item["id"].as_str().unwrap().to_owned() + "0")), "no call waits for the answer"),
    ] {
        let refused = lab.post("/v1/responses", &request).await;
        assert!(refused.status == 400 && refused.error().contains(expected), "{refused:?}");
    }
    assert_eq!(lab.counts(), (0, 0));
    let done = create(&lab, decide(true, &item["id"])).await;
    assert_eq!(types(&done), ["function_call", "function_call_output", "message"]);
    assert_eq!((text(&done), &done["previous_response_id"]), ("Done.", &waiting["id"]));
    assert_eq!(lab.counts(), (1, 0));
    // The answer counts once, and both responses stay what they were.
    let again = lab.post("/v1/responses", &decide(true, &item["id"])).await;
    assert_eq!(again.status, 400, "{again:?}");
    let retried = lab.post_with("/v1/responses", &[RETRY], &decide(true, &item["id"])).await.json();
    assert_eq!(retried["output"], done["output"]);
    lab.restart().await;
    let retried = lab.post_with("/v1/responses", &[RETRY], &decide(true, &item["id"])).await.json();
    assert_eq!(retried["output"], done["output"]);
    assert_eq!(read(&lab, &waiting["id"]).await["output"], waiting["output"]);
    assert_eq!(read(&lab, &done["id"]).await["output"], done["output"]);
    assert_eq!(lab.counts(), (1, 0));
    // Refused.
    let waiting = create(&lab, ask).await;
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": waiting["output"][0]["id"],
        "approve": false, "reason": "too much"});
    let done = create(&lab, json!({"model": "clerk", "input": [answer]})).await;
    assert_eq!((text(&done), lab.counts()), ("Done.", (1, 0)));
    // Nobody could approve it.
    let unsaved = create(&lab, json!({"model": "clerk", "input": "Pay", "store": false})).await;
    assert_eq!((&unsaved["status"], types(&unsaved)), (&json!("failed"), vec![]));
}

#[tokio::test]
async fn approvals_need_their_scope() {
    let lab = Lab::with(|settings| {
        let mut token = Token::new("runner", TokenHash::of("runner-token-0123456789"));
        token.scopes = [Scope::Run, Scope::Read].into_iter().collect();
        settings.tokens.push(token);
    })
    .await;
    let token = [("Authorization", "Bearer runner-token-0123456789")];
    let waiting = lab.post_with("/v1/responses", &token, &json!({"model": "clerk", "input": "Pay"})).await.json();
    let id = &waiting["output"][0]["id"];
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": true});
    let request = json!({"model": "clerk", "input": [answer]});
    let refused = lab.post_with("/v1/responses", &token, &request).await;
    assert_eq!(refused.error(), "403 the token does not permit this: it needs the scope `approve`");
    assert_eq!(lab.counts(), (0, 0));
}

#[tokio::test]
async fn clients_bring_their_own_tools() {
    let mut lab = Lab::new().await;
    let tool = json!({"type": "function", "name": "pick__color", "parameters": {"type": "object"}});
    let request = json!({"model": "painter", "input": "Paint the door", "instructions": "The door is old.",
        "tools": [tool]});
    let waiting = create(&lab, request).await;
    assert_eq!(types(&waiting), ["function_call", "function_call_output", "function_call"]);
    let call = &waiting["output"][2];
    let plain = json!({"model": "painter", "input": "And?", "previous_response_id": waiting["id"]});
    assert!(lab.post("/v1/responses", &plain).await.error().contains("waits for answers"));
    lab.restart().await;
    let result = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "red"});
    let request = json!({"model": "painter", "input": [result], "previous_response_id": waiting["id"]});
    let done = create(&lab, request).await;
    assert_eq!(text(&done), "Painted.");
    assert_eq!(lab.counts(), (0, 1));
    let unsaved = json!({"model": "painter", "input": "Paint", "tools": [tool], "store": false});
    let refused = lab.post("/v1/responses", &unsaved).await;
    assert_eq!(refused.error(), "400 a run can wait for results only if the response is stored");
}

#[tokio::test]
async fn responses_in_the_background() {
    let lab = Lab::new().await;
    let request = json!({"model": "slow", "input": "Go", "background": true});
    let response = create(&lab, request.clone()).await;
    assert_eq!((&response["status"], &response["background"]), (&json!("in_progress"), &json!(true)));
    assert_eq!(read(&lab, &response["id"]).await["status"], "in_progress");
    // A stream of it, from the start.
    let path = format!("/v1/responses/{}?stream=true", response["id"].as_str().unwrap());
    let events = check_stream(&lab.get(&path).await);
    assert_eq!(text(&events.last().unwrap()["response"]), "Late.");
    until(async || read(&lab, &response["id"]).await["status"] == "completed").await;
    assert_eq!(text(&read(&lab, &response["id"]).await), "Late.");
    // One that is cancelled.
    let response = create(&lab, request).await;
    until(async || lab.counts().0 == 2).await;
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let cancelled = lab.post(&format!("{path}/cancel"), &json!({})).await.json();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert_eq!(lab.post(&format!("{path}/cancel"), &json!({})).await.json()["status"], "cancelled");
    assert_eq!(read(&lab, &response["id"]).await["status"], "cancelled");
    // One that is deleted.
    let deleted = lab.request("DELETE", &path, &[], "").await.json();
    assert_eq!(deleted, json!({"id": response["id"], "object": "response", "deleted": true}));
    assert_eq!(lab.get(&path).await.status, 404);
    let unsaved = json!({"model": "slow", "input": "Go", "background": true, "store": false});
    assert_eq!(lab.post("/v1/responses", &unsaved).await.status, 400);
}

#[tokio::test]
async fn a_stream_is_continued_after_an_interruption() {
    let mut lab = Lab::with(|settings| settings.limits.drain_timeout = std::time::Duration::ZERO).await;
    let request = json!({"model": "slow", "input": "Go", "background": true});
    let response = create(&lab, request.clone()).await;
    until(async || lab.counts().0 == 1).await;
    lab.restart().await;
    let interrupted = read(&lab, &response["id"]).await;
    assert_eq!(interrupted["incomplete_details"], json!({"reason": "interrupted"}));
    let path = format!("/v1/responses/{}?stream=true&starting_after=5", response["id"].as_str().unwrap());
    assert_eq!(lab.get(&path).await.status, 409);
    let again = lab.post_with("/v1/responses", &[RETRY], &request).await.json();
    assert_eq!(again["id"], response["id"]);
    let events = check_stream(&lab.get(&path).await);
    assert_eq!(events[0]["type"], "response.output_item.added", "{:?}", events[0]);
    assert_eq!(events[0]["item"]["type"], "function_call_output");
    assert_eq!(text(&events.last().unwrap()["response"]), "Late.");
    assert_eq!(lab.counts().0, 1, "the call that was made is not repeated");
}

#[tokio::test]
async fn retries_of_a_continued_response_survive_a_restart() {
    let mut lab = Lab::new().await;
    let first = create(&lab, json!({"model": "slow", "input": "Go"})).await;
    let next = json!({"model": "slow", "input": "More", "previous_response_id": first["id"]});
    let second = create(&lab, next.clone()).await;
    lab.restart().await;
    let retried = lab.post_with("/v1/responses", &[RETRY], &next).await.json();
    assert_eq!((&retried["id"], &retried["output"]), (&second["id"], &second["output"]));
}

#[tokio::test]
async fn structured_answers_have_a_format() {
    let lab = Lab::new().await;
    let response = create(&lab, json!({"model": "counter", "input": "Count"})).await;
    assert_eq!((text(&response), types(&response)), (r#"{"count": 3}"#, vec!["message"]));
    assert_eq!(response["text"]["format"]["type"], "json_schema");
    let schema = json!({"type": "object", "properties": {"count": {"type": "string"}}, "required": ["count"]});
    let format = json!({"type": "json_schema", "name": "count", "schema": schema});
    let request = json!({"model": "counter", "input": "Count", "text": {"format": format}});
    let refused = lab.post("/v1/responses", &request).await;
    assert!(refused.error().starts_with("400 the schema does not accept"), "{refused:?}");
}

#[tokio::test]
async fn errors_have_types() {
    let lab = Lab::new().await;
    for (request, status, kind, param) in [
        (json!({"input": "Hi"}), 400, "invalid_request", json!("model")),
        (json!({"model": "nobody", "input": "Hi"}), 404, "not_found", json!("model")),
        (json!({"model": "greeter"}), 400, "invalid_request", json!("input")),
        (json!({"model": "greeter", "input": []}), 400, "invalid_request", json!("input")),
        (json!({"model": "greeter", "input": [{"type": "x"}]}), 400, "invalid_request", json!("input[0].type")),
        (
            json!({"model": "greeter", "input": "x", "tool_choice": "required"}),
            400,
            "invalid_request",
            json!("tool_choice"),
        ),
        (
            json!({"model": "greeter", "input": "x", "previous_response_id": "resp_none_1"}),
            404,
            "not_found",
            json!("previous_response_id"),
        ),
        (json!({"model": "broken", "input": "Hi"}), 502, "model_error", Json::Null),
    ] {
        let response = lab.post("/v1/responses", &request).await;
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["type"], &error["param"]), (status, &json!(kind), &param), "{request}");
    }
    assert_eq!(lab.get("/v1/responses/resp_none_1").await.error(), "404 there is no response `resp_none_1`");
    let request = json!({"model": "broken", "input": "Hi", "stream": true});
    let events = check_stream(&lab.post("/v1/responses", &request).await);
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert_eq!(last["response"]["error"]["code"], "model_error");
}
