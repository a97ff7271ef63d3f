//! Graphs in the language of Graphviz.

use super::{EdgeKind, Graph, NodeKind, Permission};
use std::fmt::Write;

impl Graph {
    /// Returns the graph in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out =
            "digraph patter {\n  rankdir=LR;\n  node [fontname=\"Helvetica\", fontsize=11, height=0.3];\n".to_owned();
        for (index, node) in self.nodes().iter().enumerate() {
            let shape = match node.kind {
                NodeKind::Model => "hexagon",
                NodeKind::Agent | NodeKind::Delegate if node.steps.is_some() => "cds",
                NodeKind::Agent | NodeKind::Delegate => "oval",
                NodeKind::Tool => "box",
                NodeKind::Toolbox => "folder",
                NodeKind::Layer => "tab",
            };
            let effect = node.effect.as_ref().map_or_else(String::new, |effect| format!("\\n{}", escape(effect)));
            let color = if node.problems.is_empty() { "" } else { ", color=\"#a1281e\", penwidth=2" };
            let _ = writeln!(out, "  n{index} [label=\"{}{effect}\", shape={shape}{color}];", escape(&node.name));
        }
        for (edge, (from, to)) in self.edges().iter().zip(self.ends()) {
            let permission = edge.permission.as_ref().map(Permission::word);
            let style = match (edge.kind, permission) {
                (_, Some("ask")) => "style=dashed, label=\"ask\"",
                (_, Some("depends")) => "style=dashed, label=\"depends\"",
                (_, Some("deny")) => "style=dotted, label=\"deny\"",
                (EdgeKind::Extends, _) => "style=dashed, arrowhead=empty, label=\"extends\"",
                (EdgeKind::DelegatesTo, _) => "style=bold",
                (EdgeKind::Calls, _) => "style=solid",
                (EdgeKind::ServedBy | EdgeKind::BoundTo | EdgeKind::Declares, _) => {
                    "style=solid, arrowhead=none, color=gray"
                }
            };
            let _ = writeln!(out, "  n{from} -> n{to} [{style}];");
        }
        out.push_str("}\n");
        out
    }
}

/// Escapes a text in quotes.
fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if crate::text::is_disguise(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
        out
    })
}
