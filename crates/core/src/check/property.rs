//! Properties: which there are, and what values they take.

use super::{Checker, a_noun, head, the};
use crate::{nearest, rule};
use patter_gram::{Decimal, Integer, Pattern, Property, Span, Syntax, Value};

/// What values a property takes.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    /// Text that is not empty.
    Text,
    /// A number within bounds.
    Number { least: f64, most: f64 },
    /// A whole number from a least one on.
    Integer { least: i64 },
    /// One of some words.
    Word(&'static [&'static str]),
    /// A text, or a list of texts.
    Texts,
    /// A time: seconds, or a measurement such as `30s`.
    Duration,
    /// `true` or `false`.
    Boolean,
}

impl<'p> Checker<'p> {
    /// Checks all properties against what there is.
    pub(super) fn properties(&mut self, pattern: Pattern<'p>, noun: &str, known: &[(&'static str, Takes)]) {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        self.known_properties(pattern, noun, &names);
        for (name, takes) in known {
            if let Some(property) = pattern.property(name) {
                self.property(property, *takes);
            }
        }
    }

    /// Reports properties that nothing reads.
    pub(super) fn known_properties(&mut self, pattern: Pattern<'p>, noun: &str, known: &[&str]) {
        for property in pattern.properties() {
            let key = property.key();
            // A name among the properties is reported as what it is.
            if known.contains(&key.as_ref()) || key == "name" {
                continue;
            }
            let span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
            let found = rule::UNKNOWN_PROPERTY.at(span, format!("{} has no property `{key}`", a_noun(noun)));
            self.report(found.with_hint(match nearest(&key, known.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("it may have {}", known.join(", ")),
            }));
        }
    }

    /// Reports a required text that is missing or empty.
    pub(super) fn required_text(&mut self, pattern: Pattern<'p>, noun: &str, key: &str) {
        let Some(property) = pattern.property(key) else {
            // A misspelt key, or a subject that cannot be read, is reported as what it is.
            let end = pattern.elements().next().map_or(pattern.span().end, |first| first.span().start);
            let is_misspelt = pattern.properties().any(|other| nearest(&other.key(), [key]).is_some());
            if is_misspelt || self.is_broken(Span::new(pattern.span().start, end)) {
                return;
            }
            let found = rule::MISSING_PROPERTY.at(head(pattern), format!("{} has no `{key}`", the(noun, pattern)));
            return self.report(found.with_hint(format!("add `{key}: \"…\"` to its record")));
        };
        let text = property.value().and_then(Syntax::read_text);
        if text.is_some_and(|text| text.trim().is_empty()) {
            let message = format!("the `{key}` of {} is empty", the(noun, pattern));
            self.report(rule::EMPTY_PROPERTY.at(property.syntax().span(), message).with_hint(match key {
                "model" => "write a provider and a model, as in `OpenAI/gpt-4o-mini`",
                "instruction" => "say what the agent should do",
                _ => "say what the tool does; a model knows nothing else of it",
            }));
        }
    }

    fn property(&mut self, property: Property<'p>, takes: Takes) {
        let (Some(syntax), key) = (property.value(), property.key()) else { return };
        let Some(value) = Value::read(syntax) else { return };
        let number = match &value {
            Value::Integer(integer) => integer.to_i64().map(|small| small as f64),
            Value::Decimal(decimal) => Some(decimal.to_f64()),
            _ => None,
        };
        let wrong = |expected: &str| {
            let message = format!("`{key}` takes {expected}, not {}", a_noun(value.type_name()));
            let found = rule::WRONG_VALUE.at(syntax.span(), message);
            if is_quoted(&value, takes) { found.with_hint("remove the quotes") } else { found }
        };
        let found = match takes {
            Takes::Text if syntax.read_text().is_none() => wrong("a text").with_hint("put quotes around it"),
            Takes::Boolean if !matches!(value, Value::Boolean(_)) => wrong("true or false"),
            Takes::Texts if !is_texts(&value) => wrong("a text, or a list of texts"),
            Takes::Duration if !is_duration(&value) => {
                wrong("a time").with_hint("write seconds, or a number with ms, s, m or h: `30s`")
            }
            Takes::Word(words) => match &value {
                Value::String(word) | Value::Symbol(word) if words.contains(&word.as_str()) => return,
                Value::String(word) | Value::Symbol(word) => {
                    let found = rule::OUT_OF_BOUNDS.at(syntax.span(), format!("`{key}` cannot be `{word}`"));
                    found.with_hint(match nearest(word, words.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("it is one of {}", words.join(", ")),
                    })
                }
                _ => wrong("a word"),
            },
            Takes::Number { least, most } => match number {
                None => wrong("a number"),
                Some(number) if number < least || number > most => rule::OUT_OF_BOUNDS
                    .at(syntax.span(), format!("`{key}` is {value}, but must be from {least} to {most}")),
                Some(_) => return,
            },
            Takes::Integer { least } => match (&value, number) {
                (Value::Integer(_), Some(number)) if number >= least as f64 => return,
                (Value::Integer(_), _) => {
                    rule::OUT_OF_BOUNDS.at(syntax.span(), format!("`{key}` is {value}, but must be at least {least}"))
                }
                _ => wrong("a whole number"),
            },
            Takes::Text | Takes::Boolean | Takes::Texts | Takes::Duration => return,
        };
        self.report(found);
    }
}

/// Tells whether a value would be right without its quotes.
fn is_quoted(value: &Value, takes: Takes) -> bool {
    let Value::String(text) = value else { return false };
    match takes {
        Takes::Number { .. } => Integer::parse(text).is_some() || Decimal::parse(text).is_some(),
        Takes::Integer { .. } => Integer::parse(text).is_some(),
        Takes::Boolean => matches!(text.as_str(), "true" | "false"),
        Takes::Text | Takes::Word(_) | Takes::Texts | Takes::Duration => false,
    }
}

fn is_texts(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().all(|item| matches!(item, Value::String(_))),
        _ => false,
    }
}

fn is_duration(value: &Value) -> bool {
    match value {
        Value::Integer(integer) => integer.to_i64().is_some_and(|seconds| seconds > 0),
        Value::Measurement { amount, unit } => {
            amount.to_i64().is_some_and(|amount| amount > 0) && matches!(unit.as_str(), "ms" | "s" | "m" | "h")
        }
        _ => false,
    }
}
