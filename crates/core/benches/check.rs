//! How long the static check takes, for projects of 100, 1,000 and 10,000 agents with ten tools each.
//!
//! `cargo bench -p patter-core` prints milliseconds for a thousand agents on one core, reading included, and how that
//! grows: where it stays the same from line to line, the check is linear.
#![allow(clippy::print_stdout, clippy::indexing_slicing, missing_docs, reason = "a benchmark")]

use patter_core::check::{Options, check};
use patter_core::declare::project::Project;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    println!("{:>8} {:>10} {:>10} {:>22}", "agents", "read ms", "check ms", "ms per 1,000 agents");
    for agents in [100, 1_000, 10_000].into_iter().take(if quick { 2 } else { 3 }) {
        let files: Vec<_> = (0..agents).map(|index| (format!("agents/{index}.gram"), agent(index))).collect();
        let runs = 5;
        let mut times: Vec<(f64, f64)> = (0..runs)
            .map(|_| {
                let begin = Instant::now();
                let project = Project::read(files.iter().map(|(path, text)| (path.clone(), text)));
                let read = begin.elapsed().as_secs_f64() * 1e3;
                let begin = Instant::now();
                let findings = black_box(check(&project, &Options::default()));
                assert!(findings.is_empty());
                (read, begin.elapsed().as_secs_f64() * 1e3)
            })
            .collect();
        times.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
        let (read, checked) = times[runs / 2];
        println!("{agents:>8} {read:>10.1} {checked:>10.1} {:>22.1}", (read + checked) * 1e3 / f64::from(agents));
    }
}

/// Returns an agent with ten tools, all of which its instruction mentions.
fn agent(index: u32) -> String {
    let mut tools = String::new();
    let mut names = String::new();
    for tool in 0..10 {
        let separator = if tool == 0 { "" } else { ",\n" };
        let _ = write!(
            tools,
            "{separator}  [tool_{index}_{tool}:Tool {{ description: \"Tool {tool} of agent {index}\" }} |\n    \
             (query_{tool}::Text {{ description: \"what to look for\" }})==>(limit::Int {{ default: 10, range: 1..100 }})==>(::Array {{ elementType: \"Text\" }})\n  ]"
        );
        let _ = write!(names, " `tool_{index}_{tool}`");
    }
    format!(
        "[agent_{index}:Agent {{ description: \"Agent {index}\", instruction: \"Use{names}.\", model: \"OpenAI/gpt-4o-mini\" }} |\n{tools}\n]\n"
    )
}
