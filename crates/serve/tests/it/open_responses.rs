//! The cases of the compliance suite of Open Responses that are about HTTP, as tests of our own.
//!
//! One of them does not apply: the compaction of conversations, which agents do not need. It is refused with a clear error. The
//! second case about phases checks a document of the suite itself; here it is a
//! response of the server that has the phases.

use crate::lab::{Lab, Response};
use serde_json::{Value as Json, json};

/// What each response has, whatever its state.
const MEMBERS: &[&str] = &[
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "user",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];

/// Checks that a document is a response.
pub(crate) fn check(response: &Json) {
    for name in MEMBERS {
        assert!(response.get(name).is_some(), "`{name}` is missing in {response}");
    }
    assert_eq!(response["object"], "response");
    assert!(response["id"].as_str().unwrap().starts_with("resp_"));
    assert!(response["created_at"].is_u64() && response["metadata"].is_object() && response["tools"].is_array());
    for name in ["top_p", "temperature", "presence_penalty", "frequency_penalty"] {
        assert!(response[name].is_number());
    }
    for item in response["output"].as_array().unwrap() {
        let has = |names: &[&str]| names.iter().all(|name| item[*name].is_string());
        assert!(has(&["type", "id"]), "{item}");
        match item["type"].as_str().unwrap() {
            "message" => {
                assert!(has(&["status", "role"]) && item["role"] == "assistant", "{item}");
                let part = &item["content"][0];
                assert!(part["type"] == "output_text" && part["annotations"].is_array() && part["text"].is_string());
            }
            "function_call" => assert!(has(&["call_id", "name", "arguments", "status"]), "{item}"),
            "function_call_output" => assert!(has(&["call_id", "output", "status"]), "{item}"),
            "mcp_approval_request" => assert!(has(&["server_label", "name", "arguments"]), "{item}"),
            other => panic!("unknown type {other}"),
        }
    }
    if response["status"] == "completed" {
        assert!(response["completed_at"].is_u64() && response["usage"]["total_tokens"].is_u64(), "{response}");
        assert!(response["usage"]["input_tokens_details"]["cached_tokens"].is_u64());
        assert!(response["usage"]["output_tokens_details"]["reasoning_tokens"].is_u64());
    }
}

/// Checks the events of a stream, and returns them.
pub(crate) fn check_stream(response: &Response) -> Vec<Json> {
    assert_eq!(response.header("content-type"), "text/event-stream", "{response:?}");
    assert!(response.body.ends_with("data: [DONE]\n\n"), "{response:?}");
    let mut events: Vec<Json> = Vec::new();
    for message in response.body.trim_end().split("\n\n") {
        if message == "data: [DONE]" || message.starts_with(':') {
            continue;
        }
        let (name, data) = message.split_once('\n').unwrap();
        let data: Json = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        let number = data["sequence_number"].as_u64().unwrap();
        assert!(events.last().is_none_or(|last| last["sequence_number"].as_u64().unwrap() < number), "{data}");
        events.push(data);
    }
    let last = &events.last().unwrap()["response"];
    check(last);
    events
}

async fn create(lab: &Lab, model: &str, input: Json) -> Json {
    let response = lab.post("/v1/responses", &json!({"model": model, "input": input})).await;
    assert_eq!(response.status, 200, "{response:?}");
    let response = response.json();
    check(&response);
    response
}

fn message(role: &str, content: &str) -> Json {
    json!({"type": "message", "role": role, "content": content})
}

#[tokio::test]
async fn basic_response() {
    let lab = Lab::new().await;
    let response = create(&lab, "greeter", json!([message("user", "Say hello in exactly 3 words.")])).await;
    assert_eq!(response["status"], "completed");
    assert!(!response["output"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn assistant_phase() {
    let lab = Lab::new().await;
    let mut commentary = message("assistant", "I should answer with the saved number.");
    commentary["phase"] = json!("commentary");
    let mut answer = message("assistant", "The number is four.");
    answer["phase"] = json!("final_answer");
    let input = json!([commentary, answer, message("user", "Repeat only the number.")]);
    let response = create(&lab, "greeter", input).await;
    assert_eq!(response["status"], "completed");
}

#[tokio::test]
async fn response_output_phase() {
    let lab = Lab::new().await;
    let response = create(&lab, "greeter", json!("Hi")).await;
    let messages = response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "message");
    let phases: Vec<_> = messages.map(|item| item["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["commentary", "final_answer"]);
}

#[tokio::test]
async fn streaming_response() {
    let lab = Lab::new().await;
    let request = json!({"model": "greeter", "input": [message("user", "Count from 1 to 5.")], "stream": true});
    let events = check_stream(&lab.post("/v1/responses", &request).await);
    assert_eq!(events.last().unwrap()["response"]["status"], "completed");
}

#[tokio::test]
async fn system_prompt() {
    let lab = Lab::new().await;
    let input = json!([message("system", "The door is old."), message("user", "Say hello.")]);
    let response = create(&lab, "greeter", input).await;
    assert_eq!((&response["status"], &response["instructions"]), (&json!("completed"), &json!("The door is old.")));
}

#[tokio::test]
async fn tool_calling() {
    let lab = Lab::new().await;
    let tool = json!({"type": "function", "name": "pick__color", "description": "Picks a color",
        "parameters": {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}});
    let input = [message("system", "The door is old."), message("user", "Paint the door")];
    let mut request = json!({"model": "painter", "input": input, "tools": [tool]});
    let response = lab.post("/v1/responses", &request).await.json();
    check(&response);
    let call = response["output"].as_array().unwrap().last().unwrap();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("pick__color")));
    // As a stream.
    request["stream"] = json!(true);
    let events = check_stream(&lab.post("/v1/responses", &request).await);
    let of_call = |name: &str| {
        let last = events.iter().rfind(|event| event["type"] == name).unwrap();
        last["item"]["name"].as_str().or(last["arguments"].as_str()).or(last["delta"].as_str()).unwrap().to_owned()
    };
    assert_eq!(of_call("response.output_item.added"), "pick__color");
    assert_eq!(of_call("response.function_call_arguments.delta"), r#"{"of":"door"}"#);
    assert_eq!(of_call("response.output_item.done"), "pick__color");
}

#[tokio::test]
async fn image_input() {
    let lab = Lab::new().await;
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="});
    let content = json!([{"type": "input_text", "text": "What do you see?"}, image]);
    let request = json!({"model": "greeter", "input": [{"type": "message", "role": "user", "content": content}]});
    let response = lab.post("/v1/responses", &request).await;
    assert_eq!((response.status, &response.json()["status"]), (200, &json!("completed")), "{response:?}");
}

#[tokio::test]
async fn multi_turn() {
    let lab = Lab::new().await;
    let input = [message("user", "My name is Alice."), message("assistant", "Hello Alice!"), message("user", "And?")];
    assert_eq!(create(&lab, "greeter", json!(input)).await["status"], "completed");
}

#[tokio::test]
async fn compaction_is_refused() {
    let lab = Lab::new().await;
    let request = json!({"input": [message("user", "Compact this conversation.")]});
    assert_eq!(lab.post("/v1/responses/compact", &request).await.error(), "400 is missing");
    let request = json!({"model": "greeter", "input": [message("user", "Compact this conversation.")]});
    let refused = lab.post("/v1/responses/compact", &request).await;
    assert_eq!(refused.error(), "400 conversations cannot be compacted: agents see all of them");
}
