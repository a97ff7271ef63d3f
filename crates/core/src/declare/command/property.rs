//! Properties and their values, by what they should be.

use super::read::Reading;
use crate::signature::a;
use crate::{nearest, rule};
use patter_gram::{Diagnostic, Property, Span, Syntax, Value};
use std::time::Duration;

impl<'t> Reading<'t, '_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn head(&self) -> Span {
        self.pattern.identifier().map_or(self.pattern.span(), Syntax::span)
    }

    pub(super) fn known_properties(&mut self, known: &[&str]) {
        for property in self.pattern.properties() {
            let key = property.key();
            // A name among the properties is reported as what it is.
            if known.contains(&key.as_ref()) || key == "name" {
                continue;
            }
            let span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
            let found = rule::UNKNOWN_PROPERTY.at(span, format!("a command has no property `{key}`"));
            self.report(found.with_hint(match nearest(&key, known.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("it may have {}", known.join(", ")),
            }));
        }
    }

    /// Returns a property and the syntax of its value.
    pub(super) fn value(&self, key: &str) -> Option<(Property<'t>, Syntax<'t>)> {
        let property = self.pattern.property(key)?;
        Some((property, property.value()?))
    }

    pub(super) fn wrong(&self, property: Property<'t>, value: Syntax<'t>, expected: &str) -> Diagnostic {
        let key = property.key();
        let message = match Value::read(value) {
            Some(value) => format!("`{key}` takes {expected}, not {}", a(value.type_name())),
            None => format!("`{key}` takes {expected}"),
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
            let found = self.wrong(property, value, "a text");
            self.report(found.with_hint("put quotes around it"));
        }
        Some((value, text?.into_owned()))
    }

    pub(super) fn word(&mut self, key: &str, words: &[&'static str]) -> Option<&'static str> {
        let (property, value) = self.value(key)?;
        let word = match Value::read(value)? {
            Value::String(word) | Value::Symbol(word) => word,
            _ => {
                let found = self.wrong(property, value, "a word");
                self.report(found.with_hint(format!("it is one of {}", words.join(", "))));
                return None;
            }
        };
        let known = words.iter().copied().find(|known| *known == word);
        if known.is_none() {
            let found = rule::OUT_OF_BOUNDS.at(value.span(), format!("`{key}` cannot be `{word}`"));
            self.report(found.with_hint(match nearest(&word, words.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it is one of {}", words.join(", ")),
            }));
        }
        known
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        let (property, value) = self.value(key)?;
        if let Some(Value::Boolean(boolean)) = Value::read(value) {
            return Some(boolean);
        }
        let found = self.wrong(property, value, "true or false");
        self.report(found);
        None
    }

    pub(super) fn integer(&mut self, key: &str, least: i64, most: i64) -> Option<i64> {
        let (property, value) = self.value(key)?;
        let Some(Value::Integer(integer)) = Value::read(value) else {
            let found = self.wrong(property, value, "a whole number");
            self.report(found);
            return None;
        };
        let found = integer.to_i64().filter(|number| (least..=most).contains(number));
        if found.is_none() {
            let message = format!("`{key}` is {integer}, but must be from {least} to {most}");
            self.report(rule::OUT_OF_BOUNDS.at(value.span(), message));
        }
        found
    }

    pub(super) fn duration(&mut self, key: &str) -> Option<Duration> {
        let (property, value) = self.value(key)?;
        let duration = Value::read(value).and_then(|value| duration_of(&value));
        if duration.is_none() {
            let found = self.wrong(property, value, "a time");
            self.report(found.with_hint("write seconds, or a number with ms, s, m or h: `30s`"));
        }
        duration
    }
}

fn duration_of(value: &Value) -> Option<Duration> {
    let (amount, milliseconds) = match value {
        Value::Integer(seconds) => (seconds, 1000),
        Value::Measurement { amount, unit } => match unit.as_str() {
            "ms" => (amount, 1),
            "s" => (amount, 1000),
            "m" => (amount, 60_000),
            "h" => (amount, 3_600_000),
            _ => return None,
        },
        _ => return None,
    };
    let amount = u64::try_from(amount.to_i64()?).ok().filter(|amount| *amount > 0)?;
    amount.checked_mul(milliseconds).map(Duration::from_millis)
}
