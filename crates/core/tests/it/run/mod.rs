//! The loop of an agent.

mod errors;
mod limits;
mod promises;
mod replay;
mod scenarios;

use patter_core::message::conversation::{self, Message, ToolCall, Usage};
use patter_core::message::request::{Finish, Reply};
use patter_core::name::FullName;
use patter_core::permission::Decision;
use patter_core::run::{
    Callable, Failure, FailureKind, Limits, PendingCall, Ruling, Run, RunError, RunOutcome, RunSpec, Step, Target,
};
use serde_json::{Value as Json, json};

/// Something that happens to a run.
#[derive(Debug, Clone)]
enum Event {
    /// The model says a text.
    Says(&'static str),
    /// The model makes calls: ids, tools, arguments.
    Calls(&'static [(&'static str, &'static str, &'static str)]),
    /// The model stops for another reason, with or without text.
    Stops(Finish, &'static str),
    /// The model cannot be called.
    Fails(&'static str),
    Starts(&'static str),
    Gives(&'static str, Json),
    Breaks(&'static str, &'static str),
    Approved(&'static str),
    Refused(&'static str, &'static str),
    Cancel,
    Tick(u64),
}

/// An agent with a tool that may be called again, one that may not, two that need a word, and another agent.
fn spec() -> RunSpec {
    let tool = |name: &str, idempotent| Callable {
        name: name.to_owned(),
        target: Target::Tool { name: FullName::parse(name).unwrap(), idempotent },
    };
    let editor = Callable { name: "editor".into(), target: Target::Agent { name: "editor".into() } };
    let tools = vec![tool("sayHello", true), tool("mail/send", false), tool("askMe", false), tool("denied", true)];
    let tools = tools.into_iter().chain([editor]).collect();
    RunSpec { agent: "hello".into(), hash: "abc".into(), tools, ..RunSpec::default() }
}

fn limited(change: impl FnOnce(&mut Limits)) -> RunSpec {
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

fn reply(text: &str, calls: &[(&str, &str, &str)], finish: Finish) -> Reply {
    let call = |(id, tool, arguments): &(&str, &str, &str)| ToolCall {
        id: (*id).to_owned(),
        tool: (*tool).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
    Reply { text: text.to_owned(), calls: calls.iter().map(call).collect(), finish, usage, opaque: None }
}

fn tell(run: &mut Run, event: &Event) -> Result<(), RunError> {
    let now = run.elapsed_ms() + 1;
    match event {
        Event::Says(text) => run.reply(reply(text, &[], Finish::Stop), now, &decide),
        Event::Calls(calls) => run.reply(reply("", calls, Finish::Stop), now, &decide),
        Event::Stops(finish, text) => run.reply(reply(text, &[], finish.clone()), now, &decide),
        Event::Fails(message) => {
            run.model_failed(Failure { kind: FailureKind::Model, message: (*message).to_owned() }, now)
        }
        Event::Starts(id) => run.started(id),
        Event::Gives(id, value) => run.finished(id, conversation::ToolOutcome::Value { value: value.clone() }, 5, now),
        Event::Breaks(id, message) => {
            run.finished(id, conversation::ToolOutcome::Error { message: (*message).to_owned() }, 5, now)
        }
        Event::Approved(id) => run.approved(id),
        Event::Refused(id, why) => run.refused(id, why, now),
        Event::Cancel => run.cancel(now),
        Event::Tick(now) => run.tick(*now),
    }
}

/// Shows what is next in a line: calls that were started have a `*`.
fn shown_step(run: &Run) -> String {
    let started = |call: &&PendingCall| format!("{}{}", call.id, if call.started { "*" } else { "" });
    match run.step() {
        Step::CallModel { messages } => {
            assert_eq!(messages, run.conversation());
            "model".to_owned()
        }
        Step::CallTools { calls } => format!("tools {}", calls.iter().map(started).collect::<Vec<_>>().join(" ")),
        Step::AskApproval { calls } => {
            format!("ask {}", calls.iter().map(|asked| asked.call.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        Step::Done(RunOutcome::Answer { text, value: None, .. }) => format!("answer {text}"),
        Step::Done(RunOutcome::Answer { value: Some(value), .. }) => format!("answer {value}"),
        Step::Done(RunOutcome::Failed(failure)) => format!("{}: {failure}", failure.kind.name()),
        Step::Done(RunOutcome::Cancelled) => "cancelled".to_owned(),
    }
}

fn shown(messages: &[Message]) -> Vec<String> {
    let one = |message: &Message| match message {
        Message::User { text } => format!("user: {text}"),
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| format!(" {}={}({})", call.id, call.tool, call.arguments));
            format!("model: {text}{}", calls.collect::<String>())
        }
        Message::Tool { call_id, tool, outcome } => format!("{call_id}={tool}: {}", outcome.text()),
    };
    messages.iter().map(one).collect()
}

fn loaded(run: &Run) -> Run {
    Run::load(&serde_json::to_string(run).unwrap()).unwrap()
}

/// Plays events after `Hi`, saving and loading the run in between. Compares what was next after each.
#[track_caller]
fn play(spec: RunSpec, conversation: Vec<Message>, events: &[(Event, &str)]) -> Run {
    let mut run = Run::start(spec, conversation, "Hi", 0).unwrap();
    for (event, expected) in events {
        tell(&mut run, event).unwrap_or_else(|error| panic!("{event:?}: {error}"));
        assert_eq!(shown_step(&run), *expected, "after {event:?}");
        let again = loaded(&run);
        assert_eq!(again, run);
        run = again;
    }
    run
}

#[track_caller]
fn check(events: &[(Event, &str)], transcript: &[&str]) -> Run {
    let run = play(spec(), Vec::new(), events);
    assert_eq!(shown(run.conversation()), transcript);
    run
}
