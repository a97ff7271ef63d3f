//! Chat completions.

use crate::lab::Lab;
use serde_json::{Value as Json, json};

fn ask(model: &str, text: &str) -> Json {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

#[tokio::test]
async fn agents_are_models() {
    let lab = Lab::new().await;
    let list = lab.get("/v1/models").await.json();
    let names: Vec<_> = list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["greeter", "slow", "clerk", "painter", "boss", "counter", "broken", "other"]);
    assert_eq!(lab.get("/v1/models/clerk").await.json()["owned_by"], "patter");
    let body = lab.post("/v1/chat/completions", &ask("other", "Hi")).await.json();
    assert_eq!(body["choices"][0]["message"]["content"], "{\"count\": 3}");
    assert_eq!(lab.get("/v1/models/nobody").await.error(), "404 there is no agent `nobody`");
}

#[tokio::test]
async fn an_agent_answers() {
    let lab = Lab::new().await;
    let mut request = ask("greeter", "Hi");
    request["temperature"] = json!(0.2);
    let response = lab.post("/v1/chat/completions", &request).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("x-patter-ignored"), "temperature");
    let body = response.json();
    let choice = &body["choices"][0];
    // Calls that Patter makes are not calls for the client.
    assert_eq!(choice["message"], json!({"role": "assistant", "content": "Let me look.\n\nHello!", "refusal": null}));
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(body["usage"]["prompt_tokens"], 20);
    assert_eq!(body["usage"]["total_tokens"], 26);
    assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 8);
    assert_eq!(body["patter"]["session"], response.header("x-patter-session"));
    assert_eq!(lab.counts(), (0, 1));
}

