//! Graphs as SVG.

use super::draw::{Drawing, MARGIN, NAME_AT, PADDING, PlacedEdge, PlacedNode, SMALL_SIZE, TOP};
use super::width::width;
use super::{Availability, Edge, EdgeKind, Graph, Node, NodeKind, Permission, Steps, describe};
use crate::text::Escaped;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// The style of drawings, for light and dark pages. Its colours are those of the page, if the page has a theme.
pub const STYLE: &str = include_str!("graph.css");

/// How a graph is drawn.
#[derive(Clone, Copy)]
pub struct SvgOptions<'o> {
    /// The title, which screen readers announce.
    pub title: &'o str,
    /// Where the style comes from.
    pub style: SvgStyle,
    /// Returns the address of a node's page.
    pub link: &'o dyn Fn(&Node) -> Option<String>,
}

/// Where the style of a drawing comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SvgStyle {
    /// The drawing is a file of its own, and contains its style.
    Standalone,
    /// The drawing is part of a page, which has [`STYLE`]. Its parts have data for filters.
    Embedded,
}

impl fmt::Debug for SvgOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SvgOptions").field("title", &self.title).field("style", &self.style).finish_non_exhaustive()
    }
}

/// A drawing with more edges than this is not read line by line: in a page, it has no tips and no titles, which would take
/// browsers longer than everything else. It is divided into bands, and what is below the first screens is marked as `far`, so
/// that the page draws it only when somebody goes there.
const DENSE: usize = 1000;
/// The height of a band.
const BAND: i32 = 1500;
/// How many bands the first screens have.
const NEAR: i32 = 2;

/// The height of the key below the drawing.
const KEY_HEIGHT: i32 = 32;

impl Graph {
    /// Returns the graph as SVG.
    pub fn to_svg(&self, options: &SvgOptions<'_>) -> String {
        let drawing = Drawing::new(self);
        let mut out = String::with_capacity(400 * (self.nodes().len() + self.edges().len()) + 4000);
        let key = Key::new(self);
        let width = drawing.width.max(key.width + MARGIN);
        let height = drawing.height + if key.width > 0 { KEY_HEIGHT } else { 0 };
        let title = Escaped(options.title);
        let summary = self.summary();
        let summary = Escaped(&summary);
        let _ = match options.style {
            SvgStyle::Standalone => writeln!(
                out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" width=\"{width}\" height=\"{height}\" \
                 viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"graph-title graph-summary\">\n\
                 <title id=\"graph-title\">{title}</title>\n<desc id=\"graph-summary\">{summary}</desc>\n\
                 <style>\n{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>"
            ),
            SvgStyle::Embedded => writeln!(
                out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" width=\"{width}\" height=\"{height}\" \
                 viewBox=\"0 0 {width} {height}\" role=\"group\" aria-label=\"{title}: {summary}\" data-band=\"{BAND}\">"
            ),
        };
        out.push_str(
            "<defs><marker id=\"graph-tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip\" d=\"M0 1 8 4 0 7z\"/></marker></defs>\n",
        );
        for (x, heading) in &drawing.headings {
            let _ = writeln!(out, "<text class=\"heading\" x=\"{x}\" y=\"{}\">{heading}</text>", TOP - 16);
        }
        let is_dense = options.style == SvgStyle::Embedded && self.edges().len() > DENSE;
        let band = |index: usize| drawing.nodes.get(index).map_or(0, |placed| placed.y / BAND);
        let bands = |first: usize, second: usize| is_dense.then(|| Bands::new(band(first), band(second)));

        out.push_str("<g class=\"edges\">\n");
        let edges = self.edges().iter().zip(self.ends()).zip(&drawing.edges);
        write_groups(
            &mut out,
            edges.map(|edge| (bands(edge.0.1.0, edge.0.1.1), edge)),
            |out, ((edge, ends), placed)| {
                write_edge(out, self, edge, *ends, placed, options.style, is_dense);
            },
        );
        out.push_str("</g>\n<g class=\"nodes\">\n");
        let nodes = self.nodes().iter().enumerate().zip(&drawing.nodes);
        write_groups(&mut out, nodes.map(|node| (bands(node.0.0, node.0.0), node)), |out, ((index, node), placed)| {
            write_node(out, index, node, placed, options, is_dense);
        });
        out.push_str("</g>\n");
        key.write(&mut out, drawing.height);
        out.push_str("</svg>\n");
        out
    }
}

/// The bands in which something starts and ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Bands {
    top: i32,
    bottom: i32,
}

impl Bands {
    fn new(first: i32, second: i32) -> Self {
        Self { top: first.min(second), bottom: first.max(second) }
    }
}

