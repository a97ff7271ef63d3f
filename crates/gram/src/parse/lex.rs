//! Characters, trivia and unexpected text.

use super::{Parser, SkipLimit};
use crate::span::offset;
use crate::tree::{Flags, PLACEHOLDER};
use crate::{Diagnostic, Kind, Span, code};
use std::borrow::Cow;

// Character classes, looked up in a table instead of by many comparisons.

const SPACE: u8 = 1;
const NAME_START: u8 = 2;
const NAME: u8 = 4;
const DIGIT: u8 = 8;
/// Ends a run of unexpected text: white space, brackets, quotes and separators.
const STOP: u8 = 16;

const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let mut class = 0;
        if matches!(b, b'\t'..=b'\r' | b' ') {
            class |= SPACE | STOP;
        }
        if b.is_ascii_alphabetic() || b == b'_' {
            class |= NAME_START | NAME;
        }
        if b.is_ascii_digit() {
            class |= NAME | DIGIT;
        }
        if matches!(b, b'.' | b'-' | b'@') {
            class |= NAME;
        }
        if matches!(b, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'"' | b'\'' | b'`' | b',' | b':' | b'|') {
            class |= STOP;
        }
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[byte] = class;
        }
        byte += 1;
    }
    table
};

#[inline]
fn has_class(byte: u8, class: u8) -> bool {
    CLASS.get(byte as usize).is_some_and(|classes| classes & class != 0)
}

#[inline]
pub(super) fn is_name_start(byte: u8) -> bool {
    has_class(byte, NAME_START)
}

#[inline]
pub(super) fn is_digit(byte: u8) -> bool {
    has_class(byte, DIGIT)
}

