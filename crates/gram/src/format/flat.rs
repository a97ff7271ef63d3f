//! The layout of an item on one line, and how wide it is.

use super::{
    LINE_WIDTH,
    tokens::{colon, has_brackets, has_comment, strokes},
};
use crate::pattern::label_text;
use crate::tree::RawNode;
use crate::{Kind, Syntax, SyntaxId, Tree};

/// What the writer needs to know about each node before it writes it.
///
/// Everything is measured once, bottom-up. Trying each item on one line and then its parts would write deeply nested
/// items once per level.
pub(super) struct Measurements {
    nodes: Vec<Measurement>,
}

#[derive(Clone, Copy)]
struct Measurement {
    /// The width of the node on one line, in characters, or [`TOO_WIDE`].
    width: u16,
    has_comment: bool,
    /// Whether the source of the node is its layout on one line, so that it can be copied. In a file that was formatted
    /// before, most nodes are.
    is_laid_out: bool,
}

/// The width of whatever fits on no line.
const TOO_WIDE: u16 = LINE_WIDTH as u16 + 1;

const NOT_MEASURED: Measurement = Measurement { width: TOO_WIDE, has_comment: true, is_laid_out: false };

impl Measurements {
    pub(super) fn of(tree: &Tree) -> Self {
        let source = tree.source();
        let is_ascii = source.is_ascii();
        let mut unseen = tree.comment_spans();
        let mut next_comment_end = u32::MAX;
        let mut scratch = String::new();
        let mut measurements = Self { nodes: vec![NOT_MEASURED; tree.nodes().len()] };
        // The parts of a node come after it.
        for (index, node) in tree.nodes().iter().enumerate().rev() {
            while let Some(comment) = unseen.last().filter(|comment| comment.start >= node.start) {
                next_comment_end = comment.end;
                unseen = unseen.split_last().map_or(&[], |(_, before)| before);
            }
            let has_comment = next_comment_end <= node.end;
            let (width, is_laid_out) = match node.kind {
                // These are never on one line.
                Kind::File | Kind::Annotated | Kind::Fence => (TOO_WIDE, false),
                kind if is_token(kind) || kind == Kind::Label && is_plain_label(node, source) => {
                    let text = node.span();
                    (if is_ascii { limit(text.len()) } else { text_width(text.slice(source)) }, true)
                }
                kind if has_gaps(kind) => measurements.measure_parts(tree, index, node),
                // The layout of these depends on the text between their parts.
                _ => {
                    let item = tree.syntax(index);
                    scratch.clear();
                    measurements.lay_out(item, &mut scratch);
                    (text_width(&scratch), scratch == item.text())
                }
            };
            if let Some(measurement) = measurements.nodes.get_mut(index) {
                *measurement = Measurement { width, has_comment, is_laid_out };
            }
        }
        measurements
    }

    /// Returns the width of a node, and whether it is laid out, from what has been measured of its parts.
    fn measure_parts(&self, tree: &Tree, index: usize, node: &RawNode) -> (u16, bool) {
        let bytes = tree.source().as_bytes();
        let is_gap = |from: u32, to: u32, gap: &str| {
            let source = bytes.get(from as usize..to as usize).unwrap_or_default();
            // Gaps are short; a call to compare them would take longer.
            source.len() == gap.len() && source.iter().zip(gap.as_bytes()).all(|(a, b)| a == b)
        };
        let mut width = 0;
        let mut is_laid_out = true;
        let mut previous = None;
        let mut at = node.start;
        let mut next = index + 1;
        while next < node.next as usize
            && let (Some(part), Some(measurement)) = (tree.nodes().get(next), self.nodes.get(next))
        {
            let mut gap = gap(node.kind, previous, Some(part.kind));
            if previous == Some(Kind::Key) && node.kind == Kind::Property && !is_gap(at, part.start, gap) {
                gap = colon(tree.syntax(index));
            }
            is_laid_out &= measurement.is_laid_out && is_gap(at, part.start, gap);
            width += gap.len() + usize::from(measurement.width);
            previous = Some(part.kind);
            at = part.end;
            next = part.next as usize;
        }
        let gap = gap(node.kind, previous, None);
        (limit(width + gap.len()), is_laid_out && is_gap(at, node.end, gap))
    }

    #[inline]
    fn get(&self, id: SyntaxId) -> Measurement {
        self.nodes.get(id.index()).copied().unwrap_or(NOT_MEASURED)
    }

    /// Returns the width of an item on one line, or `None` if it fits on no line.
    pub(super) fn width(&self, item: Syntax<'_>) -> Option<usize> {
        let width = self.get(item.id()).width;
        (width < TOO_WIDE).then_some(usize::from(width))
    }

    pub(super) fn has_comment(&self, item: Syntax<'_>) -> bool {
        self.get(item.id()).has_comment
    }

    /// Appends an item to a text, on one line unless it has line breaks itself.
    pub(super) fn write(&self, item: Syntax<'_>, out: &mut String) {
        if self.get(item.id()).is_laid_out {
            out.push_str(item.text());
        } else {
            self.lay_out(item, out);
        }
    }

