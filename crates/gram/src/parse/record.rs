//! Parsing records and maps.

use super::lex::{is_name_start, quote_source, truncate_source};
use super::separator::{AfterItem, UnexpectedToken};
use super::value::ValuePosition;
use super::{Parser, SkipLimit};
use crate::tree::{Flags, RawNode};
use crate::{Diagnostic, Dialect, Kind, code, text};
use std::borrow::Cow;
use std::collections::HashMap;

impl<'s> Parser<'s> {
    /// Parses a record or a map. The next byte is `{`.
    pub(super) fn record(&mut self, kind: Kind) {
        if self.skip_if_too_deep() {
            return;
        }
        let id = self.start(kind);
        self.enter(b'}');
        self.trivia();
        self.extra_commas("properties");
        let mut count = 0;
        if self.peek() != b'}' && !self.at_end() {
            loop {
                let before = self.pos;
                count += u32::from(self.property(kind));
                let classify = |parser: &Self| parser.classify_in_record();
                if self.after_item(b'}', "properties", classify) == AfterItem::ListEnd {
                    break;
                }
                if self.pos == before {
                    break;
                }
            }
        }
        self.leave(id);
        if count > 1 {
            self.duplicate_keys(id);
        }
    }

    fn classify_in_record(&self) -> UnexpectedToken {
        match self.peek() {
            b'|' | b'(' | b'[' | b'@' | b'{' => UnexpectedToken::EndsList,
            b'"' | b'`' | b'\'' => UnexpectedToken::StartsItem,
            byte if is_name_start(byte) || self.is_non_ascii(byte) => UnexpectedToken::StartsItem,
            b';' => UnexpectedToken::WrongSeparator,
            _ => UnexpectedToken::Junk,
        }
    }

    /// Parses `key: value`. Returns whether there was a key.
    fn property(&mut self, kind: Kind) -> bool {
        let id = self.start(Kind::Property);
        if !self.key() {
            self.nodes.truncate(id);
            return false;
        }
        self.trivia();
        self.colon(kind);
        self.trivia();
        let position = if kind == Kind::Map { ValuePosition::Map } else { ValuePosition::Property };
        let value_start = self.pos;
        if !self.value(position) {
            let name = self.nodes.get(id + 1).map_or("", |key| key.span().slice(self.source));
            let message = format!("missing value for {}", quote_source(name));
            let at = self.span(self.token_end, self.token_end);
            let error =
                Diagnostic::error(code::MISSING_VALUE, at, message).with_hint("write a value, or remove the key");
            self.report(error);
        }
        self.unquoted_words(value_start);
        self.finish(id, self.token_end);
        true
    }

    fn key(&mut self) -> bool {
        match self.peek() {
            b'"' | b'`' => self.quoted_text(Kind::Key),
            b'\'' => {
                let start = self.pos;
                self.quoted_text(Kind::Key);
                let message = "a key cannot be in single quotes";
                let error = Diagnostic::error(code::KEY, self.span(start, self.pos), message)
                    .with_hint("use double quotes or backticks");
                self.report(error);
            }
            byte if is_name_start(byte) => {
                let end = self.symbol_end(self.pos);
                self.token(Kind::Key, end);
                if self.is_non_ascii(self.peek()) {
                    self.non_ascii_name();
                }
            }
            byte if self.is_non_ascii(byte) => {
                self.token(Kind::Key, self.word_end(self.pos));
                self.non_ascii_name();
            }
            byte if byte.is_ascii_digit() && self.is_decimal_comma() => {
                let start = self.pos;
                self.bump_to(self.word_end(start));
                let message = "a number has a decimal point, not a comma";
                let error = Diagnostic::error(code::NUMBER, self.span(start - 1, self.pos), message);
                self.report(error.with_hint("write `.` instead of `,`"));
                return false;
            }
            byte if byte.is_ascii_digit() => {
                let end = self.word_end(self.pos);
                let message = format!("the key {} needs quotes", self.describe_next_token());
                let error = Diagnostic::error(code::KEY, self.span(self.pos, end), message)
                    .with_hint("a bare key starts with a letter or `_`");
                self.report(error);
                self.token(Kind::Key, end);
            }
            b'(' | b'[' | b'@' | b'|' | b')' | b']' => return false,
            b'{' => {
                let start = self.pos;
                let message = "expected a key, found `{`";
                self.report(Diagnostic::error(code::KEY, self.span(start, start + 1), message));
                self.skip_group(SkipLimit::LineEnd);
                self.junk_node(start, self.pos);
                return false;
            }
            b':' => {
                let error = Diagnostic::error(code::KEY, self.span(self.pos, self.pos + 1), "missing key before `:`");
                self.report(error);
                self.leaf(Kind::Key, self.pos, self.pos, Flags::default());
            }
            _ => {
                self.junk();
                return false;
            }
        }
        true
    }

    /// Returns whether the digits that come next follow a number and a comma, and no key.
    fn is_decimal_comma(&self) -> bool {
        let [.., before, b','] = self.bytes.get(..self.pos).unwrap_or_default() else { return false };
        let after = self.rest(self.word_end(self.pos)).iter().find(|byte| !byte.is_ascii_whitespace());
        before.is_ascii_digit() && after != Some(&b':')
    }

