//! Queries over graphs: the language, its mistakes, and the questions that operators ask about a fleet.

use crate::fleet::{Fleet, QUESTIONS, Rows};
use patter_core::query::{
    Cell, Limits, PROJECT_SCHEMA, ProjectGraph, PropertyGraph, Query, Relation, SESSION_SCHEMA, Search, Stop, Vertex,
    describe_path,
};
use serde_json::json;

fn graph(fleet: &Fleet) -> PropertyGraph {
    let project = fleet.project();
    let library = fleet.library();
    let rules = fleet.rules();
    ProjectGraph { project: &project, library: &library, rules: &rules, findings: &[] }.build()
}

/// Returns the rows of a query, as names.
pub(crate) fn rows(graph: &PropertyGraph, query: &str) -> Rows {
    let query = Query::parse(query, &PROJECT_SCHEMA).unwrap_or_else(|errors| panic!("{query}\n{errors:#?}"));
    let rows = Search::new(graph, &query, Limits::default()).unwrap().rows().unwrap();
    rows.iter().map(|row| row.iter().map(|cell| name(graph, *cell)).collect()).collect()
}

fn name(graph: &PropertyGraph, cell: Cell) -> String {
    match cell {
        Cell::Vertex(vertex) => graph.vertex(vertex).unwrap().name.clone(),
        Cell::Relation(relation) => graph.relations()[relation].name.to_owned(),
    }
}

#[test]
fn questions_about_a_fleet_are_answered_as_by_loops_over_its_data() {
    for (agents, seed) in [(1_000, 7), (60, 1), (60, 2)] {
        let fleet = Fleet::new(agents, seed);
        let graph = graph(&fleet);
        for question in QUESTIONS {
            let expected = (question.answer)(&fleet);
            let found = rows(&graph, question.query);
            assert_eq!(found, expected, "{} agents: {}", agents, question.asks);
            assert!(agents < 1_000 || !found.is_empty(), "shows nothing: {}", question.asks);
        }
    }
    assert!(QUESTIONS.len() >= 15);
}

/// `desk` calls `writer`, which calls `send`; `desk` calls `find`; nobody calls `rest`.
fn shop() -> PropertyGraph {
    let mut graph = PropertyGraph::default();
    let desk = Vertex::new("Agent", "1", "desk").with("maxCost", 0.5).with("stop", json!(["END", "."]));
    let desk = graph.add(desk.with("timeout", 90.0));
    let writer = graph.add(Vertex::new("Agent", "2", "writer").with("file", "a/b.gram").with("line", 5));
    let send = graph.add(Vertex::new("Tool", "3", "mail/send").with("effect", "writes").with("sealed", true));
    let find = graph.add(Vertex::new("Tool", "4", "find").with("effect", "reads"));
    graph.add(Vertex::new("Tool", "5", "rest").with("description", "> 5*"));
    graph.relate(Relation::new(desk, "calls", writer));
    graph.relate(Relation::new(writer, "calls", send).with("as", "post"));
    graph.relate(Relation::new(desk, "calls", find));
    graph.relate(Relation::new(desk, "may", find).with("decision", "allow"));
    graph.relate(Relation::new(desk, "may", find).with("decision", "ask").with("when", "id is 1"));
    graph.relate(Relation::new(writer, "may", send).with("decision", "ask"));
    graph
}

fn check(query: &str, expected: &[&[&str]]) {
    let expected: Rows = expected.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
    assert_eq!(rows(&shop(), query), expected, "{query}");
}

