//! Parsing numbers, by longest match.

use super::{Parser, lex::is_digit};
use crate::{Diagnostic, Kind, code};

impl Parser<'_> {
    /// Returns the kind and the end of the number at `start`, if there is one.
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

    /// Parses a number, if there is one. If other text directly follows, the whole run is reported and consumed.
    pub(super) fn number(&mut self) -> Option<(Kind, usize)> {
        let start = self.pos;
        let (kind, end) = self.number_at(start)?;
        let run_end = self.run_on_end(end);
        if run_end > end {
            let end = run_end;
            self.bump_to(end);
            let error = self.malformed_number(start, end);
            self.report(error);
            return Some((kind, end));
        }
        self.bump_to(end);
        Some((kind, end))
    }

    /// Returns the end of the text that directly follows a number: `1815-12-10`, `5km/h`, `50%`.
    fn run_on_end(&self, end: usize) -> usize {
        let is_range = self.rest(end).starts_with(b"..");
        let is_comment = matches!(self.rest(end), [b'/', b'/' | b'*', ..]);
        if is_range || is_comment {
            return end;
        }
        let belongs = |byte: &&u8| !b" \t\r\n\x0b\x0c,;}])|\"'`{[(\0".contains(byte);
        end + self.rest(end).iter().take_while(belongs).count()
    }

    pub(super) fn malformed_number(&self, start: usize, end: usize) -> Diagnostic {
        let span = self.span(start, end);
        let text = span.slice(self.source);
        let message = format!("{} is not a number", super::lex::quote_source(text));
        let digits = text.trim_start_matches(['-', '+']);
        let is_exponent = digits.contains(['e', 'E'])
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
        let hint = if text.starts_with("..") {
            "a range without a lower bound has three dots, as in `...5`"
        } else if is_exponent && digits.bytes().all(|byte| byte != b'-' && byte != b'+') || is_signed_exponent(digits) {
            "gram has no exponents; write the number out, as in `1500.0`"
        } else if digits.contains('_') {
            "gram has no digit separators; write the digits without `_`"
        } else if digits.starts_with('.') {
            "write a digit before the point, as in `0.5`"
        } else if digits.ends_with('.') {
            "write a digit after the point, as in `1.0`"
        } else if text.starts_with('+') {
            "remove the `+`"
        } else if digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            "a leading 0 makes the number octal, with the digits 0 to 7; remove it"
        } else if digits.contains('.') && digits.ends_with(|last: char| last.is_ascii_alphabetic()) {
            "a measurement is a whole number and a unit, as in `1500m`"
        } else {
            "put quotes around text; a number is `42`, `-3.14`, `0xFF`, `042` or `5km`"
        };
        Diagnostic::error(code::NUMBER, span, message).with_hint(hint)
    }
}

/// Returns whether a text is a number with a signed exponent, such as `1.5e-3`.
fn is_signed_exponent(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.split_once(['e', 'E'])
        .is_some_and(|(mantissa, exponent)| digits(mantissa) && exponent.strip_prefix(['-', '+']).is_some_and(digits))
}
