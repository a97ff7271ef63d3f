//! Replies, whole and in pieces.

use super::{Asked, call, feed, file, stream, together};
use patter_core::message::conversation::{Message, Usage};
use patter_core::message::request::{Delta, Finish, Reply};
use patter_core::wire::{Wire, WireError};
use serde_json::json;

const MODERN: [Wire; 5] = [Wire::Chat, Wire::Responses, Wire::Anthropic, Wire::Gemini, Wire::Ollama];

fn decode(wire: Wire, name: &str) -> Result<Reply, WireError> {
    wire.decode(&Asked::new(wire).request(), 200, &file(wire, name))
}

fn read(wire: Wire, body: &str) -> Result<Reply, WireError> {
    wire.decode(&Asked::new(wire).request(), 200, body.as_bytes())
}

fn usage() -> Usage {
    Usage { input_tokens: 20, output_tokens: 9, ..Usage::default() }
}

#[test]
fn every_wire_tells_the_same() {
    let calls = vec![
        call("call_a", "weather/current", r#"{"city":"Paris"}"#),
        call("call_b", "sayHello", r#"{"personName":"Ada"}"#),
    ];
    let expected = [("plain", "Bonjour, Ada! 🌞", vec![]), ("calls", "Let me look.", calls)];
    for (name, text, calls) in expected {
        let reply = Reply { text: text.into(), calls, finish: Finish::Stop, usage: usage(), opaque: None };
        for wire in MODERN {
            assert_eq!(decode(wire, &format!("{name}.json")), Ok(reply.clone()), "{wire:?} {name}");
            let (deltas, end) = stream(wire, &file(wire, &format!("{name}.stream")));
            assert_eq!(together(&deltas), (reply.text.clone(), String::new(), reply.calls.clone()), "{wire:?} {name}");
            assert_eq!(end, Ok(reply.clone()), "{wire:?} {name}");
        }
    }
}

#[test]
fn functions_are_read_on_both_chat_wires() {
    let calls = vec![call("call_1_0", "weather/current", r#"{"city":"Paris"}"#)];
    let expected = Reply { text: String::new(), calls, finish: Finish::Stop, usage: usage(), opaque: None };
    for wire in [Wire::Chat, Wire::ChatFunctions] {
        let whole = file(Wire::ChatFunctions, "call.json");
        assert_eq!(wire.decode(&Asked::new(wire).request(), 200, &whole), Ok(expected.clone()));
        let (deltas, end) = stream(wire, &file(Wire::ChatFunctions, "call.stream"));
        assert_eq!(together(&deltas).2, expected.calls);
        assert_eq!(end, Ok(expected.clone()));
    }
}

#[test]
fn broken_arguments_are_kept_as_they_came() {
    let broken = vec![call("call_a", "sayHello", r#"{"personName": "Ad"#)];
    let expected = Reply { text: String::new(), calls: broken, finish: Finish::Length, usage: usage(), opaque: None };
    assert_eq!(decode(Wire::Chat, "broken.json"), Ok(expected.clone()));
    assert_eq!(decode(Wire::Responses, "broken.json"), Ok(expected.clone()));
    assert_eq!(stream(Wire::Anthropic, &file(Wire::Anthropic, "broken.stream")).1, Ok(expected));
    assert_eq!(decode(Wire::Gemini, "broken.json").unwrap().finish, Finish::Malformed);
}

#[test]
fn thoughts_are_shown_and_kept_for_the_provider() {
    let ada = || call("call_a", "sayHello", r#"{"personName":"Ada"}"#);
    let made_up = || {
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
        (Wire::Gemini, made_up(), parts, counted(16, 4)),
        (Wire::Ollama, made_up(), json!("She greets."), usage()),
    ];
    for (wire, calls, data, usage) in cases {
        let whole = decode(wire, "thought.json").unwrap();
        assert_eq!((&whole.calls, whole.usage), (&calls, usage), "{wire:?}");
        assert_eq!(
            whole.opaque.as_ref().map(|opaque| (opaque.wire.as_str(), &opaque.data)),
            Some((wire.name(), &data))
        );
        let (deltas, end) = stream(wire, &file(wire, "thought.stream"));
        assert_eq!(together(&deltas), (String::new(), "She greets.".to_owned(), calls), "{wire:?}");
        assert_eq!(end, Ok(whole), "{wire:?}");
    }
    let lost = r#"{"status": "completed", "output": [{"type": "reasoning", "id": "rs_1", "summary": []}]}"#;
    assert_eq!(read(Wire::Responses, lost).unwrap().opaque, None);
}

#[test]
fn errors_are_read_whatever_their_form() {
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
    for (wire, status, ending, message, is_passing) in cases {
        let body = file(wire, &format!("error-{status}.{ending}"));
        let error = wire.decode(&Asked::new(wire).request(), status, &body).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_passing()), (message, is_passing));
    }
    let statuses = [408, 409, 500, 503, 599, 400, 403, 413, 422, 301];
    let passing = statuses.map(|status| WireError::of_status(status, b"").is_passing());
    assert_eq!(passing, [true, true, true, true, true, false, false, false, false, false]);
    assert_eq!(WireError::of_status(500, b" ").to_string(), "the provider answered 500");
    let poor = br#"{"error": {"message": "No means", "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
    assert!(!WireError::of_status(429, poor).is_passing());
    let long = WireError::of_status(500, "\u{1b}[2J".repeat(9000).as_bytes()).to_string();
    assert!(long.chars().count() < 2100 && !long.contains('\u{1b}') && long.ends_with('…'));
}

#[test]
fn errors_in_a_stream_come_after_what_came_before() {
    let server = "the provider broke off `server_error`: The server had an error";
    let cases = [
        (Wire::Chat, server),
        (Wire::Responses, server),
        (Wire::Anthropic, "the provider broke off `overloaded_error`: Overloaded"),
        (Wire::Gemini, "the provider broke off `UNAVAILABLE`: The model is overloaded"),
        (Wire::Ollama, "the provider broke off: an error was encountered while running the model: unexpected EOF"),
    ];
    for (wire, message) in cases {
        let (deltas, end) = stream(wire, &file(wire, "midway.stream"));
        assert_eq!(deltas, [Delta::Text { text: "Bon".into() }], "{wire:?}");
        let error = end.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_passing()), (message, true));
    }
    let event = b"data: {\"type\":\"error\",\"code\":\"invalid_prompt\",\"message\":\"No\",\"param\":null}\n\n";
    let error = stream(Wire::Responses, event).1.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.is_passing()),
        ("the provider broke off `invalid_prompt`: No", false)
    );
    let nameless = b"data: {\"type\":\"error\",\"code\":null,\"message\":\"No\"}\n\n";
    assert_eq!(stream(Wire::Responses, nameless).1.unwrap_err().to_string(), "the provider broke off: No");
    assert_eq!(
        read(Wire::Ollama, r#"{"error": "out of memory"}"#).unwrap_err().to_string(),
        "the provider broke off: out of memory"
    );
}

#[test]
fn a_stream_cut_anywhere_is_told_or_was_complete() {
    for wire in MODERN {
        for name in ["plain.stream", "calls.stream"] {
            let bytes = file(wire, name);
            let whole = feed(wire, [bytes.as_slice()]).1.unwrap();
            let mut told = 0;
            for at in (0..bytes.len()).step_by(3) {
                match feed(wire, [&bytes[..at]]).1 {
                    Err(error) => {
                        assert_eq!(error, WireError::Cut, "{wire:?} {name} {at}");
                        told += 1;
                    }
                    // Only the count of tokens may come after the reason why a model stopped.
                    Ok(reply) => assert_eq!(Reply { usage: whole.usage, ..reply }, whole, "{wire:?} {name} {at}"),
                }
            }
            assert!(told > bytes.len() / 6, "{wire:?} {name}");
        }
    }
    assert_eq!(WireError::Cut.to_string(), "the reply ended before it was complete");
    assert!(WireError::Cut.is_passing());
}

#[test]
fn models_stop_for_many_reasons() {
    use Finish::{Filtered, Length, Malformed, Other, Refused, Stop};
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
        (Wire::Anthropic, anthropic("pause_turn"), Other("pause_turn".into())),
        (Wire::Gemini, gemini("MAX_TOKENS"), Length),
        (Wire::Gemini, gemini("SAFETY"), Filtered),
        (Wire::Gemini, gemini("UNEXPECTED_TOOL_CALL"), Malformed),
        (Wire::Gemini, r#"{"promptFeedback": {"blockReason": "SAFETY"}}"#.into(), Filtered),
        (Wire::Ollama, ollama("length"), Length),
        (Wire::Ollama, ollama("stop"), Stop),
    ];
    for (wire, body, finish) in cases {
        let reply = read(wire, &body).unwrap();
        assert_eq!(reply.finish, finish, "{body}");
        assert_eq!(reply.text == "No.", finish == Refused && wire != Wire::Anthropic, "{body}");
    }
}

#[test]
fn names_and_ids_are_those_of_the_conversation() {
    let mut asked = Asked::new(Wire::Chat);
    asked
        .messages
        .push(Message::assistant("", vec![call("taken", "sayHello", "{}"), call("call_2_0", "sayHello", "{}")]));
    let body = br#"{"choices": [{"message": {"tool_calls": [
        {"id": "taken", "function": {"name": "weather__current", "arguments": "{}"}},
        {"id": "", "function": {"name": "other__tool", "arguments": {"a": 1}}},
        {"id": "new", "function": {"name": "weather/current"}},
        {"id": "new", "function": {}}
    ]}}]}"#;
    let reply = Wire::Chat.decode(&asked.request(), 200, body).unwrap();
    let expected = [
        call("call_2_1", "weather/current", "{}"),
        call("call_2_2", "other__tool", r#"{"a":1}"#),
        call("new", "weather/current", ""),
        call("call_2_3", "", ""),
    ];
    assert_eq!(reply.calls, expected);
}