#[test]
fn labels_and_properties_select_vertices() {
    check("(a:Agent)", &[&["desk"], &["writer"]]);
    check("(:Agent)", &[&["desk"], &["writer"]]);
    check("(x { name: 'desk' })", &[&["desk"]]);
    check("(t:Tool { name: 'mail/*' })", &[&["mail/send"]]);
    check("(t:Tool { name: ['find', 'res?'] })", &[&["find"], &["rest"]]);
    check("(t:Tool { name: '!= find' })", &[&["mail/send"], &["rest"]]);
    check("(t:Tool { effect: _ })", &[&["mail/send"], &["find"]]);
    check("(t:Tool { effect: reads })", &[&["find"]]);
    check("(t:Tool { effect: '!= reads' })", &[&["mail/send"], &["rest"]]);
    check("(t:Tool { sealed: true })", &[&["mail/send"]]);
    check("(t:Tool { description: '= > 5*' })", &[&["rest"]]);
    check("(a:Agent { stop: 'END' })", &[&["desk"]]);
    check("(a:Agent { maxCost: 0.5 })", &[&["desk"]]);
    check("(a:Agent { maxCost: '> 0.4' })", &[&["desk"]]);
    check("(a:Agent { maxCost: '> 0.5' })", &[]);
    check("(a:Agent { maxCost: '<= 0.5' })", &[&["desk"]]);
    check("(a:Agent { maxCost: 0.1..0.5 })", &[&["desk"]]);
    check("(a:Agent { line: ...5 })", &[&["writer"]]);
    check("(a:Agent { line: 6... })", &[]);
    check("(a:Agent { timeout: '> 1m' })", &[&["desk"]]);
    check("(a:Agent { timeout: 1m..2m })", &[&["desk"]]);
    check("(a:Agent { timeout: 90s })", &[&["desk"]]);
}

#[test]
fn arrows_follow_relations() {
    check("(a:Agent)-[:calls]->(t:Tool)", &[&["desk", "find"], &["writer", "mail/send"]]);
    check("(t:Tool)<-[:calls]-(a:Agent)", &[&["find", "desk"], &["mail/send", "writer"]]);
    check("(t:Tool)-[:calls]-(a:Agent)", &[&["find", "desk"], &["mail/send", "writer"]]);
    check("(a:Agent)-[:calls { as: 'post' }]->(t)", &[&["writer", "mail/send"]]);
    check(
        "(a)-[:calls { hops: 1... }]->(t:Tool { effect: 'writes' })",
        &[&["desk", "mail/send"], &["writer", "mail/send"]],
    );
    check("(a)-[:calls { hops: 2 }]->(t)", &[&["desk", "mail/send"]]);
    check("(a)-[:calls { hops: 0... }]->(t:Tool { name: 'rest' })", &[&["rest", "rest"]]);
    check("(:Agent { name: 'desk' })-[:calls { hops: ...2 }]->(t)", &[&["writer"], &["find"], &["mail/send"]]);
    check("(a)-[:calls { hops: 3... }]->(t)", &[]);
    check("(a)-[:calls:may]->(t:Tool)", &[&["desk", "find"], &["writer", "mail/send"]]);
    check("(a)-[r]->(:Tool { name: 'find' })", &[&["desk", "calls"], &["desk", "may"]]);
    check("(a)-[:calls]->(_b)-[:calls]->(t)", &[&["desk", "mail/send"]]);
    check("(a)-[:calls]->(b) (b)-[:calls]->(t)", &[&["desk", "writer", "mail/send"]]);
    check("(a)-[:calls]->(a)", &[]);
}

#[test]
fn what_must_be_absent_is() {
    check("(t:Tool) [:Not | (:Agent)-[:calls]->(t)]", &[&["rest"]]);
    check("(a:Agent) [:Not | (a { maxCost: _ })]", &[&["writer"]]);
    check("[:Not | (a { maxCost: _ })] (a:Agent)", &[&["writer"]]);
    check("(a:Agent) [:Not | (a)-[:calls]->(x:Tool), (x { effect: 'writes' })]", &[&["desk"]]);
    check("(a:Agent) [:Not | (:Tool)]", &[]);
    check("(a:Agent) [:Not | (:Model)]", &[&["desk"], &["writer"]]);
    check("(a:Agent) [:Not | [:Not | (:Tool)]]", &[&["desk"], &["writer"]]);
    check("(a:Agent) [:Not | [:Not | (:Model)]]", &[]);
    // Every agent that the agent calls calls a tool that writes.
    check(
        "(a:Agent)-[:calls]->(:Agent) [:Not | (a)-[:calls]->(b:Agent), [:Not | (b)-[:calls]->(:Tool { effect: 'writes' })]]",
        &[&["desk"]],
    );
    // A group may be about a vertex that only the outermost group names.
    check("(a:Agent) [:Not | (:Tool), [:Not | (a)-[:calls]->(:Agent)]]", &[&["desk"]]);
    check("(a:Agent) (b:Agent) [:Different | a, b]", &[&["desk", "writer"], &["writer", "desk"]]);
    check(
        "(a)-[:may { decision: 'ask' }]->(t) [:Not | (a)-[:may { decision: 'allow' }]->(t)]",
        &[&["writer", "mail/send"]],
    );
}

