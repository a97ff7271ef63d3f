//! Graphs as Mermaid flowcharts.

use super::{EdgeKind, Graph, NodeKind, Permission};
use std::fmt::Write;

impl Graph {
    /// Returns the graph as a flowchart of Mermaid.
    pub fn to_mermaid(&self) -> String {
        let mut out = "flowchart LR\n".to_owned();
        for (index, node) in self.nodes().iter().enumerate() {
            let (open, close) = match node.kind {
                NodeKind::Model => ("{{", "}}"),
                NodeKind::Agent | NodeKind::Delegate if node.steps.is_some() => (">", "]"),
                NodeKind::Agent | NodeKind::Delegate => ("([", "])"),
                NodeKind::Tool => ("[", "]"),
                NodeKind::Toolbox => ("[[", "]]"),
                NodeKind::Layer => ("[/", "/]"),
            };
            let effect = node.effect.as_ref().map_or_else(String::new, |effect| format!("<br/>{}", escape(effect)));
            let mark = if node.problems.is_empty() { "" } else { "#9888; " };
            let name = escape(&node.name);
            let _ = writeln!(out, "  n{index}{open}\"{mark}{name}{effect}\"{close}");
        }
        for (edge, (from, to)) in self.edges().iter().zip(self.ends()) {
            let permission = edge.permission.as_ref().map(Permission::word);
            let arrow = match (edge.kind, permission) {
                (EdgeKind::Extends, _) => "-.->",
                (EdgeKind::DelegatesTo, _) => "==>",
                (EdgeKind::Calls, Some("allow") | None) => "-->",
                (EdgeKind::Calls, _) => "-.->",
                (EdgeKind::ServedBy | EdgeKind::BoundTo | EdgeKind::Declares, _) => "---",
            };
            let words = match (edge.kind, permission) {
                (EdgeKind::Extends, _) => "extends",
                (EdgeKind::DelegatesTo, Some("allow") | None) => "delegates to",
                (_, Some(word @ ("ask" | "depends" | "deny"))) => word,
                _ => "",
            };
            let name = edge.name.as_deref().map_or_else(String::new, |name| format!("as {}", escape(name)));
            let label = [words, &name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
            let label = if label.is_empty() { label } else { format!("|\"{label}\"|") };
            let _ = writeln!(out, "  n{from} {arrow}{label} n{to}");
        }
        let problems = self.nodes().iter().enumerate().filter(|(_, node)| !node.problems.is_empty());
        let problems: Vec<_> = problems.map(|(index, _)| format!("n{index}")).collect();
        if !problems.is_empty() {
            let _ = writeln!(
                out,
                "  classDef problem stroke:#a1281e,stroke-width:2px\n  class {} problem",
                problems.join(",")
            );
        }
        out
    }
}

/// Escapes a text in quotes. Everything that means something to Mermaid, Markdown or HTML is written as its number.
pub(super) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '/' | '-' | '.' | ',' | ':' | '(' | ')' => out.push(c),
            '_' if out.chars().next_back().is_some_and(char::is_alphanumeric) => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c if crate::text::is_disguise(c) => out.push('\u{fffd}'),
            c => {
                let _ = write!(out, "#{};", u32::from(c));
            }
        }
        out
    })
}