#[tokio::test]
async fn streams_have_the_same_content() {
    let lab = Lab::new().await;
    let mut request = ask("greeter", "Hi");
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let response = lab.post_with("/v1/chat/completions", &[("X-Patter-Events", "1")], &request).await;
    assert_eq!(response.header("content-type"), "text/event-stream");
    assert_eq!(response.header("x-accel-buffering"), "no");
    let data = response.data();
    assert_eq!(data.last(), Some(&"[DONE]"));
    let chunks: Vec<Json> = data[..data.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Let me look.\n\nHello!");
    let (usage, before) = chunks.split_last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["total_tokens"], 26);
    assert!(before.iter().all(|chunk| chunk["usage"].is_null()));
    let finish: Vec<_> = before.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(finish, ["stop"]);
    let events: Vec<_> = before.iter().filter_map(|chunk| chunk["patter"]["event"].as_str()).collect();
    let expected =
        ["started", "model_called", "replied", "tool_started", "tool_finished", "model_called", "replied", "finished"];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn structured_answers_are_the_value_alone() {
    let lab = Lab::new().await;
    let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
    let mut request = ask("counter", "Count");
    request["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "c", "schema": schema}});
    let body = lab.post("/v1/chat/completions", &request).await.json();
    assert_eq!(body["choices"][0]["message"]["content"], "{\"count\": 3}");
    request["stream"] = json!(true);
    let response = lab.post("/v1/chat/completions", &request).await;
    assert!(response.data()[1].contains(r#""delta":{"content":"{\"count\": 3}"}"#), "{response:?}");
    request["response_format"]["json_schema"]["schema"]["properties"]["count"]["type"] = json!("string");
    let error = lab.post("/v1/chat/completions", &request).await;
    assert!(error.error().starts_with("400 the schema does not accept all answers of the agent"), "{error:?}");
    request["model"] = json!("greeter");
    let error = lab.post("/v1/chat/completions", &request).await;
    assert_eq!(error.error(), "400 this agent answers with text: it declares no `returns`");
}

#[tokio::test]
async fn wrong_requests_name_what_is_wrong() {
    let lab = Lab::new().await;
    let user = json!([{"role": "user", "content": "Hi"}]);
    for (request, param, message) in [
        (json!([]), Json::Null, "the body is not an object"),
        (json!({"messages": user}), json!("model"), "is missing"),
        (json!({"model": "nobody", "messages": user}), json!("model"), "there is no agent `nobody`"),
        (json!({"model": "greeter"}), json!("messages"), "is missing"),
        (json!({"model": "greeter", "messages": []}), json!("messages"), "there is no message of the user"),
        (
            json!({"model": "greeter", "messages": [{"role": "user", "content": " "}]}),
            json!("messages"),
            "the last message is empty",
        ),
        (
            json!({"model": "greeter", "messages": [{"role": "usr", "content": "x"}]}),
            json!("messages[0].role"),
            "unknown role `usr`",
        ),
        (
            json!({"model": "greeter", "messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
            json!("messages[0].content[0].type"),
            "content of type `input_audio` is not supported; send text, images or documents",
        ),
        (json!({"model": "greeter", "messages": user, "n": 2}), json!("n"), "an agent gives one answer"),
        (
            json!({"model": "greeter", "messages": user, "tool_choice": "required"}),
            json!("tool_choice"),
            "must be `auto` or `none`: the agent decides what it calls",
        ),
        (
            json!({"model": "greeter", "messages": user, "tools": [{"type": "function", "function": {"name": "look"}}]}),
            json!("tools"),
            "the tool `look` of the client has the name of another tool",
        ),
        (
            json!({"model": "greeter", "messages": user, "metadata": {"session": "Mine!"}}),
            json!("session"),
            "`Mine!` is not a session id; a session id has 1 to 64 characters of `a-z`, `0-9` and `-`",
        ),
    ] {
        let response = lab.post("/v1/chat/completions", &request).await;
        let error = response.json()["error"].clone();
        assert_eq!((&error["param"], error["message"].as_str()), (&param, Some(message)), "{request}");
    }
    let response = lab.request("POST", "/v1/chat/completions", &[("Content-Type", "application/json")], "{").await;
    assert!(response.error().starts_with("400 the body is not valid JSON"), "{response:?}");
}

#[tokio::test]
async fn failures_say_not_to_retry() {
    let lab = Lab::new().await;
    let response = lab.post("/v1/chat/completions", &ask("broken", "Hi")).await;
    assert_eq!(response.status, 502, "{response:?}");
    assert!(response.error().contains("out of order"));
    assert_eq!(response.header("x-should-retry"), "false");
    let mut request = ask("broken", "Hi");
    request["stream"] = json!(true);
    let response = lab.post("/v1/chat/completions", &request).await;
    let last: Json = serde_json::from_str(response.data().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "model_error", "a stream that failed has no [DONE]");
}

#[tokio::test]
async fn sessions_are_continued_by_name() {
    let lab = Lab::new().await;
    let headers = [("X-Patter-Session", "monday")];
    lab.post_with("/v1/chat/completions", &headers, &ask("greeter", "Hi")).await;
    let response = lab.post_with("/v1/chat/completions", &headers, &ask("greeter", "Hi again")).await;
    assert_eq!(response.json()["choices"][0]["message"]["content"], "Hello again!");
    let session = lab.get("/api/sessions/monday").await.json();
    assert_eq!(session["turns"].as_array().unwrap().len(), 2);
    // Without a name, the messages are the conversation.
    let mut request = ask("greeter", "Hi");
    let said = [json!({"role": "assistant", "content": "One"}), json!({"role": "assistant", "content": "Two"})];
    let messages = request["messages"].as_array_mut().unwrap();
    messages.extend(said);
    messages.push(json!({"role": "user", "content": "And now?"}));
    let response = lab.post("/v1/chat/completions", &request).await;
    assert_eq!(response.json()["choices"][0]["message"]["content"], "Hello again!");
    request["store"] = json!(false);
    let response = lab.post("/v1/chat/completions", &request).await;
    assert_eq!((response.status, response.header("x-patter-session")), (200, ""));
}

#[tokio::test]
async fn clients_bring_their_own_tools() {
    let mut lab = Lab::new().await;
    let schema = json!({"type": "object", "properties": {"of": {"type": "string"}}});
    let tools = json!([{"type": "function", "function": {"name": "pick__color", "parameters": schema}}]);
    let mut messages = vec![
        json!({"role": "system", "content": "The door is old."}),
        json!({"role": "user", "content": "Paint the door"}),
    ];
    let request = |messages: &[Json], stream: bool| json!({"model": "painter", "messages": messages, "tools": tools, "stream": stream});
    let body = lab.post("/v1/chat/completions", &request(&messages, false)).await.json();
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{body}");
    let call = choice["message"]["tool_calls"][0].clone();
    assert_eq!(call["function"], json!({"name": "pick__color", "arguments": "{\"of\":\"door\"}"}));
    assert_eq!(lab.counts(), (0, 1), "the tool of the agent ran");
    // The run resumes with the result, even if the server was started again meanwhile.
    lab.restart().await;
    messages.push(choice["message"].clone());
    messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "red"}));
    let body = lab.post("/v1/chat/completions", &request(&messages, false)).await.json();
    assert_eq!(body["choices"][0]["message"]["content"], "Painted.", "{body}");
    assert_eq!(lab.counts(), (0, 1));
    let again = lab.post("/v1/chat/completions", &request(&messages, false)).await;
    assert_eq!(again.status, 409, "{again:?}");
    // As a stream.
    let response = lab.post("/v1/chat/completions", &request(&messages[..2], true)).await;
    let data = response.data();
    let calls: Vec<Json> = data[..data.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let delta = calls.iter().find(|chunk| chunk["choices"][0]["delta"]["tool_calls"].is_array()).unwrap();
    assert_eq!(delta["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
    assert_eq!(calls.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
    for id in ["nothing", "monday:c1", &call["id"].as_str().unwrap().replace(':', "-")] {
        let call = json!({"id": id, "type": "function", "function": {"name": "pick__color", "arguments": "{}"}});
        let assistant = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let result = json!({"role": "tool", "tool_call_id": id, "content": "red"});
        let messages = [messages[1].clone(), assistant, result];
        let response = lab.post("/v1/chat/completions", &request(&messages, false)).await;
        assert!(matches!(response.status, 400 | 404), "{response:?}");
    }
}