#[test]
fn evidence_is_a_shortest_path() {
    let graph = shop();
    let query = Query::parse("(a { name: 'desk' })-[:calls { hops: 1... }]->(t:Tool)", &PROJECT_SCHEMA).unwrap();
    let mut search = Search::new(&graph, &query, Limits::default()).unwrap();
    let rows = search.rows().unwrap();
    let paths: Vec<_> = rows.iter().map(|row| describe_path(&graph, &search.evidence(row).unwrap())).collect();
    assert_eq!(paths, ["desk -[calls]-> writer -[calls]-> mail/send", "desk -[calls]-> find"]);
    let query = Query::parse("(a)-[r:may { decision: 'ask' }]-(t) (x:Tool { name: 'rest' })", &PROJECT_SCHEMA).unwrap();
    let mut search = Search::new(&graph, &query, Limits::default()).unwrap();
    let rows = search.rows().unwrap();
    let paths: Vec<_> = rows.iter().map(|row| describe_path(&graph, &search.evidence(row).unwrap())).collect();
    // Each relation is found from both of its ends.
    assert_eq!(paths.len(), 4);
    assert!(paths.iter().all(|path| path.contains("-[may ask]->") && path.ends_with("; rest")), "{paths:?}");
}

#[test]
fn mistakes_are_explained() {
    let errors = |query: &str| {
        let errors = Query::parse(query, &PROJECT_SCHEMA).unwrap_err();
        let show = |error: &patter_core::gram::Diagnostic| {
            let hint = error.hint.as_deref().unwrap_or_default();
            format!("{} `{}`: {} ({hint})", error.code, error.span.slice(query), error.message)
        };
        errors.iter().map(show).collect::<Vec<_>>().join("\n")
    };
    let queries = [
        "",
        "(a:Agnet)",
        "(a:agent { modle: 'x' })",
        "(a { colour: 'x' })",
        "(a:Agent)-[:cals]->(t:Tool)",
        "(a:Agent)-[:calls*]->(t:Tool)",
        "(a:Agent)-[:calls { hops: 'many' }]->(t)",
        "(a:Agent)-[:calls { hops: 3..1 }]->(t)",
        "(a:Agent)-[:calls { hops: 1..5000 }]->(t)",
        "(a:Agent)-[r:calls { hops: 1... }]->(t)",
        "(a:Agent)-[:calls { decison: 'allow' }]->(t)",
        "(a:Agent)-[:may { decison: 'allow' }]->(t)",
        "(t:Tool)-[:calls]->(a:Agent)",
        "(m:Model)-[:calls]->(r:Rule)",
        "(t:Tool { callers: '> many' })",
        "(t:Tool { callers: 5km })",
        "(t:Tool { callers: date`2024-01-01` })",
        "[a:Agent | b]",
        "[:Nto | (a)]",
        "[:Not | (a:Agent)]",
        "(a) [:Not]",
        "(a) [x:Not { b: 1 } | (a)]",
        "(a) [:Different | a]",
        "(a) [:Different | a, (a)-->(b)]",
        "(a)-[a]->(b)",
        "(a)-[r]->(b) [:Not | (r)]",
        "@@x:Y (a:Agent)-->(b)",
        "{ a: 1 } (a)",
        "(a:Agent",
    ];
    let shown: Vec<_> =
        queries.iter().map(|query| format!("{query}\n  {}", errors(query).replace('\n', "\n  "))).collect();
    insta::assert_snapshot!("query_mistakes", shown.join("\n"));
    let long = vec!["(:Agent)"; 70].join(" ");
    assert!(errors(&long).contains("more than 64 nodes and arrows"));
}