impl<'s> Parser<'s> {
    /// Returns the next byte, or 0 at the end; [`Parser::at_end`] tells the end from a NUL byte.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.byte(self.pos)
    }

    #[inline]
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    /// Returns the bytes from `at` on.
    #[inline]
    pub(super) fn rest(&self, at: usize) -> &'s [u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    /// Consumes bytes of a token.
    #[inline]
    pub(super) fn bump(&mut self, count: usize) {
        self.pos += count;
        self.token_end = self.pos;
    }

    /// Consumes a token up to `end`.
    #[inline]
    pub(super) fn bump_to(&mut self, end: usize) {
        self.pos = end;
        self.token_end = end;
    }

    /// Consumes white space and comments.
    #[inline]
    pub(super) fn trivia(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t'..=b'\r' => self.pos += 1,
                b'/' if self.comment() => {}
                _ => return,
            }
        }
    }

    /// Consumes a comment, well-formed or not. Returns whether there was one.
    pub(super) fn comment(&mut self) -> bool {
        let start = self.pos;
        match self.byte(start + 1) {
            b'/' => {
                let end = self.line_end(start);
                // A carriage return is part of the line break, not of the comment.
                self.pos = end - usize::from(end > start && self.byte(end - 1) == b'\r');
                let span = self.span(start, self.pos);
                self.comments.push(span);
                true
            }
            b'*' => {
                self.block_comment(start);
                true
            }
            _ => false,
        }
    }

    fn block_comment(&mut self, start: usize) {
        let is_doc = self.byte(start + 2) == b'*';
        // The second star of `/**/` is part of the opening and cannot also close the comment.
        let from = start + if is_doc { 3 } else { 2 };
        let end = self.lookahead.comment_end(self.bytes, from);
        let error = match (is_doc, end) {
            (true, Some(end)) => {
                self.pos = end;
                let span = self.span(start, end);
                return self.comments.push(span);
            }
            (true, None) => {
                self.pos = self.bytes.len();
                Diagnostic::error(code::COMMENT, self.span(start, start + 3), "this comment is not closed")
                    .with_hint("end it with `*/`")
            }
            // A wildcard, as in `fs/*`, not a comment.
            (false, None) if start > 0 && self.byte(start - 1).is_ascii_alphanumeric() => {
                self.pos = start + 2;
                Diagnostic::error(code::COMMENT, self.span(start, self.pos), "names have no wildcards in gram")
                    .with_hint("write each name: a name with a slash is in backticks, as in `` `fs/readFile` ``")
            }
            (false, _) => {
                self.pos = end.unwrap_or_else(|| self.line_end(start));
                let message = "`/* … */` is not a comment in gram";
                Diagnostic::error(code::COMMENT, self.span(start, self.pos), message)
                    .with_hint("write `/** … */`, or `//` on each line")
            }
        };
        self.report(error);
    }

    pub(super) fn line_end(&self, from: usize) -> usize {
        memchr::memchr(b'\n', self.rest(from)).map_or(self.bytes.len(), |length| from + length)
    }

    /// Returns whether the token at `pos` starts a line.
    pub(super) fn starts_line(&self, pos: usize) -> bool {
        pos == 0 || self.byte(pos - 1) == b'\n'
    }

    /// Returns whether there is a line break between the last token and the next.
    pub(super) fn is_on_new_line(&self) -> bool {
        self.bytes.get(self.token_end..self.pos).is_some_and(|gap| gap.contains(&b'\n'))
    }

    /// Returns the end of the symbol that starts here.
    #[inline]
    pub(super) fn symbol_end(&self, start: usize) -> usize {
        let length = self.rest(start).iter().take_while(|byte| has_class(**byte, NAME)).count();
        start + length
    }

    /// Returns the end of a word in any language: letters of any script, digits, `_ . - @`.
    pub(super) fn word_end(&self, start: usize) -> usize {
        let is_word = |byte: &&u8| has_class(**byte, NAME) || self.is_non_ascii(**byte);
        start + self.rest(start).iter().take_while(is_word).count()
    }

    /// Returns whether a byte belongs to a character that can be part of a word, but not of a symbol.
    #[inline]
    pub(super) fn is_non_ascii(&self, byte: u8) -> bool {
        !byte.is_ascii() || self.has_invalid_bytes && byte == PLACEHOLDER
    }

    /// Returns the end of a run of text up to white space, a bracket, a quote or a separator: at least one character.
    fn run_end(&self, start: usize) -> usize {
        let first = self.rest(start).iter().take(1).count();
        let run = self.rest(start + first).iter().take_while(|byte| !has_class(**byte, STOP)).count();
        start + first + run
    }

    /// Returns the span of the next token, for reporting that it is unexpected.
    pub(super) fn next_token_span(&self) -> Span {
        let end = match self.peek() {
            b'"' | b'\'' | b'`' => self.pos + 1,
            _ if self.at_end() => self.pos,
            byte if has_class(byte, STOP) => self.pos + 1,
            byte if has_class(byte, NAME_START) || !byte.is_ascii() => self.word_end(self.pos),
            _ => self.run_end(self.pos),
        };
        self.span(self.pos, end)
    }

    /// Describes the next token, for messages.
    pub(super) fn describe_next_token(&self) -> String {
        match self.peek() {
            0 if self.at_end() => "the end of the file".into(),
            b'"' | b'\'' => "a string".into(),
            b'`' if self.rest(self.pos).starts_with(b"```") => "a fenced string".into(),
            b'`' => "a quoted name".into(),
            _ => quote_source(self.next_token_span().slice(self.source)),
        }
    }

    /// Consumes one unexpected token into an error node.
    pub(super) fn junk(&mut self) {
        let start = self.pos;
        let message = format!("unexpected {}", self.describe_next_token());
        let hint = match self.peek() {
            b'#' => Some("a comment starts with `//`"),
            b';' => Some("gram does not use semicolons"),
            b'/' if start > 0 => Some("put a name that contains `/` in backticks"),
            b'?' => Some("say that something is optional with a property: `{optional: true}`"),
            _ => None,
        };
        let end = match self.peek() {
            quote @ (b'"' | b'\'') => self.string_extent(quote),
            b'`' => self.string_extent(b'`'),
            b'#' => self.line_end(start),
            _ => self.next_token_span().end as usize,
        };
        self.bump_to(end.max(start + 1));
        // A name with a slash is one mistake, not a name and something else.
        let name_start = self.nodes.last().filter(|last| hint.is_some() && last.end == offset(start));
        let name_start = name_start.filter(|last| matches!(last.kind, Kind::Reference | Kind::Identifier));
        let is_slash = self.byte(start) == b'/';
        let from = name_start.filter(|_| is_slash).map_or(start, |name| name.start as usize);
        let mut error = Diagnostic::error(code::UNEXPECTED, self.span(from, self.pos), message);
        error.hint = hint.map(Into::into);
        self.report_junk(error);
        self.junk_node(start, self.pos);
    }

    /// Returns the end of the quoted text that starts here, at most the end of its line.
    fn string_extent(&self, quote: u8) -> usize {
        let mut at = self.pos + 1;
        while let Some(step) = memchr::memchr3(quote, b'\\', b'\n', self.rest(at)) {
            at += step;
            match self.byte(at) {
                b'\n' => return at,
                b'\\' => at = (at + 2).min(self.bytes.len()),
                _ => return at + 1,
            }
        }
        self.bytes.len()
    }

    /// Consumes a group in brackets without parsing it.
    pub(super) fn skip_group(&mut self, limit: SkipLimit) {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                0 if self.at_end() => break,
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    self.bump(1);
                }
                b')' | b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    self.bump(1);
                    if depth == 0 {
                        break;
                    }
                }
                b'\n' if limit == SkipLimit::LineEnd => break,
                quote @ (b'"' | b'\'' | b'`') => {
                    let end = self.string_extent(quote);
                    self.bump_to(end);
                }
                b'/' if self.byte(self.pos + 1) == b'/' => {
                    let end = self.line_end(self.pos);
                    self.bump_to(end);
                }
                _ => self.bump(1),
            }
        }
    }

    /// Pushes a leaf and consumes its text.
    #[inline]
    pub(super) fn token(&mut self, kind: Kind, end: usize) {
        self.leaf(kind, self.pos, end, Flags::default());
        self.bump_to(end);
    }
}

/// Quotes source text in a message, truncated if it is long.
pub(super) fn quote_source(text: &str) -> String {
    format!("`{}`", truncate_source(text))
}

/// Truncates source text for a message or a hint.
pub(super) fn truncate_source(text: &str) -> Cow<'_, str> {
    const MAX_CHARACTERS: usize = 40;
    let shortened: Cow<'_, str> = match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    };
    // Messages are single lines.
    if shortened.contains(['\n', '\r']) { shortened.replace(['\n', '\r'], " ").into() } else { shortened }
}
