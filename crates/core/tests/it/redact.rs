//! Logs whose contents are removed.

use patter_core::message::conversation::Usage;
use patter_core::message::request::{FinishReason, Reply};
use patter_core::run::{CallTiming, Run, RunInput, RunOutcome, RunSpec};
use patter_core::session::{Log, LogEntry, redacted_entries};
use serde_json::json;

/// Removes the contents of a log, and checks that its shape is the same. Returns what is left, as JSON.
fn redact(entries: &[String]) -> String {
    let original = Log::read(entries).unwrap();
    let redacted = redacted_entries(entries, 77).unwrap();
    let redacted: Vec<_> = redacted.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    let log = Log::read(&redacted).unwrap();
    assert_eq!(log.redacted_at(), Some(77));
    assert_eq!(log.conversation().len(), original.conversation().len());
    let turns = |log: &Log| -> Vec<_> {
        let turns = log.turns().iter().map(|turn| {
            let kind = match &turn.outcome {
                RunOutcome::Failed(failure) => Some(failure.kind),
                _ => None,
            };
            let end = (std::mem::discriminant(&turn.outcome), kind);
            (turn.agent.clone(), turn.model.clone(), turn.usage, turn.at, turn.elapsed_ms, turn.model_calls, end)
        });
        turns.collect()
    };
    assert_eq!(turns(&log), turns(&original));
    redacted.join("\n")
}

fn recording(text: &str) -> Vec<String> {
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn recorded_sessions_keep_their_shape() {
    for (text, contents, tools) in [
        (include_str!("../../../cli/tests/it/recordings/called-agent.jsonl"), "gram is a notation", "summarizer"),
        (include_str!("../../../cli/tests/it/recordings/two-tools.jsonl"), "", ""),
        (include_str!("../../../cli/tests/it/recordings/hello.jsonl"), "", ""),
        (include_str!("../../../cli/tests/it/recordings/refused.jsonl"), "", ""),
        (include_str!("../../../cli/tests/it/recordings/error.jsonl"), "", ""),
    ] {
        let entries = recording(text);
        let left = redact(&entries);
        assert!(left.contains(tools));
        assert!(contents.is_empty() || !left.contains(contents), "{left}");
        // Nothing that somebody said is left.
        for message in Log::read(&entries).unwrap().conversation().iter() {
            if let patter_core::message::conversation::Message::User { text, .. } = message {
                assert!(!left.contains(&json!(text).to_string()), "{text}: {left}");
            }
        }
    }
}

/// Whether an answer has the required form cannot be decided without it.
#[test]
fn an_answer_that_was_refused_stays_refused() {
    let returns = json!({"type": "object", "properties": {"code": {"type": "integer"}}, "required": ["code"]});
    let spec = RunSpec { agent: "clerk".into(), returns: Some(returns), ..RunSpec::default() };
    let mut run = Run::start(spec, Vec::new(), "I am Ada", 5).unwrap();
    let start = LogEntry::RunStarted {
        run: Vec::new(),
        frame: None,
        bindings: String::new(),
        start: run.to_start(),
        traceparent: None,
    };
    let mut entries = vec![start];
    for (text, at) in [("Hello Ada", 20), (r#"{"code": 4711}"#, 30)] {
        assert_eq!(run.outcome(), None, "the first answer has another form");
        let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
        let reply = Reply {
            text: text.into(),
            calls: Vec::new(),
            finish: FinishReason::Stop,
            usage,
            opaque: None,
            thought: "This is Ada".into(),
        };
        let input = RunInput::ModelReplied { reply, rulings: Vec::new(), timing: CallTiming::default(), at };
        run.apply(input.clone()).unwrap();
        entries.push(LogEntry::InputReceived { run: Vec::new(), input });
    }
    assert!(run.outcome().is_some());
    let entries: Vec<_> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    let left = redact(&entries);
    assert!(!left.contains("Ada") && !left.contains("4711"), "{left}");
    assert!(left.contains("\"restored\""), "the state after the first answer is kept: {left}");
}

/// Redacting what is redacted changes nothing but the time.
#[test]
fn redacted_logs_can_be_redacted() {
    let entries = recording(include_str!("../../../cli/tests/it/recordings/called-agent.jsonl"));
    let once = redact(&entries);
    let lines: Vec<_> = once.lines().map(str::to_owned).collect();
    let twice = redacted_entries(&lines, 77).unwrap();
    let twice: Vec<_> = twice.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    assert_eq!(twice[..twice.len() - 1], lines);
}
