//! What holds for every run, whatever happens to it: each call gets exactly one result, in order; a run that was saved
//! and loaded goes on as if it had not been; what is refused changes nothing; and every run ends.

use super::*;
use crate::generate::cases;
use patter_core::run::RunInput;
use patter_core::session::{Entry, Log};
use proptest::prelude::*;
use std::cell::RefCell;

/// Something that happens to a run, at random. Calls are picked by number among those that are open, or closed.
#[derive(Debug, Clone)]
pub(super) enum Chance {
    Reply(Reply),
    Fails,
    Starts(Pick),
    Finishes(Pick, conversation::ToolOutcome),
    Approved(Pick),
    Refused(Pick),
    Cancel,
    Tick(u64),
}

/// A call by its place among all that the run has seen, counted from the last; or one that nobody made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick(usize);

fn calls() -> impl Strategy<Value = Vec<ToolCall>> {
    let id = prop::sample::select(vec!["", "a", "a", "b", "a-2", "c"]);
    let tool = prop::sample::select(vec!["sayHello", "mail/send", "askMe", "askMe", "denied", "editor", "sayHelo", ""]);
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

pub(super) fn chance() -> impl Strategy<Value = Chance> {
    let finish = prop_oneof![
        12 => Just(Finish::Stop),
        1 => Just(Finish::Length),
        1 => Just(Finish::Malformed),
        1 => Just(Finish::Refused),
    ];
    let text = prop::sample::select(vec!["", "Hello", r#"{"name": "Ada"}"#, "```json\n{}\n```"]);
    let usage = prop_oneof![6 => 0..60u64, 1 => Just(u64::MAX)];
    let reply = (text, calls(), finish, usage).prop_map(|(text, calls, finish, tokens)| Reply {
        text: text.to_owned(),
        calls,
        finish,
        usage: Usage { input_tokens: tokens, output_tokens: tokens, ..Usage::default() },
        opaque: None,
    });
    let pick = || (0..9usize).prop_map(Pick);
    prop_oneof![
        12 => reply.prop_map(Chance::Reply),
        1 => Just(Chance::Fails),
        6 => pick().prop_map(Chance::Starts),
        16 => (pick(), outcome()).prop_map(|(pick, outcome)| Chance::Finishes(pick, outcome)),
        6 => pick().prop_map(Chance::Approved),
        3 => pick().prop_map(Chance::Refused),
        1 => Just(Chance::Cancel),
        1 => (0..300u64).prop_map(Chance::Tick),
    ]
}

pub(super) fn any_spec() -> impl Strategy<Value = RunSpec> {
    let returns = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let most = |most: std::ops::Range<u64>| prop_oneof![3 => Just(None), 1 => most.prop_map(Some)];
    let limits = (0..12u32, most(0..9), most(0..500), most(0..200), 0..2u32, 0..3u32).prop_map(
        |(max_model_calls, max_tool_calls, max_tokens, deadline_ms, max_depth, max_answer_retries)| Limits {
            max_model_calls,
            max_tool_calls,
            max_tokens,
            deadline_ms,
            max_depth,
            max_answer_retries,
        },
    );
    (limits, prop::option::of(Just(returns))).prop_map(|(limits, returns)| RunSpec { limits, returns, ..spec() })
}

impl Pick {
    fn id(self, run: &Run) -> String {
        let calls: Vec<_> = run.conversation().iter().flat_map(Message::calls).collect();
        calls.iter().rev().nth(self.0).map_or_else(|| "nobody".to_owned(), |call| call.id.clone())
    }
}

impl Chance {
    fn tell(&self, run: &mut Run) -> Result<(), RunError> {
        let now = run.elapsed_ms() + 7;
        match self {
            Chance::Reply(reply) => run.reply(reply.clone(), now, &decide),
            Chance::Fails => {
                run.model_failed(Failure { kind: FailureKind::Configuration, message: "no key".into() }, now)
            }
            Chance::Starts(pick) => run.started(&pick.id(run)),
            Chance::Finishes(pick, outcome) => run.finished(&pick.id(run), outcome.clone(), now, now),
            Chance::Approved(pick) => run.approved(&pick.id(run)),
            Chance::Refused(pick) => run.refused(&pick.id(run), "no", now),
            Chance::Cancel => run.cancel(now),
            Chance::Tick(now) => run.tick(*now),
        }
    }

    /// Returns the same as a value, with what is decided about calls.
    pub(super) fn input(&self, run: &Run) -> RunInput {
        let at = run.elapsed_ms() + 7;
        match self {
            Chance::Reply(reply) => {
                let rulings = RefCell::new(Vec::new());
                let noted = |call: &PendingCall| {
                    rulings.borrow_mut().push(decide(call));
                    decide(call)
                };
                let _ = run.clone().reply(reply.clone(), at, &noted);
                RunInput::Reply { reply: reply.clone(), rulings: rulings.into_inner(), at }
            }
            Chance::Fails => {
                let failure = Failure { kind: FailureKind::Configuration, message: "no key".into() };
                RunInput::ModelFailed { failure, at }
            }
            Chance::Starts(pick) => RunInput::Started { call_id: pick.id(run) },
            Chance::Finishes(pick, outcome) => {
                let (call_id, outcome) = (pick.id(run), outcome.clone());
                RunInput::Finished { call_id, outcome, duration_ms: at, usage: Usage::default(), at }
            }
            Chance::Approved(pick) => RunInput::Approved { call_id: pick.id(run) },
            Chance::Refused(pick) => RunInput::Refused { call_id: pick.id(run), why: "no".into(), at },
            Chance::Cancel => RunInput::Cancelled { at },
            Chance::Tick(at) => RunInput::Tick { at: *at },
        }
    }

    /// Tells whether the step that the run shows allows this.
    fn is_due(&self, run: &Run) -> bool {
        let step = run.step();
        let open = |id: &str| matches!(&step, Step::CallTools { calls } if calls.iter().any(|call| call.id == id));
        let asked =
            |id: &str| matches!(&step, Step::AskApproval { calls } if calls.iter().any(|asked| asked.call.id == id));
        match self {
            Chance::Reply(_) | Chance::Fails => matches!(step, Step::CallModel { .. }),
            Chance::Starts(pick) | Chance::Finishes(pick, _) => open(&pick.id(run)),
            Chance::Approved(pick) | Chance::Refused(pick) => asked(&pick.id(run)),
            Chance::Cancel | Chance::Tick(_) => run.outcome().is_none(),
        }
    }
}

/// Asserts that calls have results right after them, in order, each once; all of them, or those of the last message
/// have none yet.
fn assert_legal(run: &Run) {
    let messages = run.conversation();
    let mut ids = std::collections::HashSet::new();
    assert!(messages.iter().flat_map(Message::calls).all(|call| ids.insert(&call.id) && !call.id.is_empty()));
    let mut rest = messages.iter();
    while let Some(message) = rest.next() {
        assert!(!matches!(message, Message::Tool { .. }), "a result of no call: {:?}", shown(messages));
        for (index, call) in message.calls().iter().enumerate() {
            match rest.next() {
                Some(Message::Tool { call_id, tool, .. }) => assert_eq!((call_id, tool), (&call.id, &call.tool)),
                Some(_) => panic!("a call without a result: {:?}", shown(messages)),
                None => {
                    let is_working = matches!(run.step(), Step::CallTools { .. } | Step::AskApproval { .. });
                    assert!(index == 0 && is_working, "a call without a result: {:?}", shown(messages));
                    return;
                }
            }
        }
    }
    assert!(matches!(run.step(), Step::CallModel { .. } | Step::Done(_)));
}

/// Asserts what holds at every moment.
fn assert_promises(run: &Run) {
    assert_legal(run);
    match run.step() {
        Step::CallModel { messages } => {
            assert!(run.model_calls() < run.spec().limits.max_model_calls);
            // Models answer people and results, not themselves.
            assert!(!matches!(messages.last(), None | Some(Message::Assistant { .. })));
        }
        Step::CallTools { calls } => assert!(!calls.is_empty()),
        Step::AskApproval { calls } => assert!(!calls.is_empty()),
        Step::Done(_) => {}
    }
    let answered = run.added().iter().filter(|message| matches!(message, Message::Tool { .. })).count();
    assert!(run.response().tools_used.len() >= answered);
}

/// Brings a run to its end as a caller would that has nothing to say.
fn finish(mut run: Run) -> Run {
    for _ in 0..1000 {
        let now = run.elapsed_ms();
        let id = match run.step() {
            Step::Done(_) => return run,
            Step::CallModel { .. } => None,
            Step::CallTools { calls } => Some((calls[0].id.clone(), true)),
            Step::AskApproval { calls } => Some((calls[0].call.id.clone(), false)),
        };
        match id {
            None => run.reply(reply(r#"{"name": "Ada"}"#, &[], Finish::Stop), now, &decide).unwrap(),
            Some((id, true)) => run.finished(&id, conversation::ToolOutcome::Cancelled, 0, now).unwrap(),
            Some((id, false)) => run.approved(&id).unwrap(),
        }
        assert_promises(&run);
    }
    panic!("it never ends: {:?}", run.step());
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn whatever_happens_the_promises_hold(
        spec in any_spec(),
        chances in prop::collection::vec((chance(), any::<bool>()), 0..60),
    ) {
        let mut kept = Run::start(spec.clone(), Vec::new(), "Hi", 0).unwrap();
        let mut saved = loaded(&kept);
        let began = Entry::Began { run: vec![], frame: None, bindings: String::new(), beginning: kept.beginning() };
        let mut log = vec![serde_json::to_string(&began).unwrap()];
        for (chance, is_saved) in &chances {
            let (before, is_due) = (kept.clone(), chance.is_due(&kept));
            let value = chance.input(&kept);
            let input = chance.tell(&mut kept);
            prop_assert_eq!(saved.apply(value.clone()), input.clone());
            if input.is_ok() {
                log.push(serde_json::to_string(&Entry::Input { run: vec![], input: value }).unwrap());
            }
            prop_assert!(input.is_ok() || !is_due, "{:?} is due, and refused: {:?}", chance, input);
            if input.is_err() {
                prop_assert_eq!(&kept, &before);
            }
            assert_promises(&kept);
            if *is_saved {
                saved = loaded(&saved);
            }
            prop_assert_eq!(saved.step(), kept.step());
            prop_assert_eq!(&saved, &kept);
        }
        // Its log makes it again, at whatever entry it ends.
        let log = Log::read(&log).unwrap();
        prop_assert_eq!(log.conversation(), kept.conversation());
        prop_assert_eq!(log.run(), kept.outcome().is_none().then_some(&kept));
        let ended = finish(kept.clone());
        // Its conversation goes on, whether it ended well, or was left where it stood.
        for conversation in [ended.conversation(), kept.conversation()] {
            let next = Run::start(spec.clone(), conversation.to_vec(), "And now?", 0).unwrap();
            assert_promises(&next);
            assert_promises(&finish(next));
        }
    }

    #[test]
    fn no_answer_and_no_schema_breaks_the_reader(text in any::<String>(), schema in 0..4usize) {
        let schemas = [json!(true), json!({"type": "string"}), json!({"type": "array"}), json!({"enum": [1, "a"]})];
        let schema = schemas[schema].clone();
        let mut run = Run::start(RunSpec { returns: Some(schema), ..spec() }, Vec::new(), "Hi", 0).unwrap();
        run.reply(reply(&text, &[], Finish::Stop), 1, &decide).unwrap();
        assert_promises(&run);
    }
}
