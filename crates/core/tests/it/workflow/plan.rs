//! Tests of what workflows do next.

use super::plan;
use patter_core::message::conversation::ToolOutcome;
use patter_core::workflow::Plan;
use serde_json::{Value as Json, json};
use std::collections::HashMap;

struct Runner {
    plan: Plan,
    input: &'static str,
    results: HashMap<String, ToolOutcome>,
}

fn start(workflow: &str, input: &'static str) -> Runner {
    Runner { plan: plan(workflow), input, results: HashMap::new() }
}

impl Runner {
    /// Returns the calls to make, each with its id, callee and arguments.
    fn calls(&self) -> Vec<String> {
        let evaluation = self.plan.evaluate(self.input, "", &|id| self.results.get(id));
        let calls = evaluation.calls.iter();
        calls.map(|call| format!("{} = {}({})", call.id, call.callee, call.arguments)).collect()
    }

    fn done(&mut self, id: &str, value: impl Into<Json>) -> &mut Self {
        self.results.insert(id.to_owned(), ToolOutcome::Value { value: value.into() });
        self
    }

    fn fail(&mut self, id: &str) -> &mut Self {
        self.results.insert(id.to_owned(), ToolOutcome::Error { message: "broken".to_owned() });
        self
    }

    fn result(&self) -> Result<Json, String> {
        let evaluation = self.plan.evaluate(self.input, "", &|id| self.results.get(id));
        evaluation.outcome.expect("the workflow has not ended").map_err(|error| error.to_string())
    }
}

