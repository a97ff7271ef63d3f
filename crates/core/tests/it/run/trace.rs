//! Spans of scripted sessions.

use super::*;
use patter_core::message::conversation::ToolOutcome;
use patter_core::message::request::{RequestTemplate, Settings, TemplateTool};
use patter_core::run::{CallDelay, CallTiming, RunInput};
use patter_core::session::{LogEntry, RunPath};
use patter_core::trace::{
    AttributeValue, MessageContent, Sampler, SessionSpans, Span, SpanKind, SpanStatus, TraceParent, session_spans,
};
use std::fmt::Write;

/// The log of a session that is being written.
pub(super) struct Script {
    entries: Vec<LogEntry>,
    at: u64,
}

impl Script {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), at: 1000 }
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, ms: u64) -> &mut Self {
        self.at += ms;
        self
    }

    pub(super) fn start(&mut self, path: &[&str], agent: &str, parent: Option<TraceParent>) -> &mut Self {
        let spec = RunSpec { agent: agent.into(), hash: "0123456789abcdef".into(), ..spec() };
        let run = Run::start(spec, Vec::new(), "Greet Ada", self.at).unwrap();
        let tool = TemplateTool {
            name: "sayHello".into(),
            description: "Greets".into(),
            schema: json!({"type": "object"}).into(),
            is_strict: false,
        };
        let frame = RequestTemplate {
            model: "OpenAI/gpt-4o-mini".into(),
            instruction: "Greet.".into(),
            tools: vec![tool],
            settings: Settings { temperature: Some(0.5), max_tokens: Some(100), ..Settings::default() },
            returns: None,
        };
        self.entries.push(LogEntry::RunStarted {
            run: owned(path),
            frame: Some(frame.into()),
            bindings: String::new(),
            start: run.to_start(),
            traceparent: parent,
        });
        self
    }

    pub(super) fn input(&mut self, path: &[&str], input: RunInput) -> &mut Self {
        self.entries.push(LogEntry::InputReceived { run: owned(path), input });
        self
    }

    pub(super) fn says(&mut self, path: &[&str], text: &str) -> &mut Self {
        self.replies(path, reply(text, &[], FinishReason::Stop), CallTiming::default())
    }

    pub(super) fn calls(&mut self, path: &[&str], calls: &[(&str, &str, &str)]) -> &mut Self {
        self.replies(path, reply("", calls, FinishReason::Stop), CallTiming::default())
    }

    fn replies(&mut self, path: &[&str], reply: Reply, timing: CallTiming) -> &mut Self {
        let ruled = reply.calls.iter().filter(|call| call.tool != "unknown").map(|call| {
            let target = CallTarget::Agent { name: String::new() };
            let id = call.id.clone();
            let tool = call.tool.clone();
            decide(&PendingCall {
                id,
                tool,
                arguments: json!({}),
                target,
                approved: false,
                started: false,
                expires_at: None,
                continues: None,
            })
        });
        let rulings = ruled.collect();
        let at = self.at;
        self.input(path, RunInput::ModelReplied { reply, rulings, timing, at })
    }

    pub(super) fn starts(&mut self, path: &[&str], id: &str) -> &mut Self {
        let at = Some(self.at);
        self.input(path, RunInput::CallStarted { call_id: id.into(), at })
    }

    pub(super) fn finishes(&mut self, path: &[&str], id: &str, outcome: ToolOutcome, duration_ms: u64) -> &mut Self {
        let usage = Usage::default();
        let at = self.at;
        let call_id = id.to_owned();
        self.input(path, RunInput::CallFinished { call_id, outcome, duration_ms, usage, model_calls: 0, at })
    }

    pub(super) fn spans(&self, content: MessageContent) -> Vec<Span> {
        session_spans("20261116-1", self.entries.clone(), content).unwrap()
    }
}

fn owned(path: &[&str]) -> RunPath {
    path.iter().map(|&id| id.to_owned()).collect()
}

pub(super) fn value(text: &str) -> ToolOutcome {
    ToolOutcome::Value { value: text.into() }
}

