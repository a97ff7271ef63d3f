//! Throughput of parsing, printing and formatting, compared with `tree-sitter-gram` on the same input, and with
//! `serde_json` on the same content as JSON.
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
    println!("median MB/s on one core, measured in turns; peak memory as a multiple of the input size\n");
    println!(
        "{:<26} {:>8} {:>8} {:>8} {:>8} {:>12} {:>8} {:>10}",
        "file", "parse", "print", "fmt", "JSON", "tree-sitter", "memory", "(t-s mem)"
    );
    for (name, text) in FILES.map(|(name, generate)| (name, generate())) {
        let (tree, diagnostics) = patter_gram::parse(&text);
        assert!(diagnostics.is_empty(), "{:?}", diagnostics.first());
        let json = patter_gram::to_json(&tree).to_string();
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tree_sitter_gram::LANGUAGE.into()).unwrap();
        // What is measured in turns is disturbed by the same other work.
        let [parse, print, format, other_format, other] = rates(
            budget,
            [
                (text.len(), &mut || drop(black_box(patter_gram::parse(black_box(&text))))),
                (text.len(), &mut || drop(black_box(black_box(&tree).to_string()))),
                (text.len(), &mut || drop(black_box(patter_gram::format(black_box(&text))))),
                (json.len(), &mut || drop(black_box(serde_json::from_str::<serde_json::Value>(black_box(&json))))),
                (text.len(), &mut || drop(black_box(parser.parse(black_box(&text), None)))),
            ],
        );
        let memory = peak_memory("patter", name);
        let other_memory = peak_memory("tree-sitter", name);
        println!(
            "{name:<26} {parse:>8.0} {print:>8.0} {format:>8.0} {other_format:>8.0} {other:>12.1} {memory:>7.1}x {other_memory:>9.1}x"
        );
    }
}

/// Generates a file.
type Generate = fn() -> String;

/// The files, by name.
const FILES: [(&str, Generate); 3] =
    [("dense declarations", dense), ("dense, not formatted", unformatted), ("long prompts", prompts)];

/// Returns the median MB/s of several functions that process so many bytes, which run in turns as often as the budget
/// allows, at least five times.
fn rates<const N: usize>(budget: Duration, mut runs: [(usize, &mut dyn FnMut()); N]) -> [f64; N] {
    let started = Instant::now();
    let mut times = [const { Vec::new() }; N];
    while times[0].len() < 5 || started.elapsed() < budget {
        for (times, (_, run)) in times.iter_mut().zip(&mut runs) {
            let start = Instant::now();
            run();
            times.push(start.elapsed());
        }
    }
    std::array::from_fn(|index| {
        let times = &mut times[index];
        times.sort();
        runs[index].0 as f64 / 1e6 / times[times.len() / 2].as_secs_f64()
    })
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
    let (_, generate) = FILES.into_iter().find(|(name, _)| *name == file).unwrap();
    let text = generate();
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

/// Generates the same agents, without the spaces that the layout has.
fn unformatted() -> String {
    dense().replace("{ ", "{").replace(" }", "}").replace(": ", ":")
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
