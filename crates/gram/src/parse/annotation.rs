//! Parsing annotations.

use super::Parser;
use super::lex::is_name_start;
use super::value::ValuePosition;
use crate::{Diagnostic, Kind, code};

impl Parser<'_> {
    /// Parses annotations and the pattern they describe. The next byte is `@`.
    pub(super) fn annotated(&mut self) {
        let start = self.pos;
        let id = self.start(Kind::Annotated);
        self.annotations();
        match self.peek() {
            b'(' => self.path(),
            b'[' => self.bracket(),
            _ => {
                let message = format!("expected a pattern after the annotation, found {}", self.describe_next_token());
                let error = Diagnostic::error(code::ANNOTATES_NOTHING, self.next_token_span(), message)
                    .with_related(self.span(start, start + 1), "the annotation starts here")
                    .with_hint("an annotation describes the node, path or bracket pattern that follows it");
                self.report(error);
            }
        }
        self.finish(id, self.token_end);
    }

    pub(super) fn annotations(&mut self) {
        let mut count = 0_usize;
        while self.peek() == b'@' {
            if self.byte(self.pos + 1) == b'@' {
                self.header(count);
            } else {
                self.annotation();
            }
            count += 1;
            self.trivia();
        }
    }

    /// Parses `@@id:Label`.
    pub(super) fn header(&mut self, before: usize) {
        let start = self.pos;
        let id = self.start(Kind::Header);
        self.bump(2);
        self.trivia();
        let has_name = self.identifier(Kind::Identifier);
        self.trivia();
        let has_label = self.peek() == b':';
        while self.peek() == b':' {
            self.label();
            self.trivia();
        }
        self.finish(id, self.token_end);
        let span = self.span(start, start + 2);
        if !has_name && !has_label {
            let error = Diagnostic::error(code::ANNOTATION, span, "`@@` needs a name or a label")
                .with_hint("write `@@name`, `@@:Label` or `@@name:Label`");
            self.report(error);
        }
        if before > 0 {
            let error =
                Diagnostic::error(code::ANNOTATION, span, "`@@` must be the first annotation and appear only once")
                    .with_hint("write it before the `@key(value)` annotations");
            self.report(error);
        }
    }

    /// Parses `@key(value)`.
    pub(super) fn annotation(&mut self) {
        let start = self.pos;
        let id = self.start(Kind::Annotation);
        self.bump(1);
        self.trivia();
        if is_name_start(self.peek()) {
            let end = self.symbol_end(self.pos);
            self.token(Kind::Key, end);
        } else {
            if self.peek() == b'`' {
                self.quoted_text(Kind::Key);
            }
            let error = Diagnostic::error(
                code::ANNOTATION,
                self.span(start, self.token_end),
                "an annotation needs a plain key",
            )
            .with_hint("write `@key(value)`, with a key of ASCII letters, digits and `_ . - @`");
            self.report(error);
        }
        self.trivia();
        if self.peek() == b'(' && !self.skip_if_too_deep() {
            self.annotation_value();
        } else {
            let error =
                Diagnostic::error(code::ANNOTATION, self.span(start, self.token_end), "this annotation has no value")
                    .with_hint("write `@key(value)`, or `@@name` for a name");
            self.report(error);
        }
        self.finish(id, self.token_end);
    }

    fn annotation_value(&mut self) {
        let opener = self.pos;
        self.enter(b')');
        self.trivia();
        let before = self.token_end;
        if !self.value(ValuePosition::Property) {
            let span = self.span(before, before);
            self.report(Diagnostic::error(code::MISSING_VALUE, span, "missing value of the annotation"));
        }
        loop {
            self.trivia();
            match self.peek() {
                b')' | b'(' | b'[' | b'@' | b'{' => break,
                b',' => self.several_annotation_values(),
                0 if self.at_end() => break,
                byte @ (b']' | b'}') => {
                    if self.closes_outer(byte) {
                        break;
                    }
                    self.unmatched_closer();
                }
                _ => self.junk(),
            }
        }
        let scratch = self.start_at(Kind::Error, opener);
        self.leave(scratch);
        self.nodes.truncate(scratch);
    }

    fn several_annotation_values(&mut self) {
        let start = self.pos;
        let belongs = |byte: &&u8| !b")\n".contains(byte);
        let length = self.rest(start).iter().take_while(belongs).count();
        self.bump(length);
        let error = Diagnostic::error(code::ANNOTATION, self.span(start, start + 1), "an annotation has one value")
            .with_hint("write several values as an array: `@key([1, 2])`");
        self.report(error);
        self.junk_node(start, self.pos);
    }

    pub(super) fn misplaced_annotations(&mut self, message: &'static str) {
        let start = self.pos;
        let id = self.start(Kind::Error);
        self.annotations();
        self.finish(id, self.token_end);
        let error = Diagnostic::error(code::MISPLACED_ANNOTATION, self.span(start, self.token_end), message)
            .with_hint("put it before the pattern at the top level");
        self.report(error);
    }
}
