//! How long the static check takes, for projects of 100, 1,000 and 10,000 agents with ten tools each, and for one
//! toolbox, one agent and one library of 1,000, 5,000 and 10,000 tools.
//!
//! `cargo bench -p patter-core` prints milliseconds for a thousand agents or tools on one core, reading included, and how
//! that grows: where it stays the same from line to line, the check is linear.
#![allow(clippy::print_stdout, clippy::indexing_slicing, missing_docs, reason = "a benchmark")]

mod toolbox;

use patter_core::check::{Options, check};
use patter_core::declare::project::Project;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;
use toolbox::toolbox;

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
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10}   ms, and ms per 1,000 tools",
        "tools", "toolbox", "agent", "library", "per 1,000"
    );
    for tools in [1_000, 5_000, 10_000] {
        let toolbox = toolbox(tools);
        let names: Vec<_> = (0..tools).map(|index| format!("box/tool_{index}")).collect();
        let library: Vec<_> = names.iter().map(String::as_str).collect();
        let in_toolbox = time(&[&toolbox], &Options::default());
        let in_agent = time(&[&toolbox, &caller(tools)], &Options::default());
        let in_library = time(&[&caller(tools)], &Options { library: &library, ..Options::default() });
        let total = in_toolbox + in_agent + in_library;
        let average = total * 1e3 / f64::from(tools);
        println!("{tools:>8} {in_toolbox:>10.1} {in_agent:>10.1} {in_library:>10.1} {average:>10.1}");
    }
}

/// Returns how many milliseconds it takes to read and check files without errors.
fn time(files: &[&str], options: &Options<'_>) -> f64 {
    let begin = Instant::now();
    let project = Project::read(files.iter().enumerate().map(|(index, text)| (format!("{index}.gram"), text)));
    let findings = black_box(check(&project, options));
    assert!(findings.iter().all(|finding| finding.diagnostic.code == "P058" || !finding.diagnostic.is_error()));
    begin.elapsed().as_secs_f64() * 1e3
}

/// Returns an agent that refers to all tools of the toolbox, and mentions each.
fn caller(tools: u32) -> String {
    let names: Vec<_> = (0..tools).map(|index| format!("tool_{index}")).collect();
    let mentioned: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "[caller:Agent {{ description: \"Calls\", instruction: \"Use {}.\", model: \"demo\" }} | {}]\n",
        mentioned.join(", "),
        names.join(", ")
    )
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
