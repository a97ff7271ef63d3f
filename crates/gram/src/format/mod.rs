//! The canonical layout.
//!
//! A list (the file, a record, an array, the elements of a bracket pattern, the arrows of a path) is written on one
//! line if it fits and has no comments, otherwise with one item per line. A comment stays with the item after it, or
//! with the item before it on the same line. A comment inside an item moves before the item.

mod flat;
mod tokens;

use crate::{Diagnostic, Kind, Span, Syntax, Tree, parse};
use flat::FlatWriter;
use tokens::{bar, colon, comment_owners, has_brackets, inside_brackets, name_and_labels, owns_comments, strokes};

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
    let mut writer = Writer { tree, out: String::with_capacity(tree.source().len()), line_start: 0, line_break };
    let items: Vec<_> = tree.root().children().collect();
    let inside = tree.root().span();
    writer.items(&List { items, inside, separator: "" }, 0, Placement::SameLine);
    if !writer.out.is_empty() {
        writer.out.push_str(line_break);
    }
    writer.out
}

/// Returns the line break to write: the first one in the layout of the source.
pub(crate) fn line_break(tree: &Tree) -> &'static str {
    let fences =
        tree.root().descendants().filter(|part| matches!(part.kind(), Kind::Fence | Kind::Tagged | Kind::Range));
    let mut verbatim: Vec<_> = fences.map(Syntax::span).chain(tree.comment_spans().iter().copied()).collect();
    verbatim.sort();
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
struct List<'t> {
    items: Vec<Syntax<'t>>,
    /// The span between the brackets.
    inside: Span,
    /// The separator between two items.
    separator: &'static str,
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
    out: String,
    /// The offset in `out` at which the current line starts.
    line_start: usize,
    line_break: &'static str,
}

impl<'t> Writer<'t> {
    // Lists.

    /// Writes one item per line, each with its comments.
    fn items(&mut self, list: &List<'t>, indent: usize, first: Placement) {
        let mut previous_end = list.inside.start;
        let mut placement = first;
        let last = list.items.len().saturating_sub(1);
        for (index, item) in list.items.iter().enumerate() {
            let before = self.comments_in(Span::new(previous_end, item.span().start));
            for comment in before.iter().chain(&self.stray_comments(*item)) {
                self.new_line(&mut placement, indent, Span::new(previous_end, comment.start));
                self.comment(*comment);
                previous_end = comment.end.max(previous_end);
            }
            self.new_line(&mut placement, indent, Span::new(previous_end, item.span().start));
            let separator = if index == last { "" } else { list.separator };
            self.item(*item, indent, separator.len());
            self.out.push_str(separator);
            previous_end = item.span().end;
            let until = list.items.get(index + 1).map_or(list.inside.end, |next| next.span().start);
            for comment in self.trailing_comments(previous_end, until) {
                self.out.push(' ');
                self.comment(comment);
                previous_end = comment.end;
            }
        }
        for comment in self.comments_in(Span::new(previous_end, list.inside.end)).to_vec() {
            self.new_line(&mut placement, indent, Span::new(previous_end, comment.start));
            self.comment(comment);
            previous_end = comment.end;
        }
    }

