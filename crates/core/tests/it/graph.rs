//! Graphs of projects, and their drawings.

use patter_core::check::{Options, check};
use patter_core::declare::project::Project;
use patter_core::graph::{
    Drawing, Edge, EdgeKind, Graph, GraphSource, Node, NodeKind, PlacedNode, Selection, SvgOptions, SvgStyle,
};
use patter_core::library::{Entry, HasDefinition, Layer, Library, LibraryTool, Sealing, ToolFacts};
use patter_core::name::FullName;
use patter_core::permission::Rule;
use patter_core::types::definition::Definition;
use proptest::prelude::*;

struct Tool {
    definition: Definition,
    effect: &'static str,
}

impl HasDefinition for Tool {
    fn definition(&self) -> &Definition {
        &self.definition
    }
}

impl LibraryTool for Tool {
    fn is_idempotent(&self) -> bool {
        true
    }

    fn kind_name(&self) -> &'static str {
        "native"
    }

    fn source(&self) -> &'static str {
        "tools.gram:1:1"
    }

    fn revision(&self) -> Option<&str> {
        None
    }

    fn facts(&self) -> ToolFacts {
        ToolFacts { effect: self.effect.to_owned(), ..ToolFacts::default() }
    }
}

fn library() -> Library<Tool> {
    let tool = |name: &str, layer, effect| {
        let full = FullName::parse(name).unwrap();
        let definition = Definition::new(full.tool_name(), "Does it", "(id::Text)==>(::Text)").unwrap();
        Entry { name: full, layer, sealing: Sealing::Open, value: Tool { definition, effect } }
    };
    let library = Library::merge([
        tool("shop/order", Layer::Project, "reads"),
        tool("shop/refund", Layer::Project, "writes"),
        tool("acme/mail/send", Layer::Org, "network"),
        tool("sayHello", Layer::Internal, "pure"),
    ]);
    library.unwrap().with_missing_servers(["crm".to_owned()])
}

const SHOP: &str = "
    [desk:Agent { description: 'First line', instruction: 'Help.', model: 'demo', ask: ['shop/refund when id = \"1\"'] } |
      `shop/order`, `shop/refund`, writer, [judge:Agent { instruction: 'Judge.', model: 'OpenAI/gpt-4o' } | `crm/find`, desk]]
    [writer:Agent { instruction: 'Write.', model: 'demo', modle: 'x' } | `acme/mail/send`, sayHello, nothing, judge2]
    [judge2:Agent { instruction: 'Judge.', model: 'demo' } | writer]";

fn shop(files: &[(&str, &str)]) -> Graph {
    let project = Project::read(files.to_vec());
    let library = library();
    let rules = [Rule::parse("deny acme/*", "`patter.toml`").unwrap()];
    let names: Vec<_> = library.entries().map(|entry| entry.name.as_str()).collect();
    let findings = check(&project, &Options { library: &names, ..Options::default() });
    let source = GraphSource { project: &project, library: &library, rules: &rules, findings: &findings };
    Graph::build(source, &Selection::Project)
}

fn svg(graph: &Graph) -> String {
    graph.to_svg(&SvgOptions { title: "Shop", style: SvgStyle::Standalone, link: &|_| None })
}

#[test]
fn a_project_is_drawn_with_everything_that_is_known_about_it() {
    let graph = shop(&[("shop.gram", SHOP)]);
    insta::assert_snapshot!("graph_mermaid", graph.to_mermaid());
    insta::assert_snapshot!("graph_dot", graph.to_dot());
    insta::assert_snapshot!("graph_json", format!("{:#}", graph.to_json()));
    let svg = svg(&graph);
    let drawn = svg.split_once("</style>").unwrap().1;
    insta::assert_snapshot!("graph_svg", drawn);
}

#[test]
fn an_agent_is_drawn_with_what_it_calls() {
    let project = Project::read([("shop.gram", SHOP)]);
    let library = library();
    let source = GraphSource { project: &project, library: &library, rules: &[], findings: &[] };
    let names = |name: &str| {
        let selection = Selection::Agents { names: [name.to_owned()].into(), files: [0].into() };
        let graph = Graph::build(source, &selection);
        graph.nodes().iter().filter(|node| node.is_agent()).map(|node| node.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("judge2"), ["judge2", "writer"]);
    assert_eq!(names("judge"), ["desk", "desk/judge", "judge2", "writer"]);
    assert_eq!(names("desk/judge"), names("judge"));
    assert!(names("nobody").is_empty());
}

#[test]
fn agents_with_the_same_name_differ_by_their_place() {
    let graph = shop(&[("a.gram", "[x:Agent]"), ("b.gram", "[x:Agent] [:Agent]")]);
    let ids: Vec<_> = graph.nodes().iter().filter(|node| node.is_agent()).map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["agent:@b.gram:1:11", "agent:x@a.gram:1:1", "agent:x@b.gram:1:1"]);
}

