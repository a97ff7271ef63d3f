//! The parser: text to tree.
//!
//! A single predictive pass without backtracking: every byte is read a bounded number of times, so parsing is linear in
//! the size of any input. Nesting uses the call stack up to [`MAX_DEPTH`]; deeper brackets are skipped with an error.
//! Each unexpected token either belongs to an enclosing construct, which then ends the inner one, or is consumed into
//! an error node, so the parser always advances.

mod lex;
mod lookahead;

mod pattern;

mod annotation;
mod arrow;

mod record;
mod value;

mod number;
mod text;

mod separator;

use crate::tree::{Flags, Kind, PLACEHOLDER, RawNode};
use crate::{Diagnostic, Span, Tree, code, span::offset};
use std::sync::Arc;

/// The maximum nesting depth of brackets of any kind.
///
/// The limit makes recursion over a tree safe, and keeps its JSON form within the 128 levels that JSON parsers accept.
pub const MAX_DEPTH: usize = 60;

/// The dialect of gram to accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Patter's gram: arrays and maps can be empty and can contain each other.
    #[default]
    Patter,
    /// Plain gram 0.6.1, as other tools accept it: each use of Patter's extensions is an error.
    Portable,
}

/// Parses a text. Returns a tree for any text, and all diagnostics in the order of the text.
///
/// ```
/// let (tree, diagnostics) = patter_gram::parse("(a:Person {name: 'Ada'})");
/// assert!(diagnostics.is_empty());
/// let person = tree.patterns().next().unwrap();
/// assert!(person.has_label("Person"));
///
/// let (tree, diagnostics) = patter_gram::parse("(a:Person");
/// assert_eq!(diagnostics[0].message, "expected `)`, found the end of the file");
/// assert_eq!(tree.to_string(), "(a:Person");
/// ```
pub fn parse(source: &str) -> (Tree, Vec<Diagnostic>) {
    parse_dialect(source, Dialect::Patter)
}

/// Parses a text in a dialect; see [`parse`].
pub fn parse_dialect(source: &str, dialect: Dialect) -> (Tree, Vec<Diagnostic>) {
    parse_shared(Arc::from(source), dialect, Vec::new())
}

/// Parses bytes that should be UTF-8. Invalid bytes are reported but kept: [`Tree::to_bytes`] returns the same bytes.
///
/// ```
/// let (tree, diagnostics) = patter_gram::parse_bytes(b"(a) // caf\xe9", Default::default());
/// assert_eq!(diagnostics[0].message, "this is not UTF-8 text");
/// assert_eq!(tree.to_bytes(), b"(a) // caf\xe9");
/// ```
pub fn parse_bytes(bytes: &[u8], dialect: Dialect) -> (Tree, Vec<Diagnostic>) {
    if let Ok(source) = str::from_utf8(bytes) {
        return parse_dialect(source, dialect);
    }
    let mut source = String::with_capacity(bytes.len());
    let mut invalid_bytes = Vec::new();
    for chunk in bytes.utf8_chunks() {
        source.push_str(chunk.valid());
        for byte in chunk.invalid() {
            invalid_bytes.push((offset(source.len()), *byte));
            source.push(char::from(PLACEHOLDER));
        }
    }
    parse_shared(Arc::from(source), dialect, invalid_bytes)
}

pub(crate) fn parse_shared(
    source: Arc<str>,
    dialect: Dialect,
    invalid_bytes: Vec<(u32, u8)>,
) -> (Tree, Vec<Diagnostic>) {
    let mut parser = Parser::new(&source, dialect, !invalid_bytes.is_empty());
    if u32::try_from(source.len()).is_ok() {
        parser.file();
    } else {
        let message = "the text is larger than 4 GiB, the maximum size";
        parser.report(Diagnostic::error(code::TOO_LARGE, Span::at(0), message));
        let file = parser.start(Kind::File);
        parser.finish(file, 0);
    }
    let Parser { mut nodes, mut comments, mut diagnostics, .. } = parser;
    if !invalid_bytes.is_empty() {
        report_invalid_bytes(&invalid_bytes, &mut diagnostics);
    }
    // Some errors are found only after the text around them has been parsed.
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    nodes.shrink_to_fit();
    comments.shrink_to_fit();
    (Tree::new(source, nodes, comments, invalid_bytes), diagnostics)
}

/// Adds an error for each run of bytes that are not UTF-8.
fn report_invalid_bytes(invalid_bytes: &[(u32, u8)], diagnostics: &mut Vec<Diagnostic>) {
    for run in invalid_bytes.chunk_by(|a, b| a.0 + 1 == b.0) {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            let span = Span::new(first.0, last.0 + 1);
            diagnostics.push(
                Diagnostic::error(code::NOT_UTF8, span, "this is not UTF-8 text").with_hint("save the file as UTF-8"),
            );
        }
    }
}