    /// Starts a line, after an empty one if the source has one in this gap between two items.
    fn new_line(&mut self, placement: &mut Placement, indent: usize, gap: Span) {
        let is_first = self.out.is_empty() || self.out.ends_with(['{', '[', '|']);
        match *placement {
            Placement::SameLine => *placement = Placement::NewLine,
            Placement::NewLine => {
                let breaks = gap.slice(self.tree.source()).bytes().filter(|byte| *byte == b'\n').count();
                if breaks > 1 && !is_first {
                    self.out.push_str(self.line_break);
                }
                self.out.push_str(self.line_break);
                self.line_start = self.out.len();
                self.out.extend(std::iter::repeat_n(' ', indent));
            }
        }
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
        if owns_comments(item.kind()) || self.comments_in(item.span()).is_empty() {
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
                            self.out.push(' ');
                        }
                        _ => self.item(part, indent, suffix),
                    }
                }
            }
            Kind::Record | Kind::Map => self.braces(item, indent),
            Kind::Array => {
                let inside = inside_brackets(item.span());
                let list = List { items: item.children().collect(), inside, separator: "," };
                self.out.push('[');
                self.items(&list, indent + INDENT, Placement::NewLine);
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
                let list = List { items: item.children().collect(), inside: item.span(), separator: "" };
                self.annotated(&list, indent, suffix);
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
            _ => {
                let flat = self.flat_without_limit(item);
                self.verbatim(&flat);
            }
        }
    }

    fn close(&mut self, bracket: char, indent: usize) {
        let mut placement = Placement::NewLine;
        self.new_line(&mut placement, indent, Span::at(0));
        self.out.push(bracket);
    }

    fn braces(&mut self, record: Syntax<'t>, indent: usize) {
        let list = List { items: record.children().collect(), inside: inside_brackets(record.span()), separator: "," };
        self.out.push('{');
        self.items(&list, indent + INDENT, Placement::NewLine);
        self.close('}', indent);
    }

    /// Writes name, labels and record.
    fn subject(&mut self, item: Syntax<'t>, indent: usize, suffix: usize) {
        self.out.push_str(&name_and_labels(item));
        if let Some(record) = item.child(Kind::Record) {
            if item.children().next().is_some_and(|first| first.kind() != Kind::Record) {
                self.out.push(' ');
            }
            if !self.try_flat(record, suffix) {
                self.braces(record, indent);
            }
        }
    }

    fn bracket(&mut self, item: Syntax<'t>, indent: usize, suffix: usize) {
        let items: Vec<_> = item.children().filter(|child| child.kind().is_pattern()).collect();
        self.out.push('[');
        let Some(bar) = bar(item) else {
            self.subject(item, indent, suffix + 1);
            return self.out.push(']');
        };
        let before = self.out.len();
        self.subject(item, indent, 2);
        self.out.push_str(if self.out.len() > before { " |" } else { "|" });
        let inside = Span::new(bar.end, item.span().end - 1);
        self.items(&List { items, inside, separator: "," }, indent + INDENT, Placement::NewLine);
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
        while let (Some(arrow), Some(node)) = (parts.next(), parts.next()) {
            for comment in self.trailing_comments(previous_end, arrow.span().start) {
                self.out.push(' ');
                self.comment(comment);
                previous_end = comment.end;
            }
            let between = self.comments_in(Span::new(previous_end, arrow.span().start));
            let gap = self.comments_in(Span::new(arrow.span().end, node.span().start));
            let stray_comments =
                self.stray_comments(arrow).into_iter().chain(gap.iter().copied()).chain(self.stray_comments(node));
            let comments: Vec<_> = between.iter().copied().chain(stray_comments).collect();
            for comment in comments {
                self.new_line(&mut placement, indent + INDENT, Span::at(0));
                self.comment(comment);
            }
            self.new_line(&mut placement, indent + INDENT, Span::at(0));
            self.arrow(arrow, indent + INDENT);
            self.item(node, indent + INDENT, suffix);
            previous_end = node.span().end;
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
    fn annotated(&mut self, list: &List<'t>, indent: usize, suffix: usize) {
        let mut placement = Placement::SameLine;
        let mut previous_end = list.inside.start;
        for (index, item) in list.items.iter().enumerate() {
            let stray_comments = if index == 0 { Vec::new() } else { self.stray_comments(*item) };
            let before = self.comments_in(Span::new(previous_end, item.span().start)).to_vec();
            for comment in before.into_iter().chain(stray_comments) {
                self.new_line(&mut placement, indent, Span::at(0));
                self.comment(comment);
            }
            self.new_line(&mut placement, indent, Span::at(0));
            self.item(*item, indent, suffix);
            previous_end = item.span().end;
            if let Some(next) = list.items.get(index + 1) {
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
        let comments = self.comments_in(item.span()).len();
        let has_own_lines = comments > 0 && comments > self.stray_comments(item).len();
        if has_own_lines || item.kind() == Kind::Annotated {
            return false;
        }
        let column = self.out.get(self.line_start..).map_or(0, |line| line.chars().count());
        let Some(room) = LINE_WIDTH.checked_sub(column + suffix) else { return false };
        let before = self.out.len();
        let mut flat = FlatWriter { out: &mut self.out, limit: before + room * 4 };
        let fits =
            flat.write(item).is_some() && self.out.get(before..).is_some_and(|text| text.chars().count() <= room);
        if !fits {
            self.out.truncate(before);
        }
        fits
    }

    /// Returns an item on one line of any length, or as written if it contains line breaks.
    fn flat_without_limit(&self, item: Syntax<'t>) -> String {
        let mut out = String::new();
        let mut flat = FlatWriter { out: &mut out, limit: usize::MAX };
        match flat.write(item) {
            Some(()) => out,
            None => item.text().to_owned(),
        }
    }
}
