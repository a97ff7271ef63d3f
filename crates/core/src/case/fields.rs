//! Options with their places, however they are written, and what each should be.

use super::check::Times;
use super::show::brief;
use crate::provider::price::Cost;
use crate::{declare::property, rule, text::nearest};
use patter_gram::{Diagnostic, Span, Value};
use serde_json::Value as Json;

/// An option as it is written.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Json,
    pub(super) span: Span,
}

/// The options of a case or a check, and what is wrong with them. Where a line stands for the place, spans say nothing.
pub(super) struct Fields {
    /// What has them, for messages: "a case", "`Contains`".
    pub(super) what: String,
    pub(super) span: Span,
    pub(super) fields: Vec<Field>,
    pub(super) found: Vec<Diagnostic>,
}

/// The most that a check may allow to be spent, in dollars.
const MOST_DOLLARS: f64 = 1_000.0;

impl Fields {
    /// Makes the fields of a JSON object.
    pub(super) fn of_object(what: &str, object: serde_json::Map<String, Json>) -> Self {
        let at = Span::at(0);
        let fields = object.into_iter().map(|(key, value)| Field { key, key_span: at, value, span: at }).collect();
        Self { what: what.to_owned(), span: at, fields, found: Vec::new() }
    }

    /// Reports the options that nothing reads.
    pub(super) fn known(&mut self, known: &[&str]) {
        for field in self.fields.iter().filter(|field| !known.contains(&field.key.as_str())) {
            let message = format!("{} has no `{}`", self.what, field.key);
            self.found.push(rule::UNKNOWN_PROPERTY.at(field.key_span, message).with_hint(
                match nearest(&field.key, known.iter().copied()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None if known.is_empty() => "remove it".to_owned(),
                    None => format!("it may have {}", known.join(", ")),
                },
            ));
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// Tells whether an option stands there under a name that is nearly right, which is reported as what it is.
    pub(super) fn is_misspelt(&self, key: &str) -> bool {
        self.get(key).is_none() && self.fields.iter().any(|field| nearest(&field.key, [key]).is_some())
    }

    /// Reports an option that must be there.
    pub(super) fn needs(&mut self, key: &str) {
        if self.get(key).is_none() && !self.is_misspelt(key) {
            self.found.push(rule::BAD_CHECK.at(self.span, format!("{} needs `{key}`", self.what)));
        }
    }

    pub(super) fn json(&self, key: &str) -> Option<Json> {
        self.get(key).map(|field| field.value.clone())
    }

    /// Reads a text that is not empty.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.take(key, "a text", |value| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned))
    }

    /// Reads a text, or a list of texts; none is empty.
    pub(super) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.take(key, "a text, or a list of texts", |value| {
            let texts = match value {
                Json::Array(items) => items.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?,
                other => vec![other.as_str()?],
            };
            texts.into_iter().map(|text| (!text.trim().is_empty()).then(|| text.to_owned())).collect()
        })
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        self.take(key, "true or false", Json::as_bool)
    }

    /// Reads a whole number from 1 on.
    pub(super) fn count(&mut self, key: &str) -> Option<u32> {
        self.take(key, "a whole number from 1 on", count)
    }

    /// Reads a number, or a range as a list of two.
    pub(super) fn times(&mut self, key: &str) -> Option<Times> {
        self.take(key, "a whole number from 1 on, or a range such as 1..3", |value| match value {
            Json::Array(ends) => {
                let [least, most] = ends.as_slice() else { return None };
                let end = |end: &Json| if end.is_null() { Some(None) } else { whole(end).map(Some) };
                let (least, most) = (end(least)?.unwrap_or(0), end(most)?);
                most.is_none_or(|most| least <= most && most > 0).then_some(Times { least, most })
            }
            one => count(one).map(|times| Times { least: times, most: Some(times) }),
        })
    }

    /// Reads a time, in milliseconds.
    pub(super) fn milliseconds(&mut self, key: &str) -> Option<u64> {
        self.take(key, "a time such as 2s or 500ms", |value| {
            let value = match value {
                Json::String(text) => Value::parse(text)?,
                Json::Number(number) => Value::from(number.as_i64()?),
                _ => return None,
            };
            u64::try_from(property::duration(&value)?.as_millis()).ok()
        })
    }

    pub(super) fn dollars(&mut self, key: &str) -> Option<Cost> {
        self.take(key, "a number of dollars from 0 to 1000", |value| {
            Cost::of_dollars(value.as_f64().filter(|dollars| *dollars <= MOST_DOLLARS)?)
        })
    }

    /// Reads an option, and reports a value that it does not take.
    fn take<T>(&mut self, key: &str, expected: &str, read: impl FnOnce(&Json) -> Option<T>) -> Option<T> {
        let field = self.get(key)?;
        let taken = read(&field.value);
        if taken.is_none() {
            let message = format!("`{key}` takes {expected}, not {}", brief(&field.value));
            let found = rule::WRONG_VALUE.at(field.span, message);
            self.found.push(found);
        }
        taken
    }
}

fn whole(value: &Json) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

fn count(value: &Json) -> Option<u32> {
    whole(value).filter(|number| *number > 0)
}
