//! Tests of the upper bound on model calls.

use patter_core::declare::workflow::WorkflowSpec;
use patter_core::gram::parse;
use patter_core::workflow::model_call_bound;

fn check(workflow: &str, expected: u64) {
    let (tree, _) = parse(workflow);
    let spec = WorkflowSpec::read(tree.patterns().next().unwrap());
    assert_eq!(model_call_bound(&spec, &|name| if name == "tool" { 0 } else { 10 }), expected, "{workflow}");
}

#[test]
fn cycles_and_lists_multiply() {
    check("[w:Workflow | (a)-->(b)]", 20);
    check("[w:Workflow | (a)-->(tool)-->(c:Give {value: 'x'})]", 10);
    check("[w:Workflow | (a:Each:x {of: '{takes}', atMost: 7})]", 70);
    check("[w:Workflow | (a:Each:x {of: '{takes}'})]", 1000);
    check("[w:Workflow | (a)-->(b)-[:Otherwise {atMost: 3}]->(a)-->(c)]", 80 + 10);
    // The inner cycle starts anew each time the outer one repeats.
    check("[w:Workflow | (a)-->(b)-[:Failed {atMost: 1}]->(b)-->(c)-[:Failed {atMost: 2}]->(a)]", 30 + 60 + 30);
}
