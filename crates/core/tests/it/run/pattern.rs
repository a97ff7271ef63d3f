//! Sessions as patterns: they say the same as the JSON export, whatever was said.

use super::invariants::{any_spec, random_input};
use super::*;
use crate::generate::cases;
use patter_core::message::conversation::{Opaque, ToolOutcome};
use patter_core::run::{CallTiming, RunInput};
use patter_core::session::{Log, LogEntry, session_pattern};
use patter_gram::{Pattern, Value};
use proptest::prelude::*;
use serde_json::Map;

/// Returns what the JSON export says about a log.
fn exported(log: &Log) -> Json {
    json!({"usage": log.usage(), "turns": log.turns(), "conversation": log.conversation()})
}

/// Reads a session pattern back as its JSON export.
fn read_back(source: &str) -> Json {
    let (tree, diagnostics) = patter_gram::parse(source);
    assert!(diagnostics.is_empty(), "{diagnostics:?}\n{source}");
    let session = tree.patterns().next().unwrap();
    assert!(session.has_label("Session"));
    let mut conversation = Vec::new();
    let mut turns = Vec::new();
    for element in session.elements() {
        if element.has_label("Response") {
            turns.push(turn(element, conversation.len()));
            element.elements().for_each(|message| read_message(message, &mut conversation));
        } else {
            read_message(element, &mut conversation);
        }
    }
    json!({"usage": usage(session), "turns": turns, "conversation": conversation})
}

fn text(pattern: Pattern, key: &str) -> Option<Json> {
    match pattern.value(key)? {
        Value::String(text) => Some(Json::String(text)),
        other => panic!("{key}: {other:?}"),
    }
}