#[test]
fn the_order_of_files_makes_no_difference() {
    let parts: Vec<_> = SHOP.trim().split("\n    [").map(|text| format!("[{}", text.trim_start_matches('['))).collect();
    let files: Vec<_> = ["a.gram", "b.gram", "c.gram"].into_iter().zip(parts.iter().map(String::as_str)).collect();
    let reversed: Vec<_> = files.iter().rev().copied().collect();
    // The check reports a cycle once, at the agent that comes first.
    let draw = |files: &[(&str, &str)]| {
        let project = Project::read(files.to_vec());
        let source = GraphSource { project: &project, library: &library(), rules: &[], findings: &[] };
        svg(&Graph::build(source, &Selection::Project))
    };
    assert!(draw(&files) == draw(&reversed));
}

#[test]
fn hostile_names_are_escaped() {
    for name in
        ["</text><script>alert(1)</script>", "a\"b'c&d", "x\u{202e}y\u{7}", "]] --> n0", "`*_<b>", "\\\"; n0 -> n1"]
    {
        let nodes = [Node::new(NodeKind::Agent, name), Node::new(NodeKind::Tool, name)];
        let edge = Edge::new(nodes[0].id.clone(), nodes[1].id.clone(), EdgeKind::Calls);
        let graph = Graph::new(nodes, [edge]);
        let options =
            SvgOptions { title: name, style: SvgStyle::Embedded, link: &|node| Some(format!("/{}", node.name)) };
        for text in [svg(&graph), graph.to_svg(&options), graph.to_mermaid()] {
            assert!(!text.contains("<script") && !text.contains(['\u{202e}', '\u{7}']), "{text}");
        }
        assert!(!graph.to_dot().contains(['\u{202e}', '\u{7}']));
        assert_eq!(graph.to_mermaid().matches("-->").count(), 1, "{}", graph.to_mermaid());
        assert_eq!(graph.to_mermaid().matches('"').count(), 4);
        let unescaped = graph.to_dot().replace("\\\\", "").replace("\\\"", "");
        assert_eq!(unescaped.matches('"').count(), 6, "{unescaped}");
        assert_eq!(graph.edges().len(), 1);
    }
    let long = Graph::new([Node::new(NodeKind::Agent, "x".repeat(1 << 20))], []);
    assert!(Drawing::new(&long).width < 400);
}

/// Nodes of all kinds, and edges between any of them, also in cycles.
fn graphs() -> impl Strategy<Value = (Vec<Node>, Vec<Edge>)> {
    let kinds = prop::sample::select(NodeKind::ALL.to_vec());
    let nodes = prop::collection::vec((kinds, "[a-z]{1,12}"), 1..40);
    let edges = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80);
    (nodes, edges).prop_map(|(nodes, edges)| {
        let nodes: Vec<_> = nodes.into_iter().map(|(kind, name)| Node::new(kind, name)).collect();
        let is_agent = |kind| matches!(kind, NodeKind::Agent | NodeKind::Delegate);
        let edge = |(from, to): (prop::sample::Index, prop::sample::Index)| {
            let (from, to) = (from.get(&nodes), to.get(&nodes));
            let kind = match (from.kind, to.kind) {
                (from, NodeKind::Model) if is_agent(from) => EdgeKind::ServedBy,
                (from, to) if is_agent(from) && is_agent(to) => EdgeKind::DelegatesTo,
                (from, NodeKind::Tool) if is_agent(from) => EdgeKind::Calls,
                (NodeKind::Tool, NodeKind::Toolbox) => EdgeKind::BoundTo,
                (NodeKind::Layer, NodeKind::Toolbox | NodeKind::Tool) => EdgeKind::Declares,
                _ => return None,
            };
            Some(Edge::new(from.id.clone(), to.id.clone(), kind))
        };
        let edges = edges.into_iter().filter_map(edge).collect();
        (nodes, edges)
    })
}

