//! The canonical layout.
//!
//! A list (the file, a record, an array, the elements of a bracket pattern, the arrows of a path) is written on one
//! line if it fits and has no comments, otherwise with one item per line. A comment stays with the item after it, or
//! with the item before it on the same line. A comment inside an item moves before the item.

mod flat;
mod tokens;

use crate::{Diagnostic, Kind, Span, Syntax, Tree, parse};
use flat::Measurements;
use tokens::{bar, colon, comment_owners, has_brackets, inside_brackets, owns_comments, strokes};

/// The maximum line width, in characters.
pub const LINE_WIDTH: usize = 100;

const INDENT: usize = 2;

/// Formats a text. If the text has errors, they are returned instead.
///
/// Meaning and comments are preserved, fenced text is unchanged, and formatting is idempotent.
///
/// ```
/// let text = "[ a : Agent{model:'demo'}|b,c ]// the first";
/// assert_eq!(patter_gram::format(text).unwrap(), "[a:Agent { model: 'demo' } | b, c] // the first\n");
/// assert!(patter_gram::format("[a").is_err());
/// ```
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    let (tree, mut diagnostics) = parse(source);
    diagnostics.retain(Diagnostic::is_error);
    if diagnostics.is_empty() { Ok(format_tree(&tree)) } else { Err(diagnostics) }
}

/// Formats a tree that has no errors.
fn format_tree(tree: &Tree) -> String {
    let line_break = line_break(tree);
    let mut writer = Writer {
        tree,
        measurements: Measurements::of(tree),
        out: String::with_capacity(tree.source().len()),
        line_start: 0,
        line_break,
    };
    let has_comments = !tree.comment_spans().is_empty();
    let list = List { items: tree.root().children(), inside: tree.root().span(), separator: "", has_comments };
    writer.items(list, 0, Placement::SameLine);
    if !writer.out.is_empty() {
        writer.out.push_str(line_break);
    }
    writer.out
}

/// Returns the line break to write: the first one in the layout of the source.
pub(crate) fn line_break(tree: &Tree) -> &'static str {
    let mut comments = tree.comment_spans().iter().copied().peekable();
    let is_verbatim = |part: &Syntax<'_>| matches!(part.kind(), Kind::Fence | Kind::Tagged | Kind::Range);
    let mut fences = tree.root().descendants().filter(is_verbatim).map(Syntax::span).peekable();
    // Both are in order, and usually the first line break comes before any of them.
    let verbatim = std::iter::from_fn(|| match (comments.peek(), fences.peek()) {
        (Some(comment), Some(fence)) if comment < fence => comments.next(),
        (_, Some(_)) => fences.next(),
        (_, None) => comments.next(),
    });
    let mut at = 0;
    for span in verbatim {
        let layout = Span::new(at, span.start).slice(tree.source());
        if layout.contains('\n') {
            break;
        }
        at = span.end.max(at);
    }
    match tree.source().get(at as usize..).and_then(|rest| rest.split_once('\n')) {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Items and the span that contains them and their comments.
struct List<I> {
    items: I,
    /// The span between the brackets.
    inside: Span,
    /// The separator between two items.
    separator: &'static str,
    /// Whether there are any comments inside, between the items or in them.
    has_comments: bool,
}

/// Where to write the first item of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// On the current line.
    SameLine,
    /// On a new line.
    NewLine,
}

struct Writer<'t> {
    tree: &'t Tree,
    measurements: Measurements,
    out: String,
    /// The offset in `out` at which the current line starts.
    line_start: usize,
    line_break: &'static str,
}

impl<'t> Writer<'t> {
    // Lists.

