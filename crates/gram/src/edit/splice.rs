//! Splices: replacements of byte ranges, which every edit is made of.

use crate::{Span, Tree, span::offset};

/// A replacement of a byte range.
#[derive(Debug, Clone)]
pub(super) struct Splice {
    pub(super) span: Span,
    pub(super) text: String,
}

/// Applies splices. If one lies within another, the outer one wins.
pub(super) fn apply_splices(tree: &Tree, mut splices: Vec<Splice>) -> (String, Vec<(u32, u8)>) {
    // The sort is stable, so insertions at the same offset keep their order. They come before replacements and removals
    // there, of which the longest comes first.
    splices.sort_by_key(|splice| (splice.span.start, !splice.span.is_empty(), std::cmp::Reverse(splice.span.end)));
    let mut source = String::with_capacity(tree.source().len());
    let mut invalid_bytes = Vec::new();
    let mut at = 0;
    let keep = |source: &mut String, invalid_bytes: &mut Vec<(u32, u8)>, kept: Span| {
        let first = tree.invalid_bytes().partition_point(|(position, _)| *position < kept.start);
        let inside = tree.invalid_bytes().iter().skip(first).take_while(|(position, _)| *position < kept.end);
        invalid_bytes.extend(inside.map(|(position, byte)| (position - kept.start + offset(source.len()), *byte)));
        source.push_str(kept.slice(tree.source()));
    };
    let mut is_removal = false;
    for splice in splices {
        if splice.span.start < at {
            // A removal may extend over spaces into the next splice, which still applies; a replacement may not.
            if is_removal {
                source.push_str(&splice.text);
                at = at.max(splice.span.end);
            }
            continue;
        }
        keep(&mut source, &mut invalid_bytes, Span::new(at, splice.span.start));
        source.push_str(&splice.text);
        is_removal = splice.text.is_empty() && !splice.span.is_empty();
        at = splice.span.end;
    }
    keep(&mut source, &mut invalid_bytes, Span::new(at, offset(tree.source().len())));
    (source, invalid_bytes)
}
