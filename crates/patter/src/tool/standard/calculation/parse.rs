//! Parsing of expressions, which are evaluated on the fly.

use super::function::{NAMES, apply, constant};
use super::number::{ArithmeticError, Number};
use super::power::power;
use patter_core::text::nearest;
use thiserror::Error;

/// The nesting limit of expressions.
const MAX_DEPTH: usize = 64;

/// An error in an expression, with its position.
#[derive(Debug, Error)]
#[error("{message} (at character {})", at + 1)]
pub(super) struct ExpressionError {
    message: String,
    at: usize,
}

/// Evaluates an expression.
pub(super) fn evaluate(text: &str) -> Result<Number, ExpressionError> {
    let mut parser = Parser { text: text.chars().collect(), at: 0, depth: 0 };
    let number = parser.sum()?;
    match parser.peek() {
        None => Ok(number),
        Some(')') => Err(parser.error("unmatched `)`")),
        Some(_) => Err(parser.error(format!("expected an operator before {}", parser.found()))),
    }
}

struct Parser {
    text: Vec<char>,
    at: usize,
    depth: usize,
}

type ParseResult = Result<Number, ExpressionError>;

impl Parser {
    /// Parses terms with `+` and `-`.
    fn sum(&mut self) -> ParseResult {
        let mut left = self.product()?;
        loop {
            let at = self.at();
            let result = if self.take(&['+']) {
                left.add(&self.product()?)
            } else if self.take(&['-', '−']) {
                left.subtract(&self.product()?)
            } else {
                return Ok(left);
            };
            left = located(result, at)?;
        }
    }

    /// Parses factors with `*`, `/` and `%`.
    fn product(&mut self) -> ParseResult {
        let mut left = self.signed()?;
        loop {
            let at = self.at();
            let result = if self.take(&['*', '×', '·']) {
                left.multiply(&self.signed()?)
            } else if self.take(&['/', '÷']) {
                left.divide(&self.signed()?)
            } else if self.take(&['%']) {
                left.remainder(&self.signed()?)
            } else {
                return Ok(left);
            };
            left = located(result, at)?;
        }
    }

    /// Parses a number with leading signs, which bind less tightly than `^`.
    fn signed(&mut self) -> ParseResult {
        if self.take(&['-', '−']) {
            return Ok(self.nested(Self::signed)?.negate());
        }
        if self.take(&['+']) {
            return self.nested(Self::signed);
        }
        let base = self.postfix()?;
        let at = self.at();
        let is_power = self.take(&['^']) || (self.peek() == Some('*') && self.next_is('*') && self.take_two());
        if !is_power {
            return Ok(base);
        }
        let exponent = self.nested(Self::signed)?;
        located(power(&base, &exponent), at)
    }

    /// Parses a number with a trailing `!`.
    fn postfix(&mut self) -> ParseResult {
        let number = self.atom()?;
        let at = self.at();
        if !self.take(&['!']) {
            return Ok(number);
        }
        if self.peek() == Some('!') {
            return Err(self.error("`!!` is ambiguous: write `(n!)!` for the factorial of the factorial"));
        }
        located(number.factorial(), at)
    }