/// Writes parts in groups, by the bands they are in. A drawing that is not dense has none.
fn write_groups<T>(
    out: &mut String,
    parts: impl Iterator<Item = (Option<Bands>, T)>,
    mut write_part: impl FnMut(&mut String, T),
) {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (bands, part) in parts {
        groups.entry(bands).or_default().push(part);
    }
    for (bands, parts) in groups {
        if let Some(Bands { top, bottom }) = bands {
            let far = if top >= NEAR { " class=\"far\"" } else { "" };
            // Not `<g>`: browsers lay out what is in a hidden one, since others may refer to it.
            let _ = writeln!(out, "<svg overflow=\"visible\"{far} data-bands=\"{top} {bottom}\">");
        }
        parts.into_iter().for_each(|part| write_part(out, part));
        if bands.is_some() {
            out.push_str("</svg>\n");
        }
    }
}

fn write_edge(
    out: &mut String,
    graph: &Graph,
    edge: &Edge,
    (from, to): (usize, usize),
    placed: &PlacedEdge,
    style: SvgStyle,
    is_dense: bool,
) {
    let permission = edge.permission.as_ref().map(Permission::word);
    let class = permission.filter(|word| *word != "allow").map(|word| format!(" {word}")).unwrap_or_default();
    let _ = write!(out, "<path class=\"edge {}{class}\" d=\"", edge.kind.key());
    write_course(out, placed);
    out.push('"');
    if matches!(edge.kind, EdgeKind::Calls | EdgeKind::DelegatesTo | EdgeKind::Extends) && !is_dense {
        out.push_str(" marker-end=\"url(#graph-tip)\"");
    }
    if style == SvgStyle::Embedded {
        let _ = write!(out, " data-from=\"{from}\" data-to=\"{to}\"");
        let permission = permission.map(|word| format!(" data-permission=\"{word}\""));
        out.push_str(&permission.unwrap_or_default());
    }
    if is_dense {
        out.push_str("/>\n");
        return;
    }
    let name = |index: usize| graph.nodes().get(index).map(|node| node.name.as_str()).unwrap_or_default();
    let words = describe(edge, name(from), name(to));
    let _ = writeln!(out, "><title>{}</title></path>", Escaped(&words));
}

fn write_course(out: &mut String, placed: &PlacedEdge) {
    let mut before = None;
    for (index, (x, y)) in placed.points.iter().enumerate() {
        let _ = match before {
            None => write!(out, "M{x} {y}"),
            Some((px, py)) if placed.is_loop => {
                // A node that calls itself leaves below the middle and comes back above it.
                let (down, up) = if py == *y { (6, -6) } else { (0, 0) };
                write!(out, "m0 {down}C{} {} {} {} {x} {}", px + 30, py + down, x + 30, y + up, y + up)
            }
            Some(_) if index % 2 == 0 => write!(out, "H{x}"),
            Some((px, py)) if py == *y => {
                let _ = px;
                write!(out, "H{x}")
            }
            Some((px, py)) => {
                let middle = (px + x) / 2;
                write!(out, "C{middle} {py} {middle} {y} {x} {y}")
            }
        };
        before = Some((*x, *y));
    }
}

fn write_node(
    out: &mut String,
    index: usize,
    node: &Node,
    placed: &PlacedNode,
    options: &SvgOptions<'_>,
    is_dense: bool,
) {
    let PlacedNode { x, y, width, height, label, remark } = placed;
    let problem = if node.problems.is_empty() { "" } else { " problem" };
    let unknown = if node.availability == Availability::Known { "" } else { " unknown" };
    let link = (options.link)(node);
    let steps = node.steps.map_or_else(String::new, |steps| format!(" {}", steps.noun()));
    let class = format!("node {}{steps}{problem}{unknown}", node.kind.name());
    let _ = match &link {
        Some(link) => write!(out, "<a class=\"{class}\" href=\"{}\"", Escaped(link)),
        None => write!(out, "<g class=\"{class}\""),
    };
    if options.style == SvgStyle::Embedded {
        write_data(out, index, node);
    }
    out.push('>');
    if !is_dense {
        let _ = write!(out, "<title>{}</title>", Escaped(&title(node)));
    }
    let radius = if node.is_agent() { height / 2 } else { 4 };
    let _ = write!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>");
    match node.steps {
        Some(_) => write_steps_sign(out, x + 14, y + height / 2),
        None => write_sign(out, node.kind, x + 14, y + height / 2),
    }
    let baseline = y + height / 2 + 5;
    let _ = write!(out, "<text x=\"{}\" y=\"{baseline}\">{}</text>", x + NAME_AT, Escaped(label));
    if !remark.is_empty() {
        let class = remark.split(' ').next().unwrap_or_default();
        let end = x + width - PADDING;
        let _ = write!(out, "<text class=\"remark {class}\" x=\"{end}\" y=\"{}\">{remark}</text>", baseline - 1);
    }
    if !node.problems.is_empty() {
        let count = node.problems.len().min(99);
        let cx = x + width - 4;
        let _ = write!(
            out,
            "<g class=\"count\"><circle cx=\"{cx}\" cy=\"{y}\" r=\"8\"/><text x=\"{cx}\" y=\"{}\">{count}</text></g>",
            y + 4
        );
    }
    out.push_str(if link.is_some() { "</a>\n" } else { "</g>\n" });
}

