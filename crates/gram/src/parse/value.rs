//! Parsing values of properties and annotations.

use super::lex::{is_digit, is_name_start, quote_source, truncate_source};
use super::separator::{AfterItem, UnexpectedToken};
use super::{Parser, SkipLimit};
use crate::tree::Flags;
use crate::{Diagnostic, Dialect, Kind, code};

/// The position of a value; plain gram does not allow every value everywhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValuePosition {
    /// The value of a property of a record, or of an annotation.
    Property,
    /// An entry of a map.
    Map,
    /// An item of an array.
    Array,
}

impl Parser<'_> {
    /// Parses a value. Returns whether there was one, even if malformed.
    pub(super) fn value(&mut self, position: ValuePosition) -> bool {
        match self.peek() {
            b'"' if self.rest(self.pos).starts_with(b"\"\"\"") => self.triple_quoted(),
            b'"' | b'\'' => self.quoted_text(Kind::String),
            b'`' if self.rest(self.pos).starts_with(b"```") => self.fence(),
            b'`' => self.quoted_text(Kind::String),
            b'[' => {
                if position == ValuePosition::Array {
                    self.not_portable(self.pos, self.pos + 1, "an array in an array");
                }
                self.array();
            }
            b'{' => {
                match position {
                    ValuePosition::Property => {}
                    ValuePosition::Map => self.not_portable(self.pos, self.pos + 1, "a map in a map"),
                    ValuePosition::Array => self.not_portable(self.pos, self.pos + 1, "a map in an array"),
                }
                self.record(Kind::Map);
            }
            byte if is_name_start(byte) => self.word(),
            byte if is_digit(byte) => self.numeric(),
            b'-' if is_digit(self.byte(self.pos + 1)) => self.numeric(),
            b'.' if self.rest(self.pos).starts_with(b"...") => self.range_up_to(),
            b'+' | b'-' | b'.' if self.looks_numeric() => self.signed_or_dotted_number(),
            b'(' => self.pattern_as_value(),
            byte if self.is_non_ascii(byte) && self.curly_quoted() => {}
            byte if self.is_non_ascii(byte) => {
                let end = self.word_end(self.pos);
                let error = Diagnostic::error(
                    code::UNQUOTED,
                    self.span(self.pos, end),
                    format!("the text {} needs quotes", self.describe_next_token()),
                )
                .with_hint("only ASCII words can be written without quotes");
                self.report(error);
                self.token(Kind::Symbol, end);
            }
            b',' | b'}' | b']' | b')' | b'|' | b'@' => return false,
            0 if self.at_end() => return false,
            _ => self.junk(),
        }
        true
    }

    /// Parses text in three double quotes, which other languages allow.
    fn triple_quoted(&mut self) {
        let start = self.pos;
        let close = memchr::memmem::find(self.rest(start + 3), b"\"\"\"").map(|at| start + 3 + at + 3);
        let end = close.unwrap_or_else(|| self.line_end(start));
        let error = Diagnostic::error(code::FENCE, self.span(start, start + 3), "gram does not support `\"\"\"`")
            .with_hint("use a fence of three backticks for multi-line text");
        self.report_junk(error);
        self.token(Kind::Error, end);
    }

    /// Parses text in typographic quotes, as inserted by word processors. Returns whether there was any.
    fn curly_quoted(&mut self) -> bool {
        /// How far to search for the closing quote.
        const MAX_DISTANCE: usize = 400;
        let start = self.pos;
        let rest = self.source.get(start..).unwrap_or_default();
        if !rest.starts_with(['“', '”', '„', '‘', '’', '«', '»']) {
            return false;
        }
        let line = rest.get(..rest.floor_char_boundary(MAX_DISTANCE)).unwrap_or_default();
        let inside = line.char_indices().skip(1).take_while(|(_, c)| *c != '\n');
        let close = inside.into_iter().find(|(_, c)| matches!(c, '“' | '”' | '‘' | '’' | '«' | '»'));
        let end = close.map_or_else(|| self.word_end(start), |(at, c)| start + at + c.len_utf8());
        let error =
            Diagnostic::error(code::UNQUOTED, self.span(start, end), "typographic quotes cannot delimit a string")
                .with_hint("use straight quotes: `\"…\"` or `'…'`");
        self.report(error);
        self.token(Kind::Error, end);
        true
    }

    /// Parses a symbol, a boolean, or a tagged string.
    fn word(&mut self) {
        let start = self.pos;
        let end = self.symbol_end(start);
        self.bump_to(end);
        if self.is_non_ascii(self.peek()) {
            let end = self.word_end(start);
            let span = self.span(start, end);
            let message = format!("the text {} needs quotes", quote_source(span.slice(self.source)));
            self.report(
                Diagnostic::error(code::UNQUOTED, span, message)
                    .with_hint("only ASCII words can be written without quotes"),
            );
            self.leaf(Kind::Symbol, start, end, Flags::default());
            return self.bump_to(end);
        }
        if self.rest(end).starts_with(b"://") {
            return self.unquoted_url(start);
        }
        if matches!(self.peek(), b'"' | b'\'') {
            return self.tag_with_wrong_quotes(start, end);
        }
        // A comment may separate a tag from its text, so trivia is consumed before the kind of the word is known.
        self.trivia();
        let is_boolean = matches!(self.bytes.get(start..end), Some(b"true" | b"false"));
        if self.peek() == b'`' && !is_boolean {
            return self.tagged(start, end);
        }
        let kind = if is_boolean { Kind::Boolean } else { Kind::Symbol };
        self.leaf(kind, start, end, Flags::default());
    }

    /// Parses an unquoted `https://…`, whose `//` would otherwise start a comment.
    fn unquoted_url(&mut self, start: usize) {
        let belongs = |byte: &&u8| !b" \t\r\n,}])\"'`".contains(byte);
        let end = start + self.rest(start).iter().take_while(belongs).count();
        let span = self.span(start, end);
        let error = Diagnostic::error(code::UNQUOTED, span, "a URL needs quotes: `//` starts a comment")
            .with_hint(format!("write \"{}\"", truncate_source(span.slice(self.source))));
        self.report(error);
        self.leaf(Kind::Symbol, start, end, Flags::default());
        self.bump_to(end);
    }

    fn tag_with_wrong_quotes(&mut self, start: usize, tag_end: usize) {
        let id = self.start_at(Kind::Error, start);
        self.leaf(Kind::Tag, start, tag_end, Flags::default());
        self.quoted_text(Kind::String);
        self.finish(id, self.pos);
        let tag = truncate_source(self.span(start, tag_end).slice(self.source));
        let error = Diagnostic::error(code::UNQUOTED, self.span(start, self.pos), "a tagged string needs backticks")
            .with_hint(format!("write {tag}`…`"));
        self.report(error);
    }

    fn tagged(&mut self, start: usize, tag_end: usize) {
        let id = self.start_at(Kind::Tagged, start);
        self.leaf(Kind::Tag, start, tag_end, Flags::default());
        let text_start = self.pos;
        if self.rest(text_start).starts_with(b"```") {
            let tag = self.span(start, tag_end);
            let error = Diagnostic::error(code::FENCE, tag, "the tag of a fence goes after the backticks")
                .with_hint(format!("write ```{}", tag.slice(self.source)));
            self.report(error);
            self.bump(3);
            let (end, flags) = self.fence_body(text_start);
            self.set_flag(id, flags);
            self.bump_to(end);
        } else {
            // The text is not a separate node: it is whatever follows the tag.
            self.quoted_text(Kind::String);
            if let Some(text) = self.nodes.pop() {
                self.set_flag(id, text.flags);
            }
        }
        self.finish(id, self.pos);
    }

    /// Parses a number, or a range that starts with one.
    fn numeric(&mut self) {
        let start = self.pos;
        let Some((kind, end)) = self.number() else { return };
        self.trivia();
        if self.peek() != b'.' || self.byte(self.pos + 1) != b'.' {
            return self.leaf(kind, start, end, Flags::default());
        }
        let id = self.start_at(Kind::Range, start);
        self.leaf(kind, start, end, Flags::default());
        if self.byte(self.pos + 2) == b'.' {
            self.bump(3);
            if is_digit(self.peek()) {
                let dots = self.span(self.pos - 3, self.pos);
                let error = Diagnostic::error(code::RANGE, dots, "a range with two bounds has two dots")
                    .with_hint("write `1..5`; `1...` has no upper bound");
                self.report(error);
                self.bound();
            }
        } else {
            self.bump(2);
            self.trivia();
            self.upper_bound();
        }
        self.finish(id, self.token_end);
    }

    fn range_up_to(&mut self) {
        let id = self.start(Kind::Range);
        self.bump(3);
        self.trivia();
        self.upper_bound();
        self.finish(id, self.token_end);
    }

    fn upper_bound(&mut self) {
        if !self.bound() {
            let at = self.span(self.token_end, self.token_end);
            let error = Diagnostic::error(code::RANGE, at, "missing upper bound of the range")
                .with_hint("write `1..5`, or `1...` for no upper bound");
            self.report(error);
        }
    }

    fn bound(&mut self) -> bool {
        let start = self.pos;
        let Some((kind, end)) = self.number() else { return false };
        self.leaf(kind, start, end, Flags::default());
        true
    }

    fn looks_numeric(&self) -> bool {
        let rest = self.rest(self.pos).iter();
        rest.take(3).find(|byte| !matches!(byte, b'+' | b'-' | b'.')).is_some_and(u8::is_ascii_digit)
    }

    fn signed_or_dotted_number(&mut self) {
        let start = self.pos;
        let signs = self.rest(start).iter().take_while(|byte| matches!(byte, b'+' | b'-' | b'.')).count();
        let end = self.word_end(start + signs);
        let error = self.malformed_number(start, end);
        self.report(error);
        self.token(Kind::Error, end);
    }

    fn pattern_as_value(&mut self) {
        let start = self.pos;
        let message = "a pattern cannot be a value";
        let error = Diagnostic::error(code::PATTERN_VALUE, self.span(start, start + 1), message)
            .with_hint("name the pattern and put it among the elements, `[… | (a)]`");
        self.report(error);
        self.skip_group(SkipLimit::LineEnd);
        self.junk_node(start, self.pos);
    }

    fn array(&mut self) {
        if self.skip_if_too_deep() {
            return;
        }
        let id = self.start(Kind::Array);
        let start = self.pos;
        self.enter(b']');
        self.trivia();
        self.extra_commas("values");
        if self.peek() == b']' {
            self.not_portable(start, self.pos + 1, "an empty array");
        } else {
            while !self.at_end() {
                let before = self.pos;
                if !self.value(ValuePosition::Array) && self.peek() == b'@' {
                    self.junk();
                }
                self.trivia();
                if self.peek() == b':' {
                    self.key_in_array(start);
                }
                if self.after_item(b']', "values", Self::classify_in_array) == AfterItem::ListEnd || self.pos == before
                {
                    break;
                }
            }
        }
        self.leave(id);
    }

    /// Parses the value of `key: value` in an array, where only values are allowed.
    fn key_in_array(&mut self, opener: usize) {
        let id = self.start(Kind::Error);
        let start = self.pos;
        self.bump(1);
        self.trivia();
        self.value(ValuePosition::Array);
        self.finish(id, self.token_end);
        let error = Diagnostic::error(code::KEY, self.span(start, start + 1), "an array contains values, not keys")
            .with_related(self.span(opener, opener + 1), "the array starts here")
            .with_hint("write a map, `{key: value}`");
        self.report(error);
    }

    fn classify_in_array(&self) -> UnexpectedToken {
        match self.peek() {
            b'"' | b'\'' | b'`' | b'[' | b'{' => UnexpectedToken::StartsItem,
            b'|' | b'@' | b'(' | b':' => UnexpectedToken::EndsList,
            byte if is_name_start(byte) || is_digit(byte) || self.is_non_ascii(byte) => UnexpectedToken::StartsItem,
            b'-' if is_digit(self.byte(self.pos + 1)) => UnexpectedToken::StartsItem,
            b';' => UnexpectedToken::WrongSeparator,
            _ => UnexpectedToken::Junk,
        }
    }

    /// Reports a use of Patter's extensions if the dialect is plain gram.
    pub(super) fn not_portable(&mut self, start: usize, end: usize, what: &'static str) {
        if self.dialect == Dialect::Portable {
            let message = format!("{what} is not plain gram");
            self.report(
                Diagnostic::error(code::NOT_PORTABLE, self.span(start, end), message)
                    .with_hint("Patter accepts it; other gram tools do not"),
            );
        }
    }
}
