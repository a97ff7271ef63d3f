//! Tokens that are not nodes of the tree: colons, bars, strokes.

use crate::{Kind, Span, Syntax, Tree};

/// Returns the colon of a property as written, `:` or `::`, and the space after it.
pub(super) fn colon(property: Syntax<'_>) -> &'static str {
    let key_end = property.child(Kind::Key).map_or(property.span().start, |key| key.span().end);
    let source = property.tree().source();
    let rest = match source.get(key_end as usize..) {
        Some(rest) if rest.starts_with(':') => rest,
        _ => skip_trivia(property.tree(), key_end),
    };
    if rest.starts_with("::") { ":: " } else { ": " }
}

/// Returns the halves of an arrow, before and after its subject.
pub(super) fn strokes(arrow: Syntax<'_>) -> (&'static str, &'static str) {
    let text = arrow.text();
    let points_left = text.starts_with('<');
    let points_right = text.ends_with('>');
    match text.bytes().find(|byte| *byte != b'<') {
        Some(b'=') => (if points_left { "<=" } else { "=" }, if points_right { "=>" } else { "=" }),
        Some(b'~') => (if points_left { "<~" } else { "~" }, if points_right { "~>" } else { "~" }),
        _ => (if points_left { "<-" } else { "-" }, if points_right { "->" } else { "-" }),
    }
}

/// Returns whether an arrow needs brackets; empty ones are omitted.
pub(super) fn has_brackets(arrow: Syntax<'_>) -> bool {
    arrow.children().next().is_some()
}

pub(super) fn has_comment(item: Syntax<'_>) -> bool {
    let comments = item.tree().comment_spans();
    let first = comments.partition_point(|comment| comment.start < item.span().start);
    comments.get(first).is_some_and(|comment| item.span().contains(*comment))
}

/// Returns the bar of a bracket pattern that has elements.
pub(super) fn bar(bracket: Syntax<'_>) -> Option<Span> {
    bracket.children().find(|child| child.kind().is_pattern())?;
    let subject = bracket.children().take_while(|child| !child.kind().is_pattern());
    let from = subject.last().map_or(bracket.span().start + 1, |part| part.span().end);
    let rest = skip_trivia(bracket.tree(), from);
    let at = crate::span::offset(bracket.tree().source().len() - rest.len());
    Some(Span::new(at, at + 1))
}

/// Returns the source from the first token at or after `from`.
pub(super) fn skip_trivia(tree: &Tree, from: u32) -> &str {
    let mut rest = tree.source().get(from as usize..).unwrap_or_default().trim_start();
    while rest.starts_with('/') {
        let at = crate::span::offset(tree.source().len() - rest.len());
        let comments = tree.comment_spans();
        let index = comments.partition_point(|comment| comment.start < at);
        let Some(comment) = comments.get(index).filter(|comment| comment.start == at) else { break };
        rest = tree.source().get(comment.end as usize..).unwrap_or_default().trim_start();
    }
    rest
}

/// Returns the spans inside an item whose comments are written by a list or as part of verbatim text.
pub(super) fn comment_owners(item: Syntax<'_>) -> Vec<Span> {
    let mut lists: Vec<_> = item.children().filter(|part| owns_comments(part.kind())).map(Syntax::span).collect();
    if item.kind() == Kind::Bracket {
        lists.extend(bar(item).map(|bar| Span::new(bar.start, item.span().end)));
    }
    lists
}

/// Returns whether a node writes the comments inside it.
pub(super) fn owns_comments(kind: Kind) -> bool {
    matches!(kind, Kind::Record | Kind::Array | Kind::Map | Kind::Fence | Kind::Tagged | Kind::Range)
}

/// Returns the span between the brackets.
pub(super) fn inside_brackets(span: Span) -> Span {
    Span::new(span.start + 1, span.end - 1)
}
