//! Checks of properties and their values.

use crate::rule;
use crate::text::{duration_in, nearest, with_article};
use patter_gram::{Decimal, Diagnostic, Integer, Pattern, Property, Syntax, Value};
use std::time::Duration;

/// The kind of value that a property accepts.
#[derive(Clone, Copy)]
pub(crate) enum ValueKind {
    /// A string.
    String,
    /// A number within bounds.
    Number { min: f64, max: f64 },
    /// A whole number with a lower bound.
    Integer { min: i64 },
    /// One of several words.
    OneOf(&'static [&'static str]),
    /// A string, or a list of strings.
    StringOrList,
    /// A duration: a number of seconds, or a measurement such as `30s`.
    Duration,
    /// `true` or `false`.
    Boolean,
}

/// Returns a diagnostic for each unknown property.
pub(crate) fn unknown_properties(pattern: Pattern<'_>, noun: &str, known: &[&str]) -> Vec<Diagnostic> {
    // A `name` property has its own diagnostic.
    let unknown = pattern.properties().filter(|property| {
        let key = property.key();
        key != "name" && !known.contains(&key.as_ref())
    });
    let found = unknown.map(|property| {
        let key = property.key();
        let span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
        let found = rule::UNKNOWN_PROPERTY.at(span, format!("{} has no property `{key}`", with_article(noun)));
        found.with_hint(match meant(&key, known) {
            Some(name) => format!("did you mean `{name}`?"),
            None if key == "tools" && noun == "agent" => {
                "write the tools after the properties: `[name:Agent {…} | sayHello]`".to_owned()
            }
            None => format!("known properties: {}", known.join(", ")),
        })
    });
    found.collect()
}

/// Properties that other programs name differently.
const SYNONYMS: [(&str, &str); 14] = [
    ("prompt", "instruction"),
    ("system", "instruction"),
    ("systemPrompt", "instruction"),
    ("system_prompt", "instruction"),
    ("llm", "model"),
    ("engine", "model"),
    ("desc", "description"),
    ("summary", "description"),
    ("command", "run"),
    ("cmd", "run"),
    ("exec", "run"),
    ("uri", "url"),
    ("endpoint", "url"),
    ("address", "url"),
];

/// Returns the property that an unknown key most likely means.
pub(crate) fn meant<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == key).map(|(_, name)| *name);
    nearest(key, known.iter().copied()).or_else(|| known.iter().copied().find(|name| Some(*name) == synonym))
}

/// Returns a diagnostic if a property does not have the right kind of value.
pub(crate) fn check_value(property: Property<'_>, kind: ValueKind) -> Option<Diagnostic> {
    let syntax = property.value()?;
    let key = property.key();
    let value = Value::read(syntax)?;
    let number = match &value {
        Value::Integer(integer) => integer.to_i64().map(|small| small as f64),
        Value::Decimal(decimal) => Some(decimal.to_f64()),
        _ => None,
    };
    let wrong = |expected: &str| {
        let message = format!("`{key}` must be {expected}, not {}", with_article(value.type_name()));
        let found = rule::WRONG_VALUE.at(syntax.span(), message);
        if is_quoted(&value, kind) { found.with_hint("remove the quotes") } else { found }
    };
    let found =
        match kind {
            ValueKind::String if syntax.read_text().is_none() => wrong("a string").with_hint(match value {
                Value::Array(_) => "write one text: several lines go between two lines of three backticks",
                _ => "put quotes around it",
            }),
            ValueKind::Boolean if !matches!(value, Value::Boolean(_)) => wrong("true or false"),
            ValueKind::StringOrList if matches!(value, Value::Array(_)) && !is_string_or_list(&value) => {
                let message = format!("`{key}` must be a list of strings, but one of its items is not a string");
                rule::WRONG_VALUE.at(syntax.span(), message).with_hint("put quotes around each item")
            }
            ValueKind::StringOrList if !is_string_or_list(&value) => wrong("a string or a list of strings"),
            ValueKind::Duration if duration(&value).is_none() => wrong("a duration")
                .with_hint("write a number of seconds, or a number with ms, s, m or h, such as `30s`"),
            ValueKind::OneOf(words) => match &value {
                Value::String(word) | Value::Symbol(word) if words.contains(&word.as_str()) => return None,
                Value::String(word) | Value::Symbol(word) => {
                    let found = rule::OUT_OF_BOUNDS.at(syntax.span(), format!("`{key}` cannot be `{word}`"));
                    found.with_hint(match nearest(word, words.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("possible values: {}", words.join(", ")),
                    })
                }
                _ => wrong(&format!("one of {}", words.join(", "))),
            },
            ValueKind::Number { min, max } => match number {
                None => wrong("a number"),
                Some(number) if number < min || number > max => rule::OUT_OF_BOUNDS
                    .at(syntax.span(), format!("`{key}` is {value}, but must be from {min} to {max}")),
                Some(_) => return None,
            },
            ValueKind::Integer { min } => match (&value, number) {
                (Value::Integer(_), Some(number)) if number >= min as f64 => return None,
                (Value::Integer(_), _) => {
                    rule::OUT_OF_BOUNDS.at(syntax.span(), format!("`{key}` is {value}, but must be at least {min}"))
                }
                _ => wrong("a whole number"),
            },
            ValueKind::String | ValueKind::Boolean | ValueKind::StringOrList | ValueKind::Duration => return None,
        };
    Some(found)
}

/// Returns whether a value would be valid without its quotes.
fn is_quoted(value: &Value, kind: ValueKind) -> bool {
    let Value::String(text) = value else { return false };
    match kind {
        ValueKind::Number { .. } => Integer::parse(text).is_some() || Decimal::parse(text).is_some(),
        ValueKind::Integer { .. } => Integer::parse(text).is_some(),
        ValueKind::Boolean => matches!(text.as_str(), "true" | "false"),
        ValueKind::String | ValueKind::OneOf(_) | ValueKind::StringOrList | ValueKind::Duration => false,
    }
}

fn is_string_or_list(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().all(|item| matches!(item, Value::String(_))),
        _ => false,
    }
}

/// Reads a duration: a number of seconds, or a measurement such as `30s`.
pub(crate) fn duration(value: &Value) -> Option<Duration> {
    let (amount, unit) = match value {
        Value::Integer(seconds) => (seconds, "s"),
        Value::Measurement { amount, unit } => (amount, unit.as_str()),
        _ => return None,
    };
    let amount = amount.to_i64().and_then(|amount| u64::try_from(amount).ok()).filter(|amount| *amount > 0)?;
    duration_in(amount, unit)
}