fn overlap(a: &PlacedNode, b: &PlacedNode) -> bool {
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

proptest! {
    #[test]
    fn nodes_do_not_overlap_and_every_edge_is_drawn((nodes, edges) in graphs()) {
        let graph = Graph::new(nodes, edges);
        let drawing = Drawing::new(&graph);
        prop_assert_eq!(drawing.nodes.len(), graph.nodes().len());
        for (index, node) in drawing.nodes.iter().enumerate() {
            prop_assert!(node.x >= 0 && node.y >= 0);
            prop_assert!(node.x + node.width <= drawing.width && node.y + node.height <= drawing.height);
            for other in &drawing.nodes[index + 1..] {
                prop_assert!(!overlap(node, other), "{:?} {:?}", node, other);
            }
        }
        prop_assert_eq!(drawing.edges.len(), graph.edges().len());
        for (edge, (from, to)) in drawing.edges.iter().zip(graph.ends()) {
            let touches = |point: &(i32, i32), node: &PlacedNode| {
                (point.0 == node.x || point.0 == node.x + node.width) && point.1 == node.y + node.height / 2
            };
            prop_assert!(touches(edge.points.first().unwrap(), &drawing.nodes[*from]));
            prop_assert!(touches(edge.points.last().unwrap(), &drawing.nodes[*to]));
            // Long edges pass between the nodes of the columns in between.
            let middle = edge.points.get(1..edge.points.len() - 1).unwrap_or_default();
            for (x, y) in middle {
                let hits = |node: &&PlacedNode| node.x <= *x && *x <= node.x + node.width && node.y < *y && *y < node.y + node.height;
                prop_assert!(!drawing.nodes.iter().any(|node| hits(&node)));
            }
        }
        let svg = svg(&graph);
        let in_edges = svg.split_once("<g class=\"edges\">").unwrap().1.split_once("</g>").unwrap().0;
        prop_assert_eq!(in_edges.matches("<path class=\"edge").count(), graph.edges().len());
    }

    #[test]
    fn the_order_of_nodes_and_edges_makes_no_difference((nodes, edges) in graphs(), seed in any::<u64>()) {
        let graph = Graph::new(nodes.clone(), edges.clone());
        let mut shuffled = (nodes, edges);
        let mut state = seed | 1;
        let mut next = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % bound
        };
        for index in (1..shuffled.0.len()).rev() {
            shuffled.0.swap(index, next(index + 1));
        }
        for index in (1..shuffled.1.len()).rev() {
            shuffled.1.swap(index, next(index + 1));
        }
        prop_assert!(svg(&graph) == svg(&Graph::new(shuffled.0, shuffled.1)));
    }
}

/// Builds a fleet: agents with tools of their own and shared ones, in chains of calls.
fn fleet(agents: usize, chain: usize) -> (Vec<Node>, Vec<Edge>) {
    let mut nodes = vec![Node::new(NodeKind::Model, "demo"), Node::new(NodeKind::Layer, "project")];
    let mut edges = Vec::new();
    for agent in 0..agents {
        nodes.push(Node::new(NodeKind::Agent, format!("agent{agent:04}")));
        let id = format!("agent:agent{agent:04}");
        edges.push(Edge::new(&id, "model:demo", EdgeKind::ServedBy));
        if agent % chain > 0 {
            edges.push(Edge::new(format!("agent:agent{:04}", agent - 1), &id, EdgeKind::DelegatesTo));
        }
        for tool in 0..5 {
            let number = if tool < 3 { agent * 3 + tool } else { (agent * 7 + tool) % 50 };
            let name = format!("box{}/tool{number}", number % 40);
            nodes.push(Node::new(NodeKind::Tool, &name));
            nodes.push(Node::new(NodeKind::Toolbox, format!("box{}", number % 40)));
            edges.push(Edge::new(&id, format!("tool:{name}"), EdgeKind::Calls));
            edges.push(Edge::new(format!("tool:{name}"), format!("toolbox:box{}", number % 40), EdgeKind::BoundTo));
            edges.push(Edge::new("layer:project", format!("toolbox:box{}", number % 40), EdgeKind::Declares));
        }
    }
    (nodes, edges)
}

#[test]
fn a_thousand_agents_are_drawn_quickly() {
    for chain in [1, 4, 1000] {
        let (nodes, edges) = fleet(1000, chain);
        let graph = Graph::new(nodes, edges);
        let started = std::time::Instant::now();
        let text = svg(&graph);
        let taken = started.elapsed();
        assert!(text.len() > 1_000_000);
        // Without optimisation, and beside other tests.
        assert!(taken.as_secs() < 10, "chains of {chain} took {taken:?}");
        eprintln!("chains of {chain}: {taken:?}, {} bytes", text.len());
    }
}