    fn colon(&mut self, kind: Kind) {
        let start = self.pos;
        match (self.peek(), self.byte(start + 1)) {
            (b':', b':') => {
                self.bump(2);
                if kind == Kind::Map && self.dialect == Dialect::Portable {
                    self.not_portable(start, start + 2, "`::` in a map");
                }
            }
            (b':', _) => self.bump(1),
            (b'=' | b'>' | b'<', _) => {
                let run = |byte: &&u8| matches!(byte, b'=' | b'>' | b'<');
                let length = self.rest(start).iter().take_while(run).count();
                self.bump(length);
                let text = self.span(start, self.pos);
                let message = format!("expected `:` after the key, found `{}`", text.slice(self.source));
                self.report(Diagnostic::error(code::MISSING_COLON, text, message).with_hint("write `key: value`"));
            }
            // If the value is missing too, only that is reported.
            (b',' | b'}' | b']' | b')' | b'|' | b'@', _) => {}
            _ if self.at_end() => {}
            _ => {
                let at = self.span(self.token_end, self.token_end);
                let error = Diagnostic::error(code::MISSING_COLON, at, "missing `:` after the key")
                    .with_hint("write `key: value`");
                self.report(error);
            }
        }
    }

    /// Reports words that follow a value on its line, most likely unquoted text.
    fn unquoted_words(&mut self, value_start: usize) {
        let value_end = self.token_end;
        self.trivia();
        let is_text = is_name_start(self.peek()) || self.is_non_ascii(self.peek());
        let quote = self.byte(value_start);
        if is_text && self.pos == value_end && matches!(quote, b'"' | b'\'') && self.byte(value_end - 1) == quote {
            return self.quote_inside_string(quote);
        }
        if self.diagnostics.last().is_some_and(|last| last.code == code::RANGE && last.span.end as usize == value_end) {
            let end = self.word_end(self.pos);
            if end > self.pos && !self.is_on_new_line() {
                self.junk_node(self.pos, end);
                self.bump_to(end);
            }
            return;
        }
        if !is_text || self.is_on_new_line() || value_end == value_start {
            return;
        }
        let first_end = self.word_end(self.pos);
        let after = self.rest(first_end).iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        let value_starts_with_letter = is_name_start(self.byte(value_start));
        if after == Some(&b':') || !(value_starts_with_letter || self.byte(value_start).is_ascii_digit()) {
            return;
        }
        let stop = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b')' | b'\n' | b'{' | b'(' | b'[' | b'"' | b'`');
        let length = self.rest(self.pos).iter().position(stop).unwrap_or(self.bytes.len() - self.pos);
        let line = self.source.get(self.pos..self.pos + length).unwrap_or_default();
        let start = self.pos;
        self.bump_to(start + line.trim_end().len());
        let text = self.span(value_start, self.pos);
        let error = Diagnostic::error(code::UNQUOTED, text, "text with several words needs quotes")
            .with_hint(format!("write \"{}\"", truncate_source(text.slice(self.source)).replace('"', "\\\"")));
        self.report(error);
        self.junk_node(start, self.pos);
    }

    /// Reports a quote inside a string that ended the string early: `'It's nice'`.
    fn quote_inside_string(&mut self, quote: u8) {
        let start = self.pos;
        let line = self.bytes.get(start..self.line_end(start)).unwrap_or_default();
        let length =
            line.iter().position(|byte| *byte == quote).map_or_else(|| self.word_end(start) - start, |at| at + 1);
        self.bump(length);
        let (mark, other) = if quote == b'"' { ('"', '\'') } else { ('\'', '"') };
        let error = Diagnostic::error(code::ESCAPE, self.span(start - 1, start), "this quote ends the string")
            .with_hint(format!("write `\\{mark}` for a quote inside the string, or use `{other}` around it"));
        self.report(error);
        self.junk_node(start, self.pos);
    }

    /// Warns about duplicate keys in a record or map.
    fn duplicate_keys(&mut self, id: usize) {
        // Comparing all pairs of a few short keys is cheaper than hashing them.
        const FEW: usize = 12;
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        let mut at = id + 1;
        while let Some(property) = self.nodes.get(at) {
            if property.kind == Kind::Property
                && let Some(key) = self.nodes.get(at + 1)
                && key.kind == Kind::Key
                && key.start < key.end
            {
                keys.push(*key);
            }
            at = property.next as usize;
        }
        if keys.len() <= FEW {
            for (index, key) in keys.iter().enumerate() {
                let name = self.key_name(key);
                if let Some(first) = keys.iter().take(index).find(|first| self.key_name(first) == name) {
                    self.duplicate_key(first, key);
                }
            }
        } else {
            let mut seen = HashMap::with_capacity(keys.len());
            for key in &keys {
                let first = *seen.entry(self.key_name(key)).or_insert(key);
                if first.start != key.start {
                    self.duplicate_key(first, key);
                }
            }
        }
        self.keys = keys;
    }

    #[cold]
    fn duplicate_key(&mut self, first: &RawNode, key: &RawNode) {
        let message = format!("duplicate key {}", quote_source(&self.key_name(key)));
        let warning = Diagnostic::warning(code::DUPLICATE_KEY, key.span(), message)
            .with_related(first.span(), "first used here")
            .with_hint("remove one of them");
        self.diagnostics.push(warning);
    }

    #[inline]
    fn key_name(&self, key: &RawNode) -> Cow<'s, str> {
        text::unquote(key.span().slice(self.source), key.flags)
    }
}
