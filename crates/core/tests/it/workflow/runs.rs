//! Random workflows as runs: killed after every entry of their log, they continue as if they had never stopped.

use super::graphs::{Inputs, Nodes, plan};
use super::random::{graphs, outcome_of};
use patter_core::message::conversation::{Message, ToolOutcome, Usage};
use patter_core::permission::Decision;
use patter_core::run::{CallTarget, Callable, PendingCall, Ruling, Run, RunInput, RunOutcome, RunSpec, Step};
use patter_core::session::{Log, LogEntry};
use patter_core::workflow::Plan;
use proptest::prelude::*;
use std::sync::Arc;

fn spec(plan: &Plan) -> RunSpec {
    let callable = |name: &str| Callable { name: name.into(), target: CallTarget::Agent { name: name.into() } };
    let tools = plan.steps.iter().map(|step| callable(&step.name)).collect();
    RunSpec { agent: "w".into(), tools, workflow: Some(Arc::new(plan.clone())), ..RunSpec::default() }
}

/// Returns the ruling on a call. Some have to be approved.
fn ruling(id: &str, seed: u64) -> Ruling {
    let decision = if (seed ^ id.len() as u64).is_multiple_of(3) { Decision::Ask } else { Decision::Allow };
    Ruling { decision, because: String::new() }
}

/// Returns the next input of a run: calls start, are approved and finish in an order.
fn next_input(run: &Run, seed: u64, order: u64) -> Option<RunInput> {
    let at = run.elapsed_ms() + 1;
    if let Step::Done(_) = run.step() {
        return None;
    }
    if run.step() == Step::Plan {
        let calls = run.planned_calls(at);
        let rulings = calls.iter().map(|planned| ruling(&planned.call.id, seed)).collect();
        return Some(RunInput::StepsPlanned { calls, rulings, at });
    }
    let approve = run.approval_requests().map(|asked| {
        let call_id = asked.call.id.clone();
        match ruling(&call_id, seed ^ 1).decision {
            Decision::Ask => RunInput::CallRefused { call_id, reason: "no".into(), at },
            _ => RunInput::CallApproved { call_id, at: Some(at) },
        }
    });
    let start = run.unstarted_calls().map(|call| RunInput::CallStarted { call_id: call.id.clone(), at: Some(at) });
    let finish = run.started_calls().map(|call| RunInput::CallFinished {
        call_id: call.id.clone(),
        outcome: outcome_of(&call.id, seed),
        duration_ms: 1,
        usage: Usage { input_tokens: 1, ..Usage::default() },
        model_calls: 0,
        at,
    });
    let inputs: Vec<_> = approve.chain(start).chain(finish).collect();
    assert!(!inputs.is_empty(), "the run waits for nothing: {:?}", run.step());
    inputs.get((order >> 33) as usize % inputs.len()).cloned()
}

/// Runs a workflow. After each entry, the run is rebuilt from the log, and from its saved form.
fn run(plan: &Plan, seed: u64, mut order: u64) -> Run {
    let mut run = Run::start(spec(plan), Vec::new(), "x", 0).unwrap();
    let mut log = Log::default();
    let start = run.to_start();
    log.apply(LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start, traceparent: None })
        .unwrap();
    for _ in 0..2000 {
        let Some(input) = next_input(&run, seed, order) else { return run };
        order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let entry = LogEntry::InputReceived { run: vec![], input: input.clone() };
        let text = serde_json::to_string(&entry).unwrap();
        log.apply(serde_json::from_str(&text).unwrap()).unwrap();
        run.apply(input).unwrap();
        let rebuilt = log.open_run().or(log.last_run()).unwrap();
        assert_eq!(rebuilt, &run, "a run that was killed here would continue differently");
        assert_eq!(Run::load(&serde_json::to_string(&run).unwrap()).unwrap(), run);
        assert_results_in_order(&run);
    }
    panic!("the run does not end: {:?}", run.step());
}

