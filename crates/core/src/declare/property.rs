//! Properties: which there are, and what values they take.

use crate::{rule, text::nearest, text::with_article};
use patter_gram::{Decimal, Diagnostic, Integer, Pattern, Property, Syntax, Value};
use std::time::Duration;

/// What values a property takes.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
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

/// Returns the properties that nothing reads.
pub(crate) fn unknown(pattern: Pattern<'_>, noun: &str, known: &[&str]) -> Vec<Diagnostic> {
    // A name among the properties is reported as what it is.
    let unknown = pattern.properties().filter(|property| {
        let key = property.key();
        key != "name" && !known.contains(&key.as_ref())
    });
    let found = unknown.map(|property| {
        let key = property.key();
        let span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
        let found = rule::UNKNOWN_PROPERTY.at(span, format!("{} has no property `{key}`", with_article(noun)));
        found.with_hint(match nearest(&key, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("it may have {}", known.join(", ")),
        })
    });
    found.collect()
}

/// Returns what is wrong with the value of a property, if anything is.
pub(crate) fn wrong(property: Property<'_>, takes: Takes) -> Option<Diagnostic> {
    let (syntax, key) = (property.value()?, property.key());
    let value = Value::read(syntax)?;
    let number = match &value {
        Value::Integer(integer) => integer.to_i64().map(|small| small as f64),
        Value::Decimal(decimal) => Some(decimal.to_f64()),
        _ => None,
    };
    let wrong = |expected: &str| {
        let message = format!("`{key}` takes {expected}, not {}", with_article(value.type_name()));
        let found = rule::WRONG_VALUE.at(syntax.span(), message);
        if is_quoted(&value, takes) { found.with_hint("remove the quotes") } else { found }
    };
    let found = match takes {
        Takes::Text if syntax.read_text().is_none() => wrong("a text").with_hint("put quotes around it"),
        Takes::Boolean if !matches!(value, Value::Boolean(_)) => wrong("true or false"),
        Takes::Texts if !is_texts(&value) => wrong("a text, or a list of texts"),
        Takes::Duration if duration(&value).is_none() => {
            wrong("a time").with_hint("write seconds, or a number with ms, s, m or h: `30s`")
        }
        Takes::Word(words) => match &value {
            Value::String(word) | Value::Symbol(word) if words.contains(&word.as_str()) => return None,
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
            Some(number) if number < least || number > most => {
                rule::OUT_OF_BOUNDS.at(syntax.span(), format!("`{key}` is {value}, but must be from {least} to {most}"))
            }
            Some(_) => return None,
        },
        Takes::Integer { least } => match (&value, number) {
            (Value::Integer(_), Some(number)) if number >= least as f64 => return None,
            (Value::Integer(_), _) => {
                rule::OUT_OF_BOUNDS.at(syntax.span(), format!("`{key}` is {value}, but must be at least {least}"))
            }
            _ => wrong("a whole number"),
        },
        Takes::Text | Takes::Boolean | Takes::Texts | Takes::Duration => return None,
    };
    Some(found)
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

/// Reads a time: seconds, or a measurement such as `30s`.
pub(crate) fn duration(value: &Value) -> Option<Duration> {
    let (amount, milliseconds) = match value {
        Value::Integer(seconds) => (seconds, 1_000),
        Value::Measurement { amount, unit } => (
            amount,
            match unit.as_str() {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                _ => return None,
            },
        ),
        _ => return None,
    };
    let amount = amount.to_i64().and_then(|amount| u64::try_from(amount).ok()).filter(|amount| *amount > 0)?;
    amount.checked_mul(milliseconds).map(Duration::from_millis)
}
