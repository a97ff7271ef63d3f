//! Invariants of every run, for random inputs: each call gets exactly one result, in order; a saved and loaded run behaves
//! like one that was never saved; rejected inputs change nothing; and every run ends.

use super::*;
use crate::generate::cases;
use patter_core::provider::price::{Bill, Cost};
use patter_core::run::{CallTiming, ContextSpec, RunInput};
use patter_core::session::{Log, LogEntry};
use proptest::prelude::*;
use std::cell::RefCell;

/// A random input to a run.
#[derive(Debug, Clone)]
pub(super) enum RandomInput {
    Reply(Reply),
    Fails,
    Starts(Pick),
    Finishes(Pick, conversation::ToolOutcome),
    Approves(Pick),
    Refuses(Pick),
    Charge(u64),
    FallBack,
    TooLong,
    Compact,
    Cancel,
    Tick(u64),
}

/// A call by its index among all calls so far, counted from the last; or an unknown call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick(usize);

fn calls() -> impl Strategy<Value = Vec<ToolCall>> {
    let id = prop::sample::select(vec!["", "a", "a", "b", "a-2", "c"]);
    let tool = prop::sample::select(vec![
        "sayHello",
        "mail/send",
        "askMe",
        "askMe",
        "denied",
        "editor",
        "pickColor",
        "sayHelo",
        "",
    ]);
    let arguments =
        prop::sample::select(vec!["{}", "", r#"{"input": "x"}"#, r#"{"n": 0.1}"#, "[1", "nul", "[]", "{\"\u{0}"]);
    let call = (id, tool, arguments).prop_map(|(id, tool, arguments)| ToolCall {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
    });
    prop::collection::vec(call, 0..5)
}

fn outcome() -> impl Strategy<Value = conversation::ToolOutcome> {
    prop_oneof![
        any::<f64>().prop_map(|number| conversation::ToolOutcome::Value { value: json!({ "n": number }) }),
        any::<String>().prop_map(|text| conversation::ToolOutcome::Value { value: json!([text, null, u64::MAX]) }),
        any::<String>().prop_map(|message| conversation::ToolOutcome::Error { message }),
        Just(conversation::ToolOutcome::Denied { message: "no".into() }),
        Just(conversation::ToolOutcome::Value { value: Json::Null }),
        Just(conversation::ToolOutcome::Cancelled),
    ]
}

pub(super) fn random_input() -> impl Strategy<Value = RandomInput> {
    let finish = prop_oneof![
        12 => Just(FinishReason::Stop),
        1 => Just(FinishReason::Length),
        1 => Just(FinishReason::Malformed),
        1 => Just(FinishReason::Refused),
    ];
    let text = prop::sample::select(vec!["", "Hello", r#"{"name": "Ada"}"#, "```json\n{}\n```"]);
    let usage = prop_oneof![6 => 0..60u64, 1 => Just(u64::MAX)];
    let reply = (text, calls(), finish, usage).prop_map(|(text, calls, finish, tokens)| Reply {
        text: text.to_owned(),
        calls,
        finish,
        usage: Usage { input_tokens: tokens, output_tokens: tokens, ..Usage::default() },
        opaque: None,
        thought: String::new(),
    });
    let pick = || (0..9usize).prop_map(Pick);
    prop_oneof![
        12 => reply.prop_map(RandomInput::Reply),
        1 => Just(RandomInput::Fails),
        6 => pick().prop_map(RandomInput::Starts),
        16 => (pick(), outcome()).prop_map(|(pick, outcome)| RandomInput::Finishes(pick, outcome)),
        6 => pick().prop_map(RandomInput::Approves),
        3 => pick().prop_map(RandomInput::Refuses),
        3 => (0..5u64).prop_map(RandomInput::Charge),
        1 => Just(RandomInput::FallBack),
        1 => Just(RandomInput::TooLong),
        4 => Just(RandomInput::Compact),
        1 => Just(RandomInput::Cancel),
        1 => (0..300u64).prop_map(RandomInput::Tick),
    ]
}

pub(super) fn any_spec() -> impl Strategy<Value = RunSpec> {
    let returns = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let limit = |range: std::ops::Range<u64>| prop_oneof![3 => Just(None), 1 => range.prop_map(Some)];
    let cost = limit(0..9).prop_map(|limit| limit.map(|limit| Cost::from_picodollars(u128::from(limit))));
    let limits = (0..12u32, limit(0..9), limit(0..500), cost, limit(0..200), 0..2u32, 0..3u32).prop_map(
        |(max_model_calls, max_tool_calls, max_tokens, max_cost, deadline_ms, max_depth, max_answer_retries)| Limits {
            max_model_calls,
            max_tool_calls,
            max_tokens,
            max_cost,
            deadline_ms,
            max_depth,
            max_answer_retries,
        },
    );
    let window = limit(20..400);
    (limits, prop::option::of(Just(returns)), window).prop_map(|(limits, returns, window)| {
        let context = ContextSpec { window, ..ContextSpec::default() };
        let mut spec = RunSpec { limits, returns, context, ..spec() };
        spec.tools.push(Callable { name: "pickColor".into(), target: CallTarget::Client });
        spec
    })
}

/// Returns what the plan of a run says, or that nothing is left out.
fn compaction(run: &Run) -> Message {
    let (kept_from, result_chars) = run.compaction_plan().map_or((0, None), |plan| (plan.kept_from, plan.result_chars));
    Message::Compacted { summary: "before".into(), kept_from, result_chars }
}

fn bill(amount: u64) -> Bill {
    Bill::from((amount > 0).then(|| Cost::from_picodollars(u128::from(amount))))
}

impl Pick {
    fn id(self, run: &Run) -> String {
        let calls: Vec<_> = run.conversation().iter().flat_map(Message::calls).collect();
        calls.iter().rev().nth(self.0).map_or_else(|| "unknown".to_owned(), |call| call.id.clone())
    }
}

impl RandomInput {
    fn apply(&self, run: &mut Run) -> Result<(), RunError> {
        let now = run.elapsed_ms() + 7;
        match self {
            RandomInput::Reply(reply) => run.model_replied(reply.clone(), now, &decide),
            RandomInput::Fails => {
                run.model_failed(RunFailure { kind: FailureKind::Configuration, message: "no key".into() }, now)
            }
            RandomInput::Starts(pick) => run.call_started(&pick.id(run)),
            RandomInput::Finishes(pick, outcome) => run.call_finished(&pick.id(run), outcome.clone(), now, now),
            RandomInput::Approves(pick) => run.approve(&pick.id(run)),
            RandomInput::Refuses(pick) => run.refuse(&pick.id(run), "no", now),
            RandomInput::Charge(amount) => run.charge(bill(*amount)),
            RandomInput::FallBack => run.fall_back("demo".into(), smaller(run), now),
            RandomInput::TooLong => run.context_exceeded("too long", now),
            RandomInput::Compact => run.compacted(compaction(run), now),
            RandomInput::Cancel => run.cancel(now),
            RandomInput::Tick(now) => run.tick(*now),
        }
    }

    /// Returns the same input as a value, including the rulings on calls.
    pub(super) fn to_value(&self, run: &Run) -> RunInput {
        let at = run.elapsed_ms() + 7;
        match self {
            RandomInput::Reply(reply) => {
                let rulings = RefCell::new(Vec::new());
                let recording = |call: &PendingCall| {
                    rulings.borrow_mut().push(decide(call));
                    decide(call)
                };
                let _ = run.clone().model_replied(reply.clone(), at, &recording);
                RunInput::ModelReplied {
                    reply: reply.clone(),
                    rulings: rulings.into_inner(),
                    timing: CallTiming::default(),
                    at,
                }
            }
            RandomInput::Fails => {
                let failure = RunFailure { kind: FailureKind::Configuration, message: "no key".into() };
                RunInput::ModelFailed { failure, timing: CallTiming::default(), at }
            }
            RandomInput::Starts(pick) => RunInput::CallStarted { call_id: pick.id(run), at: None },
            RandomInput::Finishes(pick, outcome) => {
                let call_id = pick.id(run);
                let outcome = outcome.clone();
                RunInput::CallFinished {
                    call_id,
                    outcome,
                    duration_ms: at,
                    usage: Usage::default(),
                    model_calls: 0,
                    at,
                }
            }
            RandomInput::Approves(pick) => RunInput::CallApproved { call_id: pick.id(run), at: None },
            RandomInput::Refuses(pick) => RunInput::CallRefused { call_id: pick.id(run), reason: "no".into(), at },
            RandomInput::Charge(amount) => RunInput::Charged { spent: bill(*amount), interrupted: false },
            RandomInput::FallBack => RunInput::FellBack {
                from: "scripted/a".into(),
                to: "demo".into(),
                because: "down".into(),
                context: smaller(run),
                timing: CallTiming::default(),
                at,
            },
            RandomInput::TooLong => RunInput::ContextExceeded { message: "too long".into(), at },
            RandomInput::Compact => RunInput::Compacted { compaction: compaction(run), usage: Usage::default(), at },
            RandomInput::Cancel => RunInput::Cancelled { at },
            RandomInput::Tick(at) => RunInput::ClockTicked { at: *at },
        }
    }

    /// Returns whether the current step expects this input.
    fn is_expected(&self, run: &Run) -> bool {
        let step = run.step();
        let open = |id: &str| matches!(&step, Step::CallTools { calls } if calls.iter().any(|call| call.id == id));
        let is_client =
            |id: &str| matches!(&step, Step::AwaitClient { calls } if calls.iter().any(|call| call.id == id));
        let awaits_approval = |id: &str| matches!(&step, Step::AskApproval { calls } if calls.iter().any(|request| request.call.id == id));
        match self {
            RandomInput::Reply(_)
            | RandomInput::Fails
            | RandomInput::FallBack
            | RandomInput::TooLong
            | RandomInput::Compact => matches!(step, Step::CallModel { .. } | Step::Compact),
            RandomInput::Starts(pick) => open(&pick.id(run)),
            RandomInput::Finishes(pick, _) => open(&pick.id(run)) || is_client(&pick.id(run)),
            RandomInput::Approves(pick) | RandomInput::Refuses(pick) => awaits_approval(&pick.id(run)),
            RandomInput::Charge(_) | RandomInput::Cancel | RandomInput::Tick(_) => run.outcome().is_none(),
        }
    }
}

/// Returns the context of a model with a small window.
fn smaller(run: &Run) -> Option<ContextSpec> {
    Some(ContextSpec { window: Some(40), ..run.spec().context })
}

/// Asserts that each call is followed by exactly one result, in order. Only calls of the last message may have none yet.
fn assert_results_in_order(run: &Run) {
    let messages = run.conversation();
    let mut ids = std::collections::HashSet::new();
    assert!(messages.iter().flat_map(Message::calls).all(|call| ids.insert(&call.id) && !call.id.is_empty()));
    let mut rest = messages.iter();
    while let Some(message) = rest.next() {
        assert!(!matches!(message, Message::Tool { .. }), "a result without a call: {:?}", transcript(messages));
        for (index, call) in message.calls().iter().enumerate() {
            match rest.next() {
                Some(Message::Tool { call_id, tool, .. }) => assert_eq!((call_id, tool), (&call.id, &call.tool)),
                Some(_) => panic!("a call without a result: {:?}", transcript(messages)),
                None => {
                    let is_working = matches!(
                        run.step(),
                        Step::CallTools { .. } | Step::AskApproval { .. } | Step::AwaitClient { .. }
                    );
                    assert!(index == 0 && is_working, "a call without a result: {:?}", transcript(messages));
                    return;
                }
            }
        }
    }
    assert!(matches!(run.step(), Step::CallModel { .. } | Step::Compact | Step::Done(_)));
}

/// Asserts that what is sent has each call with its results, and nothing that a model does not know.
fn assert_sent(run: &Run) {
    let sent = run.sent_messages();
    let mut open: Vec<&str> = Vec::new();
    for message in sent.iter() {
        match message {
            Message::Tool { call_id, .. } => assert_eq!(open.remove(0), call_id, "{:?}", transcript(&sent)),
            message => {
                assert!(open.is_empty() && !matches!(message, Message::Compacted { .. }), "{:?}", transcript(&sent));
                open.extend(message.calls().iter().map(|call| call.id.as_str()));
            }
        }
    }
    assert!(open.is_empty());
    // Models reply to users and results, not to themselves.
    assert!(!matches!(sent.last(), None | Some(Message::Assistant { .. })), "{:?}", transcript(&sent));
}

/// Asserts the invariants that hold after every input.
fn assert_invariants(run: &Run) {
    assert_results_in_order(run);
    match run.step() {
        Step::CallModel { .. } => {
            assert!(run.model_calls() < run.spec().limits.max_model_calls);
            assert_sent(run);
        }
        Step::Compact => assert!(run.compaction_plan().is_some()),
        Step::Plan => assert!(run.is_workflow()),
        Step::CallTools { calls } => assert!(!calls.is_empty()),
        Step::AskApproval { calls } => assert!(!calls.is_empty()),
        Step::AwaitClient { calls } => assert!(!calls.is_empty()),
        Step::Done(_) => {}
    }
    let answered = run.new_messages().filter(|message| matches!(message, Message::Tool { .. })).count();
    assert!(run.response().tools_used.len() >= answered);
}

/// Drives a run to its end with minimal inputs.
fn finish(mut run: Run) -> Run {
    for _ in 0..1000 {
        let now = run.elapsed_ms();
        let id = match run.step() {
            Step::Done(_) => return run,
            Step::CallModel { .. } | Step::Compact | Step::Plan => None,
            Step::CallTools { calls } | Step::AwaitClient { calls } => Some((calls[0].id.clone(), true)),
            Step::AskApproval { calls } => Some((calls[0].call.id.clone(), false)),
        };
        match id {
            None => run.model_replied(reply(r#"{"name": "Ada"}"#, &[], FinishReason::Stop), now, &decide).unwrap(),
            Some((id, true)) => run.call_finished(&id, conversation::ToolOutcome::Cancelled, 0, now).unwrap(),
            Some((id, false)) => run.approve(&id).unwrap(),
        }
        assert_invariants(&run);
    }
    panic!("the run does not end: {:?}", run.step());
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn random_inputs_preserve_the_invariants(
        spec in any_spec(),
        inputs in prop::collection::vec((random_input(), any::<bool>()), 0..60),
    ) {
        let mut direct = Run::start(spec.clone(), Vec::new(), "Hi", 0).unwrap();
        let mut saved = reload(&direct);
        let started = LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start: direct.to_start(), traceparent: None };
        let mut log = vec![serde_json::to_string(&started).unwrap()];
        for (random, is_saved) in &inputs {
            let before = direct.clone();
            let is_expected = random.is_expected(&direct);
            let value = random.to_value(&direct);
            let result = random.apply(&mut direct);
            prop_assert_eq!(saved.apply(value.clone()), result.clone());
            if result.is_ok() {
                log.push(serde_json::to_string(&LogEntry::InputReceived { run: vec![], input: value }).unwrap());
            }
            prop_assert!(result.is_ok() || !is_expected, "{:?} is expected but rejected: {:?}", random, result);
            if result.is_err() {
                prop_assert_eq!(&direct, &before);
            }
            assert_invariants(&direct);
            if *is_saved {
                saved = reload(&saved);
            }
            prop_assert_eq!(saved.step(), direct.step());
            prop_assert_eq!(&saved, &direct);
        }
        // The log reproduces the run, wherever it ends.
        let log = Log::read(&log).unwrap();
        prop_assert_eq!(log.conversation(), direct.conversation());
        prop_assert_eq!(log.open_run(), direct.outcome().is_none().then_some(&direct));
        let ended = finish(direct.clone());
        // The conversation can be continued, whether the run ended or was interrupted.
        for conversation in [ended.conversation(), direct.conversation()] {
            let next = Run::start(spec.clone(), conversation.clone(), "And now?", 0).unwrap();
            assert_invariants(&next);
            assert_invariants(&finish(next));
        }
    }

    #[test]
    fn random_answers_do_not_break_the_parser(text in any::<String>(), schema in 0..4usize) {
        let schemas = [json!(true), json!({"type": "string"}), json!({"type": "array"}), json!({"enum": [1, "a"]})];
        let schema = schemas[schema].clone();
        let mut run = Run::start(RunSpec { returns: Some(schema), ..spec() }, Vec::new(), "Hi", 0).unwrap();
        run.model_replied(reply(&text, &[], FinishReason::Stop), 1, &decide).unwrap();
        assert_invariants(&run);
    }
}
