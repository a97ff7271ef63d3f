//! Throughput of parsing, printing and formatting, compared with `tree-sitter-gram` on the same input.
//!
//! `cargo bench -p patter-gram --bench gram` prints a table; `-- --quick` takes a tenth of the time. Peak memory is measured by
//! running this program again as a fresh process that only parses the file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark should stop at the first unexpected result"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

const SIZE: usize = 5_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--measure-memory") {
        return measure_memory(&arguments[at + 1], &arguments[at + 2]);
    }
    let time = if arguments.iter().any(|argument| argument == "--quick") { 200 } else { 2_000 };
    let budget = Duration::from_millis(time);
    println!("median MB/s on one core; ratio to tree-sitter-gram 0.6.1; peak memory as a multiple of the input size\n");
    println!(
        "{:<22} {:>8} {:>8} {:>8} {:>12} {:>7} {:>8} {:>10}",
        "file", "parse", "print", "fmt", "tree-sitter", "ratio", "memory", "(t-s mem)"
    );
    for (name, text) in [("dense declarations", dense()), ("long prompts", prompts())] {
        let (tree, diagnostics) = patter_gram::parse(&text);
        assert!(diagnostics.is_empty(), "{:?}", diagnostics.first());
        let parse = rate(&text, budget, || drop(black_box(patter_gram::parse(black_box(&text)))));
        let print = rate(&text, budget, || drop(black_box(black_box(&tree).to_string())));
        let format = rate(&text, budget, || drop(black_box(patter_gram::format(black_box(&text)))));
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tree_sitter_gram::LANGUAGE.into()).unwrap();
        let other = rate(&text, budget, || drop(black_box(parser.parse(black_box(&text), None))));
        let memory = peak_memory("patter", name);
        let other_memory = peak_memory("tree-sitter", name);
        println!(
            "{name:<22} {parse:>8.0} {print:>8.0} {format:>8.0} {other:>12.1} {:>6.1}x {memory:>7.1}x {other_memory:>9.1}x",
            parse / other
        );
    }
}

/// Returns the median MB/s over as many runs as fit the budget, at least five.
fn rate(text: &str, budget: Duration, mut run: impl FnMut()) -> f64 {
    let started = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || started.elapsed() < budget {
        let start = Instant::now();
        run();
        times.push(start.elapsed());
    }
    times.sort();
    text.len() as f64 / 1e6 / times[times.len() / 2].as_secs_f64()
}

/// Returns the peak memory used for parsing the file, as a multiple of its size. The memory for generating the file is
/// measured separately and subtracted.
fn peak_memory(parser: &str, file: &str) -> f64 {
    let peak = |parser: &str| {
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program).args(["--measure-memory", parser, file]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().unwrap()
    };
    (peak(parser) - peak("none")) / SIZE as f64
}

/// Parses a file and prints the peak memory of this process.
fn measure_memory(parser: &str, file: &str) {
    let text = if file.starts_with("dense") { dense() } else { prompts() };
    match parser {
        "patter" => drop(black_box(patter_gram::parse(&text))),
        "tree-sitter" => {
            let mut parser = tree_sitter::Parser::new();
            parser.set_language(&tree_sitter_gram::LANGUAGE.into()).unwrap();
            drop(black_box(parser.parse(&text, None)));
        }
        _ => drop(black_box(text)),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    let kilobytes: f64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
    println!("{}", kilobytes * 1024.0);
}

/// Generates agents with many small tools: names, labels, records, signatures.
fn dense() -> String {
    let mut text = String::with_capacity(SIZE + 1_000);
    let mut index = 0;
    while text.len() < SIZE {
        writeln!(
            text,
            "[agent_{index}:Agent {{ description: \"Answers question {index}\", model: \"OpenAI/gpt-4o-mini\", temperature: 0.7 }} |\n  \
             [search_{index}:Tool {{ description: \"Searches the index\" }} |\n    \
             (query::Text)==>(limit::Int {{ default: 10, range: 1..100 }})==>(tags::Array {{ elementType: \"Text\", optional: true }})==>(::Array {{ elementType: \"Object\", fields: [{{ name: \"id\", type: \"Int\" }}, {{ name: \"title\", type: \"Text\" }}] }})\n  ],\n  \
             [fetch_{index}:Tool {{ description: \"Fetches a page\" }} | (url::Text {{ format: \"uri\" }})==>(::Text)],\n  \
             sayHello, calculator // shared\n]\n"
        )
        .unwrap();
        index += 1;
    }
    text
}

/// Generates agents with long instructions: fenced text of a few thousand characters.
fn prompts() -> String {
    const LINE: &str =
        "    You are a careful assistant. Read the question, say what you know, use `search` when you do not.\n";
    let mut text = String::with_capacity(SIZE + 10_000);
    let mut index = 0;
    while text.len() < SIZE {
        write!(text, "[agent_{index}:Agent {{\n  description: \"Agent number {index}\",\n  instruction: ```\n")
            .unwrap();
        for _ in 0..40 {
            text.push_str(LINE);
        }
        writeln!(text, "  ```,\n  model: \"Anthropic/claude\"\n}} |\n  [search:Tool {{ description: \"Searches\" }} | (query::Text)==>(::Text)]\n]\n").unwrap();
        index += 1;
    }
    text
}