/// A session with a retry, calls of all kinds, another agent, and a failure.
pub(super) fn everything() -> Script {
    let mut script = Script::new();
    let delay = CallDelay { at: 1100, seconds: 0.5, because: "status 429: slow down".into() };
    let timing = CallTiming { first_piece_ms: Some(180), delays: vec![delay] };
    let calls = [("a", "sayHello", r#"{"personName": "Ada"}"#), ("b", "askMe", "{}"), ("c", "denied", "{}")];
    let calls = [calls[0], calls[1], calls[2], ("d", "unknown", "{}")];
    script.start(&[], "lead", None).wait(700).replies(&[], reply("", &calls, FinishReason::Stop), timing);
    script.starts(&[], "a").wait(40).finishes(&[], "a", value("Hello, Ada!"), 40);
    script.wait(5000).input(&[], RunInput::CallApproved { call_id: "b".into(), at: Some(6740) });
    let failed = ToolOutcome::Error { message: "no such customer: Ada".into() };
    script.starts(&[], "b").wait(10).finishes(&[], "b", failed, 10);
    script.wait(300).calls(&[], &[("e", "editor", r#"{"input": "Edit"}"#)]).starts(&[], "e");
    script.start(&["e"], "editor", None).wait(200).calls(&["e"], &[("x", "askMe", "{}")]);
    script
        .wait(50)
        .input(&["e"], RunInput::CallRefused { call_id: "x".into(), reason: "not now".into(), at: script_time(7300) });
    script.wait(100).says(&["e"], "Edited.").finishes(&[], "e", value("Edited."), 350);
    let failure = RunFailure { kind: FailureKind::Model, message: "status 500: broken".into() };
    let timing = CallTiming::default();
    script.wait(90).input(&[], RunInput::ModelFailed { failure, timing, at: 7490 });
    script
}

fn script_time(at: u64) -> u64 {
    at
}

/// Shows spans as a tree, with what differs between them.
fn tree(spans: &[Span]) -> String {
    let mut out = String::new();
    let roots = spans.iter().filter(|span| !spans.iter().any(|other| Some(other.span_id) == span.parent));
    for root in roots {
        show(root, spans, 0, &mut out);
    }
    out
}

fn show(span: &Span, spans: &[Span], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let kind = if span.kind == SpanKind::Client { " (client)" } else { "" };
    writeln!(out, "{indent}{}{kind} {}..{}", span.name, span.start_ms, span.end_ms).unwrap();
    let common = ["gen_ai.conversation.id", "session.id"];
    for name in common {
        assert!(span.attributes.iter().any(|attribute| attribute.name == name), "{span:?} has no {name}");
    }
    let attributes = |list: &[patter_core::trace::Attribute]| {
        let shown = list.iter().filter(|attribute| !common.contains(&&*attribute.name));
        let shown = shown.map(|attribute| {
            let value = match &attribute.value {
                AttributeValue::Text(text) => text.clone(),
                AttributeValue::Texts(texts) => format!("{texts:?}"),
                AttributeValue::Int(number) => number.to_string(),
                AttributeValue::Float(number) => number.to_string(),
                AttributeValue::Bool(value) => value.to_string(),
            };
            format!("{}={value}", attribute.name)
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    writeln!(out, "{indent}  · {}", attributes(&span.attributes)).unwrap();
    if let SpanStatus::Error(message) = &span.status {
        writeln!(out, "{indent}  ! {message}").unwrap();
    }
    for event in &span.events {
        writeln!(out, "{indent}  @ {} {} {}", event.at_ms, event.name, attributes(&event.attributes)).unwrap();
    }
    let mut children: Vec<_> = spans.iter().filter(|child| child.parent == Some(span.span_id)).collect();
    children.sort_by_key(|child| child.start_ms);
    for child in children {
        show(child, spans, depth + 1, out);
    }
}

#[test]
fn spans_show_what_a_session_did() {
    let spans = everything().spans(MessageContent::Omitted);
    insta::assert_snapshot!("spans", tree(&spans));
    let shown = format!("{spans:?}");
    for said in ["Greet Ada", "Ada", "Edited", "not now"] {
        assert!(!shown.contains(said), "`{said}` was said, and nobody asked for it");
    }
    let mut ids: Vec<_> = spans.iter().map(|span| span.span_id.to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len());
    assert!(spans.iter().all(|span| span.trace_id == spans[0].trace_id));
}

#[test]
fn content_is_included_on_request() {
    insta::assert_snapshot!("spans_with_content", tree(&everything().spans(MessageContent::Included)));
}

/// A process that ends and resumes at any entry exports each span once, with the same ids.
#[test]
fn resumed_session_continues_its_trace() {
    let script = everything();
    let whole = script.spans(MessageContent::Omitted);
    for end in 1..script.entries.len() {
        let (before, after) = script.entries.split_at(end);
        let mut found = session_spans("20261116-1", before.to_vec(), MessageContent::Omitted).unwrap();
        let mut resumed = SessionSpans::new("20261116-1");
        let mut skipped = 0;
        let mut number = 0;
        // The log is read from the start; what ended before is not exported again.
        resumed
            .replay(script.entries.clone(), |spans| {
                number += 1;
                if number > end { found.extend(spans) } else { skipped += spans.len() }
            })
            .unwrap();
        assert_eq!(found, whole, "resumed after {end} entries, before {}", after.len());
        assert_eq!(skipped + found.len() - skipped, whole.len());
    }
}

#[test]
fn interruption_restarts_what_was_in_progress() {
    let mut script = Script::new();
    script.start(&[], "lead", None).wait(10).calls(&[], &[("a", "sayHello", "{}")]).starts(&[], "a");
    script.wait(9000).input(&[], RunInput::Resumed { at: 10_010 });
    script.wait(30).finishes(&[], "a", value("Hello"), 25);
    script.input(&[], RunInput::Resumed { at: 20_000 });
    script.at = 20_050;
    script.says(&[], "Done");
    insta::assert_snapshot!("spans_after_interruptions", tree(&script.spans(MessageContent::Omitted)));
}

#[test]
fn cancelled_run_ends_everything_within_it() {
    let mut script = Script::new();
    script.start(&[], "lead", None).wait(10);
    script.calls(&[], &[("a", "editor", "{}"), ("b", "askMe", "{}"), ("c", "sayHello", "{}")]);
    script.starts(&[], "a").starts(&[], "c").start(&["a"], "editor", None).wait(15);
    script.calls(&["a"], &[("x", "editor", "{}")]).starts(&["a"], "x").start(&["a", "x"], "editor", None).wait(5);
    let at = script.at;
    script.input(&[], RunInput::Cancelled { at });
    insta::assert_snapshot!("spans_of_a_cancelled_run", tree(&script.spans(MessageContent::Omitted)));
    // A deadline ends a model call, too.
    let mut script = Script::new();
    script.start(&[], "lead", None);
    let limits = Limits { deadline_ms: Some(20), ..Limits::default() };
    script.input(&[], RunInput::LimitsChanged { limits }).input(&[], RunInput::ClockTicked { at: 1021 });
    let spans = script.spans(MessageContent::Omitted);
    let errors: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.end_ms, error_type(span))).collect();
    assert_eq!(errors, [("chat gpt-4o-mini", 1021, "deadline"), ("invoke_agent lead", 1021, "deadline")]);
}

fn error_type(span: &Span) -> &str {
    let error = span.attributes.iter().find(|attribute| attribute.name == "error.type");
    match error.map(|attribute| &attribute.value) {
        Some(AttributeValue::Text(text)) => text,
        _ => "",
    }
}

#[test]
fn each_run_is_a_trace_unless_another_program_started_it() {
    let parent: TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00".parse().unwrap();
    let mut script = Script::new();
    script.start(&[], "lead", None).wait(1).says(&[], "One");
    script.start(&[], "lead", None).wait(1).says(&[], "Two");
    script.start(&[], "lead", Some(parent)).wait(1).says(&[], "Three");
    let spans = script.spans(MessageContent::Omitted);
    let roots: Vec<_> = spans.iter().filter(|span| span.name.starts_with("invoke_agent")).collect();
    assert_eq!(roots.len(), 3);
    assert_ne!(roots[0].trace_id, roots[1].trace_id);
    assert_eq!((roots[0].parent, roots[1].parent), (None, None));
    assert_eq!((roots[2].trace_id, roots[2].parent), (parent.trace_id, Some(parent.span_id)));
    // The program that started the last run does not record it.
    let sampled = |sampler: Sampler| {
        let mut count = 0;
        let mut spans = SessionSpans::new("20261116-1").with_sampler(sampler);
        spans.replay(script.entries.clone(), |new| count += new.len()).unwrap();
        count
    };
    assert_eq!(sampled(Sampler::default()), 4);
    assert_eq!(sampled(Sampler::parse("always_on", None).unwrap()), 6);
    assert_eq!(sampled(Sampler::parse("always_off", None).unwrap()), 0);
    assert_eq!(sampled(Sampler::parse("parentbased_always_off", None).unwrap()), 0);
    // Another session has other ids, even if it starts at the same time.
    let other = session_spans("20261116-2", script.entries.clone(), MessageContent::Omitted).unwrap();
    assert!(other.iter().zip(&spans).all(|(other, span)| other.span_id != span.span_id));
}

#[test]
fn reference_to_a_call_is_known_before_it_ends() {
    let script = everything();
    let mut spans = SessionSpans::new("20261116-1");
    let mut log = patter_core::session::Log::default();
    let mut expected = Vec::new();
    let mut found = Vec::new();
    for entry in script.entries.clone() {
        log.apply(entry.clone()).unwrap();
        let (LogEntry::RunStarted { run: path, .. } | LogEntry::InputReceived { run: path, .. }) = &entry else {
            continue;
        };
        let run = if path.is_empty() { log.open_run().or(log.last_run()) } else { log.child_run(path) };
        found.extend(spans.entry(&entry, run.unwrap()));
        match &entry {
            LogEntry::InputReceived { input: RunInput::CallStarted { call_id, .. }, .. } => {
                expected.extend(spans.call_parent(path, call_id));
            }
            LogEntry::RunStarted { .. } => expected.extend(spans.model_parent(path)),
            _ => {}
        }
    }
    assert_eq!(expected.len(), 5);
    for parent in expected {
        assert!(found.iter().any(|span| (span.trace_id, span.span_id) == (parent.trace_id, parent.span_id)));
    }
}

#[test]
fn references_are_read_strictly() {
    let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(valid.parse::<TraceParent>().unwrap().to_string(), valid);
    // A later version may have more parts.
    let later = format!("01{}-more", &valid[2..]);
    assert_eq!(later.parse::<TraceParent>().unwrap().to_string(), valid);
    for wrong in [
        "",
        "nonsense",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0eé6-00f067aa0ba902b7-01",
    ] {
        assert!(wrong.parse::<TraceParent>().is_err(), "{wrong}");
    }
}
