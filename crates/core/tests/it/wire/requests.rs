//! The bytes of requests.

use super::{RequestParts, call, offered, result};
use patter_core::message::conversation::{Message, Opaque, ToolOutcome};
use patter_core::message::request::Settings;
use patter_core::wire::{Streaming, Wire};
use serde_json::{Value as Json, json};

/// A conversation with everything that is hard to encode: parallel calls, broken arguments, an unknown tool, errors.
fn conversation() -> Vec<Message> {
    let calls = vec![
        call("call_a", "weather/current", r#"{"city": "Paris"}"#),
        call("call_b", "sayHello", r#"{"personName": "Ad"#),
        call("call_1_0", "no such tool", ""),
    ];
    let results = [
        ToolOutcome::Value { value: json!({ "celsius": 21.5 }) },
        ToolOutcome::Error { message: "the arguments are not valid JSON".into() },
        ToolOutcome::Cancelled,
    ];
    let results: Vec<Message> = calls.iter().zip(results).map(|(call, outcome)| result(call, outcome)).collect();
    let mut messages = vec![Message::user("Weather, and greet Ada"), Message::assistant("", calls)];
    messages.extend(results);
    messages.extend([Message::user("Continue"), Message::user("please"), Message::assistant("", Vec::new())]);
    messages.push(Message::user("Well?"));
    messages
}

fn encode(wire: Wire, parts: &RequestParts, streaming: Streaming) -> String {
    String::from_utf8(wire.encode(&parts.request(), streaming)).unwrap()
}

#[test]
fn encodes_a_conversation() {
    for wire in Wire::ALL {
        let mut parts = RequestParts::new(wire);
        parts.messages = conversation();
        parts.returns = Some(json!({ "type": "object", "properties": { "mood": { "type": "string" } } }));
        parts.settings = Settings {
            temperature: Some(0.5),
            top_p: Some(0.9),
            top_k: Some(40),
            max_tokens: Some(100),
            stop: vec!["END".into()],
            seed: Some(7),
            reasoning_effort: Some("low".into()),
        };
        let body = encode(wire, &parts, Streaming::On);
        assert_eq!(encode(wire, &parts, Streaming::On), body);
        let path = wire.path(&parts.model.id, Streaming::On);
        insta::assert_snapshot!(wire.name(), format!("{path}\n{body}"));
    }
}

#[test]
fn omits_what_is_not_set() {
    let requests = Wire::ALL.map(|wire| {
        let mut parts = RequestParts::new(wire);
        parts.instruction.clear();
        parts.tools.clear();
        format!("{} {}", wire.path(&parts.model.id, Streaming::Off), encode(wire, &parts, Streaming::Off))
    });
    insta::assert_snapshot!("small", requests.join("\n"));
}

#[test]
fn reports_what_is_not_sent() {
    let all = Settings { top_k: Some(1), stop: vec!["x".into()], seed: Some(1), ..Settings::default() };
    let unsupported = Wire::ALL.map(|wire| wire.unsupported_settings(&all));
    let expected: [&[&str]; 6] = [&["topK"], &["topK"], &["topK", "stop", "seed"], &["seed"], &[], &[]];
    assert_eq!(unsupported, expected);
    assert!(Wire::ALL.iter().all(|wire| wire.unsupported_settings(&Settings::default()).is_empty()));
    let schemas = Wire::ALL.map(|wire| {
        let mut parts = RequestParts::new(wire);
        let without_schema = wire.sends_answer_schema(&parts.request());
        parts.returns = Some(json!({ "const": "marked" }));
        let has = |parts: &RequestParts| encode(wire, parts, Streaming::Off).contains("marked");
        let with_tools = wire.sends_answer_schema(&parts.request());
        assert_eq!(with_tools, has(&parts));
        parts.tools.clear();
        assert_eq!(wire.sends_answer_schema(&parts.request()), has(&parts));
        (without_schema, with_tools, has(&parts))
    });
    let always = (false, true, true);
    let never = (false, false, false);
    let without_tools = (false, false, true);
    assert_eq!(schemas, [always, always, always, never, without_tools, without_tools]);
    let mut parts = RequestParts::new(Wire::Gemini);
    parts.model.id = "gemini-3-pro".into();
    parts.returns = Some(json!({ "const": "marked" }));
    let config =
        r#""generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"const":"marked"}}"#;
    assert!(encode(Wire::Gemini, &parts, Streaming::Off).contains(config));
}

#[test]
fn answer_schemas_are_strict_if_possible() {
    let strict = json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
    for (schema, expected) in [(strict, true), (json!({ "type": "object" }), false)] {
        for (wire, pointer) in
            [(Wire::Chat, "/response_format/json_schema/strict"), (Wire::Responses, "/text/format/strict")]
        {
            let mut parts = RequestParts::new(wire);
            parts.returns = Some(schema.clone());
            let body: Json = serde_json::from_str(&encode(wire, &parts, Streaming::Off)).unwrap();
            assert_eq!(body.pointer(pointer), Some(&json!(expected)));
        }
    }
}

/// Encodes a message of the model, between a question and the results of its calls.
fn encode_message(wire: Wire, message: Message) -> Vec<Json> {
    let Message::Assistant { calls, .. } = &message else { panic!("not a message of the model: {message:?}") };
    let outcome = ToolOutcome::Value { value: json!("ok") };
    let results: Vec<Message> = calls.iter().map(|call| result(call, outcome.clone())).collect();
    let mut parts = RequestParts::new(wire);
    parts.messages.push(message);
    parts.messages.extend(results);
    let body: Json = serde_json::from_slice(&wire.encode(&parts.request(), Streaming::Off)).unwrap();
    let list = ["messages", "input", "contents"].iter().find_map(|key| body.get(key)).unwrap();
    list.as_array().unwrap().clone()
}

#[test]
fn opaque_data_is_sent_back_unchanged_over_the_same_wire() {
    let items =
        json!([{ "type": "reasoning", "id": "rs_1" }, { "type": "function_call", "call_id": "x", "name": "sayHello" }]);
    let blocks =
        json!([{ "type": "thinking", "signature": "S" }, { "type": "tool_use", "id": "x", "name": "sayHello" }]);
    let parts = json!([{ "functionCall": { "id": "x", "name": "sayHello" }, "thoughtSignature": "S" }]);
    let cases = [
        (Wire::Responses, items.clone(), items.as_array().unwrap().clone()),
        (Wire::Anthropic, blocks.clone(), vec![json!({ "role": "assistant", "content": blocks })]),
        (Wire::Gemini, parts.clone(), vec![json!({ "role": "model", "parts": parts })]),
        (
            Wire::Ollama,
            json!("Hm."),
            vec![json!({
                "role": "assistant", "content": "", "thinking": "Hm.",
                "tool_calls": [{ "function": { "name": "sayHello", "arguments": {} } }],
            })],
        ),
    ];
    for (wire, data, expected) in cases {
        let message = |id: &str, wire: &str| Message::Assistant {
            text: String::new(),
            calls: vec![call(id, "sayHello", "{}")],
            opaque: Some(Opaque { wire: wire.into(), data: data.clone() }),
        };
        let has = |list: &[Json]| expected.iter().all(|item| list.contains(item));
        assert!(has(&encode_message(wire, message("x", wire.name()))), "{wire:?}");
        // It is not sent over another wire, nor for calls that it does not contain.
        let without = encode_message(wire, Message::assistant("", vec![call("x", "sayHello", "{}")]));
        assert_eq!(encode_message(wire, message("x", "elsewhere")), without);
        if wire != Wire::Ollama {
            assert!(!has(&encode_message(wire, message("y", wire.name()))), "{wire:?}");
        }
    }
}

#[test]
fn invalid_ids_and_names_are_replaced() {
    let odd = || Message::assistant("", vec![call("a.b:c", "x y/é", "[1]")]);
    let anthropic = encode_message(Wire::Anthropic, odd());
    let expected = json!({ "type": "tool_use", "id": "a_b_c", "name": "x_y___", "input": { "_raw": "[1]" } });
    assert_eq!(anthropic[1]["content"][0], expected);
    assert_eq!(anthropic[2]["content"][0]["tool_use_id"], "a_b_c");
    // Generated ids are not sent to Gemini.
    let gemini = encode_message(Wire::Gemini, Message::assistant("", vec![call("call_12_3", "sayHello", "")]));
    assert_eq!(gemini[1]["parts"][0], json!({ "functionCall": { "name": "sayHello", "args": {} } }));
    assert_eq!(
        gemini[2]["parts"][0]["functionResponse"],
        json!({ "name": "sayHello", "response": { "output": "ok" } })
    );
    let nameless = encode_message(Wire::Chat, Message::assistant("", vec![call("a", "", "")]));
    assert_eq!(nameless[2]["tool_calls"][0]["function"], json!({ "name": "unknown", "arguments": "{}" }));
}

#[test]
fn model_names_are_escaped_in_paths() {
    let path = |id| Wire::Gemini.path(id, Streaming::Off);
    assert_eq!(path("models/gemini-3-pro"), "/v1beta/models/gemini-3-pro:generateContent");
    assert_eq!(path("../x?key=1#"), "/v1beta/models/..%2Fx%3Fkey%3D1%23:generateContent");
}

#[test]
fn reasoning_effort_is_converted_for_each_wire() {
    let cases = [
        (
            Wire::Gemini,
            "gemini-3-pro",
            "high",
            "/generationConfig/thinkingConfig",
            Some(json!({ "thinkingLevel": "high" })),
        ),
        (
            Wire::Gemini,
            "gemini-2.5-pro",
            "none",
            "/generationConfig/thinkingConfig",
            Some(json!({ "thinkingBudget": 0 })),
        ),
        (Wire::Anthropic, "claude", "max", "/output_config", Some(json!({ "effort": "max" }))),
        (Wire::Anthropic, "claude", "none", "/thinking", None),
        (Wire::Ollama, "gpt-oss", "low", "/think", Some(json!("low"))),
        (Wire::Ollama, "qwen3", "none", "/think", Some(json!(false))),
        (Wire::Responses, "gpt-4o", "low", "/include/0", Some(json!("reasoning.encrypted_content"))),
    ];
    for (wire, model, effort, pointer, expected) in cases {
        let mut parts = RequestParts::new(wire);
        parts.model.id = model.into();
        parts.settings.reasoning_effort = Some(effort.into());
        let body: Json = serde_json::from_str(&encode(wire, &parts, Streaming::Off)).unwrap();
        assert_eq!(body.pointer(pointer), expected.as_ref(), "{model} {effort}");
    }
    for (model, reasons) in
        [("gpt-4o", false), ("o3-mini", true), ("gpt-5", true), ("gpt-5-chat-latest", false), ("omni", false)]
    {
        let mut parts = RequestParts::new(Wire::Responses);
        parts.model.id = model.into();
        assert_eq!(encode(Wire::Responses, &parts, Streaming::Off).contains("encrypted_content"), reasons, "{model}");
    }
}

#[test]
fn anthropic_caches_tools_and_instruction() {
    let mut parts = RequestParts::new(Wire::Anthropic);
    parts.tools.push(offered("last", "x", false));
    let body: Json = serde_json::from_str(&encode(Wire::Anthropic, &parts, Streaming::Off)).unwrap();
    let hints: Vec<bool> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool.get("cache_control").is_some()).collect();
    assert_eq!(hints, [false, false, true]);
    assert_eq!(body["system"][0]["cache_control"], json!({ "type": "ephemeral" }));
    assert_eq!(body["max_tokens"], 4096);
}

#[test]
fn anthropic_caches_conversations_that_may_continue() {
    let hint = r#""cache_control":{"type":"ephemeral"}"#;
    let greeting = call("a", "sayHello", "{}");
    let results = vec![
        Message::user("Hello"),
        Message::assistant("", vec![greeting.clone()]),
        result(&greeting, ToolOutcome::Value { value: json!("Hi") }),
    ];
    let started = vec![Message::user("Hello"), Message::assistant("Hi", Vec::new())];
    let cases = [
        (true, vec![Message::user("Hello")], format!(r#"{{"type":"text","text":"Hello",{hint}}}"#), 3),
        (true, results.clone(), format!(r#"{{"type":"tool_result","tool_use_id":"a","content":"Hi",{hint}}}"#), 3),
        (false, results, format!(r#"{{"type":"tool_result","tool_use_id":"a","content":"Hi",{hint}}}"#), 2),
        (true, started, r#"{"type":"text","text":"Hi"}"#.to_owned(), 2),
        // Caching a single question would only cost more.
        (false, vec![Message::user("Hello")], r#"{"type":"text","text":"Hello"}"#.to_owned(), 1),
        (true, Vec::new(), r#""messages":[]"#.to_owned(), 2),
    ];
    for (has_tools, messages, expected, hints) in cases {
        let mut parts = RequestParts::new(Wire::Anthropic);
        parts.messages = messages;
        if !has_tools {
            parts.tools.clear();
        }
        let body = encode(Wire::Anthropic, &parts, Streaming::Off);
        assert!(body.contains(&expected), "{expected} is missing in {body}");
        assert_eq!(body.matches(hint).count(), hints, "{body}");
    }
}