/// Asserts that every call has one result, in the order of the calls, once the run has ended.
fn assert_results_in_order(run: &Run) {
    let calls: Vec<_> = run.conversation().iter().flat_map(Message::calls).map(|call| call.id.clone()).collect();
    let results = run.conversation().iter().filter_map(|message| match message {
        Message::Tool { call_id, .. } => Some(call_id.clone()),
        _ => None,
    });
    let results: Vec<_> = results.collect();
    assert!(results.is_empty() || results == calls, "{results:?}\n{calls:?}");
    assert!(run.outcome().is_none() || results == calls);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn a_killed_run_continues_as_if_it_had_never_stopped(graph in graphs(6), seed: u64, orders: [u64; 2]) {
        let nodes = Nodes::new(graph.len());
        let (workflow, findings) = nodes.workflow(&graph, Inputs::Explicit);
        prop_assume!(findings.is_empty());
        let plan = plan(&workflow);
        let one = run(&plan, seed, orders[0]);
        let other = run(&plan, seed, orders[1]);
        match (one.outcome().unwrap(), other.outcome().unwrap()) {
            // The first failure ends a workflow, and which is first depends on the order.
            (RunOutcome::Failed(_), RunOutcome::Failed(_)) => {}
            (outcome, other_outcome) => {
                prop_assert_eq!(outcome, other_outcome);
                prop_assert_eq!(one.conversation(), other.conversation());
            }
        }
    }
}

#[test]
fn what_one_branch_receives_changes_no_other() {
    let text = "[w:Workflow | (a:writer)-->(z {ask: '{a} {b} {c}'}), (b:writer)-->(c:writer)-->(z), (z:editor)]";
    let text = text.replace("(z {ask: '{a} {b} {c}'})", "(z)").replace("(z:editor)", "(z:editor {ask: '{a} {b} {c}'})");
    let plan = super::plan(&text);
    let tools = ["writer", "editor"]
        .map(|name| Callable { name: name.into(), target: CallTarget::Agent { name: name.into() } });
    let spec = RunSpec { tools: tools.into(), workflow: Some(Arc::new(plan)), ..RunSpec::default() };
    let mut run = Run::start(spec, Vec::new(), "x", 0).unwrap();
    let ask_a = |call: &PendingCall| Ruling {
        decision: if call.id == "a-1" { Decision::Ask } else { Decision::Allow },
        because: "a is delicate".into(),
    };
    run.steps_planned(run.planned_calls(1), 1, &ask_a).unwrap();
    assert_eq!(run.approval_requests().map(|asked| asked.call.id.as_str()).collect::<Vec<_>>(), ["a-1"]);
    let value = |text: &str| ToolOutcome::Value { value: text.into() };
    run.call_started("b-1").unwrap();
    run.call_finished("b-1", value("B"), 1, 2).unwrap();
    run.steps_planned(run.planned_calls(2), 2, &ask_a).unwrap();
    run.call_started("c-1").unwrap();
    run.call_finished("c-1", value("C"), 1, 3).unwrap();
    assert!(matches!(run.step(), Step::AskApproval { .. }), "the other branch has gone as far as it can");
    run.approve("a-1").unwrap();
    run.call_started("a-1").unwrap();
    run.call_finished("a-1", value("A"), 1, 4).unwrap();
    let calls = run.planned_calls(4);
    assert_eq!(calls[0].call.arguments, r#"{"input":"A B C"}"#);
    run.steps_planned(calls, 4, &ask_a).unwrap();
    run.call_finished("z-1", value("done"), 1, 5).unwrap();
    assert!(
        run.outcome().is_none() && run.planned_calls(5).is_empty(),
        "whoever reports a result does not end the run"
    );
    run.steps_planned(Vec::new(), 5, &ask_a).unwrap();
    assert!(matches!(run.outcome(), Some(RunOutcome::Answer { text, .. }) if text == "done"));
}

#[test]
fn a_person_answers_with_the_type_that_the_step_asks_for() {
    let plan = super::plan("[w:Workflow | (rate:Human {question: 'How many?', returns: 'Int', expires: 1h})]");
    let tools = vec![Callable { name: "rate".into(), target: CallTarget::Person }];
    let spec = RunSpec { tools, workflow: Some(Arc::new(plan)), ..RunSpec::default() };
    let mut run = Run::start(spec, Vec::new(), "x", 0).unwrap();
    let allow = |_: &PendingCall| Ruling { decision: Decision::Allow, because: String::new() };
    run.steps_planned(run.planned_calls(10), 10, &allow).unwrap();
    assert_eq!(run.person_calls().next().unwrap().expires_at, Some(3_600_010));
    let answer = |text: &str| ToolOutcome::Value { value: text.into() };
    let error = run.call_finished("rate-1", answer("many"), 0, 20).unwrap_err();
    assert!(error.to_string().starts_with("the answer to `rate-1` does not match its type: "), "{error}");
    run.call_finished("rate-1", answer("7"), 0, 20).unwrap();
    run.steps_planned(Vec::new(), 20, &allow).unwrap();
    assert!(matches!(run.outcome(), Some(RunOutcome::Answer { value: Some(value), .. }) if *value == 7));
}