/// Reads text, or JSON with a tag.
fn data(value: Value) -> Json {
    match value {
        Value::String(text) => Json::String(text),
        Value::Tagged { tag, text } if tag == "json" => serde_json::from_str(&text).unwrap(),
        Value::Integer(_) | Value::Boolean(_) => serde_json::from_str(&value.to_string()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn usage(pattern: Pattern) -> Json {
    let counts = match pattern.value("usage") {
        Some(Value::Map(counts)) => counts,
        None => Vec::new(),
        other => panic!("{other:?}"),
    };
    let snake = |name: &str| {
        name.chars().fold(String::new(), |mut snake, letter| {
            if letter.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
            snake
        })
    };
    // Counts that are 0 are left out.
    let mut usage = json!(Usage::default());
    for (name, count) in counts {
        assert!(usage.get(snake(&name)).is_some(), "{name}");
        usage[snake(&name)] = data(count);
    }
    usage
}

fn turn(response: Pattern, begin: usize) -> Json {
    let outcome = if let Some(content) = text(response, "content") {
        let mut answer = json!({"text": content, "finish": data(response.value("finish").unwrap())});
        if let Some(value) = response.value("value") {
            answer["value"] = data(value);
        }
        json!({ "answer": answer })
    } else if let Some(message) = text(response, "error") {
        json!({"failed": {"kind": text(response, "errorKind"), "message": message}})
    } else {
        assert_eq!(response.value("cancelled"), Some(Value::Boolean(true)));
        json!("cancelled")
    };
    let number = |key: &str| data(response.value(key).unwrap());
    let mut turn = json!({
        "agent": text(response, "agent"), "model": text(response, "model").unwrap_or_else(|| json!("")), "begin": begin, "at": number("at"),
        "elapsed_ms": number("elapsedMs"), "model_calls": number("modelCalls"), "usage": usage(response),
        "outcome": outcome,
    });
    let durations: Map<String, Json> = response
        .elements()
        .flat_map(Pattern::elements)
        .filter_map(|call| {
            let id = text(call, "call")?.as_str()?.to_owned();
            Some((id, data(call.value("durationMs")?)))
        })
        .collect();
    if !durations.is_empty() {
        turn["durations_ms"] = Json::Object(durations);
    }
    turn
}

fn read_message(message: Pattern, conversation: &mut Vec<Json>) {
    assert!(message.has_label("Message"));
    let role = text(message, "role").unwrap();
    let mut json = json!({ "role": role });
    let mut results = Vec::new();
    match role.as_str().unwrap() {
        "user" => json["text"] = text(message, "text").unwrap(),
        "assistant" => {
            if let Some(text) = text(message, "text") {
                json["text"] = text;
            }
            let mut calls = Vec::new();
            for call in message.elements() {
                assert!(call.has_label("Invocation"));
                let arguments = match call.value("args").unwrap() {
                    Value::String(text) | Value::Tagged { text, .. } => text,
                    other => panic!("{other:?}"),
                };
                calls.push(json!({"id": text(call, "call"), "tool": text(call, "tool"), "arguments": arguments}));
                if let Some(outcome) = outcome(call) {
                    let id = text(call, "call");
                    let tool = text(call, "tool");
                    results.push(json!({"role": "tool", "call_id": id, "tool": tool, "outcome": outcome}));
                }
            }
            if !calls.is_empty() {
                json["calls"] = json!(calls);
            }
            if let Some(Value::Map(opaque)) = message.value("opaque") {
                json["opaque"] = Json::Object(opaque.into_iter().map(|(key, value)| (key, data(value))).collect());
            }
        }
        "tool" => {
            json["call_id"] = text(message, "call").unwrap();
            json["tool"] = text(message, "tool").unwrap();
            json["outcome"] = outcome(message).unwrap();
        }
        "compacted" => {
            if let Some(summary) = text(message, "summary") {
                json["summary"] = summary;
            }
            for (name, key) in [("keptFrom", "kept_from"), ("resultChars", "result_chars")] {
                if let Some(number) = message.value(name) {
                    json[key] = data(number);
                }
            }
        }
        other => panic!("{other}"),
    }
    conversation.push(json);
    conversation.extend(results);
}

fn outcome(pattern: Pattern) -> Option<Json> {
    if let Some(value) = pattern.value("result") {
        return Some(json!({"kind": "value", "value": data(value)}));
    }
    let message = |kind: &str, key: &str| Some(json!({"kind": kind, "message": text(pattern, key)?}));
    let cancelled = || pattern.value("cancelled").map(|_| json!({"kind": "cancelled"}));
    message("error", "error").or_else(|| message("denied", "denied")).or_else(cancelled)
}

/// Asserts that a pattern says the same as the JSON export, and is formatted.
fn assert_lossless(log: &Log) {
    let summary = json!({"agent": "hello", "title": "a `b` \"c\"\n", "created_ms": 5, "forked_from": null});
    let source = session_pattern("20261116-x", summary.as_object().unwrap(), log);
    assert_eq!(patter_gram::format(&source).unwrap(), source, "formatting changes nothing");
    assert_eq!(read_back(&source), exported(log), "{source}");
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "",
        "`",
        "```",
        "```json\n",
        "\"",
        "'",
        "\\",
        "\\n",
        "\n",
        "\r\n",
        "\t",
        "\u{0}",
        "\u{1b}[2J",
        "\u{7f}",
        "]",
        "|",
        "}",
        "//",
        "/** ",
        "[a:Agent {}]",
        "json`{}`",
        "\u{202e}",
        "\u{feff}",
        "👩‍👩‍👧",
        "null",
        "{\"a\": 1}",
        "0x",
    ]);
    prop_oneof![3 => prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat()), 1 => any::<String>()]
}

fn hostile_message() -> impl Strategy<Value = Message> {
    let call = (hostile(), hostile(), hostile()).prop_map(|(id, tool, arguments)| ToolCall { id, tool, arguments });
    let opaque = prop::option::of((hostile(), hostile(), hostile()).prop_map(|(wire, origin, text)| Opaque {
        wire,
        origin,
        data: json!([text]),
    }));
    let outcome = prop_oneof![
        hostile().prop_map(|text| ToolOutcome::Value { value: Json::String(text) }),
        hostile().prop_map(|text| ToolOutcome::Value { value: json!({ "": [text, null, 0.1, -5] }) }),
        hostile().prop_map(|message| ToolOutcome::Error { message }),
        hostile().prop_map(|message| ToolOutcome::Denied { message }),
        Just(ToolOutcome::Cancelled),
    ];
    prop_oneof![
        hostile().prop_map(Message::user),
        (hostile(), prop::collection::vec(call, 0..3), opaque).prop_map(|(text, calls, opaque)| Message::Assistant {
            text,
            calls,
            opaque
        }),
        (hostile(), hostile(), outcome).prop_map(|(call_id, tool, outcome)| Message::Tool { call_id, tool, outcome }),
    ]
}

