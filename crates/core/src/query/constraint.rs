//! What a query demands of a property.

use crate::text::{Glob, duration_in};
use crate::types::signature::{compare_numbers, json_eq};
use patter_gram::{Kind, Number as GramNumber, Span, Syntax, Value};
use serde_json::{Number, Value as Json};
use std::cmp::Ordering;

/// A demand on the value of a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constraint {
    /// `_`: there is a value.
    Present,
    /// Equal to a value.
    Equals(Json),
    /// A text that matches a pattern with wildcards.
    Matches(Glob),
    /// A number that compares in one of these ways.
    Compares { allowed: &'static [Ordering], number: Number },
    /// A number between two bounds, which are included.
    Between { lower: Option<Number>, upper: Option<Number> },
    /// Missing, or not as the inner constraint demands.
    Not(Box<Constraint>),
    /// As one of several constraints demands.
    OneOf(Vec<Constraint>),
    /// An object whose fields are as demanded.
    Fields(Vec<(String, Constraint)>),
}

/// A value that is not a constraint: what is wrong, where, and how to fix it.
pub(super) struct ConstraintError {
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) hint: &'static str,
}

impl Constraint {
    /// Reads a constraint from the value of a property in a query.
    pub(super) fn read(syntax: Syntax<'_>) -> Result<Self, ConstraintError> {
        let error = |message: String, hint| ConstraintError { span: syntax.span(), message, hint };
        match syntax.kind() {
            Kind::Array => syntax.children().map(Self::read).collect::<Result<_, _>>().map(Constraint::OneOf),
            Kind::Map => {
                let fields = syntax.properties().filter_map(|field| Some((field.key().into_owned(), field.value()?)));
                fields.map(|(key, value)| Ok((key, Self::read(value)?))).collect::<Result<_, _>>().map(Self::Fields)
            }
            Kind::Fence => Ok(Constraint::Equals(syntax.read_text().unwrap_or_default().into_owned().into())),
            _ => match Value::read(syntax) {
                Some(Value::String(text)) => Self::from_text(&text).map_err(|(message, hint)| error(message, hint)),
                Some(Value::Symbol(word)) if word == "_" => Ok(Constraint::Present),
                Some(Value::Symbol(word)) => Ok(Constraint::Equals(word.into())),
                Some(Value::Boolean(value)) => Ok(Constraint::Equals(value.into())),
                Some(Value::Range { lower, upper }) => {
                    let read = |bound: Option<GramNumber>| match bound {
                        None => Ok(None),
                        Some(bound) => number(&bound).map(Some).ok_or(bound),
                    };
                    match (read(lower), read(upper)) {
                        (Ok(lower), Ok(upper)) => Ok(Constraint::Between { lower, upper }),
                        (Err(bound), _) | (_, Err(bound)) => {
                            Err(error(format!("`{bound}` is not a number that can be compared"), UNITS))
                        }
                    }
                }
                Some(Value::Tagged { .. }) => Err(error(
                    "a query cannot compare with a tagged text".to_owned(),
                    "write the text in quotes: `\"…\"`",
                )),
                Some(value) => match Value::read(syntax).as_ref().and_then(value_number) {
                    Some(number) => Ok(Constraint::Equals(Json::Number(number))),
                    None => Err(error(format!("`{value}` is not a number that can be compared"), UNITS)),
                },
                None => Err(error("this value cannot be read".to_owned(), "write a text, a number or a list")),
            },
        }
    }

