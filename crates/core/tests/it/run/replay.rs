//! Replays of random runs: with the same agent nothing differs, and with an edited agent only the edit does.

use super::invariants::{RandomInput, any_spec, random_input};
use super::*;
use crate::generate::cases;
use patter_core::message::request::{RequestTemplate, Settings, TemplateTool};
use patter_core::run::{CallTiming, RunInput};
use patter_core::session::LogEntry;
use patter_core::session::replay::{CurrentAgent, CurrentAgents, Difference, OnDifference, ReplayComparison, compare};
use proptest::prelude::*;

/// The current version of an agent.
#[derive(Clone)]
struct Now {
    frame: RequestTemplate,
    spec: RunSpec,
    decide: fn(&PendingCall) -> Ruling,
}

impl CurrentAgents for Now {
    fn find(&self, _: &[String], _: &str) -> Option<CurrentAgent<'_>> {
        Some(CurrentAgent { frame: self.frame.clone().into(), spec: self.spec.clone(), decide: Box::new(self.decide) })
    }
}

impl Now {
    fn new(spec: RunSpec) -> Self {
        let tool = |callable: &Callable| TemplateTool {
            name: callable.name.clone(),
            description: "Works".into(),
            schema: json!({"type": "object"}).into(),
            is_strict: false,
        };
        let frame = RequestTemplate {
            model: "demo".into(),
            instruction: "Greet.".into(),
            tools: spec.tools.iter().map(tool).collect(),
            settings: Settings::default(),
            returns: spec.returns.clone(),
        };
        Self { frame, spec, decide }
    }

    /// Records a run of the agent.
    fn record(&self, inputs: &[RandomInput]) -> Vec<LogEntry> {
        let mut run = Run::start(self.spec.clone(), Vec::new(), "Hi", 0).unwrap();
        let frame = Some(self.frame.clone().into());
        let mut entries = vec![LogEntry::RunStarted {
            run: vec![],
            frame,
            bindings: String::new(),
            start: run.to_start(),
            traceparent: None,
        }];
        for random in inputs {
            let input = random.to_value(&run);
            if run.apply(input.clone()).is_ok() {
                entries.push(LogEntry::InputReceived { run: vec![], input });
            }
        }
        entries
    }

    fn compare_with(&self, entries: &[LogEntry], on_difference: OnDifference) -> ReplayComparison {
        compare(entries.to_vec(), self, on_difference).unwrap()
    }
}

fn replies(entries: &[LogEntry]) -> usize {
    entries
        .iter()
        .filter(|entry| matches!(entry, LogEntry::InputReceived { input: RunInput::ModelReplied { .. }, .. }))
        .count()
}