/// Writes what filters and the search read.
fn write_data(out: &mut String, index: usize, node: &Node) {
    let _ = write!(out, " data-node=\"{index}\" data-name=\"{}\"", Escaped(&node.name));
    let data = [
        ("effect", node.effect.as_deref()),
        ("layer", node.layer.map(super::Layer::name)),
        ("model", node.model.as_deref()),
    ];
    for (key, value) in data {
        if let Some(value) = value {
            let _ = write!(out, " data-{key}=\"{}\"", Escaped(value));
        }
    }
}

/// Draws the sign of a workflow: an arrow.
fn write_steps_sign(out: &mut String, x: i32, y: i32) {
    let _ = write!(out, "<path class=\"sign\" d=\"M{} {}h6v-3l5 4.5-5 4.5v-3h-6z\"/>", x - 5, y - 1);
}

/// Draws the sign of a kind, so that kinds differ not only by colour.
fn write_sign(out: &mut String, kind: NodeKind, x: i32, y: i32) {
    let _ = match kind {
        NodeKind::Agent | NodeKind::Delegate => write!(out, "<circle class=\"sign\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>"),
        NodeKind::Model => write!(out, "<path class=\"sign\" d=\"M{} {y}l5-5 5 5-5 5z\"/>", x - 5),
        NodeKind::Tool => write!(out, "<path class=\"sign\" d=\"M{} {}h8v8h-8z\"/>", x - 4, y - 4),
        NodeKind::Toolbox => write!(out, "<path class=\"sign\" d=\"M{} {}h10v8h-10zm3 0v-2h4v2\"/>", x - 5, y - 3),
        NodeKind::Layer => write!(out, "<path class=\"sign\" d=\"M{} {}h10m-10 4h10m-10 4h10\"/>", x - 5, y - 4),
    };
}

/// Returns what is known about a node, in lines.
fn title(node: &Node) -> String {
    let mut lines = vec![format!("{} {}", node.steps.map_or(node.kind.name(), Steps::noun), node.name)];
    lines.extend(node.steps.map(|Steps { count, people, .. }| match people {
        0 => format!("{count} steps"),
        1 => format!("{count} steps, 1 of which asks a person"),
        _ => format!("{count} steps, {people} of which ask a person"),
    }));
    let effect = node.effect.as_ref().map(|effect| format!("effect: {effect}"));
    let layer = node.layer.filter(|_| node.kind != NodeKind::Layer).map(|layer| format!("{layer} layer"));
    let facts: Vec<_> = [effect, layer, node.place.clone()].into_iter().flatten().collect();
    lines.extend((!facts.is_empty()).then(|| facts.join(", ")));
    lines.extend(match node.availability {
        Availability::Known => None,
        Availability::NotStarted => Some("not known, because its MCP server was not started".to_owned()),
        Availability::Missing => Some("nothing implements it".to_owned()),
    });
    lines.extend(node.description.iter().map(|text| crate::text::truncate(text, 200)));
    lines.extend(node.problems.iter().map(|problem| {
        let severity = if problem.is_error { "error" } else { "warning" };
        format!("{severity} {}: {}", problem.code, problem.message)
    }));
    lines.join("\n")
}

/// The key to the lines of a drawing: what is in it, and no more.
struct Key {
    entries: Vec<(&'static str, &'static str, i32)>,
    width: i32,
}

impl Key {
    fn new(graph: &Graph) -> Self {
        let has = |kind: EdgeKind, permission: Option<&str>| {
            graph.edges().iter().any(|edge| {
                let word = edge.permission.as_ref().map_or("allow", Permission::word);
                edge.kind == kind && permission.is_none_or(|permission| permission == word)
            })
        };
        let entries = [
            ("extends", "extends", has(EdgeKind::Extends, None)),
            ("delegates_to", "delegates to", has(EdgeKind::DelegatesTo, None)),
            ("calls", "calls: allowed", has(EdgeKind::Calls, Some("allow"))),
            ("calls ask", "calls: asks first", has(EdgeKind::Calls, Some("ask"))),
            ("calls depends", "calls: depends on the arguments", has(EdgeKind::Calls, Some("depends"))),
            ("calls deny", "calls: denied", has(EdgeKind::Calls, Some("deny"))),
        ];
        let mut at = MARGIN;
        let mut shown = Vec::new();
        for (class, words, _) in entries.into_iter().filter(|(.., is_there)| *is_there) {
            shown.push((class, words, at));
            at += 36 + width(words, SMALL_SIZE) + 18;
        }
        Self { width: if shown.is_empty() { 0 } else { at }, entries: shown }
    }

    fn write(&self, out: &mut String, y: i32) {
        for (class, words, x) in &self.entries {
            let line = y + 8;
            let _ = writeln!(
                out,
                "<path class=\"edge {class}\" d=\"M{x} {line}h28\"/><text class=\"key\" x=\"{}\" y=\"{}\">{words}</text>",
                x + 36,
                line + 4
            );
        }
    }
}
