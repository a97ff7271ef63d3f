//! Requests, byte for byte.

use super::{Asked, call, offered, result};
use patter_core::message::conversation::{Message, Opaque, ToolOutcome};
use patter_core::message::request::Settings;
use patter_core::wire::{Streaming, Wire};
use serde_json::{Value as Json, json};

/// A conversation with all that is hard to say: parallel calls, broken arguments, a tool that is none, errors.
fn conversation() -> Vec<Message> {
    let calls = vec![
        call("call_a", "weather/current", r#"{"city": "Paris"}"#),
        call("call_b", "sayHello", r#"{"personName": "Ad"#),
        call("call_1_0", "no such tool", ""),
    ];
    let results = [
        ToolOutcome::Value { value: json!({ "celsius": 21.5 }) },
        ToolOutcome::Error { message: "the arguments are no JSON".into() },
        ToolOutcome::Cancelled,
    ];
    let results: Vec<Message> = calls.iter().zip(results).map(|(call, outcome)| result(call, outcome)).collect();
    let mut messages = vec![Message::user("Weather, and greet Ada"), Message::assistant("", calls)];
    messages.extend(results);
    messages.extend([Message::user("Go on"), Message::user("please"), Message::assistant("", Vec::new())]);
    messages.push(Message::user("Well?"));
    messages
}

fn encoded(wire: Wire, asked: &Asked, streaming: Streaming) -> String {
    String::from_utf8(wire.encode(&asked.request(), streaming)).unwrap()
}

#[test]
fn a_conversation_is_written_byte_for_byte() {
    for wire in Wire::ALL {
        let mut asked = Asked::new(wire);
        asked.messages = conversation();
        asked.returns = Some(json!({ "type": "object", "properties": { "mood": { "type": "string" } } }));
        asked.settings = Settings {
            temperature: Some(0.5),
            top_p: Some(0.9),
            top_k: Some(40),
            max_tokens: Some(100),
            stop: vec!["END".into()],
            seed: Some(7),
            reasoning_effort: Some("low".into()),
        };
        let body = encoded(wire, &asked, Streaming::On);
        assert_eq!(encoded(wire, &asked, Streaming::On), body);
        let path = wire.path(&asked.model.id, Streaming::On);
        insta::assert_snapshot!(wire.name(), format!("{path}\n{body}"));
    }
}

#[test]
fn a_request_says_no_more_than_it_must() {
    let wires = Wire::ALL.map(|wire| {
        let mut asked = Asked::new(wire);
        asked.instruction.clear();
        asked.tools.clear();
        format!("{} {}", wire.path(&asked.model.id, Streaming::Off), encoded(wire, &asked, Streaming::Off))
    });
    insta::assert_snapshot!("small", wires.join("\n"));
}

#[test]
fn what_is_not_sent_is_told() {
    let all = Settings { top_k: Some(1), stop: vec!["x".into()], seed: Some(1), ..Settings::default() };
    let told = Wire::ALL.map(|wire| wire.unsupported(&all));
    let expected: [&[&str]; 6] = [&["topK"], &["topK"], &["topK", "stop", "seed"], &["seed"], &[], &[]];
    assert_eq!(told, expected);
    assert!(Wire::ALL.iter().all(|wire| wire.unsupported(&Settings::default()).is_empty()));
    let sent = Wire::ALL.map(|wire| {
        let mut asked = Asked::new(wire);
        let never = wire.sends_returns(&asked.request());
        asked.returns = Some(json!({ "const": "marked" }));
        let has = |asked: &Asked| encoded(wire, asked, Streaming::Off).contains("marked");
        let with_tools = wire.sends_returns(&asked.request());
        assert_eq!(with_tools, has(&asked));
        asked.tools.clear();
        assert_eq!(wire.sends_returns(&asked.request()), has(&asked));
        (never, with_tools, has(&asked))
    });
    let yes = (false, true, true);
    let alone = (false, false, true);
    assert_eq!(sent, [yes, yes, yes, (false, false, false), alone, alone]);
    let mut asked = Asked::new(Wire::Gemini);
    asked.model.id = "gemini-3-pro".into();
    asked.returns = Some(json!({ "const": "marked" }));
    let config =
        r#""generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"const":"marked"}}"#;
    assert!(encoded(Wire::Gemini, &asked, Streaming::Off).contains(config));
}

#[test]
fn a_schema_of_the_answer_is_strict_where_it_can_be() {
    let strict = json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
    for (schema, expected) in [(strict, true), (json!({ "type": "object" }), false)] {
        for (wire, pointer) in
            [(Wire::Chat, "/response_format/json_schema/strict"), (Wire::Responses, "/text/format/strict")]
        {
            let mut asked = Asked::new(wire);
            asked.returns = Some(schema.clone());
            let body: Json = serde_json::from_str(&encoded(wire, &asked, Streaming::Off)).unwrap();
            assert_eq!(body.pointer(pointer), Some(&json!(expected)));
        }
    }
}

/// Returns what a wire says of a message of an assistant, between a question and a result.
fn said(wire: Wire, message: Message) -> Vec<Json> {
    let Message::Assistant { calls, .. } = &message else { panic!("it is none") };
    let outcome = ToolOutcome::Value { value: json!("ok") };
    let results: Vec<Message> = calls.iter().map(|call| result(call, outcome.clone())).collect();
    let mut asked = Asked::new(wire);
    asked.messages.push(message);
    asked.messages.extend(results);
    let body: Json = serde_json::from_slice(&wire.encode(&asked.request(), Streaming::Off)).unwrap();
    let list = ["messages", "input", "contents"].iter().find_map(|key| body.get(key)).unwrap();
    list.as_array().unwrap().clone()
}

#[test]
fn opaque_data_goes_back_unchanged_and_only_where_it_came_from() {
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
        assert!(has(&said(wire, message("x", wire.name()))), "{wire:?}");
        // Another wire knows nothing of it, nor is it used for calls that are not in it.
        let without = said(wire, Message::assistant("", vec![call("x", "sayHello", "{}")]));
        assert_eq!(said(wire, message("x", "elsewhere")), without);
        if wire != Wire::Ollama {
            assert!(!has(&said(wire, message("y", wire.name()))), "{wire:?}");
        }
    }
}

#[test]
fn ids_and_names_of_elsewhere_are_made_fit() {
    let odd = || Message::assistant("", vec![call("a.b:c", "x y/é", "[1]")]);
    let anthropic = said(Wire::Anthropic, odd());
    let expected = json!({ "type": "tool_use", "id": "a_b_c", "name": "x_y___", "input": { "_raw": "[1]" } });
    assert_eq!(anthropic[1]["content"][0], expected);
    assert_eq!(anthropic[2]["content"][0]["tool_use_id"], "a_b_c");
    // A made-up id is none of Gemini's.
    let gemini = said(Wire::Gemini, Message::assistant("", vec![call("call_12_3", "sayHello", "")]));
    assert_eq!(gemini[1]["parts"][0], json!({ "functionCall": { "name": "sayHello", "args": {} } }));
    assert_eq!(
        gemini[2]["parts"][0]["functionResponse"],
        json!({ "name": "sayHello", "response": { "output": "ok" } })
    );
    let nameless = said(Wire::Chat, Message::assistant("", vec![call("a", "", "")]));
    assert_eq!(nameless[2]["tool_calls"][0]["function"], json!({ "name": "unknown", "arguments": "{}" }));
}

#[test]
fn the_name_of_a_model_stays_within_its_path() {
    let path = |id| Wire::Gemini.path(id, Streaming::Off);
    assert_eq!(path("models/gemini-3-pro"), "/v1beta/models/gemini-3-pro:generateContent");
    assert_eq!(path("../x?key=1#"), "/v1beta/models/..%2Fx%3Fkey%3D1%23:generateContent");
}

#[test]
fn effort_is_said_as_each_takes_it() {
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
        let mut asked = Asked::new(wire);
        asked.model.id = model.into();
        asked.settings.reasoning_effort = Some(effort.into());
        let body: Json = serde_json::from_str(&encoded(wire, &asked, Streaming::Off)).unwrap();
        assert_eq!(body.pointer(pointer), expected.as_ref(), "{model} {effort}");
    }
    for (model, thinks) in
        [("gpt-4o", false), ("o3-mini", true), ("gpt-5", true), ("gpt-5-chat-latest", false), ("omni", false)]
    {
        let mut asked = Asked::new(Wire::Responses);
        asked.model.id = model.into();
        assert_eq!(encoded(Wire::Responses, &asked, Streaming::Off).contains("encrypted_content"), thinks, "{model}");
    }
}

