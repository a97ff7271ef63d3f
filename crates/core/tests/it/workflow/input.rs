//! Tests of agents with typed input.

use crate::library::library;
use patter_core::compile::CompiledAgent;
use patter_core::declare::project::Project;
use patter_core::diff::{Judgement, diff};
use patter_core::run::{Run, StartError};
use serde_json::json;

const TEXT: &str = "
[clerk:Agent {description: 'Answers', instruction: 'Answer {customer.name}: {question}', model: 'demo', takes: 'Ticket'}]
[boss:Agent {instruction: 'Ask the `clerk`.', model: 'demo'} | clerk]
[Ticket:Object | (customer::Customer), (question::Text)]
[Customer:Object | (name::Text)]
";

fn compile(name: &str) -> CompiledAgent {
    let project = Project::read([("a.gram", TEXT)]);
    let agent = project.main_agent(Some(name)).unwrap();
    CompiledAgent::new(&agent, &project, &library(&[]), None).unwrap()
}

#[test]
fn the_placeholders_of_an_instruction_are_filled_in() {
    let clerk = compile("clerk");
    let input = r#"{"customer": {"name": "Ada"}, "question": "Why?"}"#;
    assert_eq!(clerk.for_input(input).instruction(), "Answer Ada: Why?");
    assert_eq!(clerk.for_input(input).frame().instruction, "Answer Ada: Why?");
    assert_eq!(clerk.instruction(), "Answer {customer.name}: {question}", "the agent itself is unchanged");
    assert!(Run::start(clerk.spec().clone(), Vec::new(), input, 0).is_ok());
}

#[test]
fn input_of_another_type_is_rejected() {
    let spec = compile("clerk").spec().clone();
    for input in ["Why?", "{}", r#"{"customer": "Ada", "question": "Why?"}"#] {
        let error = Run::start(spec.clone(), Vec::new(), input, 0).unwrap_err();
        assert!(matches!(&error, StartError::Input { agent, .. } if agent == "clerk"), "{input}: {error}");
        assert_eq!(error.name(), "ValidationError");
    }
}

#[test]
fn the_model_of_a_caller_passes_the_fields_as_arguments() {
    let boss = compile("boss");
    let schema = boss.offered_tools()[0].schema.text().to_owned();
    assert!(schema.contains("\"customer\"") && schema.contains("\"question\""), "{schema}");
    let mut arguments = json!({"customer": {"name": "Ada"}, "question": "Why?"});
    boss.check_arguments("clerk", &mut arguments).unwrap();
    let error = boss.check_arguments("clerk", &mut json!({"input": "Why?"})).unwrap_err();
    assert!(error.contains("`clerk` has no parameter `input`"), "{error}");
}

#[test]
fn changes_of_steps_and_of_input_are_breaking() {
    let old = Project::read([("a.gram", "[w:Workflow | (a:x)-->(b:y)] [x:Agent {takes: 'Int'}] [y:Agent]")]);
    let changed = |text: &str| {
        let new = Project::read([("a.gram", text)]);
        let changes = diff(&old, &new);
        changes.into_iter().map(|change| (change.judgement, change.description)).collect::<Vec<_>>()
    };
    let same = changed("[w:Workflow |\n  (a:x)-->(b:y)] // the same\n[x:Agent {takes: 'Int'}] [y:Agent]");
    assert!(same.iter().all(|(judgement, _)| *judgement == Judgement::Cosmetic), "{same:?}");
    let steps = changed("[w:Workflow | (b:y)-->(a:x)] [x:Agent {takes: 'Int'}] [y:Agent]");
    assert_eq!(steps, [(Judgement::Breaking, "the steps changed".to_owned())]);
    let wider = changed("[w:Workflow | (a:x)-->(b:y)] [x:Agent {takes: 'Double'}] [y:Agent]");
    assert_eq!(wider[0].0, Judgement::Compatible, "{wider:?}");
    let narrower = changed("[w:Workflow | (a:x)-->(b:y)] [x:Agent {takes: 'Bool'}] [y:Agent]");
    assert_eq!(narrower, [(Judgement::Breaking, "`takes` changed".to_owned())]);
}