    /// Reads a text: a comparison, a text with wildcards, or the text itself.
    fn from_text(text: &str) -> Result<Self, (String, &'static str)> {
        const COMPARISONS: [(&str, &[Ordering]); 4] = [
            (">=", &[Ordering::Greater, Ordering::Equal]),
            ("<=", &[Ordering::Less, Ordering::Equal]),
            (">", &[Ordering::Greater]),
            ("<", &[Ordering::Less]),
        ];
        if let Some(rest) = text.strip_prefix("!=") {
            let inner = match Value::parse(rest.trim()).as_ref().and_then(value_number) {
                Some(number) => Constraint::Equals(Json::Number(number)),
                None => Self::plain_text(rest.trim()),
            };
            return Ok(Constraint::Not(Box::new(inner)));
        }
        for (sign, allowed) in COMPARISONS {
            let Some(rest) = text.strip_prefix(sign) else { continue };
            return match Value::parse(rest.trim()).as_ref().and_then(value_number) {
                Some(number) => Ok(Constraint::Compares { allowed, number }),
                None => Err((
                    format!("`{text}` does not compare with a number"),
                    "write a number after the sign, as in `\"> 100\"`, or `\"= …\"` for the text itself",
                )),
            };
        }
        Ok(match text.strip_prefix('=') {
            Some(exact) => Constraint::Equals(exact.trim().into()),
            None => Self::plain_text(text),
        })
    }

    fn plain_text(text: &str) -> Self {
        match text.contains(['*', '?']) {
            true => Constraint::Matches(Glob::new(text)),
            false => Constraint::Equals(text.into()),
        }
    }

    /// Returns whether a property is as demanded; `None` is a missing one. A list is if one of its items is.
    pub(super) fn is_met(&self, value: Option<&Json>) -> bool {
        if let Constraint::Not(inner) = self {
            return !inner.is_met(value);
        }
        let Some(value) = value.filter(|value| !value.is_null()) else { return false };
        if let Json::Array(items) = value {
            return *self == Constraint::Present || items.iter().any(|item| self.is_met(Some(item)));
        }
        match (self, value) {
            (Constraint::Present, _) => true,
            (Constraint::Equals(wanted), _) => json_eq(wanted, value),
            (Constraint::Matches(glob), Json::String(text)) => glob.matches(text),
            (Constraint::Compares { allowed, number }, Json::Number(found)) => {
                compare_numbers(found, number).is_some_and(|ordering| allowed.contains(&ordering))
            }
            (Constraint::Between { lower, upper }, Json::Number(found)) => {
                let is_above = |bound: &Number| compare_numbers(found, bound).is_some_and(Ordering::is_ge);
                let is_below = |bound: &Number| compare_numbers(found, bound).is_some_and(Ordering::is_le);
                lower.as_ref().is_none_or(is_above) && upper.as_ref().is_none_or(is_below)
            }
            (Constraint::OneOf(choices), _) => choices.iter().any(|choice| choice.is_met(Some(value))),
            (Constraint::Fields(fields), Json::Object(object)) => {
                fields.iter().all(|(key, constraint)| constraint.is_met(object.get(key)))
            }
            (
                Constraint::Matches(_)
                | Constraint::Compares { .. }
                | Constraint::Between { .. }
                | Constraint::Fields(_)
                | Constraint::Not(_),
                _,
            ) => false,
        }
    }
}

const UNITS: &str = "write a number, or a duration such as `30s` or `5m`, which counts in seconds";

/// Returns a value as a number. A duration is a number of seconds.
fn value_number(value: &Value) -> Option<Number> {
    match value {
        Value::Integer(whole) => number(&GramNumber::Integer(whole.clone())),
        Value::Decimal(decimal) => number(&GramNumber::Decimal(decimal.clone())),
        Value::Measurement { amount, unit } => {
            number(&GramNumber::Measurement { amount: amount.clone(), unit: unit.clone() })
        }
        _ => None,
    }
}

fn number(number: &GramNumber) -> Option<Number> {
    match number {
        GramNumber::Integer(whole) => match whole.to_i64() {
            Some(small) => Some(small.into()),
            None => Number::from_f64(whole.to_string().parse().ok()?),
        },
        GramNumber::Decimal(decimal) => Number::from_f64(decimal.to_f64()),
        GramNumber::Measurement { amount, unit } => {
            let amount = u64::try_from(amount.to_i64()?).ok()?;
            Number::from_f64(duration_in(amount, unit)?.as_secs_f64())
        }
    }
}
