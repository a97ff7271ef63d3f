//! Framing of streams, and bodies that are not streams.

use super::{feed, file, stream};
use patter_core::message::request::Delta;
use patter_core::wire::{Wire, WireError};
use proptest::prelude::*;

const FILES: [(Wire, &str); 23] = [
    (Wire::Chat, "../vendors/deepseek.stream"),
    (Wire::Chat, "../vendors/gemini.stream"),
    (Wire::Chat, "../vendors/llama-box.stream"),
    (Wire::Chat, "../vendors/lmstudio.stream"),
    (Wire::Chat, "../vendors/mistral.stream"),
    (Wire::Chat, "../vendors/openrouter.stream"),
    (Wire::Chat, "../vendors/openrouter-502.stream"),
    (Wire::Chat, "../vendors/perplexity.stream"),
    (Wire::Chat, "../vendors/vllm.stream"),
    (Wire::Chat, "plain.stream"),
    (Wire::Chat, "calls.stream"),
    (Wire::Chat, "midway.stream"),
    (Wire::ChatFunctions, "call.stream"),
    (Wire::Responses, "calls.stream"),
    (Wire::Responses, "thought.stream"),
    (Wire::Responses, "midway.stream"),
    (Wire::Anthropic, "calls.stream"),
    (Wire::Anthropic, "thought.stream"),
    (Wire::Anthropic, "broken.stream"),
    (Wire::Gemini, "calls.stream"),
    (Wire::Gemini, "thought.stream"),
    (Wire::Ollama, "thought.stream"),
    (Wire::Ollama, "midway.stream"),
];

/// Returns the text of a stream.
fn text(wire: Wire, bytes: &[u8]) -> String {
    let (deltas, _) = stream(wire, bytes);
    let pieces = deltas.iter().map(|delta| match delta {
        Delta::Text { text } => text.as_str(),
        other => panic!("{other:?}"),
    });
    pieces.collect()
}

#[test]
fn events_are_assembled() {
    let event = r#"{"choices": [{"delta": {"content": "é"}}]}"#;
    let split = "data: {\"choices\": [{\"delta\":\ndata:{\"content\": \"é\"}}]}";
    let cases = [
        (format!("data: {event}\n\n"), "é"),
        (format!("data:{event}\r\n\r\ndata:{event}\r\n\r\n"), "éé"),
        (format!("data: {event}\r\rdata: {event}\n\r\n"), "éé"),
        (format!("\u{feff}data: {event}\n\n"), "é"),
        (format!("\u{feff}\u{feff}data: {event}\n\n"), ""),
        (format!(": a comment\nevent: odd\nid: 1\nretry: 2\nsomething\ndata: {event}\n\n"), "é"),
        (format!("{split}\n\n"), "é"),
        (format!("\n\n\nevent: nothing\n\ndata: {event}\n\n"), "é"),
        (format!("data: {event}\n"), ""),
    ];
    for (bytes, expected) in cases {
        assert_eq!(text(Wire::Chat, bytes.as_bytes()), expected, "{bytes:?}");
    }
    let line = r#"{"message": {"content": "é"}}"#;
    assert_eq!(text(Wire::Ollama, format!("\u{feff}{line}\r\n\r\n \n{line}\n").as_bytes()), "éé");
}

#[test]
fn the_last_line_may_be_unterminated() {
    let piece = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}";
    let (deltas, end) = stream(Wire::Chat, format!("{piece}\n\ndata: [DONE]").as_bytes());
    assert_eq!(deltas, [Delta::Text { text: "Hi".into() }]);
    assert_eq!(end.unwrap().text, "Hi");
    let (_, end) = stream(Wire::Ollama, br#"{"message": {"content": "Hi"}, "done": true}"#);
    assert_eq!(end.unwrap().text, "Hi");
    assert_eq!(stream(Wire::Chat, piece.as_bytes()).1, Err(WireError::Truncated));
    assert_eq!(stream(Wire::Ollama, b"{\"message\"").1, Err(WireError::Truncated));
    assert_eq!(stream(Wire::Chat, b"").1, Err(WireError::Truncated));
}

#[test]
fn data_after_the_end_is_ignored() {
    for (wire, name) in
        [(Wire::Chat, "plain.stream"), (Wire::Anthropic, "calls.stream"), (Wire::Ollama, "plain.stream")]
    {
        let bytes = file(wire, name);
        let more = [bytes.as_slice(), b"\ndata: {\n\n{\"error\": \"x\"}\n"].concat();
        assert_eq!(stream(wire, &more), stream(wire, &bytes));
    }
}

#[test]
fn events_and_replies_have_a_maximum_size() {
    let check = |chunk: &[u8], times: usize, wire: Wire, message: &str| {
        let (_, end) = feed(wire, std::iter::repeat_n(chunk, times));
        assert_eq!(end.unwrap_err().to_string(), format!("malformed reply: {message}"));
    };
    let long = vec![b'x'; 1 << 20];
    for (wire, byte) in [(Wire::Chat, b':'), (Wire::Ollama, b'{')] {
        check(&vec![byte; 1 << 20], 17, wire, "an event is larger than 16 MiB");
    }
    check(&[b'['; 1 << 20], 65, Wire::Chat, "larger than 64 MiB");
    let mut line = b"data: ".to_vec();
    line.resize(1 << 20, b'x');
    line.push(b'\n');
    check(&line, 17, Wire::Chat, "an event is larger than 16 MiB");
    let comment = [b":".as_slice(), &long, b"\n"].concat();
    check(&comment, 65, Wire::Chat, "larger than 64 MiB");
}

