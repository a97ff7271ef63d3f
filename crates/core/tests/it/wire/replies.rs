//! Whole and streamed replies.

use super::{RequestParts, assemble, call, feed, file, stream};
use patter_core::message::conversation::{Message, Usage};
use patter_core::message::request::{Delta, FinishReason, Reply};
use patter_core::wire::{Wire, WireError};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// Returns the wires that need a full set of recordings: all but the older variant of chat.
fn recorded_wires() -> impl Iterator<Item = Wire> {
    Wire::ALL.into_iter().filter(|wire| *wire != Wire::ChatFunctions)
}

fn decode(wire: Wire, name: &str) -> Result<Reply, WireError> {
    wire.decode(&RequestParts::new(wire).request(), 200, &file(wire, name))
}

fn read(wire: Wire, body: &str) -> Result<Reply, WireError> {
    wire.decode(&RequestParts::new(wire).request(), 200, body.as_bytes())
}

fn usage() -> Usage {
    Usage { input_tokens: 20, output_tokens: 9, ..Usage::default() }
}

#[test]
fn all_wires_decode_to_the_same_reply() {
    let calls = vec![
        call("call_a", "weather/current", r#"{"city":"Paris"}"#),
        call("call_b", "sayHello", r#"{"personName":"Ada"}"#),
    ];
    let expected = [("plain", "Bonjour, Ada! 🌞", vec![]), ("calls", "Let me look.", calls)];
    for (name, text, calls) in expected {
        let reply = Reply {
            text: text.into(),
            calls,
            finish: FinishReason::Stop,
            usage: usage(),
            opaque: None,
            thought: String::new(),
        };
        for wire in recorded_wires() {
            assert_eq!(decode(wire, &format!("{name}.json")), Ok(reply.clone()), "{wire:?} {name}");
            let (deltas, end) = stream(wire, &file(wire, &format!("{name}.stream")));
            assert_eq!(assemble(&deltas), (reply.text.clone(), String::new(), reply.calls.clone()), "{wire:?} {name}");
            assert_eq!(end, Ok(reply.clone()), "{wire:?} {name}");
        }
    }
}

#[test]
fn reasoning_and_results_of_tools_are_counted() {
    let anthropic = json!({
        "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 20, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
    });
    let gemini = json!({
        "candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 15, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 5, "thoughtsTokenCount": 4,
        },
    });
    for (wire, body) in [(Wire::Anthropic, anthropic), (Wire::Gemini, gemini)] {
        let reply = read(wire, &body.to_string()).unwrap();
        assert_eq!(reply.usage, Usage { reasoning_tokens: 4, ..usage() }, "{wire:?}");
    }
}

#[test]
fn both_chat_wires_decode_functions() {
    let calls = vec![call("call_1_0", "weather/current", r#"{"city":"Paris"}"#)];
    let expected = Reply {
        text: String::new(),
        calls,
        finish: FinishReason::Stop,
        usage: usage(),
        opaque: None,
        thought: String::new(),
    };
    for wire in [Wire::Chat, Wire::ChatFunctions] {
        let whole = file(Wire::ChatFunctions, "call.json");
        assert_eq!(wire.decode(&RequestParts::new(wire).request(), 200, &whole), Ok(expected.clone()));
        let (deltas, end) = stream(wire, &file(Wire::ChatFunctions, "call.stream"));
        assert_eq!(assemble(&deltas).2, expected.calls);
        assert_eq!(end, Ok(expected.clone()));
    }
}

#[test]
fn broken_arguments_are_preserved() {
    let broken = vec![call("call_a", "sayHello", r#"{"personName": "Ad"#)];
    let expected = Reply {
        text: String::new(),
        calls: broken,
        finish: FinishReason::Length,
        usage: usage(),
        opaque: None,
        thought: String::new(),
    };
    assert_eq!(decode(Wire::Chat, "broken.json"), Ok(expected.clone()));
    assert_eq!(decode(Wire::Responses, "broken.json"), Ok(expected.clone()));
    assert_eq!(stream(Wire::Anthropic, &file(Wire::Anthropic, "broken.stream")).1, Ok(expected));
    assert_eq!(decode(Wire::Gemini, "broken.json").unwrap().finish, FinishReason::Malformed);
}

#[test]
fn reasoning_is_shown_and_preserved_for_the_provider() {
    let ada = || call("call_a", "sayHello", r#"{"personName":"Ada"}"#);
    let generated = || {
        vec![
            call("call_1_0", "sayHello", r#"{"personName":"Ada"}"#),
            call("call_1_1", "sayHello", r#"{"personName":"Bo"}"#),
        ]
    };
    let blocks = json!([
        { "type": "thinking", "thinking": "She greets.", "signature": "EqQB" },
        { "type": "redacted_thinking", "data": "EmwK" },
        { "type": "tool_use", "id": "call_a", "name": "sayHello", "input": { "personName": "Ada" } },
    ]);
    let items = json!([
        {
            "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "She greets." }],
            "encrypted_content": "gAAAA",
        },
        {
            "type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "sayHello",
            "arguments": r#"{"personName":"Ada"}"#, "status": "completed",
        },
    ]);
    let parts = json!([
        { "text": "She greets.", "thought": true },
        { "functionCall": { "name": "sayHello", "args": { "personName": "Ada" } }, "thoughtSignature": "CqQB" },
        { "functionCall": { "name": "sayHello", "args": { "personName": "Bo" } } },
    ]);
    let counted = |cached_tokens, reasoning_tokens| Usage { cached_tokens, reasoning_tokens, ..usage() };
    let cases = [
        (Wire::Responses, vec![ada()], items, counted(16, 4)),
        (Wire::Anthropic, vec![ada()], blocks, Usage { cache_write_tokens: 1, ..counted(16, 0) }),
        (Wire::Gemini, generated(), parts, counted(16, 4)),
        (Wire::Ollama, generated(), json!("She greets."), usage()),
    ];
    for (wire, calls, data, usage) in cases {
        let whole = decode(wire, "thought.json").unwrap();
        assert_eq!((&whole.calls, whole.usage), (&calls, usage), "{wire:?}");
        assert_eq!(
            whole.opaque.as_ref().map(|opaque| (opaque.wire.as_str(), &opaque.data)),
            Some((wire.name(), &data))
        );
        let (deltas, end) = stream(wire, &file(wire, "thought.stream"));
        assert_eq!(assemble(&deltas), (String::new(), "She greets.".to_owned(), calls), "{wire:?}");
        assert_eq!(end, Ok(whole), "{wire:?}");
    }
    let lost = r#"{"status": "completed", "output": [{"type": "reasoning", "id": "rs_1", "summary": []}]}"#;
    assert_eq!(read(Wire::Responses, lost).unwrap().opaque, None);
}

#[test]
fn errors_are_decoded_in_any_format() {
    let cases = [
        (Wire::Chat, 401, "json", "the provider answered 401 `invalid_api_key`: Incorrect API key provided", false),
        (
            Wire::Chat,
            429,
            "json",
            "the provider answered 429 `rate_limit_exceeded`: Rate limit reached for requests",
            true,
        ),
        (
            Wire::Responses,
            401,
            "json",
            "the provider answered 401 `invalid_api_key`: Incorrect API key provided",
            false,
        ),
        (
            Wire::Responses,
            429,
            "json",
            "the provider answered 429 `rate_limit_exceeded`: Rate limit reached for requests",
            true,
        ),
        (Wire::Anthropic, 401, "json", "the provider answered 401 `authentication_error`: invalid x-api-key", false),
        (
            Wire::Anthropic,
            429,
            "json",
            "the provider answered 429 `rate_limit_error`: This request would exceed your rate limit",
            true,
        ),
        (Wire::Anthropic, 529, "json", "the provider answered 529 `overloaded_error`: Overloaded", true),
        (Wire::Gemini, 401, "json", "the provider answered 401 `UNAUTHENTICATED`: API key not valid", false),
        (
            Wire::Gemini,
            429,
            "json",
            "the provider answered 429 `RESOURCE_EXHAUSTED`: You exceeded your current quota",
            true,
        ),
        (Wire::Ollama, 404, "json", "the provider answered 404: model 'llama9' not found", false),
        (Wire::Ollama, 502, "html", "the provider answered 502: <html><body>502 Bad Gateway</body></html>", true),
    ];
    for (wire, status, extension, message, is_transient) in cases {
        let body = file(wire, &format!("error-{status}.{extension}"));
        let error = wire.decode(&RequestParts::new(wire).request(), status, &body).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_transient()), (message, is_transient));
    }
    let statuses = [408, 409, 500, 503, 599, 400, 403, 413, 422, 301];
    let transient = statuses.map(|status| WireError::from_status(status, b"").is_transient());
    assert_eq!(transient, [true, true, true, true, true, false, false, false, false, false]);
    assert_eq!(WireError::from_status(500, b" ").to_string(), "the provider answered 500");
    let no_credit =
        br#"{"error": {"message": "No credit", "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
    assert!(!WireError::from_status(429, no_credit).is_transient());
    let long = WireError::from_status(500, "\u{1b}[2J".repeat(9000).as_bytes()).to_string();
    assert!(long.chars().count() < 2100 && !long.contains('\u{1b}') && long.ends_with('…'));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorCase {
    wire: String,
    status: u16,
    /// JSON, or a text that is not JSON.
    body: Json,
    /// A part of the message.
    shown: String,
    /// Whether a retry may succeed.
    retry: bool,
    too_long: bool,
}

/// The bodies of `errors.json` are those of providers and of what stands in front of them.
#[test]
fn errors_are_understood_whoever_reports_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/errors.json");
    let cases: Vec<ErrorCase> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::ChatFunctions) {
        let own: Vec<_> = cases.iter().filter(|case| case.wire == wire.name()).collect();
        let has = |is_wanted: &dyn Fn(&ErrorCase) -> bool| own.iter().any(|case| is_wanted(case));
        assert!(has(&|case| case.too_long) && has(&|case| case.status >= 500 && case.retry), "{}", wire.name());
        for ErrorCase { status, body, shown, retry, too_long, .. } in own {
            let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
            let error = wire.decode(&RequestParts::new(wire).request(), *status, text.as_bytes()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(shown.as_str()), "{}: {message}", wire.name());
            assert_eq!((error.is_transient(), error.is_too_long()), (*retry, *too_long), "{}: {message}", wire.name());
        }
    }
}

#[test]
fn errors_in_a_stream_follow_the_deltas_before_them() {
    let server = "the provider reported an error `server_error`: The server had an error";
    let cases = [
        (Wire::Chat, server),
        (Wire::Responses, server),
        (Wire::Anthropic, "the provider reported an error `overloaded_error`: Overloaded"),
        (Wire::Gemini, "the provider reported an error `UNAVAILABLE`: The model is overloaded"),
        (
            Wire::Ollama,
            "the provider reported an error: an error was encountered while running the model: unexpected EOF",
        ),
    ];
    for (wire, message) in cases {
        let (deltas, end) = stream(wire, &file(wire, "midway.stream"));
        assert_eq!(deltas, [Delta::Text { text: "Bon".into() }], "{wire:?}");
        let error = end.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_transient()), (message, true));
    }
    let event = b"data: {\"type\":\"error\",\"code\":\"invalid_prompt\",\"message\":\"No\",\"param\":null}\n\n";
    let error = stream(Wire::Responses, event).1.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.is_transient()),
        ("the provider reported an error `invalid_prompt`: No", false)
    );
    let nameless = b"data: {\"type\":\"error\",\"code\":null,\"message\":\"No\"}\n\n";
    assert_eq!(stream(Wire::Responses, nameless).1.unwrap_err().to_string(), "the provider reported an error: No");
    assert_eq!(
        read(Wire::Ollama, r#"{"error": "out of memory"}"#).unwrap_err().to_string(),
        "the provider reported an error: out of memory"
    );
}

#[test]
fn a_stream_cut_anywhere_is_truncated_or_complete() {
    for wire in recorded_wires() {
        for name in ["plain.stream", "calls.stream"] {
            let bytes = file(wire, name);
            let whole = feed(wire, [bytes.as_slice()]).1.unwrap();
            let mut truncated = 0;
            for at in (0..bytes.len()).step_by(3) {
                match feed(wire, [&bytes[..at]]).1 {
                    Err(error) => {
                        assert_eq!(error, WireError::Truncated, "{wire:?} {name} {at}");
                        truncated += 1;
                    }
                    // Only token counts may follow the finish reason.
                    Ok(reply) => assert_eq!(Reply { usage: whole.usage, ..reply }, whole, "{wire:?} {name} {at}"),
                }
            }
            assert!(truncated > bytes.len() / 6, "{wire:?} {name}");
        }
    }
    assert_eq!(WireError::Truncated.to_string(), "the reply ended before it was complete");
    assert!(WireError::Truncated.is_transient());
}

#[test]
fn finish_reasons() {
    use FinishReason::{Filtered, Length, Malformed, Other, Refused, Stop};
    let chat = |reason| format!(r#"{{"choices": [{{"message": {{"content": "x"}}, "finish_reason": "{reason}"}}]}}"#);
    let anthropic = |reason| format!(r#"{{"content": [], "stop_reason": "{reason}"}}"#);
    let gemini = |reason| format!(r#"{{"candidates": [{{"finishReason": "{reason}"}}]}}"#);
    let incomplete =
        |reason| format!(r#"{{"status": "incomplete", "incomplete_details": {{"reason": "{reason}"}}, "output": []}}"#);
    let ollama = |reason| format!(r#"{{"message": {{}}, "done": true, "done_reason": "{reason}"}}"#);
    let refusal = r#"{"status": "completed", "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]}"#;
    let cases = [
        (Wire::Chat, chat("length"), Length),
        (Wire::Chat, chat("content_filter"), Filtered),
        (Wire::Chat, chat("odd"), Other("odd".into())),
        (Wire::Chat, r#"{"choices": [{"message": {"refusal": "No."}, "finish_reason": "stop"}]}"#.into(), Refused),
        (Wire::Responses, incomplete("max_output_tokens"), Length),
        (Wire::Responses, incomplete("content_filter"), Filtered),
        (Wire::Responses, refusal.into(), Refused),
        (Wire::Anthropic, anthropic("max_tokens"), Length),
        (Wire::Anthropic, anthropic("model_context_window_exceeded"), Length),
        (Wire::Anthropic, anthropic("refusal"), Refused),
        (Wire::Anthropic, anthropic("content_filtered"), Filtered),
        (Wire::Anthropic, anthropic(""), Stop),
        (Wire::Anthropic, anthropic("pause_turn"), Other("pause_turn".into())),
        (Wire::Gemini, gemini("MAX_TOKENS"), Length),
        (Wire::Gemini, gemini("SAFETY"), Filtered),
        (Wire::Gemini, gemini("UNEXPECTED_TOOL_CALL"), Malformed),
        (Wire::Gemini, gemini("IMAGE_SAFETY"), Filtered),
        (Wire::Gemini, gemini(""), Stop),
        (Wire::Gemini, gemini("FINISH_REASON_UNSPECIFIED"), Stop),
        (Wire::Gemini, r#"{"promptFeedback": {"blockReason": "SAFETY"}}"#.into(), Filtered),
        (Wire::Ollama, ollama("length"), Length),
        (Wire::Ollama, ollama("stop"), Stop),
        (Wire::Ollama, ollama(""), Stop),
    ];
    for (wire, body, finish) in cases {
        let reply = read(wire, &body).unwrap();
        assert_eq!(reply.finish, finish, "{body}");
        assert_eq!(reply.text == "No.", finish == Refused && wire != Wire::Anthropic, "{body}");
    }
}

#[test]
fn names_and_ids_fit_the_conversation() {
    let mut parts = RequestParts::new(Wire::Chat);
    parts
        .messages
        .push(Message::assistant("", vec![call("taken", "sayHello", "{}"), call("call_2_0", "sayHello", "{}")]));
    let body = br#"{"choices": [{"message": {"tool_calls": [
        {"id": "taken", "function": {"name": "weather__current", "arguments": "{}"}},
        {"id": "", "function": {"name": "other__tool", "arguments": {"a": 1}}},
        {"id": "new", "function": {"name": "weather/current"}},
        {"id": "new", "function": {}}
    ]}}]}"#;
    let reply = Wire::Chat.decode(&parts.request(), 200, body).unwrap();
    let expected = [
        call("call_2_1", "weather/current", "{}"),
        call("call_2_2", "other__tool", r#"{"a":1}"#),
        call("new", "weather/current", ""),
        call("call_2_3", "", ""),
    ];
    assert_eq!(reply.calls, expected);
}

#[test]
fn inconsistent_call_indices_are_accepted() {
    let delta = |calls: &str| format!("data: {{\"choices\": [{{\"delta\": {{\"tool_calls\": [{calls}]}}}}]}}\n\n");
    let named = |index: &str, id: &str, name: &str, arguments: &str| {
        delta(&format!(r#"{{{index} "id": "{id}", "function": {{"name": "{name}", "arguments": "{arguments}"}}}}"#))
    };
    let end = "data: [DONE]\n\n";
    let expected = vec![call("a", "sayHello", "12"), call("b", "sayHello", "34")];
    // No index; the same index for all calls; the name after the arguments; name and id repeated in each event.
    let cases = [
        [
            named("", "a", "sayHello", "1"),
            named("", "", "", "2"),
            named("", "b", "sayHello", "3"),
            named("", "", "", "4"),
        ],
        [
            named("\"index\": 0,", "a", "sayHello", "12"),
            named("\"index\": 0,", "b", "sayHello", "34"),
            String::new(),
            String::new(),
        ],
        [
            named("\"index\": 0,", "a", "", "1"),
            named("\"index\": 0,", "", "sayHello", "2"),
            named("\"index\": 9,", "b", "sayHello", "3"),
            named("\"index\": 9,", "", "", "4"),
        ],
        [
            named("\"index\": 0,", "a", "sayHello", "1"),
            named("\"index\": 0,", "a", "sayHello", "2"),
            named("\"index\": 1,", "b", "sayHello", "3"),
            named("\"index\": 1,", "b", "sayHello", "4"),
        ],
    ];
    for case in cases {
        let (deltas, reply) = stream(Wire::Chat, (case.concat() + end).as_bytes());
        assert_eq!(assemble(&deltas).2, expected, "{case:?}");
        assert_eq!(reply.unwrap().calls, expected, "{case:?}");
    }
}

#[test]
fn invalid_replies_are_errors() {
    let cases = [
        (Wire::Chat, "{}", "missing `choices`"),
        (Wire::Responses, "{}", "missing `output`"),
        (Wire::Anthropic, "[]", "missing `content`"),
        (Wire::Gemini, "{}", "missing `candidates`"),
        (Wire::Ollama, "[7]", "missing `message`"),
        (Wire::Chat, "{<html>", "not valid JSON: key must be a string at line 1 column 2"),
        (Wire::Chat, "", "not valid JSON: EOF while parsing a value at line 1 column 0"),
    ];
    let cases = cases.map(|(wire, body, message)| (wire, body, format!("malformed reply: {message}")));
    let page = (Wire::Chat, "<html>", "not a model reply: <html>".to_owned());
    for (wire, body, message) in cases.into_iter().chain([page]) {
        let error = read(wire, body).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(!error.is_transient());
    }
}
