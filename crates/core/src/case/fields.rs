//! The properties of cases and checks, with their spans, and typed accessors.

use super::check::CallCount;
use super::option::CHECK_KINDS;
use super::show::format_json;
use crate::provider::price::Cost;
use crate::{declare::property, rule, text::nearest};
use patter_gram::{Diagnostic, Span, Value};
use serde_json::Value as Json;

/// A property as it is written.
#[derive(Clone)]
pub(super) struct CaseField {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Json,
    pub(super) span: Span,
}

/// The properties of a case or a check, and the problems found in them. In formats other than gram, spans are empty.
pub(super) struct CaseFields {
    /// The owner, for messages: "a case", "`Contains`".
    pub(super) owner: String,
    pub(super) span: Span,
    pub(super) fields: Vec<CaseField>,
    pub(super) problems: Vec<Diagnostic>,
    /// The option that was given without its name, and the name that was written instead: `{"turns": 3}` sets `most`.
    pub(super) short: Option<(&'static str, String)>,
}

/// The maximum value of a cost limit, in dollars.
const MAX_DOLLARS: f64 = 1_000.0;

impl CaseFields {
    /// Creates the fields of a JSON object.
    pub(super) fn from_object(owner: &str, object: serde_json::Map<String, Json>) -> Self {
        let at = Span::at(0);
        let fields = object.into_iter().map(|(key, value)| CaseField { key, key_span: at, value, span: at }).collect();
        Self { owner: owner.to_owned(), span: at, fields, problems: Vec::new(), short: None }
    }

    /// Reports properties that are not in the list of known ones.
    pub(super) fn reject_unknown(&mut self, known: &[&str]) {
        for field in self.fields.iter().filter(|field| !known.contains(&field.key.as_str())) {
            let message = format!("{} has no property `{}`", self.owner, field.key);
            self.problems.push(rule::UNKNOWN_PROPERTY.at(field.key_span, message).with_hint(
                match nearest(&field.key, known.iter().copied()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None if known.is_empty() => "remove it".to_owned(),
                    None if known.contains(&"checks") && CHECK_KINDS.iter().any(|kind| kind.key == field.key) => {
                        format!("checks are in a list: `\"checks\": [{{\"{}\": …}}]`", field.key)
                    }
                    None => format!("valid properties: {}", known.join(", ")),
                },
            ));
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&CaseField> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// Returns whether a property is present under a similar name, which is reported as unknown.
    pub(super) fn is_misspelt(&self, key: &str) -> bool {
        self.get(key).is_none() && self.fields.iter().any(|field| nearest(&field.key, [key]).is_some())
    }

    /// Reports a missing property.
    pub(super) fn require(&mut self, key: &str) {
        if self.get(key).is_none() && !self.is_misspelt(key) {
            self.problems.push(rule::BAD_CHECK.at(self.span, format!("{} requires `{key}`", self.owner)));
        }
    }

    pub(super) fn json(&self, key: &str) -> Option<Json> {
        self.get(key).map(|field| field.value.clone())
    }

    /// Reads a non-empty text.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.read(key, "a non-empty text", |value| {
            value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
        })
    }

    /// Reads a text or a list of texts, none of them empty.
    pub(super) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.read(key, "a text or a list of texts", |value| {
            let texts = match value {
                Json::Array(items) => items.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?,
                other => vec![other.as_str()?],
            };
            texts.into_iter().map(|text| (!text.trim().is_empty()).then(|| text.to_owned())).collect()
        })
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        self.read(key, "true or false", Json::as_bool)
    }

    /// Reads a positive whole number.
    pub(super) fn count(&mut self, key: &str) -> Option<u32> {
        self.read(key, "a positive whole number", count)
    }

    /// Reads a number, or a range as a list of two.
    pub(super) fn call_count(&mut self, key: &str) -> Option<CallCount> {
        self.read(key, "a positive whole number or a range such as 1..3", |value| match value {
            Json::Array(ends) => {
                let [min, max] = ends.as_slice() else { return None };
                let end = |end: &Json| if end.is_null() { Some(None) } else { whole(end).map(Some) };
                let min = end(min)?.unwrap_or(0);
                let max = end(max)?;
                max.is_none_or(|max| min <= max && max > 0).then_some(CallCount { min, max })
            }
            exact => count(exact).map(|count| CallCount { min: count, max: Some(count) }),
        })
    }

    /// Reads a duration in milliseconds.
    pub(super) fn milliseconds(&mut self, key: &str) -> Option<u64> {
        self.read(key, "a duration such as 2s or 500ms", |value| {
            let value = match value {
                Json::String(text) => Value::parse(text)?,
                Json::Number(number) => Value::from(number.as_i64()?),
                _ => return None,
            };
            u64::try_from(property::duration(&value)?.as_millis()).ok()
        })
    }

    pub(super) fn dollars(&mut self, key: &str) -> Option<Cost> {
        self.read(key, "an amount in dollars from 0 to 1000", |value| {
            Cost::from_dollars(value.as_f64().filter(|dollars| *dollars <= MAX_DOLLARS)?)
        })
    }

    /// Reads a property, and reports a value of the wrong type.
    fn read<T>(&mut self, key: &str, expected: &str, convert: impl FnOnce(&Json) -> Option<T>) -> Option<T> {
        let field = self.get(key)?;
        let converted = convert(&field.value);
        if converted.is_none() {
            let written = self.short.as_ref().filter(|(option, _)| *option == key).map_or(key, |(_, written)| written);
            let message = format!("`{written}` must be {expected}, not {}", format_json(&field.value));
            let problem = rule::WRONG_VALUE.at(field.span, message);
            self.problems.push(problem);
        }
        converted
    }
}

fn whole(value: &Json) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

fn count(value: &Json) -> Option<u32> {
    whole(value).filter(|number| *number > 0)
}
