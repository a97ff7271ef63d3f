//! The steps of workflows.

use super::Builder;
use crate::declare::Agent;
use crate::declare::workflow::{EdgeKind, EdgeSpec, StepKind, StepSpec, WHOLE_VALUE, WorkflowSpec};
use crate::library::LibraryTool;
use crate::query::property_graph::{FilePlace, Relation, Vertex, VertexIndex};
use std::collections::HashMap;

impl<T: LibraryTool> Builder<'_, '_, T> {
    /// Adds the steps of a workflow, with what follows each of them and what each of them runs. `callees` has what the
    /// workflow calls, by the name under which it does.
    pub(super) fn add_steps(
        &mut self,
        index: VertexIndex,
        file: usize,
        workflow: &Agent,
        callees: &HashMap<String, VertexIndex>,
    ) {
        let Some(pattern) = workflow.pattern().filter(|_| workflow.is_workflow()) else { return };
        let spec = WorkflowSpec::read(pattern);
        let Some(owner) = self.graph.vertex(index) else { return };
        let id = owner.id.clone();
        let path = owner.name.clone();
        let mut steps = Vec::new();
        for step in &spec.steps {
            let mut vertex = step_vertex(step, &id, &path);
            self.place(&mut vertex, file, step.node.span());
            let place = Some(FilePlace { file, span: step.span() });
            let vertex = self.graph.add(vertex);
            self.graph.relate(Relation { place, ..Relation::new(index, "has_step", vertex) });
            if let Some(callee) = step.callee().and_then(|callee| callees.get(callee)) {
                self.graph.relate(Relation { place, ..Relation::new(vertex, "runs", *callee) });
            }
            steps.push(vertex);
        }
        for edge in &spec.edges {
            let (Some(from), Some(to)) = (steps.get(edge.from), steps.get(edge.to)) else { continue };
            let place = Some(FilePlace { file, span: edge.span });
            let relation = Relation { place, ..Relation::new(*from, "next", *to) };
            let relation = relation.with("kind", kind(edge.kind)).with("when", condition(edge));
            self.graph.relate(relation.with("atMost", edge.at_most));
        }
        if let Some(vertex) = self.graph.vertex_mut(index) {
            vertex.set("steps", spec.steps.len());
        }
    }
}

fn step_vertex(step: &StepSpec<'_>, workflow_id: &str, path: &str) -> Vertex {
    let workflow = workflow_id.strip_prefix("agent:").unwrap_or(workflow_id);
    let mut vertex = Vertex::new("Step", format!("step:{workflow}/{}", step.name), format!("{path}/{}", step.name));
    vertex.set("step", step.name.as_str());
    vertex.set("calls", step.callee());
    match &step.kind {
        StepKind::Call { .. } => vertex.set("kind", "call"),
        StepKind::Each { width, at_most, .. } => {
            vertex.set("kind", "each");
            vertex.set("width", *width);
            vertex.set("atMost", *at_most);
        }
        StepKind::Human { question, expires_ms, returns } => {
            vertex.set("kind", "human");
            vertex.set("question", question.text.as_str());
            vertex.set("expires", expires_ms.map(|milliseconds| milliseconds as f64 / 1000.0));
            vertex.set("returns", returns.as_ref().map(|returns| returns.text.as_str()));
        }
        StepKind::Give { .. } => vertex.set("kind", "give"),
    }
    vertex
}

const fn kind(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Then => "then",
        EdgeKind::When => "when",
        EdgeKind::Otherwise => "otherwise",
        EdgeKind::Failed => "failed",
        EdgeKind::Exhausted => "exhausted",
        EdgeKind::Handoff => "handoff",
    }
}

/// Describes the condition of an edge: `verdict is good or fair`.
fn condition(edge: &EdgeSpec) -> Option<String> {
    let condition = edge.condition.as_ref()?;
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values: Vec<_> = condition.values.iter().map(text).collect();
    let field = if condition.field == WHOLE_VALUE { "it" } else { &condition.field };
    Some(format!("{field} is {}", values.join(" or ")))
}