#[test]
fn a_sequence_passes_values_on() {
    let mut run = start("[w:Workflow | (writer)-->(count)-->(editor)]", "hello");
    assert_eq!(run.calls(), [r#"writer-1 = writer({"input":"hello"})"#]);
    run.done("writer-1", "text");
    assert_eq!(run.calls(), [r#"count-1 = count({"text":"text"})"#]);
    run.done("count-1", 1);
    assert_eq!(run.calls(), [r#"editor-1 = editor({"input":"1"})"#]);
    assert_eq!(run.done("editor-1", "end").result(), Ok(json!("end")));
}

#[test]
fn parallel_branches_continue_alone_and_join() {
    let text =
        "[w:Workflow | (a:writer)-->(b:writer)-->(z {ask: '{b} {d}'}), (a)-->(c:count)-->(d:writer)-->(z), (z:editor)]";
    let text = text.replace("(z {ask: '{b} {d}'})", "(z)").replace("(z:editor)", "(z:editor {ask: '{b} {d}'})");
    let mut run = start(&text, "x");
    run.done("a-1", "A");
    assert_eq!(run.calls(), [r#"b-1 = writer({"input":"A"})"#, r#"c-1 = count({"text":"A"})"#]);
    run.done("c-1", 2);
    assert_eq!(run.calls(), [r#"b-1 = writer({"input":"A"})"#, r#"d-1 = writer({"input":"2"})"#]);
    run.done("d-1", "D");
    assert_eq!(run.calls(), [r#"b-1 = writer({"input":"A"})"#], "it waits for the other branch");
    assert_eq!(run.done("b-1", "B").calls(), [r#"z-1 = editor({"input":"B D"})"#]);
}

#[test]
fn a_cycle_repeats_up_to_its_bound() {
    let text = "[w:Workflow | (writer)-->(reviewer)-[:When {verdict: 'again', atMost: 2, ask: 'Improve {writer}'}]->(writer), \
                (reviewer)-[:Exhausted]->(editor), (reviewer)-[:Otherwise]->(done:Give {value: '{writer}'})]";
    let again = json!({"verdict": "again"});
    let mut run = start(text, "x");
    run.done("writer-1", "one").done("reviewer-1", again.clone());
    assert_eq!(run.calls(), [r#"writer-2 = writer({"input":"Improve one"})"#]);
    let mut good = Runner { plan: run.plan.clone(), input: "x", results: run.results.clone() };
    good.done("writer-2", "two").done("reviewer-2", json!({"verdict": "good"}));
    assert_eq!(good.result(), Ok(json!("two")));
    run.done("writer-2", "two")
        .done("reviewer-2", again.clone())
        .done("writer-3", "three")
        .done("reviewer-3", again.clone());
    assert_eq!(run.calls(), [r#"editor-1 = editor({"input":"{\"verdict\":\"again\"}"})"#], "a third time is too much");
    let text = text.replace("(reviewer)-[:Exhausted]->(editor), ", "");
    run.plan = plan(&text);
    let limit = "the step `reviewer` failed: it went back to `writer` 2 times, which is the limit";
    assert_eq!(run.result(), Err(limit.to_owned()));
}

#[test]
fn a_failure_ends_the_workflow_unless_an_edge_is_for_it() {
    let mut run = start("[w:Workflow | (writer)-->(editor)]", "x");
    assert_eq!(run.fail("writer-1").result(), Err("the step `writer` failed: broken".to_owned()));
    let mut run = start("[w:Workflow | (writer)-->(editor), (writer)-[:Failed]->(other:editor)]", "x");
    assert_eq!(run.fail("writer-1").calls(), [r#"other-1 = editor({"input":"broken"})"#]);
    let mut run = start("[w:Workflow | (writer)-[:Failed {atMost: 1, ask: 'Again: {takes}'}]->(writer)]", "x");
    assert_eq!(run.fail("writer-1").calls(), [r#"writer-2 = writer({"input":"Again: x"})"#]);
    assert_eq!(run.done("writer-2", "ok").result(), Ok(json!("ok")));
}

#[test]
fn items_are_worked_on_a_few_at_a_time() {
    let text = "[w:Workflow | (planner)-->(all:Each:writer {of: '{planner.tasks}', width: 2, ask: 'Do {item}'})]";
    let mut run = start(text, "x");
    run.done("planner-1", json!({"title": "t", "tasks": ["a", "b", "c", "d"]}));
    let call = |n: u32, task: &str| format!(r#"all-1.{n} = writer({{"input":"Do {task}"}})"#);
    assert_eq!(run.calls(), [call(1, "a"), call(2, "b")]);
    assert_eq!(run.done("all-1.2", "B").calls(), [call(1, "a"), call(3, "c")]);
    run.done("all-1.3", "C").done("all-1.4", "D").done("all-1.1", "A");
    assert_eq!(run.result(), Ok(json!(["A", "B", "C", "D"])), "in the order of the list");
    run.done("planner-1", json!({"title": "t", "tasks": []}));
    assert_eq!(run.result(), Ok(json!([])));
    run.done("planner-1", json!({"title": "t", "tasks": vec!["x"; 101]}));
    assert_eq!(run.result(), Err("the step `all` failed: the list has 101 items (limit: 100)".to_owned()));
    run.done("planner-1", json!({"title": "t", "tasks": ["a", "b"]})).fail("all-1.2");
    assert_eq!(run.result(), Err("the step `all` failed: item 2: broken".to_owned()));
}

#[test]
fn typed_input_is_passed_as_arguments() {
    let input = r#"{"customer":"Ada","question":"Why?"}"#;
    let run = start("[w:Workflow {takes: 'Ticket'} | (clerk)]", input);
    assert_eq!(run.calls(), [format!("clerk-1 = clerk({input})")]);
    let run = start(
        "[w:Workflow {takes: 'Ticket'} | (search {with: {query: '{takes.question} {takes.customer}', limit: '3'}})]",
        input,
    );
    assert_eq!(run.calls(), [r#"search-1 = search({"query":"Why? Ada","limit":"3"})"#]);
    let run = start(
        "[w:Workflow {takes: 'Ticket'} | (ask:Human {question: 'What now, {takes.customer}?', expires: 1h})]",
        input,
    );
    assert_eq!(run.calls(), [r#"ask-1 = ask({"question":"What now, Ada?"})"#]);
}

#[test]
fn a_handoff_names_the_conversation_that_continues() {
    let mut run = start("[w:Workflow | (writer)-[:Handoff]->(editor)]", "x");
    run.done("writer-1", "ask the editor");
    let evaluation = run.plan.evaluate("x", "@4", &|id| run.results.get(id.trim_end_matches("@4")));
    assert_eq!(evaluation.calls[0].continues.as_deref(), Some("writer-1@4"));
    assert_eq!(evaluation.calls[0].id, "editor-1@4");
}
