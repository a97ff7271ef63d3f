//! Columns: models, agents by how deeply they are called, tools, toolboxes, layers.

use super::{EdgeKind, Graph, NodeKind};

/// The maximum number of columns of agents. Agents that are called even deeper share the last one.
const MAX_DEPTH: usize = 12;

/// The column of each node.
pub(super) struct Columns {
    /// The column of each node, by the index of the node.
    pub(super) of_nodes: Vec<usize>,
    /// The heading of each column.
    pub(super) headings: Vec<&'static str>,
}

impl Columns {
    pub(super) fn new(graph: &Graph) -> Self {
        let depths = depths(graph);
        let levels = graph.nodes().iter().zip(&depths).filter(|(node, _)| node.is_agent());
        let levels = levels.map(|(_, depth)| depth + 1).max().unwrap_or(0);
        let mut headings = Vec::new();
        let mut start = |kind: NodeKind, heading: &'static str| {
            let at = headings.len();
            headings.extend((graph.count(kind) > 0).then_some(heading));
            at
        };
        let models = start(NodeKind::Model, "Models");
        let agents = headings.len();
        headings.extend((0..levels).map(|level| if level == 0 { "Agents" } else { "Delegates" }));
        let mut start = |kind: NodeKind, heading: &'static str| {
            let at = headings.len();
            headings.extend((graph.count(kind) > 0).then_some(heading));
            at
        };
        let tools = start(NodeKind::Tool, "Tools");
        let toolboxes = start(NodeKind::Toolbox, "Toolboxes");
        let layers = start(NodeKind::Layer, "Layers");
        let column = |(node, depth): (&super::Node, &usize)| match node.kind {
            NodeKind::Model => models,
            NodeKind::Agent | NodeKind::Delegate => agents + depth,
            NodeKind::Tool => tools,
            NodeKind::Toolbox => toolboxes,
            NodeKind::Layer => layers,
        };
        Self { of_nodes: graph.nodes().iter().zip(&depths).map(column).collect(), headings }
    }
}

/// Returns how deeply each agent is called: the longest path to it. Calls that close a cycle do not count.
fn depths(graph: &Graph) -> Vec<usize> {
    let count = graph.nodes().len();
    let mut called = vec![Vec::new(); count];
    for (edge, (from, to)) in graph.edges().iter().zip(graph.ends()) {
        if edge.kind == EdgeKind::DelegatesTo
            && from != to
            && let Some(called) = called.get_mut(*from)
        {
            called.push(*to);
        }
    }
    let (sorted, forward) = without_cycles(&called);
    let mut depths = vec![0; count];
    for from in sorted {
        let depth: usize = depths.get(from).copied().unwrap_or_default();
        for to in forward.get(from).into_iter().flatten() {
            if let Some(known) = depths.get_mut(*to) {
                *known = (*known).max(depth + 1).min(MAX_DEPTH - 1);
            }
        }
    }
    depths
}

/// Sorts nodes so that callers come before what they call, and returns the calls that agree with that order.
fn without_cycles(called: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; called.len()];
    let mut forward = vec![Vec::new(); called.len()];
    let mut finished = Vec::with_capacity(called.len());
    let state = |states: &[State], node: usize| states.get(node).copied().unwrap_or(State::Done);
    for root in 0..called.len() {
        if state(&states, root) != State::New {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.pop() {
            if let Some(one) = states.get_mut(node) {
                *one = State::Open;
            }
            let Some(to) = called.get(node).and_then(|called| called.get(next)).copied() else {
                states.get_mut(node).into_iter().for_each(|one| *one = State::Done);
                finished.push(node);
                continue;
            };
            path.push((node, next + 1));
            match state(&states, to) {
                State::Open => {}
                found => {
                    forward.get_mut(node).into_iter().for_each(|forward: &mut Vec<usize>| forward.push(to));
                    path.extend((found == State::New).then_some((to, 0)));
                }
            }
        }
    }
    finished.reverse();
    (finished, forward)
}
