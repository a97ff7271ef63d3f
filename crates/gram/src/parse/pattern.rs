//! Parsing patterns: nodes, paths, bracket patterns and references.

use super::lex::{is_digit, is_name_start, quote_source, truncate_source};
use super::separator::{AfterItem, UnexpectedToken};
use super::{Parser, SkipLimit};
use crate::tree::{Flags, RawNode};
use crate::{Diagnostic, Kind, code, span::offset};

/// The state of a subject after an unexpected token.
#[derive(PartialEq, Eq)]
pub(super) enum SubjectState {
    /// The token was consumed; the subject continues.
    Open,
    /// The token belongs to what comes next; the subject ends without its closing bracket.
    Unclosed,
}

impl Parser<'_> {
    /// Parses a node, or the path that starts with it. The next byte is `(`.
    pub(super) fn path(&mut self) {
        let first = self.nodes.len();
        self.node();
        let mut is_path = false;
        loop {
            self.trivia();
            if !matches!(self.peek(), b'-' | b'=' | b'~' | b'<') && !self.at_unicode_arrow() {
                break;
            }
            if !is_path {
                is_path = true;
                self.wrap_in_path(first);
            }
            self.arrow();
            self.trivia();
            if self.peek() == b'(' {
                self.node();
            } else {
                self.missing_node();
            }
        }
        if is_path {
            self.finish(first, self.token_end);
        }
    }

    /// Inserts a path before the node that turned out to be its first.
    fn wrap_in_path(&mut self, first: usize) {
        let Some(node) = self.nodes.get(first).copied() else { return };
        self.nodes.insert(first, RawNode { kind: Kind::Path, flags: Flags::default(), ..node });
        for raw in self.nodes.iter_mut().skip(first + 1) {
            raw.next += 1;
        }
    }

    pub(super) fn node(&mut self) {
        if self.skip_if_too_deep() {
            return;
        }
        let id = self.start(Kind::Node);
        self.enter(b')');
        self.subject();
        loop {
            self.trivia();
            if self.peek() == b'>' && self.split_arrow_from_name(id) {
                return;
            }
            if self.peek() == b')' || self.at_end() || self.unexpected_in_subject() == SubjectState::Unclosed {
                break;
            }
        }
        self.leave(id);
    }

    /// Parses `identifier? labels? record?`.
    pub(super) fn subject(&mut self) {
        self.trivia();
        if self.peek() == b'@' {
            self.misplaced_annotations("annotations go before a pattern, not inside it");
            self.trivia();
        }
        let is_named = self.identifier(Kind::Identifier);
        self.trivia();
        while is_named && is_name_start(self.peek()) && !self.is_on_new_line() {
            self.extra_word();
            self.trivia();
        }
        self.labels_and_record();
    }

    /// Reports a word after a name.
    fn extra_word(&mut self) {
        let start = self.pos;
        let end = self.symbol_end(start);
        self.bump_to(end);
        let span = self.span(start, end);
        let message = format!("unexpected {} inside a subject", quote_source(span.slice(self.source)));
        let error = Diagnostic::error(code::UNEXPECTED, span, message)
            .with_hint("a name is one word; put several words in backticks, or mark a label with `:`");
        self.report_junk(error);
        self.junk_node(start, end);
    }

    fn labels_and_record(&mut self) {
        while self.peek() == b':' {
            self.label();
            self.trivia();
        }
        if self.peek() == b'{' {
            self.record(Kind::Record);
        }
    }

    /// Parses a name, if there is one: of a subject, a reference or an annotation header.
    pub(super) fn identifier(&mut self, kind: Kind) -> bool {
        let start = self.pos;
        match self.peek() {
            byte if is_name_start(byte) => {
                let end = self.symbol_end(start);
                self.token(kind, end);
                if self.is_non_ascii(self.peek()) {
                    self.non_ascii_name();
                }
            }
            b'`' => self.quoted_text(kind),
            b'"' | b'\'' => {
                self.quoted_text(kind);
                let span = self.span(start, self.pos);
                let inner = span.slice(self.source).trim_matches(['"', '\'']);
                let hint = format!("put it in backticks: {}", quote_source(inner));
                let error = Diagnostic::error(code::NAME, span, "a name cannot be a quoted string").with_hint(hint);
                self.report(error);
            }
            byte if is_digit(byte) || byte == b'-' && is_digit(self.byte(start + 1)) => {
                let integer = self.number_at(start).filter(|(kind, _)| *kind == Kind::Integer);
                match integer {
                    // Names may contain `@` and `-`, but integers end before them.
                    Some((_, end)) if matches!(self.byte(end), b'@' | b'-') || self.word_end(end) == end => {
                        self.token(kind, end);
                    }
                    _ => {
                        let end = self.word_end(start + 1);
                        let span = self.span(start, end);
                        let message = format!("{} is not a name", quote_source(span.slice(self.source)));
                        self.report(
                            Diagnostic::error(code::NAME, span, message)
                                .with_hint("a name starts with a letter or `_`, is an integer, or is in backticks"),
                        );
                        self.token(kind, end);
                    }
                }
            }
            byte if self.is_non_ascii(byte) && !self.at_unicode_arrow() => {
                let end = self.word_end(start);
                self.token(kind, end);
                self.non_ascii_name();
            }
            _ => return false,
        }
        true
    }

    /// Reports the name just parsed, which has letters that need quoting, and extends it to the end of the word.
    pub(super) fn non_ascii_name(&mut self) {
        let end = self.word_end(self.pos);
        let Some(last) = self.nodes.last_mut() else { return };
        last.end = offset(end);
        let start = last.start as usize;
        self.bump_to(end);
        let text = self.span(start, end);
        let name = text.slice(self.source).trim_start_matches(':');
        let span = self.span(end - name.len(), end);
        let message = format!("the name {} contains characters that need quoting", quote_source(name));
        let hint = format!("put it in backticks: {}", quote_source(name));
        self.report(Diagnostic::error(code::NAME, span, message).with_hint(hint));
    }

    pub(super) fn label(&mut self) {
        let start = self.pos;
        let colons = if self.byte(start + 1) == b':' { 2 } else { 1 };
        self.bump(colons);
        self.trivia();
        let name_start = self.pos;
        match self.peek() {
            byte if is_name_start(byte) => {
                let end = self.symbol_end(name_start);
                self.leaf(Kind::Label, start, end, Flags::default());
                self.bump_to(end);
                if self.is_non_ascii(self.peek()) {
                    self.non_ascii_name();
                }
            }
            b'`' => {
                self.quoted_text(Kind::Label);
                if let Some(label) = self.nodes.last_mut() {
                    label.start = offset(start);
                }
            }
            quote @ (b'"' | b'\'') => {
                self.quoted_text(Kind::Label);
                let span = self.span(name_start, self.pos);
                let inner = span.slice(self.source).trim_matches(char::from(quote));
                let hint = format!("put it in backticks: {}", quote_source(inner));
                let error = Diagnostic::error(code::NAME, span, "a label cannot be a quoted string").with_hint(hint);
                self.report(error);
                if let Some(label) = self.nodes.last_mut() {
                    label.start = offset(start);
                }
            }
            byte if is_digit(byte) || self.is_non_ascii(byte) => {
                let end = self.word_end(name_start);
                self.leaf(Kind::Label, start, end, Flags::default());
                self.bump_to(end);
                let span = self.span(name_start, end);
                let name = span.slice(self.source);
                let message = format!("the label {} needs quoting", quote_source(name));
                let hint = format!("put it in backticks: {}", quote_source(name));
                self.report(Diagnostic::error(code::NAME, span, message).with_hint(hint));
            }
            _ => {
                self.token_end = start + colons;
                self.leaf(Kind::Label, start, start + colons, Flags::default());
                let span = self.span(start, start + colons);
                let error = Diagnostic::error(code::LABEL, span, "this label has no name")
                    .with_hint("write a name after the colon, as in `:Person`");
                self.report(error);
            }
        }
    }

    /// Handles a token that a subject does not expect.
    pub(super) fn unexpected_in_subject(&mut self) -> SubjectState {
        let start = self.pos;
        match self.peek() {
            byte @ (b')' | b']' | b'}') => {
                if self.closes_outer(byte) {
                    return SubjectState::Unclosed;
                }
                self.unmatched_closer();
            }
            b'(' | b'[' if self.is_on_new_line() => return SubjectState::Unclosed,
            b'(' | b'[' => {
                let message = format!("unexpected `{}` inside a subject", char::from(self.peek()));
                let error = Diagnostic::error(code::NESTED, self.span(start, start + 1), message)
                    .with_hint("only bracket patterns contain other patterns, after a bar: `[a | (b)]`");
                self.report(error);
                self.skip_group(SkipLimit::LineEnd);
                self.junk_node(start, self.pos);
            }
            b'|' if self.closes_outer(b']') => return SubjectState::Unclosed,
            b'-' | b'=' | b'~' | b'<' if self.starts_arrow_of_path() => return SubjectState::Unclosed,
            b'@' => self.misplaced_annotations("annotations go before a pattern, not inside it"),
            b':' => {
                let id = self.start(Kind::Error);
                self.label();
                self.finish(id, self.token_end);
                self.out_of_order(start, "labels come before the record", "write `name:Label {…}`");
            }
            b'{' => {
                let id = self.start(Kind::Error);
                self.record(Kind::Record);
                self.finish(id, self.token_end);
                self.out_of_order(start, "a subject has only one record", "merge the two records");
            }
            b',' => {
                let is_text = |byte: &&u8| !b"()[]{}|\"'`@\n".contains(byte);
                let length = self.rest(start).iter().take_while(is_text).count();
                let text = self.span(start, start + length).slice(self.source);
                self.bump(text.trim_end().len());
                let error = Diagnostic::error(code::UNEXPECTED, self.span(start, self.pos), "unexpected `,`")
                    .with_hint(
                        "nodes have their own parentheses, `(a)-->(b)`, and properties are in braces, `{key: value}`",
                    );
                self.report_junk(error);
                self.junk_node(start, self.pos);
            }
            byte if is_name_start(byte) => self.extra_word(),
            _ => self.junk(),
        }
        SubjectState::Open
    }

    fn out_of_order(&mut self, start: usize, message: &'static str, hint: &'static str) {
        let span = self.span(start, self.token_end);
        self.report(Diagnostic::error(code::SUBJECT_ORDER, span, message).with_hint(hint));
    }

    // Bracket patterns.

    /// Parses a bracket pattern. The next byte is `[`.
    pub(super) fn bracket(&mut self) {
        if self.skip_if_too_deep() {
            return;
        }
        let opener = self.pos;
        let id = self.start(Kind::Bracket);
        self.enter(b']');
        self.subject();
        loop {
            self.trivia();
            match self.peek() {
                b']' => break,
                b'|' => {
                    self.bump(1);
                    self.elements(opener);
                    break;
                }
                b'(' if self.starts_properties() => {
                    let start = self.pos;
                    self.skip_group(SkipLimit::ClosingBracket);
                    let error = Diagnostic::error(
                        code::MISPLACED_RECORD,
                        self.span(start, start + 1),
                        "properties are in braces, not in parentheses",
                    );
                    self.report(error.with_hint("write `{key: value}`"));
                    self.junk_node(start, self.pos);
                }
                b'(' | b'[' | b',' if !self.ends_unclosed(opener) => {
                    self.missing_bar();
                    self.elements(opener);
                    break;
                }
                byte if is_name_start(byte) && self.byte(self.token_end.saturating_sub(1)) == b'}' => {
                    self.missing_bar();
                    self.elements(opener);
                    break;
                }
                0 if self.at_end() => break,
                _ => {
                    if self.unexpected_in_subject() == SubjectState::Unclosed {
                        break;
                    }
                }
            }
        }
        self.leave(id);
    }

    /// Returns whether the parenthesis that comes next contains properties: a key, a colon and a quote.
    fn starts_properties(&self) -> bool {
        let skip_space = |at: usize| at + self.rest(at).iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let key = skip_space(self.pos + 1);
        let key_end = self.symbol_end(key);
        let colon = skip_space(key_end);
        let value = skip_space(colon + 1);
        key_end > key && self.byte(colon) == b':' && matches!(self.byte(value), b'"' | b'\'') && value > colon + 1
    }

    fn missing_bar(&mut self) {
        let at = if self.peek() == b',' { self.pos } else { self.token_end };
        let end = if self.peek() == b',' { at + 1 } else { at };
        let error = Diagnostic::error(code::MISSING_BAR, self.span(at, end), "missing `|` before the elements")
            .with_hint("a bracket pattern is `[subject | element, element]`");
        self.report(error);
        if self.peek() == b',' {
            self.bump(1);
        }
    }

    /// Guesses whether the next token shows that the bracket at `opener` was never closed: both start a line.
    fn ends_unclosed(&self, opener: usize) -> bool {
        self.starts_line(self.pos) && self.starts_line(opener) && self.open_brackets.len() == 1
    }

    pub(super) fn elements(&mut self, opener: usize) {
        let bar = self.token_end.saturating_sub(1);
        self.trivia();
        if self.peek() == b']' {
            let error = Diagnostic::error(code::NO_ELEMENTS, self.span(bar, bar + 1), "no elements after the `|`")
                .with_hint("remove the `|`, or add elements");
            return self.report(error);
        }
        self.extra_commas("elements");
        while !self.at_end() && self.peek() != b']' {
            let before = self.pos;
            self.element();
            let classify = |parser: &Self| parser.classify_among_elements(opener);
            if self.after_item(b']', "elements", classify) == AfterItem::ListEnd || self.pos == before {
                break;
            }
        }
    }

    fn element(&mut self) {
        let start = self.pos;
        match self.peek() {
            b'(' => self.path(),
            b'[' => self.bracket(),
            b'@' => {
                self.misplaced_annotations("annotations are only allowed at the top level, not on elements");
                self.trivia();
                if matches!(self.peek(), b'(' | b'[') {
                    self.element();
                }
            }
            b'{' => self.misplaced_record(),
            b')' | b'}' => {}
            b'-' | b'=' | b'~' | b'<' if !is_digit(self.byte(start + 1)) => self.arrow_without_node(),
            _ if self.identifier(Kind::Reference) => self.reference_with_subject(start),
            _ => self.junk(),
        }
    }

    /// Parses labels and a record where no subject is allowed.
    pub(super) fn misplaced_labels(&mut self) {
        let id = self.start(Kind::Error);
        self.labels_and_record();
        self.finish(id, self.token_end);
    }

    /// Reports labels or a record after a reference.
    fn reference_with_subject(&mut self, start: usize) {
        self.trivia();
        if !matches!(self.peek(), b':' | b'{') {
            return;
        }
        let more = self.pos;
        self.misplaced_labels();
        let element_end = self.token_end;
        self.trivia();
        if matches!(self.peek(), b'-' | b'=' | b'~' | b'<') {
            let node = self.span(start, element_end);
            let hint = format!("write `({})`", truncate_source(node.slice(self.source)));
            let from = self.pos;
            while !self.at_end() && !matches!(self.peek(), b',' | b']' | b'|' | b'\n') {
                self.bump(1);
            }
            self.junk_node(from, self.pos);
            let error = Diagnostic::error(code::REFERENCE, node, "the nodes of a path are in parentheses");
            return self.report(error.with_hint(hint));
        }
        let name = self.span(start, self.token_end).slice(self.source);
        let reference = self.span(start, more).slice(self.source).trim_end();
        let hint = format!(
            "write only {}, or put everything in brackets: `[{}]`",
            quote_source(reference),
            truncate_source(name)
        );
        let error = Diagnostic::error(
            code::REFERENCE,
            self.span(start, self.token_end),
            "a reference is only a name, without labels or a record",
        )
        .with_hint(hint);
        self.report(error);
    }

    fn classify_among_elements(&self, opener: usize) -> UnexpectedToken {
        match self.peek() {
            b'(' | b'[' | b'@' if self.ends_unclosed(opener) => UnexpectedToken::EndsList,
            b'(' | b'[' | b'`' | b'@' | b'{' => UnexpectedToken::StartsItem,
            byte if is_name_start(byte) || is_digit(byte) || self.is_non_ascii(byte) => UnexpectedToken::StartsItem,
            b'|' | b';' => UnexpectedToken::WrongSeparator,
            _ => UnexpectedToken::Junk,
        }
    }

    // Text where no pattern is allowed.

    /// Parses a record where a pattern should be.
    pub(super) fn misplaced_record(&mut self) {
        let start = self.pos;
        let id = self.start(Kind::Error);
        self.record(Kind::Record);
        self.finish(id, self.token_end);
        let at_top = self.open_brackets.is_empty();
        let error = Diagnostic::error(
            code::MISPLACED_RECORD,
            self.span(start, start + 1),
            if at_top {
                "a standalone record is only allowed at the start of the file"
            } else {
                "a record is not an element"
            },
        )
        .with_hint(if at_top {
            "move it to the start of the file, or into a node: `({…})`"
        } else {
            "put it in a node: `({…})`"
        });
        self.report(error);
    }

    /// Reports names with labels or a record that lack their brackets: `a:Agent {…}`. Returns whether there are any.
    fn bare_declaration(&mut self, start: usize, end: usize) -> bool {
        let line = self.bytes.get(end..self.line_end(end)).unwrap_or_default();
        let words = line.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b" \t_-.".contains(byte)).count();
        if !matches!(line.get(words), Some(b':' | b'{')) {
            return false;
        }
        self.bump_to(end + words);
        self.junk_node(start, end + words);
        self.misplaced_labels();
        let labels = self.span(end + words, self.token_end).slice(self.source).split('{').next().unwrap_or_default();
        let labels = if labels.trim().is_empty() { ":Label" } else { labels.trim() };
        let words = self.span(start, end + words).slice(self.source).trim_end();
        let name = words.rsplit([' ', '\t']).next().unwrap_or(words);
        let span = self.span(start, end);
        let error = Diagnostic::error(code::BARE_NAME, span, "a pattern is in brackets");
        self.report(error.with_hint(format!("write `[{} {{…}}]`", truncate_source(&format!("{name}{labels}")))));
        true
    }

    /// Handles a token that cannot start a top-level pattern.
    pub(super) fn stray_top_level(&mut self) {
        let start = self.pos;
        match self.peek() {
            b')' | b']' | b'}' => self.unmatched_closer(),
            b'-' | b'=' | b'~' | b'<' | b'>' => self.arrow_without_node(),
            b',' => {
                self.bump(1);
                let error = Diagnostic::error(
                    code::TOP_LEVEL_COMMA,
                    self.span(start, self.pos),
                    "unexpected `,` between patterns",
                )
                .with_hint("top-level patterns are not separated by commas; remove this `,`");
                self.report_junk(error);
                self.junk_node(start, self.pos);
            }
            byte if is_name_start(byte) => {
                let end = self.symbol_end(start);
                if self.bare_declaration(start, end) {
                    return;
                }
                let name = self.span(start, end).slice(self.source);
                let error = Diagnostic::error(
                    code::BARE_NAME,
                    self.span(start, end),
                    format!("the bare name {} is only allowed among elements", quote_source(name)),
                )
                .with_hint(format!(
                    "put it after a bar, `[… | {0}]`, or write `({0})` for a node",
                    truncate_source(name)
                ));
                self.report_junk(error);
                self.bump_to(end);
                self.junk_node(start, end);
            }
            _ => self.junk(),
        }
    }
}
