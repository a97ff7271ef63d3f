//! A project as a graph: which agents call which tools and agents, what these are bound to, and what is known about it.
//!
//! [`Graph::build`] reads a project as the other commands do. [`Drawing`] places the nodes in columns, and the writers turn
//! the graph into SVG, Mermaid, DOT and JSON. The same project gives the same bytes, in whatever order it was read.

mod build;
mod column;
mod dot;
mod draw;
mod json;
mod mermaid;
mod order;
mod place;
mod steps;
mod svg;
mod width;

pub use build::{GraphSource, Selection};
pub use draw::{Drawing, PlacedEdge, PlacedNode};
pub use steps::workflow_to_mermaid;
pub use svg::{STYLE, SvgOptions, SvgStyle};

use crate::library::Layer;
use crate::permission::Decision;
use patter_gram::Severity;
use std::collections::{HashMap, HashSet};

/// Agents, what they call, and what that is bound to.
///
/// ```
/// use patter_core::graph::{Edge, EdgeKind, Graph, Node, NodeKind};
/// let nodes = [Node::new(NodeKind::Agent, "desk"), Node::new(NodeKind::Tool, "mail/send")];
/// let edges = [Edge::new("agent:desk", "tool:mail/send", EdgeKind::Calls)];
/// let graph = Graph::new(nodes, edges);
/// assert!(graph.to_mermaid().contains("desk"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// The ends of each edge, as indices of nodes.
    ends: Vec<(usize, usize)>,
}

/// A node of a graph.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// Identifies the node: the kind and the name, and the place if several have that name.
    pub id: String,
    /// What the node is.
    pub kind: NodeKind,
    /// The name, for people.
    pub name: String,
    /// Where it is declared.
    pub place: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The effect of a tool, such as `writes`.
    pub effect: Option<String>,
    /// The layer of a tool or a toolbox.
    pub layer: Option<Layer>,
    /// The model of an agent.
    pub model: Option<String>,
    /// The steps of a workflow.
    pub steps: Option<Steps>,
    /// Whether a tool is known.
    pub availability: Availability,
    /// The problems found by the check.
    pub problems: Vec<Problem>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeKind {
    /// A model that agents use.
    Model,
    /// An agent that no other agent calls.
    Agent,
    /// An agent that another agent calls.
    Delegate,
    /// A tool.
    Tool,
    /// A toolbox or an MCP server.
    Toolbox,
    /// A layer of the library.
    Layer,
}

/// What is known about the steps of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// How many there are.
    pub count: usize,
    /// How many of them ask a person.
    pub people: usize,
    /// Whether they are tools in a row.
    pub is_pipe: bool,
}

impl Steps {
    /// Returns the noun for what has such steps.
    pub const fn noun(self) -> &'static str {
        if self.is_pipe { "pipe" } else { "workflow" }
    }
}

/// Whether a tool that an agent calls is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Availability {
    /// It is known.
    #[default]
    Known,
    /// It may belong to an MCP server that was not started.
    NotStarted,
    /// Nothing implements it, or what does is not compatible.
    Missing,
}

/// A problem of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it is.
    pub place: String,
    /// The code of the rule.
    pub code: String,
    /// Whether it is an error.
    pub is_error: bool,
    /// The message.
    pub message: String,
}

/// A relation between two nodes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Edge {
    /// The id of the node where it starts.
    pub from: String,
    /// The id of the node where it ends.
    pub to: String,
    /// What the relation is.
    pub kind: EdgeKind,
    /// The name by which an agent calls the target, if it is not the name of the target.
    pub name: Option<String>,
    /// The decision on calls.
    pub permission: Option<Permission>,
}

/// What a relation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeKind {
    /// An agent uses a model.
    ServedBy,
    /// An agent extends another agent.
    Extends,
    /// An agent calls another agent.
    DelegatesTo,
    /// An agent calls a tool.
    Calls,
    /// A tool is part of a toolbox.
    BoundTo,
    /// A layer declares a toolbox, or a tool without a toolbox.
    Declares,
}

/// The decision on calls, with the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// The decision on a call that no condition is about.
    pub decision: Decision,
    /// The reason, in words.
    pub because: String,
    /// The rules that depend on arguments.
    pub conditional: Vec<String>,
}

impl Permission {
    /// Returns what a drawing says about calls in a word: `allow`, `ask`, `deny`, or `depends` if that depends on arguments.
    pub fn word(&self) -> &'static str {
        if self.conditional.is_empty() { self.decision.name() } else { "depends" }
    }
}

