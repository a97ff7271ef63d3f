//! Cassettes: exchanges with each protocol, whole and streamed, with what a reply must mean and what must be sent back.
//!
//! `tests/wire/cassettes/WIRE.json` has the exchanges of a protocol. Each has a `case`, the body of a `whole` reply with its
//! `status`, the `events` of the same reply as a stream, what is `expected`, and texts that are `sent_back` with the next
//! request. The requests are checked to be well-formed and to stream or not.

use super::{RequestParts, result, stream};
use patter_core::message::conversation::{ToolOutcome, Usage};
use patter_core::message::request::{Reply, Settings};
use patter_core::wire::{Streaming, Wire, WireError};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// The cases that every protocol has, with those that it has no way to express.
const CASES: [(&str, &[Wire]); 10] = [
    ("parallel calls", &[]),
    ("calls without ids", &[]),
    ("reasoning", &[]),
    ("refusal", &[Wire::Gemini, Wire::Ollama]),
    ("content filter", &[Wire::Anthropic, Wire::Ollama]),
    ("length", &[]),
    ("empty", &[]),
    ("unknown block", &[]),
    ("usage", &[]),
    ("error", &[]),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cassette {
    case: String,
    #[serde(default = "ok")]
    status: u16,
    whole: Json,
    events: Vec<Json>,
    expected: Expected,
    #[serde(default)]
    sent_back: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expected {
    Error { error: String },
    Reply(ExpectedReply),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedReply {
    text: String,
    calls: Vec<ExpectedCall>,
    finish: String,
    thought: String,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct ExpectedCall {
    /// The id, unless it is made up.
    id: Option<String>,
    tool: String,
    arguments: Json,
}

fn ok() -> u16 {
    200
}

fn cassettes(wire: Wire) -> Vec<Cassette> {
    let path = format!("{}/tests/wire/cassettes/{}.json", env!("CARGO_MANIFEST_DIR"), wire.name());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns events as a server of the protocol sends them.
fn framed(wire: Wire, events: &[Json]) -> Vec<u8> {
    let mut text = String::new();
    for event in events {
        match wire {
            Wire::Ollama => text.push_str(&format!("{event}\n")),
            _ => text.push_str(&format!("data: {event}\n\n")),
        }
    }
    // A stream of Chat Completions has an end of its own, after the last reply.
    if wire == Wire::Chat && !text.contains("\"error\"") {
        text.push_str("data: [DONE]\n\n");
    }
    text.into_bytes()
}

fn check(found: Result<Reply, WireError>, expected: &Expected, place: &str) -> Option<Reply> {
    match (found, expected) {
        (Err(error), Expected::Error { error: text }) => {
            assert!(error.to_string().contains(text), "{place}: {error}");
            None
        }
        (Ok(reply), Expected::Reply(expected)) => {
            let found = (reply.text.as_str(), reply.finish.name(), reply.thought.as_str());
            assert_eq!(found, (expected.text.as_str(), expected.finish.as_str(), expected.thought.as_str()), "{place}");
            assert_eq!(reply.calls.len(), expected.calls.len(), "{place}: {:?}", reply.calls);
            for (call, expected) in reply.calls.iter().zip(&expected.calls) {
                assert_eq!(call.tool, expected.tool, "{place}");
                assert_eq!(call.parse_arguments().unwrap(), expected.arguments, "{place}");
                match &expected.id {
                    Some(id) => assert_eq!(call.id, *id, "{place}"),
                    None => assert!(!call.id.is_empty(), "{place}"),
                }
            }
            let ids: std::collections::HashSet<_> = reply.calls.iter().map(|call| &call.id).collect();
            assert_eq!(ids.len(), reply.calls.len(), "{place}: {:?}", reply.calls);
            if let Some(usage) = expected.usage {
                assert_eq!(reply.usage, usage, "{place}");
            }
            Some(reply)
        }
        (found, Expected::Error { error }) => panic!("{place}: expected the error `{error}`, found {found:?}"),
        (Err(error), Expected::Reply(_)) => panic!("{place}: {error}"),
    }
}

/// Returns the request that follows a reply and the results of its calls.
fn next_request(wire: Wire, reply: Reply) -> String {
    let mut parts = RequestParts::new(wire);
    parts.settings = Settings { reasoning_effort: Some("low".into()), ..Settings::default() };
    let calls = reply.calls.clone();
    parts.messages.push(reply.into_message());
    for call in &calls {
        parts.messages.push(result(call, ToolOutcome::Value { value: json!("done") }));
    }
    String::from_utf8(wire.encode(&parts.request(), Streaming::Off)).unwrap()
}

#[test]
fn exchanges_mean_the_same_whole_and_streamed() {
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::ChatFunctions) {
        for Cassette { case, status, whole, events, expected, sent_back } in cassettes(wire) {
            let place = format!("{} {case}", wire.name());
            let parts = RequestParts::new(wire);
            for streaming in [Streaming::Off, Streaming::On] {
                let body: Json = serde_json::from_slice(&wire.encode(&parts.request(), streaming)).unwrap();
                let is_streamed = match wire {
                    Wire::Gemini => wire.path("m", streaming).contains("stream"),
                    _ => body["stream"] == true,
                };
                assert_eq!(is_streamed, streaming == Streaming::On, "{place}");
            }
            let found = wire.decode(&parts.request(), status, whole.to_string().as_bytes());
            let whole = check(found, &expected, &format!("{place}, whole"));
            let (_, end) = stream(wire, &framed(wire, &events));
            let streamed = check(end, &expected, &format!("{place}, streamed"));
            for (form, reply) in [("whole", whole), ("streamed", streamed)] {
                let Some(reply) = reply.filter(|_| !sent_back.is_empty()) else { continue };
                let next = next_request(wire, reply);
                for text in &sent_back {
                    assert_eq!(next.matches(text.as_str()).count(), 1, "{place}, {form}: `{text}` in {next}");
                }
            }
        }
    }
}

#[test]
fn every_wire_has_every_case() {
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::ChatFunctions) {
        let recorded: Vec<String> = cassettes(wire).into_iter().map(|cassette| cassette.case).collect();
        let expected: Vec<&str> =
            CASES.iter().filter(|(_, without)| !without.contains(&wire)).map(|(case, _)| *case).collect();
        assert_eq!(recorded, expected, "{}", wire.name());
    }
}
