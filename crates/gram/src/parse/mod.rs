//! Text to tree.
//!
//! One pass, predictive, without backtracking: every byte is looked at a bounded number of times, so time is linear in
//! the input whatever it holds. Nesting uses the call stack, up to [`MAX_DEPTH`]; what is deeper is skipped with an
//! error. Each unexpected token either belongs to an enclosing construct, which then ends the inner one, or is consumed
//! into an error node, so the parser always advances.

mod annotation;
mod arrow;
mod lex;
mod lookahead;
mod number;
mod pattern;
mod record;
mod separator;
mod text;
mod value;

use crate::tree::{Flags, Kind, PLACEHOLDER, RawNode};
use crate::{Diagnostic, Span, Tree, code, span::offset};
use std::sync::Arc;

/// How deep brackets of any sort may nest.
///
/// The limit keeps every later reader of a tree safe, and its JSON form within the 128 levels that JSON readers accept.
pub const MAX_DEPTH: usize = 60;

/// Which gram to accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Patter's gram: arrays and maps may be empty and may hold one another.
    #[default]
    Patter,
    /// Plain gram 0.6.1, which other tools read: each use of Patter's extension is an error.
    Portable,
}

/// Parses a text: always a tree, and all that is wrong with it, in the order of the text.
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

/// Parses bytes that should be UTF-8. What is not is reported and kept: [`Tree::to_bytes`] returns the same bytes.
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
        let message = "the text is larger than 4 GiB, which is more than Patter reads";
        parser.report(Diagnostic::error(code::TOO_LARGE, Span::at(0), message));
        let file = parser.start(Kind::File);
        parser.finish(file, 0);
    }
    let Parser { mut nodes, mut comments, mut diagnostics, .. } = parser;
    if !invalid_bytes.is_empty() {
        report_invalid_bytes(&invalid_bytes, &mut diagnostics);
    }
    // Some mistakes are known only when what is around them has been read.
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    nodes.shrink_to_fit();
    comments.shrink_to_fit();
    (Tree::new(source, nodes, comments, invalid_bytes), diagnostics)
}

/// Adds one error for each run of bytes that are not UTF-8.
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

/// A bracket that is waiting for its counterpart.
#[derive(Clone, Copy)]
struct OpenBracket {
    at: usize,
    closer: u8,
}

struct Parser<'s> {
    source: &'s str,
    bytes: &'s [u8],
    /// Where reading goes on.
    pos: usize,
    /// End of the last token, trivia not counted.
    token_end: usize,
    nodes: Vec<RawNode>,
    comments: Vec<Span>,
    diagnostics: Vec<Diagnostic>,
    dialect: Dialect,
    has_invalid_bytes: bool,
    open_brackets: Vec<OpenBracket>,
    lookahead: lookahead::Lookahead,
    /// Room for the keys of a record, used again for each.
    keys: Vec<RawNode>,
    /// The end of the last quoted or fenced text, if its closing quote or fence is missing.
    unterminated_end: Option<usize>,
    /// The error node that junk right after it may join; none once what is around it has ended.
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

    // Nodes of the tree.

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

    /// Makes room for as many nodes as the rest of the text needs if it is as dense as what was read, so that memory
    /// follows the text instead of doubling past it.
    #[cold]
    fn grow(&mut self) {
        let have = self.nodes.len();
        let read = self.pos.max(1);
        let rest = self.bytes.len().saturating_sub(self.pos);
        let expected = (have as u128 * rest as u128 / read as u128) as usize;
        self.nodes.reserve_exact((expected + expected / 16).clamp(32 + have / 8, have.max(256)));
    }

    // Diagnostics.

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(offset(start), offset(end))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        // What is wrong because bytes are not UTF-8 is reported as that.
        if self.has_invalid_bytes && diagnostic.span.slice(self.source).bytes().any(|byte| byte == PLACEHOLDER) {
            return;
        }
        self.diagnostics.push(diagnostic);
    }

    /// Reports text that fits nowhere; neighbours of the same sort become one report.
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

    /// Puts an error node over text that was skipped; neighbours become one node.
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

    /// Tells whether brackets nest too deep to enter another one, which is then skipped whole.
    fn too_deep(&mut self) -> bool {
        if self.open_brackets.len() < MAX_DEPTH {
            return false;
        }
        let at = self.pos;
        let message = format!("brackets nest deeper than {MAX_DEPTH} levels");
        self.report(
            Diagnostic::error(code::TOO_DEEP, self.span(at, at + 1), message)
                .with_hint("name the inner pattern and refer to it"),
        );
        self.skip_group(SkipLimit::ClosingBracket);
        self.junk_node(at, self.pos);
        true
    }

    /// Consumes an opening bracket.
    #[inline]
    fn enter(&mut self, closer: u8) {
        self.open_brackets.push(OpenBracket { at: self.pos, closer });
        self.bump(1);
    }

    /// Leaves the innermost bracket: consumes its closer, or reports that it is missing.
    fn leave(&mut self, id: usize) {
        let Some(OpenBracket { at, closer }) = self.open_brackets.pop() else { return };
        if self.peek() == closer {
            self.bump(1);
            return self.finish(id, self.pos);
        }
        self.set_flag(id, Flags::UNCLOSED);
        self.finish(id, self.token_end);
        if self.unterminated_end == Some(self.token_end) {
            // The text that does not end has taken the bracket with it, and has been reported.
            return;
        }
        let opener = self.span(at, at + 1);
        let next = self.next_token_span();
        if let Some(last) = self.diagnostics.last_mut()
            && last.code == code::UNCLOSED
            && last.span == next
        {
            // Everything that is still open where the text ends is one mistake, not one for each level.
            if last.related.len() < 3 {
                last.related.push(crate::RelatedSpan { span: opener, message: "and this".into() });
            }
            return;
        }
        let message = format!("expected `{}`, found {}", char::from(closer), self.describe_next_token());
        let opened = format!("this `{}` is not closed", opener.slice(self.source));
        self.report(Diagnostic::error(code::UNCLOSED, next, message).with_related(opener, opened));
    }

    /// Tells whether a closing bracket belongs to something that is still open.
    fn closes_outer(&self, byte: u8) -> bool {
        self.open_brackets.iter().any(|open| open.closer == byte)
    }
}

/// How much [`Parser::skip_group`] may pass over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkipLimit {
    /// To the matching bracket, however far.
    ClosingBracket,
    /// To the matching bracket, or the end of the line.
    LineEnd,
}