    fn atom(&mut self) -> ParseResult {
        match self.peek() {
            Some('(') => {
                let open = self.at();
                self.at += 1;
                let number = self.nested(Self::sum)?;
                if self.take(&[')']) {
                    return Ok(number);
                }
                match self.peek() {
                    None => Err(ExpressionError { message: "unmatched `(`".to_owned(), at: open }),
                    Some(_) => Err(self.error(format!("expected an operator or `)` before {}", self.found()))),
                }
            }
            Some('√') => {
                let at = self.at();
                self.at += 1;
                let number = self.nested(Self::postfix)?;
                located(super::power::root(&number, 2), at)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.name(),
            Some(_) => Err(self.error(format!("expected a number, not {}", self.found()))),
            None if self.at == 0 => Err(self.error("the expression is empty")),
            None => Err(self.error("expected a number, not the end")),
        }
    }

    fn number(&mut self) -> ParseResult {
        let at = self.at();
        let mut text = self.digits();
        if self.current() == Some('.') {
            self.at += 1;
            text.push('.');
            text.push_str(&self.digits());
        }
        if text == "." {
            return Err(ExpressionError { message: "expected a number, not `.`".to_owned(), at });
        }
        // `2e` and `2exp(1)` have no exponent.
        let signs = usize::from(matches!(self.ahead(1), Some('+' | '-')));
        if matches!(self.current(), Some('e' | 'E')) && self.ahead(1 + signs).is_some_and(|c| c.is_ascii_digit()) {
            text.push('e');
            text.extend(self.ahead(1).filter(|_| signs == 1));
            self.at += 1 + signs;
            text.push_str(&self.digits());
        }
        if matches!(self.current(), Some('.' | '_')) {
            return Err(self.error("invalid number: write it as 1234.5, with one point and without separators"));
        }
        located(Number::parse(&text), at)
    }

    fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some(digit) = self.current().filter(char::is_ascii_digit) {
            digits.push(digit);
            self.at += 1;
        }
        digits
    }

    /// Parses a constant, or a function with its arguments.
    fn name(&mut self) -> ParseResult {
        let at = self.at();
        let mut name = String::new();
        while let Some(letter) = self.current().filter(|c| c.is_alphanumeric() || *c == '_') {
            name.push(letter);
            self.at += 1;
        }
        let name = name.to_lowercase();
        if let Some(constant) = constant(&name) {
            return located(constant, at);
        }
        if !NAMES.contains(&name.as_str()) {
            let hint = match nearest(&name, NAMES.iter().copied()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => format!("; available: {}", NAMES.join(", ")),
            };
            return Err(ExpressionError { message: format!("unknown name `{name}`{hint}"), at });
        }
        if !self.take(&['(']) {
            return Err(self.error(format!("`{name}` is a function: write `{name}(…)`")));
        }
        let mut arguments = Vec::new();
        if !self.take(&[')']) {
            loop {
                arguments.push(self.nested(Self::sum)?);
                if self.take(&[')']) {
                    break;
                }
                if !self.take(&[',', ';']) {
                    let what = if self.peek().is_some() { self.found() } else { "the end".to_owned() };
                    return Err(self.error(format!("expected `,` or `)` in `{name}(…)`, not {what}")));
                }
            }
        }
        match apply(&name, &arguments) {
            Some(result) => located(result, at),
            None => {
                let message = format!("`{name}` does not accept {} arguments", arguments.len());
                Err(ExpressionError { message, at })
            }
        }
    }

    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult) -> ParseResult {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("the expression nests deeper than {MAX_DEPTH} levels")));
        }
        let number = parse(self)?;
        self.depth -= 1;
        Ok(number)
    }

    /// Skips white space, and returns the position.
    fn at(&mut self) -> usize {
        while self.current().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        self.at
    }

    /// Returns the next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.at();
        self.current()
    }

    fn current(&self) -> Option<char> {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> Option<char> {
        self.text.get(self.at + count).copied()
    }

    fn next_is(&self, expected: char) -> bool {
        self.ahead(1) == Some(expected)
    }

    /// Consumes the next character if it is one of these. The first `*` of `**`, a power, is not consumed.
    fn take(&mut self, characters: &[char]) -> bool {
        let is_next = self.peek().is_some_and(|c| characters.contains(&c) && !(c == '*' && self.next_is('*')));
        self.at += usize::from(is_next);
        is_next
    }

    fn take_two(&mut self) -> bool {
        self.at += 2;
        true
    }

    fn found(&self) -> String {
        self.current().map(|c| format!("`{c}`")).unwrap_or_default()
    }

    fn error(&self, message: impl Into<String>) -> ExpressionError {
        ExpressionError { message: message.into(), at: self.at }
    }
}

fn located(result: Result<Number, ArithmeticError>, at: usize) -> ParseResult {
    result.map_err(|error| ExpressionError { message: error.to_string(), at })
}
