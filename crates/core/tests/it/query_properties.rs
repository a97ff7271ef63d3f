//! Random queries over random graphs give the rows that trying out every combination gives.

use patter_core::query::{Cell, Limits, PROJECT_SCHEMA, PropertyGraph, Query, Relation, Search, Vertex};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
enum Clause {
    Path(Vec<Node>, Vec<Arrow>),
    Not(Vec<Clause>),
    Different(usize, usize),
}

#[derive(Debug, Clone)]
struct Node {
    /// An index in [`NAMES`].
    name: Option<usize>,
    label: Option<&'static str>,
    /// An index in [`DEMANDS`].
    demand: Option<usize>,
}

#[derive(Debug, Clone)]
struct Arrow {
    /// Where it points: right, left, or neither.
    points: i8,
    relations: Vec<&'static str>,
    decision: Option<&'static str>,
    hops: (usize, Option<usize>),
}

/// The last is not shown.
const NAMES: [&str; 4] = ["a", "b", "c", "_d"];
const DEMANDS: [&str; 5] = ["line: 2", "line: '> 1'", "line: [1, 3...]", "line: '!= 2'", "line: _"];

fn is_met(demand: usize, line: Option<i64>) -> bool {
    match demand {
        0 => line == Some(2),
        1 => line.is_some_and(|line| line > 1),
        2 => line.is_some_and(|line| line == 1 || line >= 3),
        3 => line != Some(2),
        _ => line.is_some(),
    }
}

/// A graph as plain lists.
#[derive(Debug, Clone)]
struct Plain {
    /// The label and the line of each vertex.
    vertices: Vec<(&'static str, Option<i64>)>,
    relations: Vec<(usize, &'static str, usize, &'static str)>,
}

impl Plain {
    fn build(&self) -> PropertyGraph {
        let mut graph = PropertyGraph::default();
        let mut indices = Vec::new();
        for (index, (label, line)) in self.vertices.iter().enumerate() {
            indices.push(graph.add(Vertex::new(label, index.to_string(), index.to_string()).with("line", *line)));
        }
        for (from, name, to, decision) in &self.relations {
            graph.relate(Relation::new(indices[*from], name, indices[*to]).with("decision", *decision));
        }
        graph
    }

    fn is_walk(&self, arrow: &Arrow, from: usize, to: usize) -> bool {
        let is_step = |from: usize, to: usize| {
            self.relations.iter().any(|(start, name, end, decision)| {
                let is_named = arrow.relations.is_empty() || arrow.relations.contains(name);
                let is_decided = arrow.decision.is_none_or(|wanted| wanted == *decision);
                let is_forward = (*start, *end) == (from, to);
                let is_backward = arrow.points == 0 && (*end, *start) == (from, to);
                is_named && is_decided && (is_forward || is_backward)
            })
        };
        let (min, max) = arrow.hops;
        // Longer walks reach nothing new.
        let max = max.unwrap_or(min + self.vertices.len());
        let mut level = BTreeSet::from([from]);
        for steps in 0..=max {
            if steps >= min && level.contains(&to) {
                return true;
            }
            let all = 0..self.vertices.len();
            level = all.filter(|to| level.iter().any(|from| is_step(*from, *to))).collect();
        }
        false
    }

    /// Returns all ways to complete bindings so that all clauses hold.
    fn solve(&self, clauses: &[Clause], bound: &BTreeMap<usize, usize>) -> Vec<(BTreeMap<usize, usize>, Vec<usize>)> {
        let mut found = vec![(bound.clone(), Vec::new())];
        for clause in clauses {
            if let Clause::Path(nodes, arrows) = clause {
                found = found.into_iter().flat_map(|(bound, all)| self.paths(nodes, arrows, &bound, &all)).collect();
            }
        }
        found.retain(|(bound, _)| {
            clauses.iter().all(|clause| match clause {
                Clause::Path(..) => true,
                Clause::Not(inner) => self.solve(inner, bound).is_empty(),
                Clause::Different(one, other) => bound.get(one) != bound.get(other),
            })
        });
        found
    }

