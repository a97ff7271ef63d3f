//! Agreement with `tree-sitter-gram` 0.6.1, the grammar that other tools use.

use crate::generate::{Random, document, mutate};
use patter_gram::{Diagnostic, Dialect, Kind, Tree, parse_dialect, to_sexp};

/// Documents compared: half of them well-formed, half damaged.
const DOCUMENTS: u64 = 24_000;

/// Every difference that is meant to be, by name. All others are mistakes of ours.
const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "quoted text that starts with // or /** is text",
        // There the lexer takes what follows for a comment, closing quote included.
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
        name: "a line break before the closing quote is a mistake",
        // There white space and comments may stand between a text and its closing quote, as between any two tokens.
        example: "({a: \"x\n\"})",
        applies: |tree| quoted_texts(tree).any(|text| text.contains('\n') || !text[1..].ends_with(QUOTES)),
    },
    Difference {
        name: "a NUL character is a character like others",
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

struct Difference {
    name: &'static str,
    /// The smallest text that shows it.
    example: &'static str,
    applies: fn(&Tree) -> bool,
}

/// Iterates over everything in quotes, from its first quote on.
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

    /// Returns the tree, or `None` where the text has errors.
    fn read(&mut self, text: &str) -> Option<String> {
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
fn agrees_with_the_grammar_of_other_tools() {
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
        let theirs = oracle.read(&text);
        let (tree, ours) = ours(&text);
        match (&theirs, &ours) {
            (Some(theirs), Some(ours)) if theirs == ours => accepted += 1,
            (None, None) => rejected += 1,
            _ if DIFFERENCES.iter().any(|difference| (difference.applies)(&tree)) => intended += 1,
            _ => disagreements.push(format!("seed {seed}: {text:?}\n  theirs {theirs:?}\n  ours   {ours:?}")),
        }
    }
    disagreements.sort_by_key(String::len);
    println!("{accepted} accepted alike, {rejected} rejected alike, {intended} differ as intended");
    assert!(
        disagreements.is_empty(),
        "{} disagreements, of which:\n{}",
        disagreements.len(),
        disagreements.iter().take(10).cloned().collect::<Vec<_>>().join("\n")
    );
    assert!(accepted > DOCUMENTS / 3 && rejected > DOCUMENTS / 4, "the documents test too little");
    assert!(intended < DOCUMENTS / 20, "too many documents fall under an intended difference");
}

#[test]
fn every_intended_difference_exists() {
    for difference in DIFFERENCES {
        let (tree, ours) = ours(difference.example);
        assert!((difference.applies)(&tree), "{}", difference.name);
        assert_ne!(Oracle::new().read(difference.example), ours, "{}", difference.name);
    }
}

#[test]
fn patters_extension_is_an_error_in_plain_gram_and_only_there() {
    for text in ["{a: []}", "{a: [[1]]}", "{a: [{b: 1}]}", "{a: {b: {c: 1}}}", "{a: {b:: 1}}"] {
        assert_eq!(Oracle::new().read(text), None, "{text}");
        assert_eq!(ours(text).1, None, "{text}");
        assert!(patter_gram::parse(text).1.is_empty(), "{text}");
    }
}

#[test]
fn leading_blank_lines_of_a_fence_are_part_of_our_text_and_not_of_theirs() {
    let text = "({a: ```\n\n  x```})";
    let (tree, _) = ours(text);
    let node = tree.patterns().next().unwrap();
    assert_eq!(node.value("a").unwrap().as_str(), Some("\n  x"));
    let theirs = Oracle::new().parser.parse(text, None).unwrap();
    let content = theirs.root_node().descendant_for_byte_range(12, 13).unwrap();
    assert_eq!(&text[content.byte_range()], "  x");
}
