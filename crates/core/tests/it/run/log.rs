//! The JSON of session logs, which programs and stores depend on.

use super::*;
use patter_core::provider::price::Bill;
use patter_core::run::{CallTiming, RunInput};
use patter_core::session::{AgentSelection, Log, LogEntry};

#[test]
fn the_json_of_entries_is_stable() {
    let run = Run::start(spec(), Vec::new(), "Hi", 7).unwrap();
    let start = LogEntry::RunStarted {
        run: vec![],
        frame: None,
        bindings: "b".into(),
        start: run.to_start(),
        traceparent: None,
    };
    let restored =
        LogEntry::RunRestored { run: vec!["a".into()], frame: None, bindings: String::new(), snapshot: run.into() };
    let call_id = || "a".to_owned();
    let progress =
        LogEntry::CallProgressed { run: vec![], call_id: call_id(), fraction: Some(0.5), message: "half".into() };
    let input = |input| LogEntry::InputReceived { run: vec![], input };
    let entries = [
        (LogEntry::Opened { selection: AgentSelection::default() }, "opened", "source"),
        (LogEntry::Forked { from: "x".into(), messages: vec![] }, "forked", "messages"),
        (start, "began", "beginning"),
        (LogEntry::ReplyStreamed { run: vec![], pieces: vec![] }, "streamed", "pieces"),
        (progress, "progressed", "fraction"),
        (restored, "restored", "saved"),
        (input(RunInput::Cancelled { at: 1 }), "input", "input"),
        (LogEntry::Rewound { messages: 0 }, "rewound", "messages"),
    ];
    for (entry, name, field) in entries {
        let json = serde_json::to_value(&entry).unwrap();
        assert_eq!(json["entry"], name);
        assert!(json.get(field).is_some(), "{json}");
        assert_eq!(serde_json::from_value::<LogEntry>(json).unwrap(), entry);
    }
    let failure = RunFailure { kind: FailureKind::Model, message: "down".into() };
    let outcome = conversation::ToolOutcome::Cancelled;
    let inputs = [
        (
            RunInput::ModelReplied {
                reply: reply("", &[], FinishReason::Stop),
                rulings: vec![],
                timing: CallTiming::default(),
                at: 1,
            },
            "reply",
        ),
        (RunInput::ReplyInterrupted { text: "Hel".into() }, "reply_interrupted"),
        (RunInput::ModelFailed { failure, timing: CallTiming::default(), at: 1 }, "model_failed"),
        (RunInput::CallStarted { call_id: call_id(), at: None }, "started"),
        (
            RunInput::CallFinished {
                call_id: call_id(),
                outcome,
                duration_ms: 1,
                usage: Usage::default(),
                model_calls: 0,
                at: 1,
            },
            "finished",
        ),
        (RunInput::CallApproved { call_id: call_id(), at: None }, "approved"),
        (RunInput::CallRefused { call_id: call_id(), reason: "no".into(), at: 1 }, "refused"),
        (RunInput::Cancelled { at: 1 }, "cancelled"),
        (RunInput::Charged { spent: Bill::UNKNOWN, interrupted: true }, "charged"),
        (
            RunInput::FellBack {
                from: "OpenAI/gpt-4o".into(),
                to: "demo".into(),
                because: "down".into(),
                context: None,
                timing: CallTiming::default(),
                at: 1,
            },
            "fell_back",
        ),
        (
            RunInput::LimitReached { failure: RunFailure { kind: FailureKind::Cost, message: "enough".into() }, at: 1 },
            "limit_reached",
        ),
        (RunInput::ContextExceeded { message: "too long".into(), at: 1 }, "context_exceeded"),
        (
            RunInput::Compacted {
                compaction: Message::Compacted { summary: "Hi".into(), kept_from: 2, result_chars: Some(200) },
                usage: Usage::default(),
                at: 1,
            },
            "compacted",
        ),
        (RunInput::ClockTicked { at: 1 }, "tick"),
        (RunInput::LimitsChanged { limits: Limits::default() }, "limited"),
        (RunInput::Resumed { at: 1 }, "resumed"),
    ];
    for (input, name) in inputs {
        let json = serde_json::to_value(&input).unwrap();
        assert_eq!(json["what"], name);
        assert_eq!(serde_json::from_value::<RunInput>(json).unwrap(), input);
    }
    let refused = json!({"what": "refused", "call_id": "a", "why": "no", "at": 1});
    assert_eq!(
        serde_json::from_value::<RunInput>(refused).unwrap(),
        RunInput::CallRefused { call_id: call_id(), reason: "no".into(), at: 1 }
    );
    // Logs written before these had times.
    for (what, expected) in [
        ("started", RunInput::CallStarted { call_id: call_id(), at: None }),
        ("approved", RunInput::CallApproved { call_id: call_id(), at: None }),
    ] {
        assert_eq!(serde_json::from_value::<RunInput>(json!({"what": what, "call_id": "a"})).unwrap(), expected);
    }
    // Logs written before inputs had this name.
    let told = json!({"entry": "told", "told": {"what": "cancelled", "at": 1}});
    assert_eq!(
        serde_json::from_value::<LogEntry>(told).unwrap(),
        LogEntry::InputReceived { run: vec![], input: RunInput::Cancelled { at: 1 } }
    );
}

#[test]
fn saved_approvals_are_stable() {
    let run = play(spec(), Vec::new(), &[(Event::Calls(&[("a", "askMe", "{}")]), "ask a")]);
    let json = serde_json::to_value(&run).unwrap();
    assert!(json["state"]["tools"][0].get("asking").is_some(), "{json}");
}

#[test]
fn entries_that_cannot_follow_are_errors() {
    let cancelled = r#"{"entry": "input", "input": {"what": "cancelled", "at": 1}}"#;
    let forked = r#"{"entry": "forked", "from": "x", "messages": [{"role": "user", "text": "Hi"}]}"#;
    let rewound = r#"{"entry": "rewound", "messages": 2}"#;
    let run = Run::start(spec(), Vec::new(), "Hi", 7).unwrap();
    let started = LogEntry::RunStarted {
        run: vec![],
        frame: None,
        bindings: String::new(),
        start: run.to_start(),
        traceparent: None,
    };
    let started = serde_json::to_string(&started).unwrap();
    for (entries, expected) in [
        (vec![cancelled], "log entry 1 is invalid: unknown run"),
        (vec![forked, forked], "log entry 2 is invalid: a fork must precede all messages"),
        (vec![forked, rewound], "log entry 2 is invalid: cannot rewind to more messages than there are"),
        (vec![&started, rewound], "log entry 2 is invalid: cannot rewind while a run is in progress"),
        (vec![&started, &started], "log entry 2 is invalid: the previous run has not ended"),
        (vec!["{"], "log entry 1 is invalid: EOF while parsing an object at line 1 column 1"),
    ] {
        assert_eq!(Log::read(entries).unwrap_err().to_string(), expected);
    }
}
