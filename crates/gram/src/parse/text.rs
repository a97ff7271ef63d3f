//! Parsing quoted and fenced text.

use super::{Parser, lex::is_name_start};
use crate::tree::Flags;
use crate::{Diagnostic, Kind, code};
use memchr::{memchr3, memmem};

impl Parser<'_> {
    /// Parses quoted text: a string or a quoted name. The next byte is the quote.
    pub(super) fn quoted_text(&mut self, kind: Kind) {
        let start = self.pos;
        let (end, flags) = self.scan_quoted(kind);
        self.leaf(kind, start, end, flags);
        self.bump_to(end);
    }

    fn scan_quoted(&mut self, kind: Kind) -> (usize, Flags) {
        let start = self.pos;
        let quote = self.byte(start);
        let mut flags = Flags::default();
        let mut at = start + 1;
        let mut breaks_line = false;
        while let Some(step) = memchr3(quote, b'\\', b'\n', self.rest(at)) {
            at += step;
            match self.byte(at) {
                b'\\' => {
                    flags = flags.with(Flags::ESCAPED);
                    at += if self.escape(quote, at) { 2 } else { 1 };
                }
                b'\n' => {
                    if !breaks_line {
                        if kind != Kind::String || !self.is_closed_below(quote, at) {
                            let line = self.bytes.get(start..at).unwrap_or_default();
                            let end = at - usize::from(line.ends_with(b"\r"));
                            return (end, self.unterminated(start, end, flags));
                        }
                        breaks_line = true;
                        let message = "a quoted string cannot contain a line break";
                        self.report(
                            Diagnostic::error(code::LINE_BREAK, self.span(at, at + 1), message)
                                .with_related(self.span(start, start + 1), "the string starts here")
                                .with_hint("write `\\n`, or put the text in a fence of three backticks"),
                        );
                    }
                    at += 1;
                }
                _ => return (at + 1, flags),
            }
        }
        let end = self.bytes.len();
        (end, self.unterminated(start, end, flags))
    }

    fn unterminated(&mut self, start: usize, end: usize, flags: Flags) -> Flags {
        let quote = match self.byte(start) {
            b'`' => "backtick",
            b'"' => "`\"`",
            _ => "`'`",
        };
        let message = format!("missing closing {quote}");
        self.unterminated_end = Some(end);
        self.report(
            Diagnostic::error(code::UNTERMINATED, self.span(end, end), message)
                .with_related(self.span(start, start + 1), "the text starts here"),
        );
        flags.with(Flags::UNCLOSED)
    }

    /// Checks an escape and reports it if it is invalid. Returns whether it is valid.
    fn escape(&mut self, quote: u8, at: usize) -> bool {
        let escaped = self.byte(at + 1);
        if escaped == quote || matches!(escaped, b'b' | b'f' | b'n' | b'r' | b't' | b'/' | b'\\') {
            return true;
        }
        let after = self.source.get(at + 1..).and_then(|rest| rest.chars().next());
        let length = after.filter(|c| *c != '\n').map_or(0, char::len_utf8);
        let span = self.span(at, at + 1 + length);
        let message = format!("`{}` is not a valid escape", span.slice(self.source));
        let hint = match escaped {
            b'u' | b'x' => "write the character itself".to_owned(),
            _ => format!(
                "write `\\\\` for a backslash; valid escapes are \\{} \\\\ \\/ \\b \\f \\n \\r \\t",
                char::from(quote)
            ),
        };
        self.report(Diagnostic::error(code::ESCAPE, span, message).with_hint(hint));
        false
    }

    /// Guesses whether a string with a line break is closed on a later line: the next such quote is followed by a token
    /// that can follow a value.
    fn is_closed_below(&mut self, quote: u8, from: usize) -> bool {
        let Some(at) = self.lookahead.quote(self.bytes, quote, from) else { return false };
        let rest = self.rest(at + 1);
        let next = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        matches!(next, None | Some(b',' | b'}' | b']' | b')' | b'\n'))
    }

    /// Parses a fenced string, with or without a tag. The next bytes are the opening fence.
    pub(super) fn fence(&mut self) {
        let start = self.pos;
        self.bump(3);
        self.header_trivia();
        let tag_start = self.pos;
        let tag_end = if is_name_start(self.peek()) { self.symbol_end(tag_start) } else { tag_start };
        let tagged = (tag_end > tag_start).then(|| {
            let id = self.start_at(Kind::Tagged, start);
            self.token(Kind::Tag, tag_end);
            self.header_trivia();
            id
        });
        let (end, flags) = self.fence_body(start);
        match tagged {
            Some(id) => {
                self.set_flag(id, flags);
                self.finish(id, end);
            }
            None => self.leaf(Kind::Fence, start, end, flags),
        }
        self.bump_to(end);
    }

    /// Finds the end of a fenced string whose opening line has been parsed up to here.
    pub(super) fn fence_body(&mut self, start: usize) -> (usize, Flags) {
        if self.peek() != b'\n' && !self.at_end() {
            let span = self.span(start, start + 3);
            let error = Diagnostic::error(code::FENCE, span, "the text of a fence must start on the next line")
                .with_hint("add a line break after the opening fence, or use `\"…\"` for short text");
            self.report_junk(error);
        }
        if let Some(at) = memmem::find(self.rest(self.pos), b"```") {
            return (self.pos + at + 3, Flags::default());
        }
        let error = Diagnostic::error(code::UNTERMINATED, self.span(start, start + 3), "this fence is not closed")
            .with_hint("end the text with three backticks");
        self.report(error);
        self.unterminated_end = Some(self.bytes.len());
        (self.bytes.len(), Flags::default().with(Flags::UNCLOSED))
    }

    /// Consumes white space and comments on the opening line of a fence.
    fn header_trivia(&mut self) {
        while self.peek() != b'\n' && !self.at_end() {
            let before = self.pos;
            match self.peek() {
                b' ' | b'\t'..=b'\r' => self.pos += 1,
                b'/' => {
                    self.comment();
                }
                _ => {}
            }
            if self.pos == before {
                return;
            }
        }
    }
}
