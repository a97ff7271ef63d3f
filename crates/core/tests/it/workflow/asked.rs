//! Workflows in the graph that queries and policies ask.

use super::TEAM;
use crate::library::library;
use crate::queries::rows;
use patter_core::declare::project::Project;
use patter_core::declare::workflow::WorkflowSpec;
use patter_core::library::Layer;
use patter_core::query::{Limits, Policy, ProjectGraph, PropertyGraph, find_violations};
use std::collections::BTreeSet;

const FLOWS: &str = r#"
[article:Workflow { description: "Writes", takes: "Ticket" } |
  (plan:planner { ask: "{takes.question}" })-->(all:Each:writer { of: "{plan.tasks}", width: 2 })-->(count {
    with: { text: "{plan.title}" }
  }),
  (count)-->(sure:Human { question: "Is {count} enough?", expires: 2h, returns: "Bool" }),
  (sure)-[:When { is: true }]->(done:Give { value: "{plan.title}" }),
  (sure)-[:Otherwise]->(outer)
]
[outer:Workflow { description: "Calls" } | (search { with: { query: "x", limit: "{takes}" } })-[:Failed]->(writer)]
[twice:Pipe { description: "Counts a search" } | (search)-->(count)]
[boss:Agent { instruction: "Use `article` and `twice`.", model: "demo" } | article, twice]
"#;

fn graph(project: &Project) -> PropertyGraph {
    let library = library(&[
        ("count", "(text::Text)==>(::Int)"),
        ("search", "(query::Text)==>(limit::Int)==>(::Text)"),
        ("flag", "(text::Text)==>(::Bool)"),
    ]);
    ProjectGraph { project, library: &library, rules: &[], findings: &[] }.build()
}

fn project() -> Project {
    Project::read([("w.gram", FLOWS), ("team.gram", TEAM)])
}

fn asked(query: &str) -> Vec<String> {
    rows(&graph(&project()), query).into_iter().map(|row| row.join(" ")).collect()
}

#[test]
fn steps_are_as_loops_over_the_declarations_find_them() {
    let project = project();
    let mut steps = BTreeSet::new();
    let mut edges = BTreeSet::new();
    let mut callees = BTreeSet::new();
    for (declaration, agent) in project.agents().filter(|(_, agent)| agent.is_workflow()) {
        let spec = WorkflowSpec::read(agent.pattern().unwrap());
        let name = |index: usize| format!("{}/{}", declaration.name, spec.steps[index].name);
        for (index, step) in spec.steps.iter().enumerate() {
            steps.insert(format!("{} {}", declaration.name, name(index)));
            callees.extend(step.callee().map(|callee| format!("{} {callee}", name(index))));
        }
        edges.extend(spec.edges.iter().map(|edge| format!("{} {}", name(edge.from), name(edge.to))));
    }
    assert!(steps.len() > 8 && edges.len() > 5);
    let set = |query: &str| asked(query).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(set("(w:Workflow)-[:has_step]->(s:Step)"), steps);
    assert_eq!(set("(s:Step)-[:next]->(t:Step)"), edges);
    assert_eq!(set("(s:Step)-[:runs]->(c)"), callees);
}

#[test]
fn what_a_workflow_reaches() {
    assert_eq!(asked("(w:Workflow)"), ["article", "outer", "twice"]);
    assert_eq!(asked("(p:Pipe)"), ["twice"]);
    assert_eq!(asked("(a:Agent { steps: \"> 5\" })"), ["article"]);
    assert_eq!(asked("(s:Step { kind: \"human\", expires: 7200, question: \"*enough*\" })"), ["article/sure"]);
    assert_eq!(asked("(s:Step { kind: \"each\", width: 2, calls: \"writer\" })"), ["article/all"]);
    assert_eq!(asked("(s:Step)-[:next { kind: \"when\", when: \"it is true\" }]->(t)"), ["article/sure article/done"]);
    assert_eq!(asked("(s:Step)-[:next { kind: \"failed\" }]->(t)"), ["outer/search outer/writer"]);
    // Through workflows in workflows.
    let reached = asked("(a:Agent { name: \"boss\" })-[:calls { hops: 1... }]->(t:Tool)");
    assert_eq!(reached, ["boss count", "boss search"]);
    let first = asked("(s:Step) [:Not | (other:Step)-[:next]->(s)]");
    assert_eq!(first, ["article/plan", "outer/search", "twice/search"]);
}

#[test]
fn a_policy_sees_through_workflows() {
    let policy = "[no_search:Policy { forbid: \"(a:Agent { name: 'boss' })-[:calls { hops: 1... }]->(t:Tool { name: 'search' })\", because: \"no\" }]
        [asked_first:Policy { forbid: \"(s:Step { kind: 'give' }) [:Not | (h:Step { kind: 'human' })-[:next { hops: 1... }]->(s)]\", because: \"a person decides\" }]";
    let project = Project::read([("w.gram", FLOWS), ("team.gram", TEAM), ("p.gram", policy)]);
    let policies: Vec<_> = Policy::read_all(&project, Layer::Project).into_iter().map(Result::unwrap).collect();
    let library =
        library(&[("count", "(text::Text)==>(::Int)"), ("search", "(query::Text)==>(limit::Int)==>(::Text)")]);
    let source = ProjectGraph { project: &project, library: &library, rules: &[], findings: &[] };
    let broken = find_violations(&policies, &source, Limits::default());
    let names: Vec<_> = broken.iter().map(|one| one.policy.as_str()).collect();
    assert_eq!(names, ["no_search"]);
    let path: Vec<_> = broken[0].path.iter().map(|part| part.text.as_str()).collect();
    assert!(path.iter().any(|part| part.contains("twice")), "{path:?}");
}
