//! The conformance cases of `tree-sitter-gram` 0.6.1, if they are available.

use patter_gram::{Diagnostic, Dialect, parse_dialect, to_sexp};
use std::path::PathBuf;

/// Marked `:error` in the corpus, but legal in the 0.6.1 grammar.
const LEGAL_DESPITE_MARK: &str = "Map values may not contain arrays";

struct Case {
    name: String,
    is_error: bool,
    input: String,
    expected: String,
}

/// Returns the folder with the corpus: `PATTER_GRAM_CORPUS`, or `shared/corpus/tree-sitter-gram` beside the project.
fn folder() -> PathBuf {
    std::env::var_os("PATTER_GRAM_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/tree-sitter-gram"),
        PathBuf::from,
    )
}

/// Parses a file of cases: a name and flags between lines of `=`, the input, a line of `-`, the expected tree.
fn cases(text: &str) -> Vec<Case> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let is_rule = |line: &str, mark: char| line.len() >= 3 && line.chars().all(|c| c == mark);
    let mut headers: Vec<usize> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if is_rule(line, '=') && headers.last().is_none_or(|last| !is_end_of_header(&lines, *last, at)) {
            headers.push(at);
        }
    }
    let mut cases = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        let body = (header + 1..lines.len()).find(|at| is_rule(lines[*at], '=')).unwrap();
        let end = headers.get(index + 1).copied().unwrap_or(lines.len());
        let split = (body..end).find(|at| is_rule(lines[*at], '-')).unwrap_or(end);
        let header_lines = &lines[header + 1..body];
        cases.push(Case {
            name: header_lines[0].to_owned(),
            is_error: header_lines.contains(&":error"),
            input: lines[body + 1..split].join("\n"),
            expected: lines.get(split + 1..end).unwrap_or_default().join("\n"),
        });
    }
    cases
}

fn is_end_of_header(lines: &[&str], header: usize, at: usize) -> bool {
    at > header
        && at - header <= 4
        && !lines[header + 1..at].iter().any(|line| line.starts_with("==="))
        && lines[header + 1..at].iter().all(|line| !line.is_empty())
}

/// Normalizes a tree to one line, without field names if the expected tree has none.
fn normalize(sexp: &str, with_fields: bool) -> String {
    let spaced = sexp.replace('(', " ( ").replace(')', " ) ");
    let words = spaced.split_whitespace().filter(|word| with_fields || !word.ends_with(':'));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_corpus_parses_as_expected() {
    let folder = folder();
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no corpus in {} (set PATTER_GRAM_CORPUS to its folder)", folder.display());
        return;
    };
    let mut valid = 0;
    let mut rejected = 0;
    let mut failures = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        for case in cases(&std::fs::read_to_string(&path).unwrap()) {
            let (tree, diagnostics) = parse_dialect(&case.input, Dialect::Portable);
            assert_eq!(tree.to_string(), case.input);
            let has_errors = diagnostics.iter().any(Diagnostic::is_error);
            if case.is_error {
                rejected += usize::from(has_errors);
                if has_errors == (case.name == LEGAL_DESPITE_MARK) {
                    failures.push(format!("{}: errors: {has_errors}", case.name));
                }
                continue;
            }
            valid += 1;
            let with_fields = case.expected.contains(": (");
            let found = normalize(&to_sexp(&tree), with_fields);
            let expected = normalize(&case.expected, with_fields);
            if has_errors || found != expected {
                failures.push(format!("{}\n  expected {expected}\n  found    {found}\n  {diagnostics:?}", case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert_eq!((valid, rejected), (149, 34), "cases parsed from {}", folder.display());
}
