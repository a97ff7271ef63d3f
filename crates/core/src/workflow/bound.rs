//! How often a workflow calls models at most.

use super::topology::Topology;
use crate::declare::workflow::{StepKind, WorkflowSpec};

/// Returns the most model calls of a workflow: those of each step, as often as its cycles and lists can repeat it.
/// `model_calls` returns how many one call of something takes at most.
///
/// ```
/// use patter_core::{declare::workflow::WorkflowSpec, gram::parse, workflow::model_call_bound};
/// let (tree, _) = parse("[w:Workflow | (write)-->(review)-[:Otherwise {atMost: 2}]->(write)]");
/// let spec = WorkflowSpec::read(tree.patterns().next().unwrap());
/// assert_eq!(model_call_bound(&spec, &|_| 10), 60);
/// ```
pub fn model_call_bound(spec: &WorkflowSpec<'_>, model_calls: &dyn Fn(&str) -> u64) -> u64 {
    let edges: Vec<_> = spec.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let shape = Topology::new(spec.steps.len(), &edges);
    let mut total = 0_u64;
    for (index, step) in spec.steps.iter().enumerate() {
        let once = match &step.kind {
            StepKind::Call { callee } => model_calls(callee),
            StepKind::Each { callee, at_most, .. } => model_calls(callee).saturating_mul(u64::from(*at_most)),
            StepKind::Human { .. } | StepKind::Give { .. } => 0,
        };
        let cycles = shape.cycles.iter().filter(|cycle| cycle.steps.contains(&index));
        let times = cycles.fold(1_u64, |times, cycle| {
            let bounds = cycle.edges.iter().filter_map(|edge| spec.edges.get(*edge)?.at_most);
            times.saturating_mul(bounds.fold(1_u64, |sum, bound| sum.saturating_add(u64::from(bound))))
        });
        total = total.saturating_add(once.saturating_mul(times));
    }
    total
}