impl Graph {
    /// Creates a graph from nodes and edges in any order. Edges without a node at both ends are dropped.
    pub fn new(nodes: impl IntoIterator<Item = Node>, edges: impl IntoIterator<Item = Edge>) -> Self {
        let mut nodes: Vec<_> = nodes.into_iter().collect();
        nodes.sort_by(|a, b| (a.kind, &a.name, &a.id).cmp(&(b.kind, &b.name, &b.id)));
        nodes.dedup_by(|a, b| a.id == b.id);
        nodes.iter_mut().for_each(|node| node.problems.sort());
        let by_id: HashMap<_, _> = nodes.iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect();
        let found = edges.into_iter().filter_map(|edge| {
            let ends = (*by_id.get(edge.from.as_str())?, *by_id.get(edge.to.as_str())?);
            Some((ends, edge))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by(|(a, one), (b, other)| (a, one.kind, &one.name).cmp(&(b, other.kind, &other.name)));
        found.dedup_by(|(a, one), (b, other)| a == b && one.kind == other.kind && one.name == other.name);
        let (ends, edges) = found.into_iter().unzip();
        Self { nodes, edges, ends }
    }

    /// Returns the part of the graph with some nodes, and all relations between them.
    #[must_use]
    pub fn part(&self, ids: &HashSet<&str>) -> Self {
        let nodes = self.nodes.iter().filter(|node| ids.contains(node.id.as_str())).cloned();
        Self::new(nodes, self.edges.iter().cloned())
    }

    /// Returns the nodes, sorted by kind and name.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the edges, sorted by their ends.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the ends of each edge, as indices of nodes.
    pub fn ends(&self) -> &[(usize, usize)] {
        &self.ends
    }

    /// Counts the nodes of a kind.
    pub fn count(&self, kind: NodeKind) -> usize {
        self.nodes.iter().filter(|node| node.kind == kind).count()
    }

    /// Summarizes the graph in a line: `2 agents, 3 tools, 1 problem`.
    pub fn summary(&self) -> String {
        let agents = self.count(NodeKind::Agent) + self.count(NodeKind::Delegate);
        let problems = self.nodes.iter().map(|node| node.problems.len()).sum();
        let counts = [
            (agents, "agent", "agents"),
            (self.count(NodeKind::Tool), "tool", "tools"),
            (self.count(NodeKind::Toolbox), "toolbox", "toolboxes"),
            (self.count(NodeKind::Model), "model", "models"),
            (problems, "problem", "problems"),
        ];
        let parts = counts.iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<_> =
            parts.map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many })).collect();
        if parts.is_empty() { "no agents and no tools".to_owned() } else { parts.join(", ") }
    }
}

/// Describes an edge between nodes with these names.
fn describe(edge: &Edge, from: &str, to: &str) -> String {
    let alias = edge.name.as_ref().map_or_else(String::new, |name| format!(" as {name}"));
    let mut text = format!("{from} {} {to}{alias}", edge.kind.name());
    if let Some(permission) = &edge.permission {
        let otherwise = if permission.conditional.is_empty() { "" } else { "otherwise " };
        let rules = permission.conditional.iter().map(|rule| format!("{rule}; ")).collect::<String>();
        text += &format!(": {rules}{otherwise}{} ({})", permission.decision.name(), permission.because);
    }
    text
}

impl Node {
    /// Creates a node of which only the kind and the name are known.
    pub fn new(kind: NodeKind, name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            id: format!("{}:{name}", kind.prefix()),
            kind,
            name,
            place: None,
            description: None,
            effect: None,
            layer: None,
            model: None,
            steps: None,
            availability: Availability::Known,
            problems: Vec::new(),
        }
    }

    /// Returns whether the node is an agent, called by others or not.
    pub fn is_agent(&self) -> bool {
        matches!(self.kind, NodeKind::Agent | NodeKind::Delegate)
    }
}

impl Edge {
    /// Creates an edge between the nodes with these ids.
    pub fn new(from: impl Into<String>, to: impl Into<String>, kind: EdgeKind) -> Self {
        Self { from: from.into(), to: to.into(), kind, name: None, permission: None }
    }
}

impl NodeKind {
    /// All kinds.
    pub const ALL: [NodeKind; 6] =
        [NodeKind::Model, NodeKind::Agent, NodeKind::Delegate, NodeKind::Tool, NodeKind::Toolbox, NodeKind::Layer];

    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            NodeKind::Model => "model",
            NodeKind::Agent => "agent",
            NodeKind::Delegate => "delegate",
            NodeKind::Tool => "tool",
            NodeKind::Toolbox => "toolbox",
            NodeKind::Layer => "layer",
        }
    }

    /// Returns how ids start. An agent keeps its id when another agent starts to call it.
    const fn prefix(self) -> &'static str {
        match self {
            NodeKind::Delegate => "agent",
            other => other.name(),
        }
    }
}

impl EdgeKind {
    /// Returns the name of the relation.
    pub const fn name(self) -> &'static str {
        match self {
            EdgeKind::ServedBy => "is served by",
            EdgeKind::Extends => "extends",
            EdgeKind::DelegatesTo => "delegates to",
            EdgeKind::Calls => "calls",
            EdgeKind::BoundTo => "is bound to",
            EdgeKind::Declares => "declares",
        }
    }

    /// Returns the name as an identifier.
    pub const fn key(self) -> &'static str {
        match self {
            EdgeKind::ServedBy => "served_by",
            EdgeKind::Extends => "extends",
            EdgeKind::DelegatesTo => "delegates_to",
            EdgeKind::Calls => "calls",
            EdgeKind::BoundTo => "bound_to",
            EdgeKind::Declares => "declares",
        }
    }
}

impl Availability {
    /// Returns the name as an identifier.
    pub const fn key(self) -> &'static str {
        match self {
            Availability::Known => "known",
            Availability::NotStarted => "not_started",
            Availability::Missing => "missing",
        }
    }
}

impl Problem {
    /// Creates a problem from a diagnostic.
    fn new(place: String, diagnostic: &patter_gram::Diagnostic) -> Self {
        Self {
            place,
            code: diagnostic.code.to_owned(),
            is_error: diagnostic.severity == Severity::Error,
            message: diagnostic.message.to_string(),
        }
    }
}
