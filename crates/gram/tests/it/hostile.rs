//! Hostile input: huge, deeply nested, unterminated, malformed.
//!
//! Work is measured instead of time: the number of nodes and diagnostics must grow linearly with the input. A parser
//! that rescans its input would not finish these tests in reasonable time.

use crate::generate::Random;
use patter_gram::{Dialect, LineIndex, Rendering, format, outline, parse_bytes, render, to_json, to_sexp};

const MEGABYTE: usize = 1_000_000;

/// The pieces that inputs repeat.
const PIECES: &[&str] = &[
    "[",
    "(",
    "{",
    "]",
    ")",
    "}",
    "-",
    "\"",
    "`",
    "'",
    "```",
    "@",
    "@@",
    ":",
    "::",
    ",",
    "|",
    "<",
    ">",
    "=",
    "~",
    ".",
    "/",
    "//",
    "/*",
    "/**",
    "\\",
    "\"\n",
    "'\n\"",
    "`\n",
    "[a|",
    "[a | (b), ",
    "(a",
    "(a\n",
    "(a-->",
    "{a:",
    "{a:[",
    "{a:{",
    "{a:\"",
    "{a: \"\n",
    "@a(",
    "@a(\n",
    "(-[",
    "()-[",
    "()--",
    "()-->()",
    "a",
    "a ",
    "é",
    "0",
    "1..",
    "...",
    "1e",
    "-5",
    "\u{feff}",
    "\0",
    "[a:b {c: d} | ",
    "({a: `\\",
    "(a {b: c d e ",
    "// x\n",
    "/** x */",
    "->(",
    "tag`x`",
    "{\"a\":1,",
    "\r\n",
];

fn repeated(piece: &str, size: usize) -> Vec<u8> {
    piece.repeat(size / piece.len() + 1).into_bytes()
}

/// Parses a text, renders some diagnostics, and returns the number of nodes, comments and diagnostics.
fn work(bytes: &[u8]) -> usize {
    let (tree, diagnostics) = parse_bytes(bytes, Dialect::Patter);
    assert_eq!(tree.to_bytes(), bytes);
    let index = LineIndex::new(tree.source());
    for diagnostic in diagnostics.iter().take(3) {
        let rendered = render(diagnostic, tree.source(), &index, "x.gram", Rendering::Plain);
        assert!(rendered.len() < 10_000, "an excerpt has {} bytes", rendered.len());
    }
    tree.root().descendants().count() + tree.comments().count() + diagnostics.len()
}

#[test]
fn work_grows_linearly_with_the_input() {
    for piece in PIECES {
        let small = work(&repeated(piece, 20_000));
        let large = work(&repeated(piece, 200_000));
        assert!(large <= small * 11 + 1_000, "{piece:?}: {small} at 20 kB, {large} at 200 kB");
    }
}

#[test]
fn ten_megabytes_of_any_piece_are_parsed() {
    for piece in ["-", "\"", "`", "[", "(", "{", "'\n\"", "```", "/*"] {
        work(&repeated(piece, 10 * MEGABYTE));
    }
    let string = format!("({{a: \"{}\"}})", "x".repeat(10 * MEGABYTE));
    assert!(work(string.as_bytes()) < 10);
}

#[test]
fn ten_megabytes_of_random_bytes_are_parsed() {
    let mut random = Random::new(7);
    let bytes: Vec<u8> =
        std::iter::repeat_with(|| random.next().to_le_bytes()).take(10 * MEGABYTE / 8).flatten().collect();
    work(&bytes);
}

#[test]
fn a_million_nested_brackets_fit_a_small_stack() {
    let parse_all = || {
        for piece in ["[", "(", "{", "[a|", "{a:", "({a:[", "@a(", "{a:{b:[{c:"] {
            let text = piece.repeat(MEGABYTE);
            work(text.as_bytes());
        }
        // The maximum depth, through every function that recurses.
        let patterns = patter_gram::MAX_DEPTH - 1;
        let values = patter_gram::MAX_DEPTH - 2;
        for nested in [
            format!("{}(x){}", "[a|".repeat(patterns), "]".repeat(patterns)),
            format!("[a {{k: {}1{}}}]", "[".repeat(values), "]".repeat(values)),
            format!("[a {{k: {}1{}}}]", "{k:".repeat(values), "}".repeat(values)),
        ] {
            let (tree, diagnostics) = patter_gram::parse(&nested);
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            assert!(patter_gram::from_json(&to_json(&tree)).unwrap() == tree);
            let json = serde_json::to_string(&to_json(&tree)).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), to_json(&tree));
            format(&nested).unwrap();
            to_sexp(&tree);
            outline(&tree);
        }
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(parse_all).unwrap().join().unwrap();
}

#[test]
fn a_path_of_a_million_nodes_is_flat() {
    let text = format!("(){}", "-->()".repeat(MEGABYTE));
    let (tree, diagnostics) = patter_gram::parse(&text);
    assert!(diagnostics.is_empty());
    let path = tree.patterns().next().unwrap();
    assert_eq!((path.elements().count(), path.arrows().count()), (MEGABYTE + 1, MEGABYTE));
    assert!(to_sexp(&tree).len() < text.len() * 200);
    assert_eq!(format(&text).unwrap().lines().count(), MEGABYTE + 1);
}

#[test]
fn odd_characters_are_reported_and_kept() {
    // A byte order mark is skipped at the start and reported elsewhere.
    assert!(patter_gram::parse("\u{feff}(a)").1.is_empty());
    assert_eq!(patter_gram::parse("(a)\u{feff}").1.len(), 1);
    // A lone surrogate is not valid UTF-8.
    let (tree, diagnostics) = parse_bytes(b"(a {x: '\xed\xa0\x80'})", Dialect::Patter);
    assert_eq!(tree.to_bytes(), b"(a {x: '\xed\xa0\x80'})");
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
}
