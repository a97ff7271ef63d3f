//! How long questions about a fleet of 1,000 agents take, each with the rows that it finds, and how long it takes to read
//! the fleet as a graph.
//!
//! `cargo bench -p patter-core --bench query` prints milliseconds on one core, the fastest of fifteen runs.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a benchmark"
)]

mod fleet;

use fleet::{Fleet, QUESTIONS};
use patter_core::query::{Limits, PROJECT_SCHEMA, ProjectGraph, Query, Search};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let fleet = Fleet::new(1_000, 7);
    let project = fleet.project();
    let library = fleet.library();
    let rules = fleet.rules();
    let source = ProjectGraph { project: &project, library: &library, rules: &rules, findings: &[] };
    let begin = Instant::now();
    let graph = source.build();
    println!(
        "{} agents, {} vertices, {} relations: built in {:.1} ms",
        fleet.agents.len(),
        graph.vertices().len(),
        graph.relations().len(),
        milliseconds(begin)
    );
    println!("{:>8} {:>8}", "ms", "rows");
    for question in QUESTIONS {
        let mut rows = 0;
        let mut fastest = f64::MAX;
        for _ in 0..15 {
            let begin = Instant::now();
            let query = Query::parse(question.query, &PROJECT_SCHEMA).unwrap();
            rows = black_box(Search::new(&graph, &query, Limits::default()).unwrap().rows().unwrap()).len();
            fastest = fastest.min(milliseconds(begin));
        }
        println!("{fastest:>8.2} {rows:>8}  {}", question.asks);
        assert_eq!((question.answer)(&fleet).len(), rows, "{}", question.asks);
    }
}

fn milliseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}
