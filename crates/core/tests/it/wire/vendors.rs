//! Servers that are compatible with OpenAI, each in its own way. `tests/wire/vendors/README.md` lists their deviations.

use super::{RequestParts, assemble, call, offered, result};
use patter_core::message::conversation::{Message, Opaque, ToolCall, ToolOutcome, Usage};
use patter_core::message::request::{Delta, FinishReason, Reply};
use patter_core::provider::price::Prices;
use patter_core::provider::{Provider, Server};
use patter_core::wire::{Codec, Streaming, Wire, WireError, retry_delay};
use serde_json::{Value as Json, json};
use std::time::Duration;

const MISTRAL: &str = "https://api.mistral.ai/v1";
const DEEPSEEK: &str = "https://api.deepseek.com";
const GOOGLE: &str = "https://generativelanguage.googleapis.com/v1beta/openai/";
const CEREBRAS: &str = "https://api.cerebras.ai/v1";
const OPENROUTER: &str = "https://openrouter.ai/api/v1";
const LOCAL: &str = "http://localhost:8000/v1";
const OPENAI: &str = "https://api.openai.com/v1";

fn codec(base_url: &str) -> Codec {
    Codec::new(Wire::Chat, Server::new(Provider::OPENAI, base_url))
}

fn file(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/wire/vendors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Decodes a file, streamed or not, and asserts that the deltas add up to the reply.
fn read(base_url: &str, name: &str) -> (Reply, String) {
    let parts = RequestParts::new(Wire::Chat);
    let bytes = file(name);
    if name.ends_with(".json") {
        return (codec(base_url).decode(&parts.request(), 200, &bytes).unwrap(), String::new());
    }
    let [whole, bytewise, pieces] = [usize::MAX, 1, 7].map(|size| {
        let mut decoder = codec(base_url).stream_decoder(&parts.request());
        let mut deltas = Vec::new();
        for chunk in bytes.chunks(size.min(bytes.len())) {
            deltas.extend(decoder.push(chunk).unwrap());
        }
        deltas.extend(decoder.end().unwrap());
        let reply = decoder.finish().unwrap();
        let (text, thoughts, calls) = assemble(&deltas);
        assert_eq!((&text, &calls), (&reply.text, &reply.calls), "{name}");
        (reply, thoughts)
    });
    assert_eq!((&bytewise, &pieces), (&whole, &whole), "{name}");
    whole
}

/// Decodes a stream that ends with an error after the given text.
fn error_after(name: &str, text: &str) -> WireError {
    let parts = RequestParts::new(Wire::Chat);
    let mut decoder = codec(LOCAL).stream_decoder(&parts.request());
    assert_eq!(decoder.push(&file(name)).unwrap(), [Delta::Text { text: text.into() }], "{name}");
    decoder.finish().unwrap_err()
}

fn usage() -> Usage {
    Usage { input_tokens: 20, output_tokens: 9, ..Usage::default() }
}

fn ada(id: &str) -> ToolCall {
    call(id, "sayHello", r#"{"personName":"Ada"}"#)
}

fn paris(id: &str) -> ToolCall {
    call(id, "weather/current", r#"{"city":"Paris"}"#)
}

#[test]
fn text_is_read_once() {
    let cached = Usage { cached_tokens: 16, ..usage() };
    let written = Usage { cached_tokens: 10, cache_write_tokens: 6, ..usage() };
    let grok = Usage {
        input_tokens: 10_120,
        cached_tokens: 128,
        output_tokens: 4308,
        reasoning_tokens: 2809,
        cache_write_tokens: 0,
    };
    for (name, finish, expected) in [
        ("perplexity.stream", FinishReason::Stop, usage()),
        ("moonshot.stream", FinishReason::Stop, cached),
        ("azure.stream", FinishReason::Filtered, usage()),
        ("llama-cpp.stream", FinishReason::Length, usage()),
        ("litellm.json", FinishReason::Stop, written),
        ("xai.json", FinishReason::Stop, grok),
    ] {
        let (reply, _) = read(LOCAL, name);
        assert_eq!((reply.text.as_str(), reply.finish), ("Bonjour, Ada!", finish), "{name}");
        assert_eq!((reply.usage, reply.opaque), (expected, None), "{name}");
    }
}

#[test]
fn calls_are_read_however_they_are_split() {
    let none = Usage::default();
    for (name, calls, usage) in [
        ("groq.stream", vec![call("call_a", "sayHello", "null")], usage()),
        ("lmstudio.stream", vec![ada("1"), paris("call_1_0")], none),
        ("ollama.stream", vec![ada("call_x"), paris("call_y")], none),
        ("vllm.stream", vec![ada("call_1_0")], usage()),
    ] {
        let (reply, thoughts) = read(LOCAL, name);
        assert_eq!((reply.calls, reply.usage, reply.finish), (calls, usage, FinishReason::Stop), "{name}");
        assert_eq!((reply.text, thoughts, reply.opaque), (String::new(), String::new(), None), "{name}");
    }
}

#[test]
fn null_is_no_arguments() {
    for text in ["null", " null\n", "", " "] {
        assert_eq!(call("a", "sayHello", text).parse_arguments().unwrap(), json!({}), "{text:?}");
        for wire in Wire::ALL {
            let mut parts = RequestParts::new(wire);
            parts.messages.push(Message::assistant("", vec![call("a", "sayHello", text)]));
            let body = String::from_utf8(wire.encode(&parts.request(), Streaming::Off)).unwrap();
            assert!(body.contains("{}") && !body.contains("null\"") && !body.contains("_raw"), "{body}");
        }
    }
    assert_eq!(call("a", "sayHello", "[null]").parse_arguments().unwrap(), json!([null]));
}

/// Returns the messages of a request that continues after a reply with the results of its calls.
fn continue_with(base_url: &str, model: &str, reply: &Reply) -> Vec<Json> {
    let mut parts = RequestParts::new(Wire::Chat);
    parts.model.id = model.into();
    // Sessions store messages as JSON.
    let stored = serde_json::to_string(&reply.clone().into_message()).unwrap();
    parts.messages.push(serde_json::from_str(&stored).unwrap());
    for call in &reply.calls {
        parts.messages.push(result(call, ToolOutcome::Value { value: json!("ok") }));
    }
    let body = codec(base_url).encode(&parts.request(), Streaming::Off);
    let body: Json = serde_json::from_slice(&body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

#[test]
fn reasoning_is_sent_back_to_the_server_that_it_came_from() {
    let deepseek = json!({
        "role": "assistant", "content": null, "reasoning_content": "She greets.",
        "tool_calls": [{
            "id": "call_a", "type": "function",
            "function": { "name": "sayHello", "arguments": r#"{"personName":"Ada"}"# },
        }],
    });
    let counted = |cached_tokens| Usage { cached_tokens, reasoning_tokens: 4, ..usage() };
    for name in ["deepseek.stream", "deepseek.json"] {
        let (reply, thoughts) = read(DEEPSEEK, name);
        assert_eq!((&reply.calls, reply.usage), (&vec![ada("call_a")], counted(16)), "{name}");
        assert!(name.ends_with(".json") || thoughts == "She greets.", "{thoughts}");
        assert_eq!(reply.opaque.as_ref().unwrap().origin, "DeepSeek");
        assert_eq!(continue_with(DEEPSEEK, "deepseek-v4", &reply)[2], deepseek);
        // No other server gets it, not even one with the same protocol.
        for other in [OPENAI, MISTRAL, LOCAL] {
            let message = &continue_with(other, "m", &reply)[2];
            assert!(!message.to_string().contains("She greets."), "{other}: {message}");
        }
        for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::Chat) {
            let mut parts = RequestParts::new(wire);
            parts.messages.push(reply.clone().into_message());
            let body = String::from_utf8(wire.encode(&parts.request(), Streaming::Off)).unwrap();
            assert!(!body.contains("She greets."), "{wire:?}: {body}");
        }
    }
    // It is needed even if there is none.
    let silent = Reply { opaque: None, ..read(DEEPSEEK, "deepseek.json").0 };
    assert_eq!(continue_with(DEEPSEEK, "deepseek-v4", &silent)[2]["reasoning_content"], "");
    assert_eq!(continue_with(LOCAL, "m", &silent)[2].get("reasoning_content"), None);
}

#[test]
fn reasoning_details_are_joined_and_sent_back() {
    let (reply, thoughts) = read(OPENROUTER, "openrouter.stream");
    let counted = Usage { cached_tokens: 10, cache_write_tokens: 6, reasoning_tokens: 4, ..usage() };
    assert_eq!((&reply.calls, reply.usage, &reply.finish), (&vec![ada("call_a")], counted, &FinishReason::Stop));
    assert_eq!(thoughts, "She greets.");
    // The model of the test has no vendor in its name.
    let details = json!([{
        "type": "reasoning.text", "text": "She greets.", "format": "anthropic-claude-v1", "index": 0, "signature": "EqQB",
    }]);
    let message = &continue_with(OPENROUTER, "gpt-4o-mini", &reply)[2];
    assert_eq!((&message["reasoning_details"], message.get("reasoning")), (&details, None));
    // A server with several vendors passes it on to the model, so it must be of the same one.
    let other = &continue_with(OPENROUTER, "google/gemini-3-pro", &reply)[2];
    assert_eq!(other.get("reasoning_details"), None);
}

#[test]
fn thinking_parts_are_shown_and_sent_back() {
    for name in ["mistral.stream", "mistral.json"] {
        let (reply, thoughts) = read(MISTRAL, name);
        assert_eq!((reply.text.as_str(), &reply.calls), ("Let me look.", &vec![ada("aB3dE5gH7")]), "{name}");
        assert!(name.ends_with(".json") || thoughts == "She greets.", "{thoughts}");
        let parts = json!([
            { "type": "thinking", "thinking": [{ "type": "text", "text": "She greets." }] },
            { "type": "text", "text": "Let me look." },
        ]);
        assert_eq!(continue_with(MISTRAL, "magistral", &reply)[2]["content"], parts);
        assert_eq!(continue_with(LOCAL, "magistral", &reply)[2]["content"], "Let me look.");
    }
}

#[test]
fn signatures_stay_with_their_calls() {
    let signed = json!({ "google": { "thought_signature": "CqQB" } });
    for name in ["gemini.stream", "gemini.json"] {
        let (reply, _) = read(GOOGLE, name);
        assert_eq!(reply.calls, [ada("function-call-1"), paris("function-call-2")], "{name}");
        // The total includes reasoning that is not reported.
        let counted = Usage { reasoning_tokens: 4, ..usage() };
        assert_eq!(reply.usage, counted, "{name}");
        let calls = &continue_with(GOOGLE, "gemini-3-pro", &reply)[2]["tool_calls"];
        assert_eq!((&calls[0]["extra_content"], calls[1].get("extra_content")), (&signed, None), "{name}");
        let calls = &continue_with(LOCAL, "m", &reply)[2]["tool_calls"];
        assert_eq!(calls[0].get("extra_content"), None, "{name}");
    }
    // Calls of other models get the documented signature that is not verified.
    let skip = "skip_thought_signature_validator";
    let foreign = Reply { opaque: None, ..read(GOOGLE, "gemini.json").0 };
    let calls = &continue_with(GOOGLE, "gemini-3-pro", &foreign)[2]["tool_calls"];
    assert_eq!(calls[0]["extra_content"]["google"]["thought_signature"], skip);
    assert_eq!(calls[1].get("extra_content"), None);
    for (model, expected) in [("gemini-3-pro", Some(skip)), ("gemini-2.5-pro", None)] {
        let mut parts = RequestParts::new(Wire::Gemini);
        parts.model.id = model.into();
        parts.messages.push(foreign.clone().into_message());
        let body: Json = serde_json::from_slice(&Wire::Gemini.encode(&parts.request(), Streaming::Off)).unwrap();
        let found = body.pointer("/contents/1/parts/0/thoughtSignature").and_then(Json::as_str);
        assert_eq!(found, expected, "{model}");
    }
}

#[test]
fn opaque_data_of_older_sessions_is_still_sent() {
    let data = json!({ "message": { "reasoning_content": "Hm." } });
    let opaque: Opaque = serde_json::from_value(json!({ "wire": "chat", "data": data })).unwrap();
    let reply = Reply { opaque: Some(opaque), ..read(DEEPSEEK, "deepseek.json").0 };
    assert_eq!(continue_with(LOCAL, "m", &reply)[2]["reasoning_content"], "Hm.");
}

#[test]
fn errors_show_the_reason() {
    let refused = "`wrong_api_format`: Tools with mixed values for 'strict' are not allowed. \
                   Please set all tools to 'strict: true' or 'strict: false'";
    for (status, name, message, is_transient) in [
        (
            422,
            "mistral-422.json",
            "`invalid_request_error`: `body.max_completion_tokens`: Extra inputs are not permitted",
            false,
        ),
        (
            422,
            "mistral-422-text.json",
            "`1000`: `body.frequency_penalty`: Extra inputs are not permitted; `body.messages.0`: Field required",
            false,
        ),
        (422, "cerebras-422.json", refused, false),
        (
            400,
            "openrouter-400.json",
            ": Provider returned error: the model supports at most 1 image per prompt (Crucible)",
            false,
        ),
        (
            429,
            "openrouter-429.json",
            ": Provider returned error: z-ai/glm-5 is temporarily rate-limited upstream. Please retry shortly (BaseTen)",
            true,
        ),
        (
            429,
            "gemini-429.json",
            "`RESOURCE_EXHAUSTED`: You exceeded your current quota. Please retry in 34.074824224s.",
            true,
        ),
    ] {
        let error = WireError::from_status(status, &file(name));
        let space = if message.starts_with(':') { "" } else { " " };
        assert_eq!(error.to_string(), format!("the provider answered {status}{space}{message}"));
        assert_eq!(error.is_transient(), is_transient, "{name}");
    }
    for (body, message) in [
        (r#"{"detail": "Not authenticated"}"#, ": Not authenticated"),
        (r#"{"error": {"message": ["a", {"msg": "b"}]}}"#, ": a; b"),
        (r#"{"error": {"message": {}}}"#, r#": {"error": {"message": {}}}"#),
        (r#"{"error": "{\"message\": \"inner\"}"}"#, ": inner"),
        (r#"{"error": {"message": "{not JSON"}}"#, ": {not JSON"),
        (r#"{"error": {"metadata": {"raw": {"odd": 1}}, "code": "x"}}"#, r#" `x`: {"odd":1}"#),
        (r#"{"message": 3}"#, r#": {"message": 3}"#),
    ] {
        let error = WireError::from_status(400, body.as_bytes());
        assert_eq!(error.to_string(), format!("the provider answered 400{message}"), "{body}");
    }
    // JSON in text in JSON in text ends somewhere.
    let mut nested = "deep".to_owned();
    for _ in 0..12 {
        nested = json!({ "message": nested }).to_string();
    }
    assert!(WireError::from_status(400, nested.as_bytes()).to_string().contains("message"));
}

#[test]
fn errors_in_streams_are_not_answers() {
    for (name, message) in [
        ("llama-box.stream", "`Internal Server Error`: the context is full"),
        ("deepseek-busy.stream", "`insufficient_system_resource`"),
        ("openrouter-502.stream", "`502`: Provider disconnected"),
    ] {
        let error = error_after(name, "Bon");
        assert_eq!(error.to_string(), format!("the provider reported an error {message}"));
        assert!(error.is_transient(), "{name}");
    }
    let parts = RequestParts::new(Wire::Chat);
    for (body, message) in [
        ("error: out of memory", "the provider reported an error: out of memory"),
        ("error: {\"code\":400,\"message\":\"too long\"}\n\n", "the provider reported an error `400`: too long"),
        ("data: {\"object\":\"error\",\"message\":\"no\"}\n\n", "the provider reported an error: no"),
        ("{\"detail\":\"Not Found\"}", "malformed reply: missing `choices`: Not Found"),
    ] {
        let mut decoder = codec(LOCAL).stream_decoder(&parts.request());
        let _ = decoder.push(body.as_bytes());
        assert_eq!(decoder.finish().unwrap_err().to_string(), message, "{body}");
    }
    assert!(!WireError::Reply { kind: Some("400".into()), message: String::new() }.is_transient());
}

#[test]
fn the_time_to_wait_is_in_the_body() {
    assert_eq!(retry_delay(&file("gemini-429.json")), Some(Duration::from_nanos(34_074_824_224)));
    let delay = |text: &str| {
        retry_delay(json!({ "error": { "details": [{}, { "retryDelay": text }] } }).to_string().as_bytes())
    };
    assert_eq!(
        [delay("0s"), delay("-1s"), delay("1e99s"), delay("soon"), delay("5")],
        [Some(Duration::ZERO), None, None, None, None]
    );
    for body in ["", "[]", "{}", r#"{"error": "x"}"#, r#"{"error": {"details": {}}}"#] {
        assert_eq!(retry_delay(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn a_stream_without_a_finish_reason_is_truncated() {
    let piece = |reason: &str| {
        format!("data: {{\"choices\": [{{\"delta\": {{\"content\": \"Hi\"}}, \"finish_reason\": {reason}}}]}}\n\n")
    };
    for (reason, expected) in [("\"\"", None), ("null", None), ("0", None), ("\"stop\"", Some(FinishReason::Stop))] {
        let parts = RequestParts::new(Wire::Chat);
        let mut decoder = codec(LOCAL).stream_decoder(&parts.request());
        decoder.push(piece(reason).as_bytes()).unwrap();
        let reply = decoder.finish();
        assert_eq!(reply.ok().map(|reply| reply.finish), expected, "{reason}");
    }
}

#[test]
fn finish_reasons_of_compatible_servers() {
    use FinishReason::{Filtered, Length, Malformed, Other, Refused, Stop};
    let parts = RequestParts::new(Wire::Chat);
    for (reason, expected) in [
        ("eos", Stop),
        ("COMPLETE", Stop),
        ("tool_use", Stop),
        ("model_length", Length),
        ("max_tokens", Length),
        ("MAX_TOKENS", Length),
        ("sensitive", Filtered),
        ("content_filter: PROHIBITED_CONTENT", Filtered),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", Malformed),
        ("refusal", Refused),
        ("abort", Other("abort".into())),
    ] {
        let body = json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": reason }] });
        let reply = codec(LOCAL).decode(&parts.request(), 200, body.to_string().as_bytes()).unwrap();
        assert_eq!(reply.finish, expected, "{reason}");
    }
}

#[test]
fn reasoning_beside_the_output_is_paid_for() {
    let (reply, _) = read(LOCAL, "xai.json");
    let cost = |usage| Prices::builtin().cost(&"OpenAI/gpt-4o".parse().unwrap(), usage).unwrap().dollars();
    let written = Usage { output_tokens: 1499, ..reply.usage };
    assert!((cost(reply.usage) - cost(written) - 2809.0 * 10e-6).abs() < 1e-9);
    let parts = RequestParts::new(Wire::Responses);
    let count = |usage: Json| {
        let body = json!({ "status": "completed", "output": [], "usage": usage }).to_string();
        Wire::Responses.decode(&parts.request(), 200, body.as_bytes()).unwrap().usage
    };
    let beside = json!({
        "input_tokens": 20, "output_tokens": 5, "total_tokens": 29,
        "input_tokens_details": { "cached_tokens": 10, "cache_write_tokens": 6 },
        "output_tokens_details": { "reasoning_tokens": 4 },
    });
    let expected = Usage { cached_tokens: 10, cache_write_tokens: 6, reasoning_tokens: 4, ..usage() };
    assert_eq!(count(beside), expected);
    // A total that includes cached tokens says nothing about the output.
    let chat = |usage: Json| {
        let body = json!({ "choices": [{ "message": {}, "finish_reason": "stop" }], "usage": usage }).to_string();
        codec(LOCAL).decode(&RequestParts::new(Wire::Chat).request(), 200, body.as_bytes()).unwrap().usage
    };
    let cached = json!({
        "prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 39, "cache_read_input_tokens": 10,
    });
    assert_eq!(chat(cached), Usage { cached_tokens: 10, ..usage() });
    assert_eq!(chat(json!({ "input_tokens": 20, "output_tokens": 9 })), usage());
    assert_eq!(
        chat(json!({ "prompt_tokens": u64::MAX, "completion_tokens": u64::MAX, "total_tokens": 1 })).output_tokens,
        u64::MAX
    );
}

/// Encodes a request with all settings, and returns its body.
fn body(base_url: &str, model: &str, streaming: Streaming) -> Json {
    let mut parts = RequestParts::new(Wire::Chat);
    parts.model.id = model.into();
    parts.settings.max_tokens = Some(100);
    parts.settings.seed = Some(7);
    serde_json::from_slice(&codec(base_url).encode(&parts.request(), streaming)).unwrap()
}

#[test]
fn settings_have_the_names_of_the_server() {
    for (base_url, model, limit, seed) in [
        (OPENAI, "gpt-4o", "max_completion_tokens", "seed"),
        ("https://me.openai.azure.com/openai/v1", "deployment", "max_completion_tokens", "seed"),
        (MISTRAL, "mistral-small", "max_tokens", "random_seed"),
        (DEEPSEEK, "deepseek-v4", "max_tokens", "seed"),
        (LOCAL, "llama", "max_tokens", "seed"),
        // A proxy in front of OpenAI.
        (LOCAL, "openai/gpt-5.1", "max_completion_tokens", "seed"),
        (LOCAL, "o3-mini", "max_completion_tokens", "seed"),
    ] {
        let body = body(base_url, model, Streaming::On);
        for name in ["max_completion_tokens", "max_tokens"] {
            assert_eq!(body.get(name).is_some(), name == limit, "{base_url} {model}: {name}");
        }
        for name in ["seed", "random_seed"] {
            assert_eq!(body.get(name).is_some(), name == seed, "{base_url} {model}: {name}");
        }
        assert_eq!(body.get("stream_options").is_some(), base_url != MISTRAL, "{base_url}");
    }
}

#[test]
fn the_default_effort_is_left_to_every_server() {
    for base_url in ["https://api.openai.com/v1", "https://api.groq.com/openai/v1", "http://localhost:8080/v1"] {
        let mut parts = RequestParts::new(Wire::Chat);
        parts.settings.reasoning_effort = Some("default".into());
        let body = codec(base_url).encode(&parts.request(), Streaming::Off);
        let body: Json = serde_json::from_slice(body.as_ref()).unwrap();
        assert_eq!(body.get("reasoning_effort"), None, "{base_url}");
    }
}

#[test]
fn strict_tools_are_not_mixed_with_others() {
    let strict = |base_url: &str, tools: &[bool]| {
        let mut parts = RequestParts::new(Wire::Chat);
        parts.tools = tools.iter().map(|is_strict| offered("sayHello", "personName", *is_strict)).collect();
        for tool in &mut parts.tools {
            tool.strict_schema = tool.strict_schema.take().map(|_| json!({ "title": "strict" }).into());
        }
        let body: Json = serde_json::from_slice(&codec(base_url).encode(&parts.request(), Streaming::Off)).unwrap();
        let tools = body["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| {
                let is_strict = tool["function"].get("strict") == Some(&json!(true));
                assert_eq!(tool["function"]["parameters"].get("title").is_some(), is_strict);
                is_strict
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(strict(OPENAI, &[true, false]), [true, false]);
    for server in [CEREBRAS, LOCAL, OPENROUTER] {
        assert_eq!(strict(server, &[true, false]), [false, false], "{server}");
        assert_eq!(strict(server, &[true, true]), [true, true], "{server}");
    }
}

#[test]
fn ids_have_the_length_that_the_server_wants() {
    let calls = vec![ada("aB3dE5gH7"), ada("call_1_0"), ada("call_1_1"), ada("too-short")];
    let reply = Reply { calls, ..read(LOCAL, "groq.stream").0 };
    let messages = continue_with(MISTRAL, "mistral-small", &reply);
    let ids: Vec<_> = messages[2]["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].clone()).collect();
    let answered: Vec<_> = messages[3..].iter().map(|message| message["tool_call_id"].clone()).collect();
    assert_eq!(ids, answered);
    assert_eq!(ids[0], "aB3dE5gH7");
    let unique: std::collections::HashSet<_> = ids.iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(unique.len(), 4);
    for id in unique {
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    }
}

#[test]
fn servers_are_known_by_their_host() {
    for (base_url, name) in [
        ("https://api.mistral.ai", "Mistral"),
        ("https://API.Mistral.ai:443/v1", "Mistral"),
        ("https://eu.api.mistral.ai/v1", "Mistral"),
        ("https://api.mistral.ai.example.com/v1", "api.mistral.ai.example.com"),
        ("https://notapi.mistral.ai/v1", "notapi.mistral.ai"),
        ("https://me:x@api.groq.com/openai/v1", "Groq"),
        ("api.x.ai", "xAI"),
        ("http://127.0.0.1:1234/v1", "127.0.0.1:1234"),
        ("", ""),
    ] {
        assert_eq!(Server::new(Provider::OPENAI, base_url).name(), name, "{base_url}");
    }
    // The host of another provider's protocol, and of the provider itself.
    assert_eq!(Server::new(Provider::ANTHROPIC, "https://api.deepseek.com/anthropic").name(), "DeepSeek");
    for provider in Provider::ALL.into_iter().filter(|provider| provider.endpoint().is_some()) {
        assert_eq!(Server::own(provider).name(), provider.name());
    }
}

#[test]
fn replies_with_a_message_instead_of_deltas_are_read() {
    let parts = RequestParts::new(Wire::Chat);
    for events in [
        // A whole message at the end of empty deltas, or in a stream of one event.
        "data: {\"choices\":[{\"delta\":{},\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    ] {
        let mut decoder = codec(LOCAL).stream_decoder(&parts.request());
        assert_eq!(decoder.push(events.as_bytes()).unwrap(), [Delta::Text { text: "Hi".into() }]);
        assert_eq!(decoder.finish().unwrap().text, "Hi");
    }
}