#[test]
fn anthropic_caches_up_to_the_last_tool_and_the_instruction() {
    let mut asked = Asked::new(Wire::Anthropic);
    asked.tools.push(offered("last", "x", false));
    let body: Json = serde_json::from_str(&encoded(Wire::Anthropic, &asked, Streaming::Off)).unwrap();
    let hints: Vec<bool> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool.get("cache_control").is_some()).collect();
    assert_eq!(hints, [false, false, true]);
    assert_eq!(body["system"][0]["cache_control"], json!({ "type": "ephemeral" }));
    assert_eq!(body["max_tokens"], 4096);
}

#[test]
fn anthropic_caches_what_was_said_if_there_is_more_to_come() {
    let hint = r#""cache_control":{"type":"ephemeral"}"#;
    let greeting = call("a", "sayHello", "{}");
    let results = vec![
        Message::user("Hello"),
        Message::assistant("", vec![greeting.clone()]),
        result(&greeting, ToolOutcome::Value { value: json!("Hi") }),
    ];
    let begun = vec![Message::user("Hello"), Message::assistant("Hi", Vec::new())];
    let cases = [
        (true, vec![Message::user("Hello")], format!(r#"{{"type":"text","text":"Hello",{hint}}}"#), 3),
        (true, results.clone(), format!(r#"{{"type":"tool_result","tool_use_id":"a","content":"Hi",{hint}}}"#), 3),
        (false, results, format!(r#"{{"type":"tool_result","tool_use_id":"a","content":"Hi",{hint}}}"#), 2),
        (true, begun, r#"{"type":"text","text":"Hi"}"#.to_owned(), 2),
        // A question that stands alone would only cost more.
        (false, vec![Message::user("Hello")], r#"{"type":"text","text":"Hello"}"#.to_owned(), 1),
        (true, Vec::new(), r#""messages":[]"#.to_owned(), 2),
    ];
    for (has_tools, messages, expected, hints) in cases {
        let mut asked = Asked::new(Wire::Anthropic);
        asked.messages = messages;
        if !has_tools {
            asked.tools.clear();
        }
        let body = encoded(Wire::Anthropic, &asked, Streaming::Off);
        assert!(body.contains(&expected), "{body} has no {expected}");
        assert_eq!(body.matches(hint).count(), hints, "{body}");
    }
}
