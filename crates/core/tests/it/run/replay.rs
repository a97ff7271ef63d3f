//! Random runs, played again: with the same agent nothing differs, and with one that was edited just that.

use super::promises::{Chance, any_spec, chance};
use super::*;
use crate::generate::cases;
use patter_core::message::request::{Frame, FramedTool, Settings};
use patter_core::run::RunInput;
use patter_core::session::Entry;
use patter_core::session::replay::{After, Comparison, CurrentAgent, CurrentAgents, Difference, compare};
use proptest::prelude::*;

/// An agent as it is now.
#[derive(Clone)]
struct Now {
    frame: Frame,
    spec: RunSpec,
    decide: fn(&PendingCall) -> Ruling,
}

impl CurrentAgents for Now {
    fn actor(&self, _: &[String], _: &str) -> Option<CurrentAgent<'_>> {
        let (frame, spec) = (self.frame.clone().into(), self.spec.clone());
        Some(CurrentAgent { frame, spec, decide: Box::new(self.decide) })
    }
}

impl Now {
    fn new(spec: RunSpec) -> Self {
        let tool = |callable: &Callable| FramedTool {
            name: callable.name.clone(),
            description: "Works".into(),
            schema: json!({"type": "object"}).into(),
            is_strict: false,
        };
        let frame = Frame {
            model: "demo".into(),
            instruction: "Greet.".into(),
            tools: spec.tools.iter().map(tool).collect(),
            settings: Settings::default(),
            returns: spec.returns.clone(),
        };
        Self { frame, spec, decide }
    }

    /// Records a run of it.
    fn recorded(&self, chances: &[Chance]) -> Vec<Entry> {
        let mut run = Run::start(self.spec.clone(), Vec::new(), "Hi", 0).unwrap();
        let frame = Some(self.frame.clone().into());
        let mut entries =
            vec![Entry::Began { run: vec![], frame, bindings: String::new(), beginning: run.beginning() }];
        for chance in chances {
            let input = chance.input(&run);
            if run.apply(input.clone()).is_ok() {
                entries.push(Entry::Input { run: vec![], input });
            }
        }
        entries
    }

    fn compared(&self, entries: &[Entry], after: After) -> Comparison {
        compare(entries.to_vec(), self, after).unwrap()
    }
}

fn replies(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| matches!(entry, Entry::Input { input: RunInput::Reply { .. }, .. })).count()
}

/// Returns all that differs.
fn found(compared: &Comparison) -> Vec<String> {
    let differences = compared.divergences.iter().flat_map(|divergence| &divergence.differences);
    differences.map(ToString::to_string).collect()
}

