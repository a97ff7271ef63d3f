//! A graph with a place for everything.

use super::column::Columns;
use super::order::Slots;
use super::place::{NODE_HEIGHT, centres};
use super::width::{fit, width};
use super::{Availability, Graph, Node, NodeKind};

/// The size of names.
pub(super) const NAME_SIZE: u32 = 13;
/// The size of remarks and headings.
pub(super) const SMALL_SIZE: u32 = 11;
/// The space around the drawing.
pub(super) const MARGIN: i32 = 16;
/// The space above the first row, for headings.
pub(super) const TOP: i32 = 44;
/// Where the name starts in a box, after the sign of its kind.
pub(super) const NAME_AT: i32 = 26;
/// The space at the right of a box.
pub(super) const PADDING: i32 = 10;
/// The maximum width of a name.
const MAX_NAME: i32 = 230;
/// The minimum width of a column.
const MIN_WIDTH: i32 = 90;

/// A graph with the place of its nodes and edges, in pixels.
///
/// Columns go from left to right: models, agents, the agents they call, tools, toolboxes, layers. Nodes do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// The width.
    pub width: i32,
    /// The height.
    pub height: i32,
    /// The nodes, in the order of [`Graph::nodes`].
    pub nodes: Vec<PlacedNode>,
    /// The edges, in the order of [`Graph::edges`].
    pub edges: Vec<PlacedEdge>,
    /// The headings of the columns, with their left side.
    pub headings: Vec<(i32, &'static str)>,
}

/// The place of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedNode {
    /// The left side.
    pub x: i32,
    /// The upper side.
    pub y: i32,
    /// The width.
    pub width: i32,
    /// The height.
    pub height: i32,
    /// The name, cut to the width.
    pub label: String,
    /// A remark beside the name, such as the effect of a tool.
    pub remark: &'static str,
}

/// The course of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedEdge {
    /// The points that it passes, from its start to its end. Between the first and the second it is a curve, between the
    /// second and the third a straight line, and so on.
    pub points: Vec<(i32, i32)>,
    /// Whether both ends are on the same side of one column.
    pub is_loop: bool,
}

/// Returns what is remarked about a node.
fn remark(node: &Node) -> &'static str {
    if let Some(steps) = node.steps {
        return steps.noun();
    }
    match (node.availability, node.effect.as_deref()) {
        (Availability::Missing, _) => "missing",
        (Availability::NotStarted, _) => "not started",
        (Availability::Known, Some("writes")) => "writes",
        (Availability::Known, Some("reads")) => "reads",
        (Availability::Known, Some("network")) => "network",
        (Availability::Known, Some("pure")) => "pure",
        (Availability::Known, _) => "",
    }
}

impl Drawing {
    /// Places the nodes and edges of a graph.
    pub fn new(graph: &Graph) -> Self {
        let columns = Columns::new(graph);
        let slots = Slots::new(graph, &columns);
        let centres = centres(&slots);
        let texts: Vec<_> =
            graph.nodes().iter().map(|node| (fit(&node.name, NAME_SIZE, MAX_NAME), remark(node))).collect();
        let mut widths = vec![MIN_WIDTH; columns.headings.len()];
        for ((label, remark), column) in texts.iter().zip(&columns.of_nodes) {
            let remark = if remark.is_empty() { 0 } else { PADDING + width(remark, SMALL_SIZE) };
            let needed = NAME_AT + width(label, NAME_SIZE) + remark + PADDING;
            widths.get_mut(*column).into_iter().for_each(|width| *width = (*width).max(needed));
        }
        let spans = spans(&slots, &widths);
        let span = |slot: usize| spans.get(slots.column_of(slot)).copied().unwrap_or_default();
        let centre = |slot: usize| TOP + centres.get(slot).copied().unwrap_or_default();
        let place = |(index, (label, remark)): (usize, (String, &'static str))| {
            let (x, end) = span(index);
            let y = centre(index) - NODE_HEIGHT / 2;
            PlacedNode { x, y, width: end - x, height: NODE_HEIGHT, label, remark }
        };
        let nodes: Vec<_> = texts.into_iter().enumerate().map(place).collect();
        let route = |(route, (from, _)): (&Vec<usize>, &(usize, usize))| {
            let mut points = Vec::with_capacity(route.len() * 2);
            for slot in route {
                let (left, right) = span(*slot);
                points.extend([(left, centre(*slot)), (right, centre(*slot))]);
            }
            let ends = (route.first().copied().unwrap_or_default(), route.last().copied().unwrap_or_default());
            let is_loop = slots.column_of(ends.0) == slots.column_of(ends.1);
            match is_loop {
                true => points = vec![(span(ends.0).1, centre(ends.0)), (span(ends.1).1, centre(ends.1))],
                // The first node is left at its right side, and the last one is reached at its left side.
                false => {
                    points.pop();
                    points.remove(0);
                }
            }
            if ends.0 != *from {
                points.reverse();
            }
            PlacedEdge { points, is_loop }
        };
        let edges = slots.routes.iter().zip(graph.ends()).map(route).collect();
        let bottom = centres.iter().max().copied().unwrap_or_default();
        Self {
            width: spans.last().map_or(0, |(_, end)| *end).max(MIN_WIDTH) + MARGIN + loop_room(graph),
            height: TOP + bottom + NODE_HEIGHT / 2 + MARGIN,
            nodes,
            edges,
            headings: spans.iter().map(|(start, _)| *start).zip(columns.headings).collect(),
        }
    }
}

/// Returns the room for loops at the right of the last column, if that is one of agents.
fn loop_room(graph: &Graph) -> i32 {
    if graph.nodes().iter().all(|node| matches!(node.kind, NodeKind::Agent | NodeKind::Delegate | NodeKind::Model)) {
        32
    } else {
        0
    }
}

/// Returns the left and the right side of each column. The more edges are between two columns, the farther they are apart.
fn spans(slots: &Slots, widths: &[i32]) -> Vec<(i32, i32)> {
    let mut x = MARGIN;
    let mut spans = Vec::with_capacity(widths.len());
    for (index, width) in widths.iter().enumerate() {
        let edges = slots.columns.get(index).into_iter().flatten().filter_map(|slot| slots.right.get(*slot));
        let edges: usize = edges.map(Vec::len).sum();
        spans.push((x, x + width));
        x += width + 64 + i32::try_from(edges.min(480) / 4).unwrap_or_default();
    }
    spans
}
