//! Graphs as JSON.

use super::{Edge, Graph, Node, Problem};
use serde_json::{Value as Json, json};

impl Graph {
    /// Returns the graph as JSON.
    pub fn to_json(&self) -> Json {
        let nodes: Vec<_> = self.nodes().iter().map(node).collect();
        let edges: Vec<_> = self.edges().iter().map(edge).collect();
        json!({"version": 1, "nodes": nodes, "edges": edges})
    }
}

fn node(node: &Node) -> Json {
    let problems: Vec<_> = node.problems.iter().map(problem).collect();
    json!({
        "id": node.id,
        "kind": node.kind.name(),
        "name": node.name,
        "place": node.place,
        "description": node.description,
        "effect": node.effect,
        "layer": node.layer.map(super::Layer::name),
        "model": node.model,
        "steps": node.steps.map(|steps| json!({"count": steps.count, "people": steps.people, "pipe": steps.is_pipe})),
        "availability": node.availability.key(),
        "problems": problems,
    })
}

fn problem(problem: &Problem) -> Json {
    let severity = if problem.is_error { "error" } else { "warning" };
    json!({"code": problem.code, "severity": severity, "message": problem.message, "place": problem.place})
}

fn edge(edge: &Edge) -> Json {
    let permission = edge.permission.as_ref().map(|permission| {
        json!({
            "decision": permission.decision.name(),
            "because": permission.because,
            "conditional": permission.conditional,
        })
    });
    json!({
        "from": edge.from,
        "to": edge.to,
        "kind": edge.kind.key(),
        "name": edge.name,
        "permission": permission,
    })
}
