//! The layout of an item on one line, and how wide it is.

use super::{
    LINE_WIDTH,
    tokens::{colon, has_brackets, has_comment, strokes, write_name_and_labels},
};
use crate::{Kind, Syntax, SyntaxId, Tree};

/// Receives the layout of an item, from left to right.
pub(super) trait Sink<'t> {
    fn text(&mut self, text: &str);
    fn part(&mut self, part: Syntax<'t>);
}

/// Appends an item to a text, on one line unless it has line breaks itself.
pub(super) fn write_flat(item: Syntax<'_>, out: &mut String) {
    lay_out(item, &mut Output(out));
}

/// The sink that writes.
pub(super) struct Output<'o>(pub(super) &'o mut String);

impl<'t> Sink<'t> for Output<'_> {
    #[inline]
    fn text(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn part(&mut self, part: Syntax<'t>) {
        lay_out(part, self);
    }
}

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
}

/// The width of whatever fits on no line.
const TOO_WIDE: u16 = LINE_WIDTH as u16 + 1;

impl Measurements {
    pub(super) fn of(tree: &Tree) -> Self {
        let comments = tree.comment_spans();
        let mut comments_before = comments.len();
        let nodes = vec![Measurement { width: TOO_WIDE, has_comment: false }; tree.root().size() as usize];
        let mut measurements = Self { nodes };
        // The parts of a node come after it.
        for item in tree.root().descendants().rev() {
            let span = item.span();
            while comments_before > 0 && comments.get(comments_before - 1).is_some_and(|last| last.start >= span.start)
            {
                comments_before -= 1;
            }
            let has_comment = comments.get(comments_before).is_some_and(|next| next.end <= span.end);
            let mut ruler = Ruler { measurements: &measurements, width: 0 };
            lay_out(item, &mut ruler);
            let width = ruler.width;
            if let Some(measurement) = measurements.nodes.get_mut(item.id().index()) {
                *measurement = Measurement { width, has_comment };
            }
        }
        measurements
    }

    fn get(&self, id: SyntaxId) -> Measurement {
        self.nodes.get(id.index()).copied().unwrap_or(Measurement { width: TOO_WIDE, has_comment: true })
    }

    /// Returns the width of an item on one line, or `None` if it fits on no line.
    pub(super) fn width(&self, item: Syntax<'_>) -> Option<usize> {
        let width = self.get(item.id()).width;
        (width < TOO_WIDE).then_some(usize::from(width))
    }

    pub(super) fn has_comment(&self, item: Syntax<'_>) -> bool {
        self.get(item.id()).has_comment
    }
}

/// The sink that measures. The parts have been measured before.
struct Ruler<'m> {
    measurements: &'m Measurements,
    width: u16,
}

impl Ruler<'_> {
    #[inline]
    fn add(&mut self, width: u16) {
        self.width = self.width.saturating_add(width).min(TOO_WIDE);
    }
}

impl<'t> Sink<'t> for Ruler<'_> {
    #[inline]
    fn text(&mut self, text: &str) {
        self.add(text_width(text));
    }

    #[inline]
    fn part(&mut self, part: Syntax<'t>) {
        self.add(self.measurements.get(part.id()).width);
    }
}

#[inline]
fn text_width(text: &str) -> u16 {
    // A character has at most four bytes.
    if text.len() > 4 * LINE_WIDTH {
        return TOO_WIDE;
    }
    let mut characters = 0;
    for byte in text.bytes() {
        if byte == b'\n' {
            return TOO_WIDE;
        }
        characters += u16::from(byte & 0b1100_0000 != 0b1000_0000);
    }
    characters.min(TOO_WIDE)
}

/// Lays out one item: its tokens as text, its parts as parts.
fn lay_out<'t>(item: Syntax<'t>, sink: &mut impl Sink<'t>) {
    match item.kind() {
        Kind::Node => {
            sink.text("(");
            subject(item, sink);
            sink.text(")");
        }
        Kind::Arrow => {
            let (left, right) = strokes(item);
            sink.text(left);
            if has_brackets(item) {
                sink.text("[");
                subject(item, sink);
                sink.text("]");
            }
            sink.text(right);
        }
        Kind::Path => item.children().for_each(|part| sink.part(part)),
        Kind::Bracket => {
            sink.text("[");
            subject(item, sink);
            let has_subject = item.children().next().is_some_and(|first| !first.kind().is_pattern());
            let mut separator = if has_subject { " | " } else { "| " };
            for element in item.children().filter(|child| child.kind().is_pattern()) {
                sink.text(separator);
                sink.part(element);
                separator = ", ";
            }
            sink.text("]");
        }
        Kind::Header => {
            sink.text("@@");
            write_name_and_labels(item, sink);
        }
        Kind::Annotation => {
            sink.text("@");
            for part in item.children() {
                sink.part(part);
                if part.kind() == Kind::Key {
                    sink.text("(");
                }
            }
            sink.text(")");
        }
        Kind::Record | Kind::Map if item.children().next().is_none() => sink.text("{}"),
        Kind::Record | Kind::Map => {
            sink.text("{ ");
            separated(item, sink);
            sink.text(" }");
        }
        Kind::Array => {
            sink.text("[");
            separated(item, sink);
            sink.text("]");
        }
        Kind::Property => {
            for part in item.children() {
                sink.part(part);
                if part.kind() == Kind::Key {
                    sink.text(colon(item));
                    sink.text(" ");
                }
            }
        }
        // With a comment inside, these are written verbatim.
        Kind::Range if !has_comment(item) => item.text().split_whitespace().for_each(|token| sink.text(token)),
        Kind::Tagged if !has_comment(item) && !item.text().starts_with("```") => {
            let tag = item.child(Kind::Tag).map_or("", Syntax::text);
            sink.text(tag);
            sink.text(item.text().get(tag.len()..).unwrap_or_default().trim_start());
        }
        _ => sink.text(item.text()),
    }
}

fn subject<'t>(item: Syntax<'t>, sink: &mut impl Sink<'t>) {
    let has_name_or_label = write_name_and_labels(item, sink);
    if let Some(record) = item.child(Kind::Record) {
        if has_name_or_label {
            sink.text(" ");
        }
        sink.part(record);
    }
}

fn separated<'t>(list: Syntax<'t>, sink: &mut impl Sink<'t>) {
    let mut separator = "";
    for item in list.children() {
        sink.text(separator);
        sink.part(item);
        separator = ", ";
    }
}
