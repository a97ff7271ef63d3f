//! The steps of a workflow as a Mermaid flowchart.

use super::mermaid::escape;
use crate::declare::Agent;
use crate::declare::workflow::{EdgeKind, EdgeSpec, StepKind, StepSpec, WHOLE_VALUE, WorkflowSpec};
use std::fmt::Write;

/// Returns the steps of a workflow as a flowchart of Mermaid, or `None` if the agent is not a workflow.
///
/// ```
/// use patter_core::{declare::Agent, gram::parse, graph::workflow_to_mermaid};
/// let (tree, _) = parse("[w:Workflow | (draft:writer)-[:Failed]->(help:Human {question: 'What now?'})]");
/// let workflow = Agent::cast(tree.patterns().next().unwrap()).unwrap();
/// let chart = workflow_to_mermaid(&workflow).unwrap();
/// assert_eq!(chart, "flowchart TD\n  s0([\"draft (writer)\"])\n  s1[/\"help\"/]\n  s0 -.->|\"failed\"| s1\n");
/// ```
pub fn workflow_to_mermaid(workflow: &Agent) -> Option<String> {
    let spec = WorkflowSpec::read(workflow.pattern().filter(|_| workflow.is_workflow())?);
    let mut out = "flowchart TD\n".to_owned();
    for (index, step) in spec.steps.iter().enumerate() {
        let (open, close) = match step.kind {
            StepKind::Call { .. } => ("([", "])"),
            StepKind::Each { .. } => ("[[", "]]"),
            StepKind::Human { .. } => ("[/", "/]"),
            StepKind::Give { .. } => ("[", "]"),
        };
        let _ = writeln!(out, "  s{index}{open}\"{}\"{close}", escape(&title(step)));
    }
    for edge in &spec.edges {
        let arrow = match edge.kind {
            EdgeKind::Then | EdgeKind::When | EdgeKind::Otherwise => "-->",
            EdgeKind::Handoff => "==>",
            EdgeKind::Failed | EdgeKind::Exhausted => "-.->",
        };
        let label = label(edge);
        let label = if label.is_empty() { label } else { format!("|\"{}\"|", escape(&label)) };
        let _ = writeln!(out, "  s{} {arrow}{label} s{}", edge.from, edge.to);
    }
    Some(out)
}

fn title(step: &StepSpec<'_>) -> String {
    match &step.kind {
        StepKind::Call { callee } if *callee == step.name => step.name.clone(),
        StepKind::Call { callee } => format!("{} ({callee})", step.name),
        StepKind::Each { callee, width, .. } => format!("{} ({callee} for each, {width} at a time)", step.name),
        StepKind::Human { .. } | StepKind::Give { .. } => step.name.clone(),
    }
}

fn label(edge: &EdgeSpec) -> String {
    let condition = match (edge.kind, &edge.condition) {
        (EdgeKind::Then, _) => String::new(),
        (EdgeKind::When, Some(condition)) => {
            let values =
                condition.values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            let values = values.collect::<Vec<_>>().join(" or ");
            let field = if condition.field == WHOLE_VALUE { "it" } else { &condition.field };
            format!("{field} is {values}")
        }
        (EdgeKind::When, None) => String::new(),
        (EdgeKind::Otherwise, _) => "otherwise".to_owned(),
        (EdgeKind::Failed, _) => "failed".to_owned(),
        (EdgeKind::Exhausted, _) => "too often".to_owned(),
        (EdgeKind::Handoff, _) => "hands over".to_owned(),
    };
    match edge.at_most {
        Some(1) => format!("{condition}, at most once"),
        Some(bound) => format!("{condition}, at most {bound} times"),
        None => condition,
    }
}
