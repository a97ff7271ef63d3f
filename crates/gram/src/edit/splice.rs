//! Splices: the primitive changes that every edit comes down to.

use crate::{Span, Tree, span::offset};

/// New text for a range of bytes.
#[derive(Debug, Clone)]
pub(super) struct Splice {
    pub(super) span: Span,
    pub(super) text: String,
}

/// Applies splices. Where one lies within another, the outer one wins.
pub(super) fn apply_splices(tree: &Tree, mut splices: Vec<Splice>) -> (String, Vec<(u32, u8)>) {
    // Stable, so that insertions at one place keep their order. They come before what is changed or erased there, and
    // of changes the longest comes first.
    splices.sort_by_key(|splice| (splice.span.start, !splice.span.is_empty(), std::cmp::Reverse(splice.span.end)));
    let mut source = String::with_capacity(tree.source().len());
    let mut invalid_bytes = Vec::new();
    let mut at = 0;
    let keep = |source: &mut String, invalid_bytes: &mut Vec<(u32, u8)>, kept: Span| {
        let first = tree.invalid_bytes().partition_point(|(place, _)| *place < kept.start);
        let inside = tree.invalid_bytes().iter().skip(first).take_while(|(place, _)| *place < kept.end);
        invalid_bytes.extend(inside.map(|(place, byte)| (place - kept.start + offset(source.len()), *byte)));
        source.push_str(kept.slice(tree.source()));
    };
    let mut erases = false;
    for splice in splices {
        if splice.span.start < at {
            // What is erased may reach over blanks to the next change, which still counts; what is replaced may not.
            if erases {
                source.push_str(&splice.text);
                at = at.max(splice.span.end);
            }
            continue;
        }
        keep(&mut source, &mut invalid_bytes, Span::new(at, splice.span.start));
        source.push_str(&splice.text);
        erases = splice.text.is_empty() && !splice.span.is_empty();
        at = splice.span.end;
    }
    keep(&mut source, &mut invalid_bytes, Span::new(at, offset(tree.source().len())));
    (source, invalid_bytes)
}
