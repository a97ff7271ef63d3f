//! Typed access to the properties of a command.

use super::read::CommandReader;
use crate::rule;
use crate::text::{nearest, with_article};
use patter_gram::{Diagnostic, Property, Span, Syntax, Value};

impl<'t> CommandReader<'t, '_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn head(&self) -> Span {
        self.pattern.identifier().map_or(self.pattern.span(), Syntax::span)
    }

    /// Returns a property and its value.
    pub(super) fn value(&self, key: &str) -> Option<(Property<'t>, Syntax<'t>)> {
        let property = self.pattern.property(key)?;
        Some((property, property.value()?))
    }

    pub(super) fn wrong(&self, property: Property<'t>, value: Syntax<'t>, expected: &str) -> Diagnostic {
        let key = property.key();
        let message = match Value::read(value) {
            Some(value) => format!("`{key}` must be {expected}, not {}", with_article(value.type_name())),
            None => format!("`{key}` must be {expected}"),
        };
        rule::WRONG_VALUE.at(value.span(), message)
    }

    pub(super) fn text(&mut self, key: &str) -> Option<(Syntax<'t>, String)> {
        self.text_of(self.pattern.property(key)?)
    }

    pub(super) fn text_of(&mut self, property: Property<'t>) -> Option<(Syntax<'t>, String)> {
        let value = property.value()?;
        let text = value.read_text();
        if text.is_none() {
            let found = self.wrong(property, value, "a string");
            self.report(found.with_hint("put quotes around it"));
        }
        Some((value, text?.into_owned()))
    }

    pub(super) fn word(&mut self, key: &str, words: &[&'static str]) -> Option<&'static str> {
        let (property, value) = self.value(key)?;
        let word = match Value::read(value)? {
            Value::String(word) | Value::Symbol(word) => word,
            _ => {
                let found = self.wrong(property, value, &format!("one of {}", words.join(", ")));
                self.report(found);
                return None;
            }
        };
        let known = words.iter().copied().find(|known| *known == word);
        if known.is_none() {
            let found = rule::OUT_OF_BOUNDS.at(value.span(), format!("`{key}` cannot be `{word}`"));
            self.report(found.with_hint(match nearest(&word, words.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("possible values: {}", words.join(", ")),
            }));
        }
        known
    }

    pub(super) fn integer(&mut self, key: &str, min: i64, max: i64) -> Option<i64> {
        let (property, value) = self.value(key)?;
        let Some(Value::Integer(integer)) = Value::read(value) else {
            let found = self.wrong(property, value, "a whole number");
            self.report(found);
            return None;
        };
        let found = integer.to_i64().filter(|number| (min..=max).contains(number));
        if found.is_none() {
            let message = format!("`{key}` is {integer}, but must be from {min} to {max}");
            self.report(rule::OUT_OF_BOUNDS.at(value.span(), message));
        }
        found
    }
}
