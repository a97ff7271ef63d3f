//! Parsing arrows.

use super::lex::{is_name_start, quote_source, truncate_source};
use super::pattern::SubjectState;
use super::{OpenBracket, Parser};
use crate::tree::{Flags, RawNode};
use crate::{Diagnostic, Kind, Span, code, span::offset};

impl Parser<'_> {
    /// Guesses whether strokes inside a node are the arrow after it, so that only the `)` is missing.
    pub(super) fn starts_arrow_of_path(&self) -> bool {
        let in_node = self.open_brackets.last().is_some_and(|open| open.closer == b')');
        in_node && matches!(self.byte(self.pos + 1), b'-' | b'=' | b'~' | b'[')
    }

    pub(super) fn at_unicode_arrow(&self) -> bool {
        if self.peek().is_ascii() {
            return false;
        }
        let first = self.source.get(self.pos..).and_then(|rest| rest.chars().next());
        matches!(first, Some('→' | '←' | '↔' | '⇒' | '⇐' | '⇔' | '–' | '—'))
    }

    /// Parses an arrow, valid or not. The next byte can start an arrow.
    pub(super) fn arrow(&mut self) {
        let start = self.pos;
        let id = self.start(Kind::Arrow);
        if self.at_unicode_arrow() {
            let end = self.word_end(start);
            self.bump_to(end);
            let span = self.span(start, end);
            let message = format!("`{}` is not an arrow", span.slice(self.source));
            self.report(Diagnostic::error(code::ARROW, span, message).with_hint("write `-->`, `<--`, `<-->` or `--`"));
            return self.finish(id, self.token_end);
        }
        let points_left = self.peek() == b'<';
        self.bump(usize::from(points_left));
        let family = self.peek();
        if !matches!(family, b'-' | b'=' | b'~') {
            self.malformed_arrow(start, "write `<--`, `<-->`, or close the node before it");
            return self.finish(id, self.token_end);
        }
        self.bump(1);
        let mut comment_count = self.comments.len();
        let mut diagnostic_count = self.diagnostics.len();
        self.trivia();
        if self.peek() == b'[' {
            self.arrow_subject();
            comment_count = self.comments.len();
            diagnostic_count = self.diagnostics.len();
            self.trivia();
        }
        if self.peek() == family {
            self.bump(1);
            if self.peek() == b'>' {
                self.bump(1);
            }
        } else {
            // The trivia after the last token will be parsed again.
            self.pos = self.token_end;
            self.comments.truncate(comment_count);
            self.diagnostics.truncate(diagnostic_count);
            let line = char::from(family);
            let hint = match (points_left, self.peek() == b'>') {
                (false, true) => format!("an arrow has two strokes: `{line}{line}>`"),
                (true, false) => format!("an arrow has two strokes: `<{line}{line}`"),
                (true, true) => format!("an arrow has two strokes: `<{line}{line}>`"),
                (false, false) => {
                    format!("an arrow is one of `{line}{line}`, `{line}{line}>`, `<{line}{line}`, `<{line}{line}>`")
                }
            };
            self.malformed_arrow(start, hint);
        }
        if matches!(self.peek(), b'-' | b'=' | b'~' | b'>') {
            self.malformed_arrow(start, "an arrow has two strokes, as in `-->`");
        }
        self.finish(id, self.token_end);
    }

    /// Consumes the remaining strokes and reports the whole arrow.
    fn malformed_arrow(&mut self, start: usize, hint: impl Into<std::borrow::Cow<'static, str>>) {
        let strokes = |byte: &&u8| matches!(byte, b'-' | b'=' | b'~' | b'>' | b'<');
        let rest = self.rest(self.pos).iter().take_while(strokes).count();
        self.bump(rest);
        let span = self.span(start, self.token_end.max(start + 1));
        let message = format!("{} is not an arrow", quote_source(span.slice(self.source)));
        self.report(Diagnostic::error(code::ARROW, span, message).with_hint(hint));
    }

    fn arrow_subject(&mut self) {
        if self.skip_if_too_deep() {
            return;
        }
        // The brackets are part of the arrow; the parts of the subject become children of the arrow.
        let opener = self.pos;
        self.enter(b']');
        self.subject();
        loop {
            self.trivia();
            if self.peek() == b']' || self.at_end() || self.unexpected_in_subject() == SubjectState::Unclosed {
                break;
            }
        }
        let scratch = self.start_at(Kind::Error, opener);
        self.leave(scratch);
        self.nodes.truncate(scratch);
    }

    pub(super) fn missing_node(&mut self) {
        let start = self.pos;
        let message = format!("expected a node after the arrow, found {}", self.describe_next_token());
        let mut error = Diagnostic::error(code::PATH_END, self.next_token_span(), message);
        match self.peek() {
            b'[' if !self.starts_line(start) => {
                error.hint = Some("only nodes can be joined by arrows: write `(name)`".into());
                self.report(error);
                let id = self.start(Kind::Error);
                self.bracket();
                self.finish(id, self.token_end);
            }
            b'>' => {
                error.message = "an arrow cannot contain spaces".into();
                error.hint = Some("write `-->`".into());
                self.report(error);
                self.bump(1);
                self.trivia();
                if self.peek() == b'(' {
                    self.node();
                }
            }
            b':' => {
                self.misplaced_labels();
                error.span = self.span(start, self.token_end);
                error.message = "expected a node after the arrow, found a label".into();
                error.hint = Some(format!("write `({})`", truncate_source(error.span.slice(self.source))).into());
                self.report(error);
            }
            byte if is_name_start(byte) => {
                let word = self.span(start, self.symbol_end(start)).slice(self.source);
                // Names may contain dashes, but trailing ones here are the next arrow.
                let end = start + word.trim_end_matches('-').len();
                let name = self.span(start, end).slice(self.source);
                // Labels are usually capitalized, names usually not.
                let hint = if name.starts_with(|first: char| first.is_ascii_uppercase()) {
                    format!("write `(:{0})` for a label, or `({0})` for a name", truncate_source(name))
                } else {
                    format!("write `({})`", truncate_source(name))
                };
                error.hint = Some(hint.into());
                self.report(error);
                self.token(Kind::Error, end);
            }
            _ => {
                error.hint = Some("a path is nodes joined by arrows: `(a)-->(b)`".into());
                self.report(error);
            }
        }
    }

    pub(super) fn arrow_without_node(&mut self) {
        let start = self.pos;
        let strokes = |byte: &&u8| matches!(byte, b'-' | b'=' | b'~' | b'>' | b'<');
        let length = self.rest(start).iter().take_while(strokes).count();
        self.bump(length.max(1));
        let span = self.span(start, self.pos);
        let message = format!("the arrow {} has no node before it", quote_source(span.slice(self.source)));
        let error =
            Diagnostic::error(code::ARROW, span, message).with_hint("a path is nodes joined by arrows: `(a)-->(b)`");
        self.report_junk(error);
        self.junk_node(start, self.pos);
    }

    /// Recovers from `(a-->`, where the strokes were parsed as part of the name because names may contain dashes: ends
    /// the node before the strokes, so that the path continues. Returns whether this applied.
    pub(super) fn split_arrow_from_name(&mut self, id: usize) -> bool {
        let before = self.nodes.len().checked_sub(2).and_then(|index| self.nodes.get(index));
        if before.is_some_and(|before| before.kind == Kind::Error && before.next as usize == self.nodes.len()) {
            return false;
        }
        let is_name = |last: &&mut RawNode| matches!(last.kind, Kind::Identifier | Kind::Label);
        let Some(name) = self.nodes.last_mut().filter(is_name) else { return false };
        let span = Span::new(name.start, name.end);
        let text = span.slice(self.source);
        let stem = text.trim_end_matches('-');
        if stem.len() == text.len() || stem.is_empty() || span.end as usize != self.pos {
            return false;
        }
        let end = span.start + offset(stem.len());
        name.end = end;
        self.bump_to(end as usize);
        let opener = self.open_brackets.last().map_or(span.start as usize, |open| open.at + 1);
        let hint = format!(
            "names may contain dashes, so this was parsed as the name {}; write `({})-->`",
            quote_source(text.trim_start_matches(':')),
            truncate_source(self.span(opener, self.pos).slice(self.source))
        );
        let mut error =
            Diagnostic::error(code::UNCLOSED, self.span(self.pos, self.pos), "expected `)` before the arrow")
                .with_hint(hint);
        if let Some(OpenBracket { at, .. }) = self.open_brackets.pop() {
            error = error.with_related(self.span(at, at + 1), "this `(` is not closed");
        }
        self.report(error);
        self.set_flag(id, Flags::UNCLOSED);
        self.finish(id, self.pos);
        true
    }
}
