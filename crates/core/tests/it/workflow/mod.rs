//! Tests of workflows.

mod asked;
mod bound;
mod deadlock;
mod graphs;
mod input;
mod pipes;
mod plan;
mod random;
mod runs;
mod wrong;

use patter_core::check::{Options, check};
use patter_core::declare::Agent;
use patter_core::declare::project::{Finding, Project};
use patter_core::declare::scope::Scope;
use patter_core::declare::workflow::WorkflowSpec;
use patter_core::workflow::{Callee, Plan, build_plan};

/// Agents and tools that workflows of tests call.
pub(crate) const TEAM: &str = r#"
[writer:Agent { instruction: "Write.", model: "demo" }]
[editor:Agent { instruction: "Edit.", model: "demo" }]
[reviewer:Agent { instruction: "Review.", model: "demo", returns: "Verdict" }]
[clerk:Agent { instruction: "Answer {customer}.", model: "demo", takes: "Ticket" }]
[planner:Agent { instruction: "Plan.", model: "demo", returns: "Plan" }]
[count:Tool { description: "Counts" } | (text::Text)==>(::Int)]
[search:Tool { description: "Searches" } | (query::Text)==>(limit::Int)==>(::Text)]
[flag:Tool { description: "Decides" } | (text::Text)==>(::Bool)]
[Verdict:Object | (verdict::Text { enum: ["good", "again", "bad"] }), (comment::Text { optional: true })]
[Ticket:Object | (customer::Text), (question::Text)]
[Plan:Object | (tasks::Array { elementType: "Text" }), (title::Text)]
"#;

/// Checks a workflow together with the team. Tools that it does not use are not reported.
pub(crate) fn check_workflow(workflow: &str) -> Vec<Finding> {
    let project = Project::read([("w.gram", workflow), ("team.gram", TEAM)]);
    let mut findings = check(&project, &Options::default());
    findings.retain(|finding| finding.diagnostic.code != "P044");
    findings
}

/// Returns the plan of a workflow, which may call anything.
pub(crate) fn plan(workflow: &str) -> Plan {
    let project = Project::read([("w.gram", workflow), ("team.gram", TEAM)]);
    let (_, agent) = project.agents().find(|(_, agent)| agent.is_workflow()).unwrap();
    plan_of(&project, &agent)
}

fn plan_of(project: &Project, agent: &Agent) -> Plan {
    let records = project.records();
    let scope = Scope::new(agent);
    let spec = WorkflowSpec::read(agent.pattern().unwrap());
    assert!(spec.diagnostics.is_empty(), "{:?}", spec.diagnostics);
    let takes = agent.takes(records).map(Result::unwrap);
    build_plan(&spec, takes.as_ref(), records, &|name| Callee::find(project, &scope, name))
}