#[test]
fn servers_that_count_calls_badly_are_understood() {
    let delta = |calls: &str| format!("data: {{\"choices\": [{{\"delta\": {{\"tool_calls\": [{calls}]}}}}]}}\n\n");
    let named = |index: &str, id: &str, name: &str, arguments: &str| {
        delta(&format!(r#"{{{index} "id": "{id}", "function": {{"name": "{name}", "arguments": "{arguments}"}}}}"#))
    };
    let end = "data: [DONE]\n\n";
    let expected = vec![call("a", "sayHello", "12"), call("b", "sayHello", "34")];
    // Without an index; all with the same index; the name after the arguments; the name and the id again and again.
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
        assert_eq!(together(&deltas).2, expected, "{case:?}");
        assert_eq!(reply.unwrap().calls, expected, "{case:?}");
    }
}

#[test]
fn what_is_no_reply_is_told() {
    let cases = [
        (Wire::Chat, "{}", "it has no `choices`"),
        (Wire::Responses, "{}", "it has no `output`"),
        (Wire::Anthropic, "[]", "it has no `content`"),
        (Wire::Gemini, "{}", "it has no `candidates`"),
        (Wire::Ollama, "[7]", "it has no `message`"),
        (Wire::Chat, "{<html>", "it is no JSON: key must be a string at line 1 column 2"),
        (Wire::Chat, "", "it is no JSON: EOF while parsing a value at line 1 column 0"),
    ];
    let cases = cases.map(|(wire, body, message)| (wire, body, format!("the reply cannot be read: {message}")));
    let foreign = (Wire::Chat, "<html>", "what came is no reply of a model: <html>".to_owned());
    for (wire, body, message) in cases.into_iter().chain([foreign]) {
        let error = read(wire, body).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(!error.is_passing());
    }
}