/// Each chunk is read once: read again with every chunk, these would be hundreds of gigabytes.
#[test]
fn a_flood_of_whitespace_takes_linear_time() {
    let start = std::time::Instant::now();
    for wire in [Wire::Chat, Wire::Ollama] {
        let (_, end) = feed(wire, std::iter::repeat_n([b' '; 4096].as_slice(), (64 << 20) / 4096 + 1));
        assert_eq!(end.unwrap_err().to_string(), "malformed reply: larger than 64 MiB");
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(60));
    let event = b"data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\n";
    let (deltas, _) = feed(Wire::Chat, [b"  ".as_slice(), b"\n \r", b"\n", event]);
    assert_eq!(deltas, [Delta::Text { text: "Hi".into() }]);
}

#[test]
fn malformed_events_are_errors() {
    let cases: [(Wire, &[u8]); 3] =
        [(Wire::Chat, b"data: {\n\n"), (Wire::Anthropic, b"data: \xff\n\n"), (Wire::Ollama, b"{<html>\n")];
    for (wire, bytes) in cases {
        let error = stream(wire, bytes).1.unwrap_err().to_string();
        assert!(error.starts_with("malformed reply: not valid JSON: "), "{error}");
    }
}

/// Splits bytes at the given positions.
fn split<'b>(bytes: &'b [u8], positions: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut positions: Vec<usize> = positions.iter().map(|position| position.index(bytes.len() + 1)).collect();
    positions.sort_unstable();
    let starts = std::iter::once(0).chain(positions.iter().copied());
    let ends = positions.iter().copied().chain([bytes.len()]);
    starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect()
}

fn wires() -> impl Strategy<Value = Wire> {
    prop::sample::select(Wire::ALL.to_vec())
}

proptest! {
    #[test]
    fn splitting_changes_nothing(
        (wire, name) in prop::sample::select(FILES.to_vec()),
        positions in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        corruption in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut bytes = file(wire, name);
        if let Some((position, byte)) = corruption {
            let at = position.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert_eq!(feed(wire, split(&bytes, &positions)), feed(wire, [bytes.as_slice()]));
    }

    #[test]
    fn garbage_is_an_error(
        wire in wires(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        status in 100u16..600,
    ) {
        let _ = stream(wire, &bytes);
        let parts = super::RequestParts::new(wire);
        prop_assert!(wire.decode(&parts.request(), status, &bytes).is_err());
    }

    #[test]
    fn json_of_any_shape_does_not_panic(wire in wires(), json in shapes()) {
        let parts = super::RequestParts::new(wire);
        let _ = wire.decode(&parts.request(), 200, json.to_string().as_bytes());
        let _ = stream(wire, format!("data: {json}\n\n").as_bytes());
        let _ = stream(wire, format!("{json}\n").as_bytes());
        let _ = stream(wire, format!("error: {json}\n\n").as_bytes());
    }

    #[test]
    fn errors_of_any_shape_do_not_panic(json in shapes(), status in 300u16..600) {
        let body = json.to_string();
        let error = patter_core::wire::WireError::from_status(status, body.as_bytes());
        prop_assert!(error.to_string().chars().count() < 2200);
        let _ = patter_core::wire::retry_delay(body.as_bytes());
    }
}

/// Generates JSON with the keys that decoders look up, in the wrong places.
fn shapes() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let keys = [
        "choices",
        "message",
        "delta",
        "content",
        "tool_calls",
        "function",
        "function_call",
        "index",
        "id",
        "name",
        "arguments",
        "finish_reason",
        "usage",
        "error",
        "type",
        "output",
        "item",
        "output_index",
        "response",
        "status",
        "content_block",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "text",
        "finishReason",
        "done",
        "thinking",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "extra_content",
        "x_groq",
        "prompt_tokens_details",
        "total_tokens",
        "detail",
        "metadata",
        "raw",
        "loc",
        "details",
        "retryDelay",
        "object",
        "code",
    ];
    let words = [
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
        "function_call",
        "message",
        "response.function_call_arguments.delta",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "input_json_delta",
        "tool_use",
        "text",
        "message_stop",
        "error",
        "stop",
        "5s",
        "null",
        "{\"message\": [{\"msg\": \"x\"}]}",
        "x",
        "",
    ];
    let leaf = prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(|word| json!(word)),
        prop::sample::select(vec![
            json!(0),
            json!(u64::MAX),
            json!(-1),
            json!(null),
            json!(true),
            json!({}),
            json!([])
        ]),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

#[test]
fn bodies_that_are_not_streams() {
    let whole = br#"  {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}"#;
    let (deltas, reply) = stream(Wire::Chat, whole);
    assert_eq!((deltas, reply.unwrap().text), (vec![], "Hi".to_owned()), "a whole reply is decoded at the end");
    let page = format!("<html>\n\u{1b}[2J {}", "x".repeat(9000));
    for (wire, body) in
        [(Wire::Chat, page.as_str()), (Wire::Ollama, &page), (Wire::Gemini, "Not Found"), (Wire::Ollama, "up")]
    {
        let error = stream(wire, body.as_bytes()).1.unwrap_err();
        let WireError::Unexpected { excerpt } = &error else { panic!("{error}") };
        let start = if body.starts_with('<') { "<html> [2J x" } else { body };
        assert!(excerpt.starts_with(start) && excerpt.len() < 600 && !error.is_transient(), "{error}");
    }
}