    fn lay_out(&self, item: Syntax<'_>, out: &mut String) {
        match item.kind() {
            Kind::Arrow => {
                let (left, right) = strokes(item);
                out.push_str(left);
                if has_brackets(item) {
                    self.lay_out_parts(item, out);
                }
                out.push_str(right);
            }
            Kind::Label => {
                out.push_str(if item.text().starts_with("::") { "::" } else { ":" });
                out.push_str(label_text(item));
            }
            // With a comment inside, these are written verbatim.
            Kind::Range if !has_comment(item) => out.extend(item.text().split_whitespace()),
            Kind::Tagged if !has_comment(item) && !item.text().starts_with("```") => {
                let tag = item.child(Kind::Tag).map_or("", Syntax::text);
                out.push_str(tag);
                out.push_str(item.text().get(tag.len()..).unwrap_or_default().trim_start());
            }
            kind if has_gaps(kind) => self.lay_out_parts(item, out),
            _ => out.push_str(item.text()),
        }
    }

    fn lay_out_parts(&self, item: Syntax<'_>, out: &mut String) {
        let mut previous = None;
        for part in item.children() {
            out.push_str(match previous {
                Some(Kind::Key) if item.kind() == Kind::Property => colon(item),
                _ => gap(item.kind(), previous, Some(part.kind())),
            });
            self.write(part, out);
            previous = Some(part.kind());
        }
        out.push_str(gap(item.kind(), previous, None));
    }
}

/// Returns whether nodes of a kind are single tokens, which contain no line break.
#[inline]
fn is_token(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Identifier
            | Kind::Reference
            | Kind::Key
            | Kind::String
            | Kind::Tag
            | Kind::Integer
            | Kind::Decimal
            | Kind::Hexadecimal
            | Kind::Octal
            | Kind::Measurement
            | Kind::Boolean
            | Kind::Symbol
    )
}

/// Returns whether the name of a label follows right after its colons.
fn is_plain_label(label: &RawNode, source: &str) -> bool {
    let text = source.as_bytes().get(label.span().range()).unwrap_or_default();
    let name = text.strip_prefix(b"::").or_else(|| text.strip_prefix(b":")).and_then(<[u8]>::first);
    name.is_some_and(|first| matches!(first, b'`' | b'_') || first.is_ascii_alphabetic())
}

/// Returns whether nodes of a kind consist of parts and the text between them; see [`gap`].
#[inline]
fn has_gaps(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Node
            | Kind::Path
            | Kind::Bracket
            | Kind::Header
            | Kind::Annotation
            | Kind::Record
            | Kind::Map
            | Kind::Array
            | Kind::Property
    )
}

/// Returns the text between two parts of a node, before the first part, or after the last, on one line. For the colon
/// of a property, it is the usual one; see [`colon`].
#[inline]
fn gap(node: Kind, previous: Option<Kind>, next: Option<Kind>) -> &'static str {
    match (node, previous, next) {
        (Kind::Property, Some(Kind::Key), Some(_)) => ": ",
        (Kind::Record | Kind::Map, None, None) => "{}",
        (Kind::Record | Kind::Map, None, Some(_)) => "{ ",
        (Kind::Record | Kind::Map, Some(_), None) => " }",
        (Kind::Array, None, None) => "[]",
        (Kind::Array, None, Some(_)) => "[",
        (Kind::Array, Some(_), None) => "]",
        (Kind::Record | Kind::Map | Kind::Array, Some(_), Some(_)) => ", ",
        (Kind::Node, None, None) => "()",
        (Kind::Node, None, Some(_)) => "(",
        (Kind::Node, Some(_), None) => ")",
        (Kind::Bracket, None, None) => "[]",
        (Kind::Bracket, None, Some(first)) if first.is_pattern() => "[| ",
        (Kind::Bracket | Kind::Arrow, None, Some(_)) => "[",
        (Kind::Bracket | Kind::Arrow, Some(_), None) => "]",
        (Kind::Bracket, Some(previous), Some(next)) if next.is_pattern() => {
            if previous.is_pattern() {
                ", "
            } else {
                " | "
            }
        }
        (Kind::Node | Kind::Bracket | Kind::Arrow, Some(_), Some(Kind::Record)) => " ",
        (Kind::Header, None, _) => "@@",
        (Kind::Annotation, None, Some(_)) => "@",
        (Kind::Annotation, Some(Kind::Key), Some(_)) => "(",
        (Kind::Annotation, Some(_), None) => ")",
        _ => "",
    }
}

#[inline]
fn limit(width: usize) -> u16 {
    width.min(usize::from(TOO_WIDE)) as u16
}

fn text_width(text: &str) -> u16 {
    // A character has at most four bytes.
    if text.len() > 4 * LINE_WIDTH || text.bytes().any(|byte| byte == b'\n') {
        return TOO_WIDE;
    }
    limit(text.chars().count())
}
