//! The agent loop.

mod errors;
mod limits;
mod log;
mod pattern;
mod invariants;
mod replay;
mod scenarios;
mod trace;
mod trace_format;

use patter_core::message::conversation::{self, Conversation, Message, ToolCall, Usage};
use patter_core::message::request::{FinishReason, Reply};
use patter_core::name::FullName;
use patter_core::permission::Decision;
use patter_core::run::{
    CallTarget, Callable, FailureKind, Limits, PendingCall, Ruling, Run, RunError, RunFailure, RunOutcome, RunSpec,
    Step,
};
use serde_json::{Value as Json, json};

/// An input to a run, in short form.
#[derive(Debug, Clone)]
enum Event {
    /// The model replies with a text.
    Says(&'static str),
    /// The model requests calls: ids, tools, arguments.
    Calls(&'static [(&'static str, &'static str, &'static str)]),
    /// The model stops for another reason, with or without text.
    Stops(FinishReason, &'static str),
    /// A reply breaks off.
    Breaks(&'static str),
    /// The model call fails.
    Fails(&'static str),
    Starts(&'static str),
    Returns(&'static str, Json),
    CallFails(&'static str, &'static str),
    Approves(&'static str),
    Refuses(&'static str, &'static str),
    Cancel,
    Tick(u64),
}

/// Returns an agent with an idempotent tool, a non-idempotent one, one that needs approval, a denied one, and another
/// agent.
fn spec() -> RunSpec {
    let tool = |name: &str, idempotent| Callable {
        name: name.to_owned(),
        target: CallTarget::Tool { name: FullName::parse(name).unwrap(), idempotent },
    };
    let editor = Callable { name: "editor".into(), target: CallTarget::Agent { name: "editor".into() } };
    let tools = vec![tool("sayHello", true), tool("mail/send", false), tool("askMe", false), tool("denied", true)];
    let tools = tools.into_iter().chain([editor]).collect();
    RunSpec { agent: "hello".into(), hash: "abc".into(), tools, ..RunSpec::default() }
}

fn spec_with_limits(change: impl FnOnce(&mut Limits)) -> RunSpec {
    let mut spec = spec();
    change(&mut spec.limits);
    spec
}

fn decide(call: &PendingCall) -> Ruling {
    let (decision, because) = match call.tool.as_str() {
        "askMe" => (Decision::Ask, "`ask askMe` in patter.toml"),
        "denied" => (Decision::Deny, "`deny denied` in patter.toml"),
        _ => (Decision::Allow, "the agent declares it"),
    };
    Ruling { decision, because: because.to_owned() }
}

fn reply(text: &str, calls: &[(&str, &str, &str)], finish: FinishReason) -> Reply {
    let call = |(id, tool, arguments): &(&str, &str, &str)| ToolCall {
        id: (*id).to_owned(),
        tool: (*tool).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
    Reply {
        text: text.to_owned(),
        calls: calls.iter().map(call).collect(),
        finish,
        usage,
        opaque: None,
        thought: String::new(),
    }
}

fn apply(run: &mut Run, event: &Event) -> Result<(), RunError> {
    let now = run.elapsed_ms() + 1;
    match event {
        Event::Says(text) => run.model_replied(reply(text, &[], FinishReason::Stop), now, &decide),
        Event::Calls(calls) => run.model_replied(reply("", calls, FinishReason::Stop), now, &decide),
        Event::Stops(finish, text) => run.model_replied(reply(text, &[], finish.clone()), now, &decide),
        Event::Breaks(text) => run.reply_interrupted((*text).to_owned()),
        Event::Fails(message) => {
            run.model_failed(RunFailure { kind: FailureKind::Model, message: (*message).to_owned() }, now)
        }
        Event::Starts(id) => run.call_started(id),
        Event::Returns(id, value) => {
            run.call_finished(id, conversation::ToolOutcome::Value { value: value.clone() }, 5, now)
        }
        Event::CallFails(id, message) => {
            run.call_finished(id, conversation::ToolOutcome::Error { message: (*message).to_owned() }, 5, now)
        }
        Event::Approves(id) => run.approve(id),
        Event::Refuses(id, why) => run.refuse(id, why, now),
        Event::Cancel => run.cancel(now),
        Event::Tick(now) => run.tick(*now),
    }
}

/// Formats the next step as one line. Started calls are marked with `*`.
fn format_step(run: &Run) -> String {
    let started = |call: &&PendingCall| format!("{}{}", call.id, if call.started { "*" } else { "" });
    match run.step() {
        Step::CallModel { messages } => {
            assert_eq!(messages, run.conversation());
            "model".to_owned()
        }
        Step::Compact => "compact".to_owned(),
        Step::Plan => "plan".to_owned(),
        Step::CallTools { calls } => format!("tools {}", calls.iter().map(started).collect::<Vec<_>>().join(" ")),
        Step::AskApproval { calls } => {
            format!("ask {}", calls.iter().map(|request| request.call.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        Step::AwaitClient { calls } => {
            format!("client {}", calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        Step::Done(RunOutcome::Answer { text, value: None, .. }) => format!("answer {text}"),
        Step::Done(RunOutcome::Answer { value: Some(value), .. }) => format!("answer {value}"),
        Step::Done(RunOutcome::Failed(failure)) => format!("{}: {failure}", failure.kind.name()),
        Step::Done(RunOutcome::Cancelled) => "cancelled".to_owned(),
    }
}

fn transcript(messages: &Conversation) -> Vec<String> {
    let one = |message: &Message| match message {
        Message::User { text, .. } => format!("user: {text}"),
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| format!(" {}={}({})", call.id, call.tool, call.arguments));
            format!("model: {text}{}", calls.collect::<String>())
        }
        Message::Compacted { summary, kept_from, .. } => format!("compacted {kept_from}: {summary}"),
        Message::Tool { call_id, tool, outcome } => format!("{call_id}={tool}: {}", outcome.text()),
    };
    messages.iter().map(one).collect()
}

fn reload(run: &Run) -> Run {
    Run::load(&serde_json::to_string(run).unwrap()).unwrap()
}

/// Applies events after the input `Hi`, saving and loading the run in between, and compares the next step after each.
#[track_caller]
fn play(spec: RunSpec, conversation: impl Into<Conversation>, events: &[(Event, &str)]) -> Run {
    let mut run = Run::start(spec, conversation, "Hi", 0).unwrap();
    for (event, expected) in events {
        apply(&mut run, event).unwrap_or_else(|error| panic!("{event:?}: {error}"));
        assert_eq!(format_step(&run), *expected, "after {event:?}");
        let again = reload(&run);
        assert_eq!(again, run);
        run = again;
    }
    run
}

#[track_caller]
fn check(events: &[(Event, &str)], expected: &[&str]) -> Run {
    let run = play(spec(), Vec::new(), events);
    assert_eq!(transcript(run.conversation()), expected);
    run
}