/// Returns all differences.
fn descriptions(compared: &ReplayComparison) -> Vec<String> {
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
    fn only_the_edit_differs(spec in any_spec(), inputs in prop::collection::vec(random_input(), 0..50)) {
        let now = Now::new(spec);
        let entries = now.record(&inputs);
        for on_difference in [OnDifference::Stop, OnDifference::Continue] {
            let compared = now.compare_with(&entries, on_difference);
            prop_assert_eq!((compared.identical, compared.divergences, compared.turns), (replies(&entries), vec![], 1));
        }
        type Edit = (fn(&mut Now), &'static str);
        let edits: [Edit; 7] = [
            (|now| now.frame.instruction = "Greet kindly.".into(), "the instruction changed"),
            (|now| now.frame.model = "OpenAI/gpt-4o".into(), "the model changed from `demo` to `OpenAI/gpt-4o`"),
            (|now| now.frame.settings.temperature = Some(0.5), "`temperature` changed from the provider's default to 0.5"),
            (|now| drop(now.frame.tools.remove(0)), "the tool `sayHello` was removed"),
            (|now| now.frame.tools.reverse(), "the order of the tools changed"),
            (|now| now.frame.tools[1].description = "Mails".into(),
                "the tool `mail/send` changed: description"),
            (|now| now.frame.tools[2].schema = json!({}).into(),
                "the tool `askMe` changed: argument schema"),
        ];
        // A changed frame is reported at the first model call.
        let is_called = entries.iter().any(|entry| {
            matches!(entry, LogEntry::InputReceived { input: RunInput::ModelReplied { .. } | RunInput::ModelFailed { .. }, .. })
        });
        for (edit, expected) in edits {
            let mut edited = now.clone();
            edit(&mut edited);
            for on_difference in [OnDifference::Stop, OnDifference::Continue] {
                let compared = edited.compare_with(&entries, on_difference);
                let expected: &[&str] = if is_called { &[expected] } else { &[] };
                prop_assert_eq!(descriptions(&compared), expected);
                prop_assert!(compared.divergences.iter().all(|divergence| divergence.location.model_call == 1));
            }
        }
    }

    #[test]
    fn changed_rulings_are_reported(spec in any_spec(), inputs in prop::collection::vec(random_input(), 0..50)) {
        let now = Now::new(spec);
        let entries = now.record(&inputs);
        let edited = Now { decide: denies_mail, ..now.clone() };
        let compared = edited.compare_with(&entries, OnDifference::Stop);
        for divergence in &compared.divergences {
            for difference in &divergence.differences {
                // With all calls denied, the run may reach a limit next.
                let is_expected = match difference {
                    Difference::Ruling { tool, .. } => tool == "mail/send",
                    other => matches!(other, Difference::Ends { .. }) && divergence.differences.len() > 1,
                };
                prop_assert!(is_expected, "{}", difference);
            }
        }
        // When continuing, the recorded rulings are used, so the remaining inputs fit.
        let all = edited.compare_with(&entries, OnDifference::Continue);
        let locations = |compared: &ReplayComparison| {
            compared.divergences.iter().map(|divergence| divergence.location.clone()).collect::<Vec<_>>()
        };
        prop_assert!(locations(&all).starts_with(&locations(&compared)));
        prop_assert_eq!(all.identical + all.divergences.len(), replies(&entries));
        let has_ruling = |entry: &LogEntry| match entry {
            LogEntry::InputReceived { input: RunInput::ModelReplied { reply, rulings, .. }, .. } => {
                !rulings.is_empty() && reply.calls.iter().all(|call| call.tool == "mail/send")
            }
            _ => false,
        };
        prop_assert!(!entries.iter().any(has_ruling) || !compared.divergences.is_empty());
    }
}

/// A call that failed because the tool was unknown now waits for a result, and one that was made now fails.
#[test]
fn replays_continue_when_tools_appear_or_disappear() {
    let full = spec();
    let mut less = spec();
    less.tools.retain(|callable| callable.name != "sayHello");
    less.hash = "less".into();
    let allow = || Ruling { decision: Decision::Allow, because: "the agent declares it".into() };
    let ask = || Ruling { decision: Decision::Ask, because: "rule".into() };
    let calls = |rulings| RunInput::ModelReplied {
        timing: CallTiming::default(),
        reply: reply("", &[("a", "sayHello", "{}")], FinishReason::Stop),
        rulings,
        at: 5,
    };
    let outcome = conversation::ToolOutcome::Value { value: json!("Hello!") };
    let call_id = "a".to_owned();
    let usage = Usage::default();
    let done =
        RunInput::CallFinished { call_id: call_id.clone(), outcome, duration_ms: 1, usage, model_calls: 0, at: 10 };
    let ends = RunInput::ModelReplied {
        reply: reply("Done", &[], FinishReason::Stop),
        rulings: vec![],
        timing: CallTiming::default(),
        at: 15,
    };
    let check = |then: &RunSpec, now: &RunSpec, input: &[RunInput], expected: &[&str]| {
        let recorded = Now::new(then.clone());
        let start = Run::start(then.clone(), Vec::new(), "Hi", 0).unwrap().to_start();
        let frame = Some(recorded.frame.clone().into());
        let started = LogEntry::RunStarted { run: vec![], frame, bindings: String::new(), start, traceparent: None };
        let input = input.iter().map(|input| LogEntry::InputReceived { run: vec![], input: input.clone() });
        let entries: Vec<_> = std::iter::once(started).chain(input).collect();
        let now = Now { frame: recorded.frame, ..Now::new(now.clone()) };
        let compared = now.compare_with(&entries, OnDifference::Continue);
        assert_eq!(
            (descriptions(&compared).iter().map(String::as_str).collect::<Vec<_>>(), compared.is_truncated),
            (expected.to_vec(), false)
        );
        let whole = entries.len();
        assert!(now.compare_with(&entries[..whole - 1], OnDifference::Continue).is_truncated);
    };
    check(&less, &full, &[calls(vec![]), ends.clone()], &["the model calls `sayHello`, which the agent did not have"]);
    let gone = ["the model calls `sayHello`, which the agent no longer has", "message 3 of the conversation differs"];
    check(&full, &less, &[calls(vec![allow()]), done.clone(), ends.clone()], &gone);
    let approved = RunInput::CallApproved { call_id, at: None };
    check(&full, &less, &[calls(vec![ask()]), approved, done, ends], &gone);
}

/// Edits of the specification, and the differences they cause.
#[test]
fn edits_of_limits_tools_and_answer_schemas_are_reported() {
    let replies_with = |text: &str, calls: &[(&str, &str, &str)]| RunInput::ModelReplied {
        timing: CallTiming::default(),
        rulings: calls
            .iter()
            .map(|_| Ruling { decision: Decision::Allow, because: "the agent declares it".into() })
            .collect(),
        reply: reply(text, calls, FinishReason::Stop),
        at: 5,
    };
    let done = |id: &str| RunInput::CallFinished {
        call_id: id.into(),
        outcome: conversation::ToolOutcome::Value { value: json!("Hello!") },
        duration_ms: 1,
        usage: Usage::default(),
        model_calls: 0,
        at: 10,
    };
    let hello = [replies_with("", &[("a", "sayHello", "{}")]), done("a"), replies_with("Done", &[])];
    let check = |edit: &dyn Fn(&mut RunSpec), expected: &[&str]| {
        let now = Now::new(spec());
        let start = Run::start(spec(), Vec::new(), "Hi", 0).unwrap().to_start();
        let frame = Some(now.frame.clone().into());
        let started = LogEntry::RunStarted { run: vec![], frame, bindings: String::new(), start, traceparent: None };
        let input = hello.iter().map(|input| LogEntry::InputReceived { run: vec![], input: input.clone() });
        let entries: Vec<_> = std::iter::once(started).chain(input).collect();
        let mut edited = now.clone();
        edited.spec.hash = "other".into();
        edit(&mut edited.spec);
        let compared = edited.compare_with(&entries, OnDifference::Stop);
        let locations = compared.divergences.iter().map(|divergence| divergence.location.to_string());
        assert_eq!(locations.chain(descriptions(&compared)).collect::<Vec<_>>(), expected);
    };
    check(&|_| {}, &[]);
    check(
        &|spec| spec.limits.max_model_calls = 1,
        &[
            "turn 1, model call 1 of `hello`",
            "the run now ends here: reached the limit of 1 model calls without an answer",
        ],
    );
    check(
        &|spec| spec.limits.max_tool_calls = Some(0),
        &["turn 1, model call 1 of `hello`", "the run now ends here: the model requested 1 tool calls (limit: 0)"],
    );
    check(
        &|spec| drop(spec.tools.remove(0)),
        &["turn 1, model call 1 of `hello`", "the model calls `sayHello`, which the agent no longer has"],
    );
    check(
        &|spec| {
            spec.tools[0].target = CallTarget::Tool { name: FullName::parse("ours/hello").unwrap(), idempotent: true }
        },
        &["turn 1, model call 1 of `hello`", "the target of `sayHello` changed from `sayHello` to `ours/hello`"],
    );
    check(
        &|spec| spec.returns = Some(json!({"type": "integer"})),
        &["turn 1, model call 2 of `hello`", "the run now continues; it ended here: answered"],
    );
}