    /// Writes one item per line, each with its comments.
    fn items(&mut self, list: List<impl Iterator<Item = Syntax<'t>>>, indent: usize, first: Placement) {
        let mut previous_end = list.inside.start;
        let mut placement = first;
        let mut items = list.items.peekable();
        while let Some(item) = items.next() {
            if list.has_comments {
                let before = self.comments_in(Span::new(previous_end, item.span().start));
                for comment in before.iter().chain(&self.stray_comments(item)) {
                    self.new_line(&mut placement, indent, Span::new(previous_end, comment.start));
                    self.comment(*comment);
                    previous_end = comment.end.max(previous_end);
                }
            }
            self.new_line(&mut placement, indent, Span::new(previous_end, item.span().start));
            let next = items.peek();
            let separator = if next.is_none() { "" } else { list.separator };
            self.item(item, indent, separator.len());
            self.out.push_str(separator);
            previous_end = item.span().end;
            if list.has_comments {
                let until = next.map_or(list.inside.end, |next| next.span().start);
                for comment in self.trailing_comments(previous_end, until) {
                    self.out.push(' ');
                    self.comment(comment);
                    previous_end = comment.end;
                }
            }
        }
        if list.has_comments {
            for comment in self.comments_in(Span::new(previous_end, list.inside.end)) {
                self.new_line(&mut placement, indent, Span::new(previous_end, comment.start));
                self.comment(*comment);
                previous_end = comment.end;
            }
        }
    }

    /// Starts a line, after an empty one if the source has one in this gap between two items.
    fn new_line(&mut self, placement: &mut Placement, indent: usize, gap: Span) {
        let is_first = matches!(self.out.as_bytes().last(), None | Some(b'{' | b'[' | b'|'));
        match *placement {
            Placement::SameLine => *placement = Placement::NewLine,
            Placement::NewLine => {
                let gap = self.tree.source().as_bytes().get(gap.range()).unwrap_or_default();
                if !is_first && gap.iter().filter(|byte| **byte == b'\n').nth(1).is_some() {
                    self.out.push_str(self.line_break);
                }
                self.out.push_str(self.line_break);
                self.line_start = self.out.len();
                self.indent(indent);
            }
        }
    }

    fn indent(&mut self, mut indent: usize) {
        const SPACES: &str = "                                ";
        while let Some(rest) = indent.checked_sub(SPACES.len()) {
            self.out.push_str(SPACES);
            indent = rest;
        }
        self.out.push_str(SPACES.get(..indent).unwrap_or_default());
    }

    fn comment(&mut self, comment: Span) {
        self.verbatim(comment.slice(self.tree.source()).trim_end());
    }

    /// Writes text that may contain line breaks.
    fn verbatim(&mut self, text: &str) {
        if let Some(last_break) = text.rfind('\n') {
            self.line_start = self.out.len() + last_break + 1;
        }
        self.out.push_str(text);
    }

    // Comments.