    fn paths(
        &self,
        nodes: &[Node],
        arrows: &[Arrow],
        bound: &BTreeMap<usize, usize>,
        all: &[usize],
    ) -> Vec<(BTreeMap<usize, usize>, Vec<usize>)> {
        let mut open = vec![(bound.clone(), Vec::<usize>::new())];
        for (position, node) in nodes.iter().enumerate() {
            let mut next = Vec::new();
            for (bound, path) in open {
                for (vertex, (label, line)) in self.vertices.iter().enumerate() {
                    let known = node.name.and_then(|name| bound.get(&name));
                    let is_same = known.is_none_or(|known| *known == vertex);
                    let is_labelled = node.label.is_none_or(|wanted| wanted == *label);
                    let is_wanted = node.demand.is_none_or(|demand| is_met(demand, *line));
                    let is_joined = position == 0 || {
                        let arrow = &arrows[position - 1];
                        let before = path[position - 1];
                        let (from, to) = if arrow.points < 0 { (vertex, before) } else { (before, vertex) };
                        self.is_walk(arrow, from, to)
                    };
                    if is_same && is_labelled && is_wanted && is_joined {
                        let mut bound = bound.clone();
                        bound.extend(node.name.map(|name| (name, vertex)));
                        let path = path.iter().copied().chain([vertex]).collect();
                        next.push((bound, path));
                    }
                }
            }
            open = next;
        }
        open.into_iter().map(|(bound, path)| (bound, all.iter().copied().chain(path).collect())).collect()
    }
}

fn print(clauses: &[Clause], separator: &str) -> String {
    let node = |node: &Node| {
        let name = node.name.map_or("", |name| NAMES[name]);
        let label = node.label.map_or_else(String::new, |label| format!(":{label}"));
        let demand = node.demand.map_or_else(String::new, |demand| format!(" {{ {} }}", DEMANDS[demand]));
        format!("({name}{label}{demand})")
    };
    let arrow = |arrow: &Arrow| {
        let labels: String = arrow.relations.iter().map(|name| format!(":{name}")).collect();
        let mut properties = Vec::new();
        properties.extend(arrow.decision.map(|decision| format!("decision: '{decision}'")));
        properties.push(match arrow.hops {
            (min, Some(max)) if min == max => format!("hops: {min}"),
            (min, Some(max)) => format!("hops: {min}..{max}"),
            (min, None) => format!("hops: {min}..."),
        });
        let left = if arrow.points < 0 { "<-" } else { "-" };
        let right = if arrow.points > 0 { "->" } else { "-" };
        format!("{left}[{labels} {{ {} }}]{right}", properties.join(", "))
    };
    let clause = |clause: &Clause| match clause {
        Clause::Path(nodes, arrows) => {
            let rest = arrows.iter().zip(&nodes[1..]).map(|(it, next)| format!("{}{}", arrow(it), node(next)));
            format!("{}{}", node(&nodes[0]), rest.collect::<String>())
        }
        Clause::Not(inner) => format!("[:Not | {}]", print(inner, ", ")),
        Clause::Different(one, other) => format!("[:Different | {}, {}]", NAMES[*one], NAMES[*other]),
    };
    clauses.iter().map(clause).collect::<Vec<_>>().join(separator)
}

fn node() -> impl Strategy<Value = Node> {
    let name = proptest::option::weighted(0.7, 0..NAMES.len());
    let label = proptest::option::weighted(0.3, prop::sample::select(vec!["Agent", "Tool", "Step"]));
    let demand = proptest::option::weighted(0.25, 0..DEMANDS.len());
    (name, label, demand).prop_map(|(name, label, demand)| Node { name, label, demand })
}

fn arrow() -> impl Strategy<Value = Arrow> {
    let relations = prop::sample::select(vec![
        vec!["may"],
        vec!["calls", "may"],
        vec!["next"],
        vec!["has_step", "runs"],
        vec!["calls", "has_step", "next", "runs"],
        vec![],
    ]);
    let decision = proptest::option::weighted(0.3, prop::sample::select(vec!["allow", "ask"]));
    let hops = prop_oneof![
        3 => Just((1, Some(1))),
        1 => (0..3_usize).prop_map(|min| (min, None)),
        1 => (0..3_usize, 0..3_usize).prop_map(|(min, more)| (min, Some(min + more))),
    ];
    (-1..=1_i8, relations, decision, hops).prop_map(|(points, relations, decision, hops)| Arrow {
        points,
        relations,
        decision,
        hops,
    })
}

fn path() -> impl Strategy<Value = Clause> {
    (prop::collection::vec(node(), 1..=3), prop::collection::vec(arrow(), 2)).prop_map(|(nodes, mut arrows)| {
        arrows.truncate(nodes.len() - 1);
        Clause::Path(nodes, arrows)
    })
}

fn clauses() -> impl Strategy<Value = Vec<Clause>> {
    let inner = prop::collection::vec(path(), 1..=2);
    let innermost = prop::collection::vec(path(), 1..=1).prop_map(Clause::Not);
    let not = (inner, proptest::option::weighted(0.3, innermost))
        .prop_map(|(paths, not)| Clause::Not(paths.into_iter().chain(not).collect()));
    let different = (0..NAMES.len(), 0..NAMES.len()).prop_map(|(one, other)| Clause::Different(one, other));
    (
        prop::collection::vec(path(), 1..=2),
        prop::collection::vec(not, 0..=2),
        proptest::option::weighted(0.2, different),
    )
        .prop_map(|(paths, nots, different)| paths.into_iter().chain(nots).chain(different).collect())
}

fn graph() -> impl Strategy<Value = Plain> {
    let vertex = (prop::sample::select(vec!["Agent", "Tool", "Step"]), proptest::option::weighted(0.8, 1..4_i64));
    prop::collection::vec(vertex, 1..6).prop_flat_map(|vertices| {
        let count = vertices.len();
        let name = prop::sample::select(vec!["calls", "may", "has_step", "next", "runs", "extends"]);
        let decision = prop::sample::select(vec!["allow", "ask"]);
        let relations = prop::collection::vec((0..count, name, 0..count, decision), 0..10);
        relations.prop_map(move |relations| Plain { vertices: vertices.clone(), relations })
    })
}

/// Returns the names in the clauses outside of `Not`, in the order of the query.
fn names(clauses: &[Clause]) -> Vec<usize> {
    let mut names = Vec::new();
    for clause in clauses {
        match clause {
            Clause::Path(nodes, _) => names.extend(nodes.iter().filter_map(|node| node.name)),
            Clause::Different(one, other) => names.extend([*one, *other]),
            Clause::Not(_) => {}
        }
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_trying_everything_finds(plain in graph(), clauses in clauses()) {
        let text = print(&clauses, " ");
        // Some arrows lead nowhere by the schema, and names after `Different` must be used.
        let used: BTreeSet<_> = clauses.iter().flat_map(|clause| match clause {
            Clause::Path(nodes, _) => nodes.iter().filter_map(|node| node.name).collect(),
            _ => Vec::new(),
        }).collect();
        let is_used = |clause: &Clause| match clause {
            Clause::Different(one, other) => used.contains(one) && used.contains(other),
            _ => true,
        };
        prop_assume!(clauses.iter().all(is_used));
        let parsed = Query::parse(&text, &PROJECT_SCHEMA);
        prop_assume!(parsed.is_ok());
        let query = parsed.unwrap();
        let graph = plain.build();
        let mut search = Search::new(&graph, &query, Limits::default()).unwrap();
        let rows = search.rows().unwrap();
        let shown: BTreeSet<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| match cell {
            Cell::Vertex(vertex) => graph.vertex(*vertex).unwrap().name.clone(),
            Cell::Relation(_) => unreachable!("no relation has a name"),
        }).collect()).collect();
        prop_assert_eq!(shown.len(), rows.len(), "a row is repeated");
        let names = names(&clauses);
        let solutions = plain.solve(&clauses, &BTreeMap::new());
        let expected: BTreeSet<Vec<String>> = solutions.iter().map(|(bound, all)| match names.is_empty() {
            true => all.iter().map(usize::to_string).collect(),
            false => names.iter().filter(|name| !NAMES[**name].starts_with('_')).map(|name| bound[name].to_string()).collect(),
        }).collect();
        prop_assert_eq!(&shown, &expected, "{}", text);
        for row in &rows {
            let evidence = search.evidence(row).unwrap();
            prop_assert!(!evidence.vertices.is_empty(), "no evidence for a row of {}", text);
        }
    }

    #[test]
    fn no_text_makes_a_query_panic(text in "[()\\[\\]:{}a-c,|<>=~'0-9. -]{0,40}") {
        if let Ok(query) = Query::parse(&text, &PROJECT_SCHEMA) {
            let graph = Plain { vertices: vec![("Agent", Some(1)), ("Tool", None)], relations: vec![(0, "calls", 1, "ask")] };
            let graph = graph.build();
            let _ = Search::new(&graph, &query, Limits { steps: 10_000, rows: 100 }).and_then(|mut search| search.rows());
        }
    }
}
