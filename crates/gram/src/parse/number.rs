//! Numbers, by the longest match.

use super::{Parser, lex::is_digit};
use crate::{Diagnostic, Kind, code};

impl Parser<'_> {
    /// Returns the kind and the end of the number that starts at `start`, if one does.
    pub(super) fn number_at(&self, start: usize) -> Option<(Kind, usize)> {
        let negative = self.byte(start) == b'-';
        let first = start + usize::from(negative);
        if !is_digit(self.byte(first)) {
            return None;
        }
        let run = |from: usize, belongs: fn(&u8) -> bool| {
            from + self.rest(from).iter().take_while(|byte| belongs(byte)).count()
        };
        let mut whole = first + 1;
        if self.byte(first) != b'0' {
            whole = run(whole, u8::is_ascii_digit);
        } else if !negative {
            let octal = run(whole, |byte| matches!(byte, b'0'..=b'7'));
            if octal > whole {
                return Some((Kind::Octal, octal));
            }
            let hexadecimal = run(whole + 1, u8::is_ascii_hexdigit);
            let unit = run(whole, u8::is_ascii_alphabetic);
            if self.byte(whole) == b'x' && hexadecimal > whole + 1 && hexadecimal >= unit {
                return Some((Kind::Hexadecimal, hexadecimal));
            }
        }
        if self.byte(whole) == b'.' && is_digit(self.byte(whole + 1)) {
            return Some((Kind::Decimal, run(whole + 2, u8::is_ascii_digit)));
        }
        let unit = run(whole, u8::is_ascii_alphabetic);
        let kind = if unit > whole { Kind::Measurement } else { Kind::Integer };
        Some((kind, unit))
    }

    /// Reads the number that starts here. One that runs on into other text is reported and consumed whole.
    pub(super) fn number(&mut self) -> Option<(Kind, usize)> {
        let start = self.pos;
        let (kind, end) = self.number_at(start)?;
        let runs_on = match self.byte(end) {
            b'.' => self.byte(end + 1) != b'.',
            b'@' | b'-' => false,
            _ => self.word_end(end) > end,
        };
        if runs_on {
            let end = self.word_end(end);
            self.bump_to(end);
            let found = self.malformed_number(start, end);
            self.report(found);
            return Some((kind, end));
        }
        self.bump_to(end);
        Some((kind, end))
    }

    pub(super) fn malformed_number(&self, start: usize, end: usize) -> Diagnostic {
        let span = self.span(start, end);
        let text = span.of(self.source);
        let message = format!("{} is not a number", super::lex::quoted(text));
        let digits = text.trim_start_matches(['-', '+']);
        let is_exponent = digits.contains(['e', 'E'])
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
        let hint = if is_exponent {
            "gram has no exponents; write the number out, as in `1500.0`"
        } else if digits.contains('_') {
            "gram has no digit separators; write the digits without `_`"
        } else if digits.starts_with('.') {
            "write a digit before the point, as in `0.5`"
        } else if digits.ends_with('.') {
            "write a digit after the point, as in `1.0`"
        } else if text.starts_with('+') {
            "leave out the `+`"
        } else if digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            "a leading 0 makes the number octal, with the digits 0 to 7; leave it out"
        } else if digits.contains('.') && digits.ends_with(|last: char| last.is_ascii_alphabetic()) {
            "a measurement is a whole number and a unit, as in `1500m`"
        } else {
            "a number is `42`, `-3.14`, `0xFF`, `042` or `5km`; other text needs quotes"
        };
        Diagnostic::error(code::NUMBER, span, message).with_hint(hint)
    }
}
