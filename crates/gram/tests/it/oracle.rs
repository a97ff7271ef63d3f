//! Agreement with `tree-sitter-gram` 0.6.1, the grammar other tools use.

use crate::generate::{Random, document, mutate};
use patter_gram::{Diagnostic, Dialect, Kind, Tree, parse_dialect, to_sexp};

/// The number of documents to compare: half of them well-formed, half damaged.
const DOCUMENTS: u64 = 24_000;

/// All intended differences. Any other difference is a bug in this crate.
const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "quoted text that starts with // or /** is text",
        // Their lexer treats the rest as a comment, including the closing quote.
        example: "({a: \"// x\"})",
        applies: |tree| {
            quoted_texts(tree).any(|text| {
                let inner = text.trim_start_matches(|c: char| !QUOTES.contains(&c));
                let inner = inner[1..].trim_start();
                inner.starts_with("//") || inner.starts_with("/**")
            })
        },
    },
    Difference {
        name: "a line break before the closing quote is an error",
        // Their lexer allows white space and comments before the closing quote, as between any two tokens.
        example: "({a: \"x\n\"})",
        applies: |tree| quoted_texts(tree).any(|text| text.contains('\n') || !text[1..].ends_with(QUOTES)),
    },
    Difference {
        name: "a NUL character is an ordinary character",
        example: "({a: \"\0\"})",
        applies: |tree| tree.source().contains('\0'),
    },
    Difference {
        name: "brackets nest at most MAX_DEPTH deep",
        example: DEEP,
        applies: |tree| tree.source().matches('[').count() > patter_gram::MAX_DEPTH,
    },
];

const QUOTES: [char; 3] = ['"', '\'', '`'];

const DEEP: &str = "[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[|[a\
    ]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]";

/// A difference between the two parsers.
struct Difference {
    name: &'static str,
    /// A minimal text that shows the difference.
    example: &'static str,
    applies: fn(&Tree) -> bool,
}

/// Iterates over all quoted texts, each from its first quote on.
fn quoted_texts(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.root().descendants().filter_map(|part| {
        let can_be_quoted = matches!(
            part.kind(),
            Kind::String | Kind::Key | Kind::Identifier | Kind::Reference | Kind::Label | Kind::Tagged | Kind::Error
        );
        let quote = part.text().find(QUOTES)?;
        can_be_quoted.then(|| &part.text()[quote..])
    })
}

struct Oracle {
    parser: tree_sitter::Parser,
}

impl Oracle {
    fn new() -> Self {
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tree_sitter_gram::LANGUAGE.into()).unwrap();
        Self { parser }
    }

    /// Returns the tree, or `None` if the text has errors.
    fn parse(&mut self, text: &str) -> Option<String> {
        let tree = self.parser.parse(text, None).unwrap();
        (!tree.root_node().has_error()).then(|| tree.root_node().to_sexp())
    }
}

fn ours(text: &str) -> (Tree, Option<String>) {
    let (tree, diagnostics) = parse_dialect(text, Dialect::Portable);
    let accepted = !diagnostics.iter().any(Diagnostic::is_error);
    let sexp = accepted.then(|| to_sexp(&tree).split_whitespace().collect::<Vec<_>>().join(" "));
    (tree, sexp)
}

#[test]
fn agrees_with_tree_sitter_gram() {
    let mut oracle = Oracle::new();
    let mut accepted = 0;
    let mut rejected = 0;
    let mut intended = 0;
    let mut disagreements = Vec::new();
    for seed in 0..DOCUMENTS {
        let mut random = Random::new(seed);
        let mut text = document(&mut random, Dialect::Portable);
        if seed % 2 == 1 {
            text = mutate(&mut random, &text);
        }
        let theirs = oracle.parse(&text);
        let (tree, ours) = ours(&text);
        match (&theirs, &ours) {
            (Some(theirs), Some(ours)) if theirs == ours => accepted += 1,
            (None, None) => rejected += 1,
            _ if DIFFERENCES.iter().any(|difference| (difference.applies)(&tree)) => intended += 1,
            _ => disagreements.push(format!("seed {seed}: {text:?}\n  theirs {theirs:?}\n  ours   {ours:?}")),
        }
    }
    disagreements.sort_by_key(String::len);
    println!("{accepted} accepted by both, {rejected} rejected by both, {intended} intended differences");
    assert!(
        disagreements.is_empty(),
        "{} disagreements, including:\n{}",
        disagreements.len(),
        disagreements.iter().take(10).cloned().collect::<Vec<_>>().join("\n")
    );
    assert!(accepted > DOCUMENTS / 3 && rejected > DOCUMENTS / 4, "too few documents are accepted or rejected by both");
    assert!(intended < DOCUMENTS / 20, "too many documents show an intended difference");
}

#[test]
fn every_intended_difference_exists() {
    for difference in DIFFERENCES {
        let (tree, ours) = ours(difference.example);
        assert!((difference.applies)(&tree), "{}", difference.name);
        assert_ne!(Oracle::new().parse(difference.example), ours, "{}", difference.name);
    }
}

#[test]
fn extensions_are_errors_only_in_plain_gram() {
    for text in ["{a: []}", "{a: [[1]]}", "{a: [{b: 1}]}", "{a: {b: {c: 1}}}", "{a: {b:: 1}}"] {
        assert_eq!(Oracle::new().parse(text), None, "{text}");
        assert_eq!(ours(text).1, None, "{text}");
        assert!(patter_gram::parse(text).1.is_empty(), "{text}");
    }
}

#[test]
fn only_our_parser_keeps_leading_blank_lines_of_a_fence() {
    let text = "({a: ```\n\n  x```})";
    let (tree, _) = ours(text);
    let node = tree.patterns().next().unwrap();
    assert_eq!(node.value("a").unwrap().as_str(), Some("\n  x"));
    let theirs = Oracle::new().parser.parse(text, None).unwrap();
    let content = theirs.root_node().descendant_for_byte_range(12, 13).unwrap();
    assert_eq!(&text[content.byte_range()], "  x");
}