/// A bracket that is not closed yet.
#[derive(Clone, Copy)]
struct OpenBracket {
    at: usize,
    closer: u8,
}

struct Parser<'s> {
    source: &'s str,
    bytes: &'s [u8],
    /// The offset of the next byte.
    pos: usize,
    /// The end of the last token, excluding trivia.
    token_end: usize,
    nodes: Vec<RawNode>,
    comments: Vec<Span>,
    diagnostics: Vec<Diagnostic>,
    dialect: Dialect,
    has_invalid_bytes: bool,
    open_brackets: Vec<OpenBracket>,
    lookahead: lookahead::Lookahead,
    /// A buffer for the keys of a record, reused for each record.
    keys: Vec<RawNode>,
    /// The end of the last quoted or fenced text, if its closing quote or fence is missing.
    unterminated_end: Option<usize>,
    /// The error node that adjacent junk is merged into; `None` once an enclosing node has ended.
    last_junk: Option<usize>,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, dialect: Dialect, has_invalid_bytes: bool) -> Self {
        Self {
            source,
            bytes: source.as_bytes(),
            pos: 0,
            token_end: 0,
            nodes: Vec::new(),
            comments: Vec::new(),
            diagnostics: Vec::new(),
            dialect,
            has_invalid_bytes,
            open_brackets: Vec::new(),
            lookahead: lookahead::Lookahead::default(),
            keys: Vec::new(),
            unterminated_end: None,
            last_junk: None,
        }
    }

    fn file(&mut self) {
        let file = self.start(Kind::File);
        if self.source.starts_with('\u{feff}') {
            self.pos = '\u{feff}'.len_utf8();
        }
        self.trivia();
        self.front_matter();
        if self.peek() == b'{' {
            self.record(Kind::Record);
        }
        loop {
            self.trivia();
            match self.peek() {
                b'(' => self.path(),
                b'[' => self.bracket(),
                b'@' => self.annotated(),
                b'{' => self.misplaced_record(),
                0 if self.at_end() => break,
                _ => self.stray_top_level(),
            }
        }
        self.finish(file, self.bytes.len());
    }

    /// Skips properties between lines of `---`, as Markdown files start with, and reports them once.
    fn front_matter(&mut self) {
        let start = self.pos;
        let rest = self.source.get(start..).unwrap_or_default();
        let mut lines = rest.split_inclusive('\n');
        if lines.next().is_none_or(|line| line.trim_end() != FRONT_MATTER) {
            return;
        }
        let Some(inner) = lines.position(|line| line.trim_end() == FRONT_MATTER) else { return };
        let length: usize = rest.split_inclusive('\n').take(inner + 2).map(str::len).sum();
        let end = start + rest.get(..length).unwrap_or_default().trim_end().len();
        let first = self.span(start, start + FRONT_MATTER.len());
        self.report(
            Diagnostic::error(code::UNEXPECTED, first, "gram has no front matter")
                .with_hint("write properties in the record of a pattern: `[name:Label {key: \"value\"}]`"),
        );
        self.bump_to(end);
        self.junk_node(start, end);
        self.trivia();
    }

    // Nodes.

    #[inline]
    fn start(&mut self, kind: Kind) -> usize {
        self.start_at(kind, self.pos)
    }

    #[inline]
    fn start_at(&mut self, kind: Kind, start: usize) -> usize {
        let id = self.nodes.len();
        self.push(RawNode { kind, flags: Flags::default(), start: offset(start), end: 0, next: 0 });
        id
    }

    #[inline]
    fn finish(&mut self, id: usize, end: usize) {
        let next = offset(self.nodes.len());
        self.last_junk = None;
        if let Some(raw) = self.nodes.get_mut(id) {
            raw.end = offset(end);
            raw.next = next;
        }
    }

    fn set_flag(&mut self, id: usize, flag: Flags) {
        if let Some(raw) = self.nodes.get_mut(id) {
            raw.flags = raw.flags.with(flag);
        }
    }

    #[inline]
    fn leaf(&mut self, kind: Kind, start: usize, end: usize, flags: Flags) {
        let next = offset(self.nodes.len() + 1);
        self.push(RawNode { kind, flags, start: offset(start), end: offset(end), next });
    }

    #[inline]
    fn push(&mut self, raw: RawNode) {
        if self.nodes.len() == self.nodes.capacity() {
            self.grow();
        }
        self.nodes.push(raw);
    }

    /// Reserves space for the nodes in the rest of the text, assuming it is as dense as the text so far. Doubling would
    /// allocate more than needed.
    #[cold]
    fn grow(&mut self) {
        let have = self.nodes.len();
        let read = self.pos.max(1);
        let rest = self.bytes.len().saturating_sub(self.pos);
        let expected = (have as u128 * rest as u128 / read as u128) as usize;
        self.nodes.reserve_exact((expected + expected / 16).clamp(32 + have / 8, have.max(256)));
    }

    // Diagnostics.

    #[inline]
    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(offset(start), offset(end))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        // Errors caused by bytes that are not UTF-8 are reported once, as invalid UTF-8.
        if self.has_invalid_bytes && diagnostic.span.slice(self.source).bytes().any(|byte| byte == PLACEHOLDER) {
            return;
        }
        self.diagnostics.push(diagnostic);
    }

    /// Reports unexpected text; adjacent reports of the same kind are merged.
    fn report_junk(&mut self, diagnostic: Diagnostic) {
        if let Some(last) = self.diagnostics.last_mut()
            && last.code == diagnostic.code
            && last.span.end == diagnostic.span.start
        {
            last.span.end = diagnostic.span.end;
            last.message = "unexpected text".into();
            last.hint = None;
            return;
        }
        self.report(diagnostic);
    }

    /// Adds an error node for skipped text; adjacent error nodes are merged.
    fn junk_node(&mut self, start: usize, end: usize) {
        if let Some(id) = self.last_junk
            && id + 1 == self.nodes.len()
            && let Some(last) = self.nodes.get_mut(id)
            && last.end == offset(start)
        {
            last.end = offset(end);
            return;
        }
        self.last_junk = Some(self.nodes.len());
        self.leaf(Kind::Error, start, end, Flags::default());
    }

    // Brackets.

    /// Returns whether the next bracket is nested too deeply. If so, reports it and skips the whole group.
    #[inline]
    fn skip_if_too_deep(&mut self) -> bool {
        let is_too_deep = self.open_brackets.len() >= MAX_DEPTH;
        if is_too_deep {
            self.skip_too_deep();
        }
        is_too_deep
    }

    #[cold]
    fn skip_too_deep(&mut self) {
        let at = self.pos;
        let message = format!("brackets nest deeper than {MAX_DEPTH} levels");
        self.report(
            Diagnostic::error(code::TOO_DEEP, self.span(at, at + 1), message)
                .with_hint("name the inner pattern and refer to it"),
        );
        self.skip_group(SkipLimit::ClosingBracket);
        self.junk_node(at, self.pos);
    }

    /// Consumes an opening bracket.
    #[inline]
    fn enter(&mut self, closer: u8) {
        self.open_brackets.push(OpenBracket { at: self.pos, closer });
        self.bump(1);
    }

    /// Leaves the innermost bracket: consumes its closer, or reports that it is missing.
    #[inline]
    fn leave(&mut self, id: usize) {
        let Some(open) = self.open_brackets.pop() else { return };
        if self.peek() == open.closer {
            self.bump(1);
            return self.finish(id, self.pos);
        }
        self.leave_unclosed(id, open);
    }

    #[cold]
    fn leave_unclosed(&mut self, id: usize, OpenBracket { at, closer }: OpenBracket) {
        self.set_flag(id, Flags::UNCLOSED);
        self.finish(id, self.token_end);
        if self.unterminated_end == Some(self.token_end) {
            // The unterminated text, already reported, has swallowed the bracket.
            return;
        }
        let opener = self.span(at, at + 1);
        let next = self.next_token_span();
        if let Some(last) = self.diagnostics.last_mut()
            && last.code == code::UNCLOSED
            && last.span == next
        {
            // Brackets left open at the same position are one error, not one per level.
            if last.related.len() < 3 {
                last.related.push(crate::RelatedSpan { span: opener, message: "also not closed".into() });
            }
            let hint = last.hint.take().unwrap_or_default();
            last.hint = Some(close_hint(hint.trim_start_matches(CLOSE).trim_matches('`'), closer).into());
            return;
        }
        let message = format!("expected `{}`, found {}", char::from(closer), self.describe_next_token());
        let opened = format!("this `{}` is not closed", opener.slice(self.source));
        let error = Diagnostic::error(code::UNCLOSED, next, message).with_related(opener, opened);
        self.report(error.with_hint(close_hint("", closer)));
    }

    /// Returns whether a closing bracket matches any open bracket.
    fn closes_outer(&self, byte: u8) -> bool {
        self.open_brackets.iter().any(|open| open.closer == byte)
    }
}

/// The line before and after front matter.
const FRONT_MATTER: &str = "---";

const CLOSE: &str = "close it with ";

/// Returns the hint to close brackets: those already in the hint, and one around them.
fn close_hint(inner: &str, closer: u8) -> String {
    format!("{CLOSE}`{inner}{}`", char::from(closer))
}

/// Where [`Parser::skip_group`] stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkipLimit {
    /// At the matching bracket.
    ClosingBracket,
    /// At the matching bracket or the end of the line, whichever comes first.
    LineEnd,
}
