//! Invariants that hold for any bytes. The fuzz target includes this file.

use patter_gram::{
    Diagnostic, Dialect, Kind, LineIndex, Rendering, Tree, format, from_json, outline, parse, parse_bytes, render,
    to_json, to_sexp,
};

/// Checks every invariant on some bytes.
pub(crate) fn check_invariants(bytes: &[u8]) {
    for dialect in [Dialect::Patter, Dialect::Portable] {
        let (tree, diagnostics) = parse_bytes(bytes, dialect);
        assert_eq!(tree.to_bytes(), bytes, "printing must reproduce the input");
        check_spans(&tree);
        check_diagnostics(&tree, &diagnostics);
        to_sexp(&tree);
        outline(&tree);
        to_json(&tree);
        if dialect == Dialect::Patter && !diagnostics.iter().any(Diagnostic::is_error) {
            check_format(tree.source());
            let json = to_json(&tree);
            let back = from_json(&json).unwrap_or_else(|error| panic!("{error}\n{:?}\n{json}", tree.source()));
            assert_eq!(back, tree, "the JSON form must preserve the meaning");
        }
    }
}

/// Checks that spans are on character boundaries, within their parents and in order.
fn check_spans(tree: &Tree) {
    for syntax in tree.root().descendants() {
        let span = syntax.span();
        assert!(tree.source().get(span.range()).is_some(), "{syntax:?} is not on character boundaries");
        let mut at = span.start;
        for child in syntax.children() {
            assert!(span.contains(child.span()) && at <= child.span().start, "{child:?} is out of place in {syntax:?}");
            at = child.span().end;
        }
    }
}

fn check_diagnostics(tree: &Tree, diagnostics: &[Diagnostic]) {
    let index = LineIndex::new(tree.source());
    assert!(diagnostics.is_sorted_by_key(|diagnostic| diagnostic.span.start), "diagnostics must be sorted");
    for diagnostic in diagnostics.iter().take(20) {
        assert!(tree.source().get(diagnostic.span.range()).is_some(), "{diagnostic:?}");
        for related in &diagnostic.related {
            assert!(tree.source().get(related.span.range()).is_some(), "{related:?}");
        }
        render(diagnostic, tree.source(), &index, "x.gram", Rendering::Plain);
    }
    let has_error_node = tree.root().descendants().any(|part| part.kind() == Kind::Error);
    assert!(!has_error_node || diagnostics.iter().any(Diagnostic::is_error), "an error node has no diagnostic");
}

/// Checks that formatting preserves meaning and comments, and is idempotent.
fn check_format(source: &str) {
    let (tree, _) = parse(source);
    let formatted = format(source).unwrap();
    let (again, diagnostics) = parse(&formatted);
    assert!(!diagnostics.iter().any(Diagnostic::is_error), "{source:?}\n{formatted}\n{diagnostics:?}");
    assert_eq!(tree, again, "the meaning changed\n{source:?}\n{formatted}");
    assert_eq!(comments(&tree), comments(&again), "the comments changed\n{source:?}\n{formatted}");
    assert_eq!(format(&formatted).unwrap(), formatted, "formatting is not idempotent\n{source:?}");
}

/// Returns the comments of a tree, sorted.
pub(crate) fn comments(tree: &Tree) -> Vec<String> {
    let mut comments: Vec<_> = tree.comments().map(|comment| comment.text.trim_end().to_owned()).collect();
    comments.sort();
    comments
}