fn denies_mail(call: &PendingCall) -> Ruling {
    match call.tool.as_str() {
        "mail/send" => Ruling { decision: Decision::Deny, because: "no mail".into() },
        _ => decide(call),
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn what_differs_is_what_was_edited(spec in any_spec(), chances in prop::collection::vec(chance(), 0..50)) {
        let now = Now::new(spec);
        let entries = now.recorded(&chances);
        for after in [After::Stop, After::GoOn] {
            let compared = now.compared(&entries, after);
            prop_assert_eq!((compared.same, compared.divergences, compared.turns), (replies(&entries), vec![], 1));
        }
        type Edit = (fn(&mut Now), &'static str);
        let edits: [Edit; 7] = [
            (|now| now.frame.instruction = "Greet kindly.".into(), "the instruction is another"),
            (|now| now.frame.model = "OpenAI/gpt-4o".into(), "the model is `OpenAI/gpt-4o`, and was `demo`"),
            (|now| now.frame.settings.temperature = Some(0.5), "`temperature` is 0.5, and was left to the provider"),
            (|now| drop(now.frame.tools.remove(0)), "the tool `sayHello` is not offered, and was"),
            (|now| now.frame.tools.reverse(), "the tools stand in another order"),
            (|now| now.frame.tools[1].description = "Mails".into(),
                "the tool `mail/send` is shown in another way: its description"),
            (|now| now.frame.tools[2].schema = json!({}).into(),
                "the tool `askMe` is shown in another way: the schema of its arguments"),
        ];
        // What the model is given counts when it is first called.
        let is_called = entries.iter().any(|entry| {
            matches!(entry, Entry::Input { input: RunInput::Reply { .. } | RunInput::ModelFailed { .. }, .. })
        });
        for (edit, expected) in edits {
            let mut edited = now.clone();
            edit(&mut edited);
            for after in [After::Stop, After::GoOn] {
                let compared = edited.compared(&entries, after);
                let expected: &[&str] = if is_called { &[expected] } else { &[] };
                prop_assert_eq!(found(&compared), expected);
                prop_assert!(compared.divergences.iter().all(|divergence| divergence.place.model_call == 1));
            }
        }
    }

    #[test]
    fn what_is_decided_otherwise_is_told(spec in any_spec(), chances in prop::collection::vec(chance(), 0..50)) {
        let now = Now::new(spec);
        let entries = now.recorded(&chances);
        let edited = Now { decide: denies_mail, ..now.clone() };
        let compared = edited.compared(&entries, After::Stop);
        for divergence in &compared.divergences {
            for difference in &divergence.differences {
                // Where nothing is left to be called, a limit may be the next thing.
                let is_it = match difference {
                    Difference::Ruling { tool, .. } => tool == "mail/send",
                    other => matches!(other, Difference::Ends { .. }) && divergence.differences.len() > 1,
                };
                prop_assert!(is_it, "{}", difference);
            }
        }
        // Gone on with, the rest fits, as what was decided then takes the place of what is now.
        let all = edited.compared(&entries, After::GoOn);
        let places = |compared: &Comparison| compared.divergences.iter().map(|one| one.place.clone()).collect::<Vec<_>>();
        prop_assert!(places(&all).starts_with(&places(&compared)));
        prop_assert_eq!(all.same + all.divergences.len(), replies(&entries));
        let is_decided = |entry: &Entry| match entry {
            Entry::Input { input: RunInput::Reply { reply, rulings, .. }, .. } => {
                !rulings.is_empty() && reply.calls.iter().all(|call| call.tool == "mail/send")
            }
            _ => false,
        };
        prop_assert!(!entries.iter().any(is_decided) || !compared.divergences.is_empty());
    }
}

/// A call that failed at once because there was no such tool waits now for a result, and one that was made fails at once.
#[test]
fn what_was_recorded_goes_on_whatever_becomes_of_its_calls() {
    let full = spec();
    let mut less = spec();
    less.tools.retain(|callable| callable.name != "sayHello");
    (less.hash, less.agent) = ("less".into(), full.agent.clone());
    let allow = || Ruling { decision: Decision::Allow, because: "the agent declares it".into() };
    let ask = || Ruling { decision: Decision::Ask, because: "asked".into() };
    let calls =
        |rulings| RunInput::Reply { reply: reply("", &[("a", "sayHello", "{}")], Finish::Stop), rulings, at: 5 };
    let outcome = conversation::ToolOutcome::Value { value: json!("Hello!") };
    let (call_id, usage) = ("a".to_owned(), Usage::default());
    let done = RunInput::Finished { call_id: call_id.clone(), outcome, duration_ms: 1, usage, at: 10 };
    let ends = RunInput::Reply { reply: reply("Done", &[], Finish::Stop), rulings: vec![], at: 15 };
    let check = |then: &RunSpec, now: &RunSpec, input: &[RunInput], expected: &[&str]| {
        let recorded = Now::new(then.clone());
        let beginning = Run::start(then.clone(), Vec::new(), "Hi", 0).unwrap().beginning();
        let frame = Some(recorded.frame.clone().into());
        let began = Entry::Began { run: vec![], frame, bindings: String::new(), beginning };
        let input = input.iter().map(|input| Entry::Input { run: vec![], input: input.clone() });
        let entries: Vec<_> = std::iter::once(began).chain(input).collect();
        let now = Now { frame: recorded.frame, ..Now::new(now.clone()) };
        let compared = now.compared(&entries, After::GoOn);
        assert_eq!(
            (found(&compared).iter().map(String::as_str).collect::<Vec<_>>(), compared.is_cut),
            (expected.to_vec(), false)
        );
        let whole = entries.len();
        assert!(now.compared(&entries[..whole - 1], After::GoOn).is_cut);
    };
    check(&less, &full, &[calls(vec![]), ends.clone()], &["the model calls `sayHello`, which the agent had not"]);
    let gone = ["the model calls `sayHello`, which the agent has no more", "message 3 of the conversation is another"];
    check(&full, &less, &[calls(vec![allow()]), done.clone(), ends.clone()], &gone);
    let approved = RunInput::Approved { call_id };
    check(&full, &less, &[calls(vec![ask()]), approved, done, ends], &gone);
}

/// Replies and what differs, for an agent whose spec was edited.
#[test]
fn limits_tools_and_forms() {
    let says = |text: &str, calls: &[(&str, &str, &str)]| RunInput::Reply {
        rulings: calls
            .iter()
            .map(|_| Ruling { decision: Decision::Allow, because: "the agent declares it".into() })
            .collect(),
        reply: reply(text, calls, Finish::Stop),
        at: 5,
    };
    let done = |id: &str| RunInput::Finished {
        call_id: id.into(),
        outcome: conversation::ToolOutcome::Value { value: json!("Hello!") },
        duration_ms: 1,
        usage: Usage::default(),
        at: 10,
    };
    let hello = [says("", &[("a", "sayHello", "{}")]), done("a"), says("Done", &[])];
    let check = |edit: &dyn Fn(&mut RunSpec), expected: &[&str]| {
        let now = Now::new(spec());
        let begun = Run::start(spec(), Vec::new(), "Hi", 0).unwrap().beginning();
        let frame = Some(now.frame.clone().into());
        let began = Entry::Began { run: vec![], frame, bindings: String::new(), beginning: begun };
        let input = hello.iter().map(|input| Entry::Input { run: vec![], input: input.clone() });
        let entries: Vec<_> = std::iter::once(began).chain(input).collect();
        let mut edited = now.clone();
        edited.spec.hash = "other".into();
        edit(&mut edited.spec);
        let compared = edited.compared(&entries, After::Stop);
        let places = compared.divergences.iter().map(|divergence| divergence.place.to_string());
        assert_eq!(places.chain(found(&compared)).collect::<Vec<_>>(), expected);
    };
    check(&|_| {}, &[]);
    check(
        &|spec| spec.limits.max_model_calls = 1,
        &[
            "turn 1, model call 1 of `hello`",
            "the run ends here: the limit of 1 model calls is reached, and there is no answer",
        ],
    );
    check(
        &|spec| spec.limits.max_tool_calls = Some(0),
        &[
            "turn 1, model call 1 of `hello`",
            "the run ends here: the model asked for 1 calls of tools, and 0 are allowed",
        ],
    );
    check(
        &|spec| drop(spec.tools.remove(0)),
        &["turn 1, model call 1 of `hello`", "the model calls `sayHello`, which the agent has no more"],
    );
    check(
        &|spec| spec.tools[0].target = Target::Tool { name: FullName::parse("ours/hello").unwrap(), idempotent: true },
        &["turn 1, model call 1 of `hello`", "the call of `sayHello` is served by `ours/hello`, and was by `sayHello`"],
    );
    check(
        &|spec| spec.returns = Some(json!({"type": "integer"})),
        &["turn 1, model call 2 of `hello`", "the run goes on, and ended here: with an answer"],
    );
}
