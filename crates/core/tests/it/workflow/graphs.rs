//! Graphs of steps, made without a file.

use patter_core::declare::workflow::{
    ConditionSpec, EdgeKind, EdgeSpec, InputSpec, StepKind, StepSpec, Text, WorkflowSpec,
};
use patter_core::gram::{Diagnostic, Span, Tree, parse};
use patter_core::types::signature::Records;
use patter_core::workflow::{Callee, Plan, WorkflowContext, build_plan, findings};

/// What follows a step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ways {
    /// Nothing: it is an end.
    End,
    /// All of these, at once.
    All(Vec<usize>),
    /// One step if the value is `a`, and another one otherwise.
    Route(usize, usize),
    /// A step if it failed. Otherwise it is an end.
    OnFailure(usize),
    /// A step if it succeeded, and another one if it failed.
    Either(usize, usize),
}

/// Returns everything that can follow a step of a graph with some steps.
pub(crate) fn all_ways(steps: usize, most_at_once: u32) -> Vec<Ways> {
    let mut ways = vec![Ways::End];
    let sets = (1_u32..1 << steps).filter(|set| set.count_ones() <= most_at_once);
    ways.extend(sets.map(|set| Ways::All((0..steps).filter(|step| set & (1 << step) != 0).collect())));
    for one in 0..steps {
        ways.push(Ways::OnFailure(one));
        ways.extend((0..steps).map(|other| Ways::Route(one, other)));
        ways.extend((0..steps).filter(|other| *other != one).map(|other| Ways::Either(one, other)));
    }
    ways
}

/// Whether steps say what they are called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inputs {
    Explicit,
    Passed,
}

/// Steps with names, to be used in several workflows.
pub(crate) struct Nodes(Tree);

impl Nodes {
    pub(crate) fn new(steps: usize) -> Self {
        let nodes: Vec<_> = (0..steps).map(|step| format!("(s{step})")).collect();
        Self(parse(&nodes.join(" ")).0)
    }

    /// Returns a workflow, with bounds on the edges that lead back.
    pub(crate) fn workflow(&self, graph: &[Ways], inputs: Inputs) -> (WorkflowSpec<'_>, Vec<Diagnostic>) {
        let steps = self.0.patterns().zip(graph).map(|(node, _)| {
            let name = node.name().unwrap().into_owned();
            let ask = InputSpec::Ask(Text { text: "x".into(), span: node.span() });
            let input = (inputs == Inputs::Explicit).then_some(ask);
            StepSpec { kind: StepKind::Call { callee: name.clone() }, name, node, input }
        });
        let mut edges = Vec::new();
        for (from, ways) in graph.iter().enumerate() {
            let mut add = |to: usize, kind: EdgeKind| {
                let span = Span::at(edges.len() as u32);
                let values = vec!["a".into()];
                let condition = ConditionSpec { field: "is".into(), values, span, key_span: span };
                let condition = (kind == EdgeKind::When).then_some(condition);
                edges.push(EdgeSpec { from, to, kind, condition, at_most: None, input: None, span });
            };
            match ways {
                Ways::End => {}
                Ways::All(all) => all.iter().for_each(|to| add(*to, EdgeKind::Then)),
                Ways::Route(one, other) => {
                    add(*one, EdgeKind::When);
                    add(*other, EdgeKind::Otherwise);
                }
                Ways::OnFailure(to) => add(*to, EdgeKind::Failed),
                Ways::Either(one, other) => {
                    add(*one, EdgeKind::Then);
                    add(*other, EdgeKind::Failed);
                }
            }
        }
        let mut spec = WorkflowSpec { steps: steps.collect(), edges, diagnostics: Vec::new() };
        let mut found = findings_of(&spec);
        let unbounded = |found: &Diagnostic| found.code == "P165" && found.message.contains("any number");
        for edge in found.iter().filter(|found| unbounded(found)).map(|found| found.span) {
            spec.edges.iter_mut().filter(|other| other.span == edge).for_each(|edge| edge.at_most = Some(1));
        }
        if found.iter().any(unbounded) {
            found = findings_of(&spec);
        }
        (spec, found)
    }
}

fn callee(_: &str) -> Option<Callee> {
    Some(Callee::Agent { takes: None, returns: None, is_workflow: false })
}

fn findings_of(spec: &WorkflowSpec<'_>) -> Vec<Diagnostic> {
    let context = WorkflowContext {
        takes: None,
        returns: None,
        max_model_calls: None,
        records: &Records::default(),
        callee: &callee,
        model_calls: &|_| 1,
        span: Span::at(0),
    };
    findings(spec, &context)
}

pub(crate) fn plan(spec: &WorkflowSpec<'_>) -> Plan {
    build_plan(spec, None, &Records::default(), &callee)
}