#[test]
fn hostile_queries_end_by_a_bound() {
    let graph = graph(&Fleet::new(300, 3));
    let stop = |query: &str, limits: Limits| {
        let query = Query::parse(query, &PROJECT_SCHEMA).unwrap();
        Search::new(&graph, &query, limits).and_then(|mut search| search.rows()).unwrap_err()
    };
    let limits = Limits { steps: 1_000_000, rows: 10_000 };
    let products = "(a:Agent) (b:Agent) (c:Agent)";
    assert_eq!(stop(products, limits), Stop::Rows(10_000));
    // Hidden variables that are not joined to anything.
    let hidden = "(_a:Agent)-[:calls]->(t:Tool)<-[:calls]-(_b:Agent) (_c:Agent)-[:calls]->(t) [:Different | _a, _b, _c] \
                  [:Not | (x:Agent), (y:Agent), (z:Agent { name: 'nobody' }), [:Different | x, y]]";
    let query = Query::parse(hidden, &PROJECT_SCHEMA).unwrap();
    Search::new(&graph, &query, limits).unwrap().rows().unwrap();
    let walks = "(a)-[{ hops: 1000 }]-(b)-[{ hops: 1000 }]-(c)-[{ hops: 1000 }]-(d)";
    assert_eq!(stop(walks, limits), Stop::Steps(1_000_000));
    let clique =
        "(a:Agent)-[:calls { hops: 0... }]-(b:Agent)-[:calls { hops: 0... }]-(c:Agent)-[:calls { hops: 0... }]-(a)";
    assert!(matches!(stop(clique, limits), Stop::Steps(_) | Stop::Rows(_)));
    let many = (0..30).map(|index| format!("(x{index}:Agent)-[{{ hops: 0... }}]-(x{})", index + 1)).collect::<String>();
    assert!(matches!(stop(&many, limits), Stop::Steps(_) | Stop::Rows(_)));
    assert_eq!(Stop::Steps(5).to_string(), "the query was stopped after 5 steps");
    assert!(Stop::Rows(5).hint().contains('_'));
}

#[test]
fn schemas_are_described_and_consistent() {
    for (name, schema) in [("project", PROJECT_SCHEMA), ("session", SESSION_SCHEMA)] {
        insta::assert_snapshot!(format!("schema_{name}"), schema.describe());
        for relation in schema.relations {
            for (from, to) in relation.ends {
                assert!(schema.label(from).is_some() && schema.label(to).is_some(), "{}", relation.name);
            }
        }
        assert_eq!(schema.to_json()["labels"].as_array().unwrap().len(), schema.labels.len());
    }
}

#[test]
fn graphs_of_projects_follow_their_schema() {
    let graph = graph(&Fleet::new(200, 5));
    for vertex in graph.vertices() {
        let known = vertex.labels.iter().filter_map(|label| PROJECT_SCHEMA.label(label)).collect::<Vec<_>>();
        assert_eq!(known.len(), vertex.labels.len(), "{:?}", vertex.labels);
        for key in vertex.properties.keys() {
            let is_known = known.iter().any(|label| label.properties.iter().any(|(name, _)| name == key));
            assert!(is_known, "{:?} has no property `{key}`", vertex.labels);
        }
    }
    for relation in graph.relations() {
        let known = PROJECT_SCHEMA.relation(relation.name).unwrap();
        let label = |vertex| graph.vertex(vertex).unwrap().label();
        let ends = (label(relation.from), label(relation.to));
        assert!(known.ends.contains(&ends), "{} {ends:?}", relation.name);
        for key in relation.properties.keys() {
            assert!(known.properties.iter().any(|(name, _)| name == key), "{} has no property `{key}`", relation.name);
        }
    }
}