#[test]
fn session_is_a_pattern_that_people_can_read() {
    let mut log = Log::default();
    let run = Run::start(spec(), Vec::new(), "Greet Ada, please.", 1_763_271_000_000).unwrap();
    let start = LogEntry::RunStarted {
        run: vec![],
        frame: None,
        bindings: String::new(),
        start: run.to_start(),
        traceparent: None,
    };
    log.apply(start).unwrap();
    let at = 1_763_271_000_005;
    let rulings = vec![Ruling { decision: Decision::Allow, because: String::new() }; 2];
    let calls = reply(
        "",
        &[("c1", "sayHello", r#"{"personName": "Ada"}"#), ("c2", "mail/send", "{\"to\": 5}")],
        FinishReason::Stop,
    );
    let finished = |id: &str, outcome| RunInput::CallFinished {
        call_id: id.to_owned(),
        outcome,
        duration_ms: 3,
        usage: Usage::default(),
        model_calls: 0,
        at,
    };
    let inputs = [
        RunInput::ModelReplied { reply: calls, rulings, timing: CallTiming::default(), at },
        RunInput::CallStarted { call_id: "c1".into(), at: None },
        finished("c1", ToolOutcome::Value { value: json!({"greeting": "Hello, Ada!", "language": null}) }),
        finished("c2", ToolOutcome::Error { message: "the server\nis down".into() }),
        RunInput::ModelReplied {
            reply: reply("Hello, Ada!", &[], FinishReason::Stop),
            rulings: vec![],
            timing: CallTiming::default(),
            at,
        },
    ];
    for input in inputs {
        log.apply(LogEntry::InputReceived { run: vec![], input }).unwrap();
    }
    assert_lossless(&log);
    let summary = json!({"agent": "hello", "title": "Greet Ada, please.", "created_ms": 1_763_271_000_000_u64});
    insta::assert_snapshot!(session_pattern("20261116-0530-k3f9", summary.as_object().unwrap(), &log));
}

#[test]
fn outcomes_apart_from_their_calls_and_open_runs_are_kept() {
    let call = ToolCall { id: "a".into(), tool: "sayHello".into(), arguments: "{}".into() };
    let result = |id: &str| Message::Tool {
        call_id: id.into(),
        tool: "sayHello".into(),
        outcome: ToolOutcome::Value { value: json!("5") },
    };
    let messages = vec![result("z"), Message::assistant("", vec![call.clone(), call]), result("a"), result("b")];
    let mut log = Log::default();
    log.apply(LogEntry::Forked { from: "x".into(), messages }).unwrap();
    assert_lossless(&log);
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn pattern_says_the_same_as_the_json_export(
        spec in any_spec(),
        forked in prop::collection::vec(hostile_message(), 0..6),
        turns in prop::collection::vec((hostile(), prop::collection::vec(random_input(), 0..20)), 0..3),
    ) {
        let mut log = Log::default();
        log.apply(LogEntry::Forked { from: "x".into(), messages: forked }).unwrap();
        assert_lossless(&log);
        for (input, events) in turns {
            if log.open_run().is_some() {
                log.apply(LogEntry::InputReceived { run: vec![], input: RunInput::Cancelled { at: 9 } }).unwrap();
            }
            let Ok(run) = Run::start(spec.clone(), log.conversation().clone(), &input, 0) else { continue };
            let start = LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start: run.to_start(), traceparent: None };
            log.apply(start).unwrap();
            for event in events {
                let Some(run) = log.open_run() else { break };
                let input = event.to_value(run);
                if run.clone().apply(input.clone()).is_ok() {
                    log.apply(LogEntry::InputReceived { run: vec![], input }).unwrap();
                }
            }
            assert_lossless(&log);
        }
    }
}