    fn comments_in(&self, span: Span) -> &'t [Span] {
        let comments = self.tree.comment_spans();
        let gap = self.tree.source().as_bytes().get(span.range()).unwrap_or_default();
        // Most gaps are a few bytes without a comment.
        if comments.is_empty() || !gap.contains(&b'/') {
            return &[];
        }
        let first = comments.partition_point(|comment| comment.start < span.start);
        let count = comments.get(first..).unwrap_or_default().partition_point(|comment| comment.end <= span.end);
        comments.get(first..first + count).unwrap_or_default()
    }

    /// Returns the comments on the line where an item ends, except a `/** … */` right before the next item.
    fn trailing_comments(&self, from: u32, until: u32) -> Vec<Span> {
        let source = self.tree.source();
        let mut end = from;
        let mut trailing = Vec::new();
        for comment in self.comments_in(Span::new(from, until)) {
            if Span::new(end, comment.start).slice(source).contains('\n') {
                break;
            }
            let after = source.get(comment.end as usize..).unwrap_or_default();
            let after = after.trim_start_matches([' ', '\t', ',']);
            let ends_line = after.is_empty() || after.starts_with(['\n', '\r', ']', '}', ')', '/']);
            if !ends_line {
                break;
            }
            end = comment.end;
            trailing.push(*comment);
        }
        trailing
    }

    /// Returns the comments inside an item that no list inside it writes.
    fn stray_comments(&self, item: Syntax<'t>) -> Vec<Span> {
        if owns_comments(item.kind()) || !self.measurements.has_comment(item) {
            return Vec::new();
        }
        let item = match item.kind() {
            // These write the comments between their parts; only those in the first part are left.
            Kind::Path | Kind::Annotated => match item.children().next() {
                Some(first) => first,
                None => return Vec::new(),
            },
            _ => item,
        };
        let inside = self.comments_in(item.span());
        let lists = comment_owners(item);
        inside.iter().filter(|comment| !lists.iter().any(|list| list.contains(**comment))).copied().collect()
    }

    // Items.

    /// Writes an item on one line if it fits with `suffix` more characters, otherwise on several.
    fn item(&mut self, item: Syntax<'t>, indent: usize, suffix: usize) {
        if self.try_flat(item, suffix) {
            return;
        }
        match item.kind() {
            Kind::Property => {
                for part in item.children() {
                    match part.kind() {
                        Kind::Key => {
                            self.out.push_str(part.text());
                            self.out.push_str(colon(item));
                        }
                        _ => self.item(part, indent, suffix),
                    }
                }
            }
            Kind::Record | Kind::Map => self.braces(item, indent),
            Kind::Array => {
                let inside = inside_brackets(item.span());
                let has_comments = self.measurements.has_comment(item);
                let list = List { items: item.children(), inside, separator: ",", has_comments };
                self.out.push('[');
                self.items(list, indent + INDENT, Placement::NewLine);
                self.close(']', indent);
            }
            Kind::Node => {
                self.out.push('(');
                self.subject(item, indent, suffix + 1);
                self.out.push(')');
            }
            Kind::Path => self.path(item, indent, suffix),
            Kind::Bracket => self.bracket(item, indent, suffix),
            Kind::Annotated => {
                self.annotated(item, indent, suffix);
            }
            Kind::Annotation => {
                self.out.push('@');
                for part in item.children() {
                    match part.kind() {
                        Kind::Key => {
                            self.out.push_str(part.text());
                            self.out.push('(');
                        }
                        _ => self.item(part, indent, 1),
                    }
                }
                self.out.push(')');
            }
            Kind::Fence => self.verbatim(item.text()),
            _ => {
                let start = self.out.len();
                self.measurements.write(item, &mut self.out);
                if self.out.get(start..).is_some_and(|flat| flat.contains('\n')) {
                    self.out.truncate(start);
                    self.verbatim(item.text());
                }
            }
        }
    }

    fn close(&mut self, bracket: char, indent: usize) {
        let mut placement = Placement::NewLine;
        self.new_line(&mut placement, indent, Span::at(0));
        self.out.push(bracket);
    }

    fn braces(&mut self, record: Syntax<'t>, indent: usize) {
        let inside = inside_brackets(record.span());
        let has_comments = self.measurements.has_comment(record);
        let list = List { items: record.children(), inside, separator: ",", has_comments };
        self.out.push('{');
        self.items(list, indent + INDENT, Placement::NewLine);
        self.close('}', indent);
    }

    /// Writes name, labels and record.
    fn subject(&mut self, item: Syntax<'t>, indent: usize, suffix: usize) {
        let mut is_first = true;
        for part in item.children() {
            match part.kind() {
                Kind::Identifier | Kind::Label => self.measurements.write(part, &mut self.out),
                Kind::Record => {
                    if !is_first {
                        self.out.push(' ');
                    }
                    if !self.try_flat(part, suffix) {
                        self.braces(part, indent);
                    }
                }
                _ => break,
            }
            is_first = false;
        }
    }

    fn bracket(&mut self, item: Syntax<'t>, indent: usize, suffix: usize) {
        self.out.push('[');
        let Some(bar) = bar(item) else {
            self.subject(item, indent, suffix + 1);
            return self.out.push(']');
        };
        let before = self.out.len();
        self.subject(item, indent, 2);
        self.out.push_str(if self.out.len() > before { " |" } else { "|" });
        let inside = Span::new(bar.end, item.span().end - 1);
        let items = item.children().filter(|child| child.kind().is_pattern());
        let has_comments = self.measurements.has_comment(item);
        self.items(List { items, inside, separator: ",", has_comments }, indent + INDENT, Placement::NewLine);
        self.close(']', indent);
    }

    /// Writes a path with one arrow per line.
    fn path(&mut self, path: Syntax<'t>, indent: usize, suffix: usize) {
        let mut parts = path.children();
        let Some(first) = parts.next() else { return };
        let mut placement = Placement::SameLine;
        self.new_line(&mut placement, indent, Span::at(0));
        self.item(first, indent, 0);
        let mut previous_end = first.span().end;
        let has_comments = self.measurements.has_comment(path);
        while let (Some(arrow), Some(node)) = (parts.next(), parts.next()) {
            if has_comments {
                self.comments_before_arrow(arrow, node, previous_end, &mut placement, indent + INDENT);
            }
            self.new_line(&mut placement, indent + INDENT, Span::at(0));
            self.arrow(arrow, indent + INDENT);
            self.item(node, indent + INDENT, suffix);
            previous_end = node.span().end;
        }
    }

    /// Writes the comments before an arrow, and those inside it and the next node that no list writes.
    fn comments_before_arrow(
        &mut self,
        arrow: Syntax<'t>,
        node: Syntax<'t>,
        mut previous_end: u32,
        placement: &mut Placement,
        indent: usize,
    ) {
        for comment in self.trailing_comments(previous_end, arrow.span().start) {
            self.out.push(' ');
            self.comment(comment);
            previous_end = comment.end;
        }
        let between = self.comments_in(Span::new(previous_end, arrow.span().start));
        let gap = self.comments_in(Span::new(arrow.span().end, node.span().start));
        let stray_comments =
            self.stray_comments(arrow).into_iter().chain(gap.iter().copied()).chain(self.stray_comments(node));
        for comment in between.iter().copied().chain(stray_comments) {
            self.new_line(placement, indent, Span::at(0));
            self.comment(comment);
        }
    }

    fn arrow(&mut self, arrow: Syntax<'t>, indent: usize) {
        let (left, right) = strokes(arrow);
        self.out.push_str(left);
        if has_brackets(arrow) {
            self.out.push('[');
            self.subject(arrow, indent, 1 + right.len());
            self.out.push(']');
        }
        self.out.push_str(right);
    }

    /// Writes annotations and their pattern, one per line. The caller has written the stray comments of the first.
    fn annotated(&mut self, annotated: Syntax<'t>, indent: usize, suffix: usize) {
        let mut placement = Placement::SameLine;
        let mut previous_end = annotated.span().start;
        let mut items = annotated.children().peekable();
        while let Some(item) = items.next() {
            let is_first = placement == Placement::SameLine;
            let stray_comments = if is_first { Vec::new() } else { self.stray_comments(item) };
            let before = self.comments_in(Span::new(previous_end, item.span().start)).to_vec();
            for comment in before.into_iter().chain(stray_comments) {
                self.new_line(&mut placement, indent, Span::at(0));
                self.comment(comment);
            }
            self.new_line(&mut placement, indent, Span::at(0));
            self.item(item, indent, suffix);
            previous_end = item.span().end;
            if let Some(next) = items.peek() {
                for comment in self.trailing_comments(previous_end, next.span().start) {
                    self.out.push(' ');
                    self.comment(comment);
                    previous_end = comment.end;
                }
            }
        }
    }

    // One line.

    /// Writes an item on the current line if it fits with `suffix` more characters; otherwise writes nothing.
    fn try_flat(&mut self, item: Syntax<'t>, suffix: usize) -> bool {
        let Some(width) = self.measurements.width(item) else { return false };
        let room = LINE_WIDTH.checked_sub(width + suffix);
        if !room.is_some_and(|room| self.is_within(room)) || item.kind() == Kind::Annotated || self.has_own_lines(item)
        {
            return false;
        }
        self.measurements.write(item, &mut self.out);
        true
    }

    /// Returns whether the current line has at most so many characters.
    fn is_within(&self, characters: usize) -> bool {
        let bytes = self.out.len() - self.line_start;
        bytes <= characters || self.out.get(self.line_start..).is_some_and(|line| line.chars().count() <= characters)
    }

    /// Returns whether comments inside an item are written by a list inside it, on lines of their own.
    fn has_own_lines(&self, item: Syntax<'t>) -> bool {
        self.measurements.has_comment(item) && self.comments_in(item.span()).len() > self.stray_comments(item).len()
    }
}
