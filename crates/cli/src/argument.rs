//! Values of options, as people type them.

use crate::error::CommandError;
use patter::provider::price::Cost;
use patter::provider::{ModelRef, ModelRefError};
use patter::text;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// Parses a number of things, at least one.
pub(crate) fn parse_count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("write a whole number from 1 to {}", u32::MAX))
}

/// Parses an amount of dollars: `0.50` or `$0.50`.
pub(crate) fn parse_cost(text: &str) -> Result<Cost, String> {
    let dollars = text.trim().trim_start_matches('$').parse().ok();
    dollars.and_then(Cost::from_dollars).ok_or_else(|| "write a number of dollars, such as 0.50".to_owned())
}

/// Parses a positive duration: `500ms`, `30s`, `2m`, `1h`, or a number of seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    text::parse_duration(text).ok_or_else(|| "write a time above 0, such as 30s, 2m or 1h".to_owned())
}

/// Parses a whole number.
pub(crate) fn parse_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "write a whole number, such as 10".to_owned())
}

/// A model that is named on the command line. Whether its provider exists is known once the project is read, which may
/// declare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelArgument(String);

/// Parses the name of a model. A usage error has no separate hint, so the hint is part of the message.
pub(crate) fn parse_model(text: &str) -> Result<ModelArgument, String> {
    match text.parse::<ModelRef>() {
        Ok(_) | Err(ModelRefError::UnknownProvider(_)) => Ok(ModelArgument(text.to_owned())),
        Err(error) => Err(explain(&error)),
    }
}

fn explain(error: &ModelRefError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

impl ModelArgument {
    /// Returns a model that was named before, such as that of a session.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the model, once the project is read.
    pub(crate) fn resolve(&self) -> Result<ModelRef, CommandError> {
        self.0.parse().map_err(|error: ModelRefError| CommandError::usage(error.to_string()).with_hint_if(error.hint()))
    }
}

impl fmt::Display for ModelArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses a rate such as `60/min` or `5/10s` into the time between two events.
pub(crate) fn parse_rate(text: &str) -> Result<Duration, String> {
    let invalid = || "write a number and a unit of time, as in 60/min, 2/s or 500/h".to_owned();
    let (count, time) = text.split_once('/').ok_or_else(invalid)?;
    let count: u32 = count.trim().parse().ok().filter(|count| *count > 0).ok_or_else(invalid)?;
    let time = time.trim();
    let time = match time.starts_with(|c: char| c.is_ascii_digit()) {
        true => parse_duration(time),
        false if time.is_empty() => return Err(invalid()),
        false => parse_duration(&format!("1{time}")),
    };
    time.map(|time| time / count).map_err(|_| invalid())
}

/// Parses an age: days, or a time as elsewhere.
pub(crate) fn parse_age(text: &str) -> Result<Duration, String> {
    const DAY: u64 = 24 * 60 * 60;
    let days = text.strip_suffix('d').and_then(|days| days.trim().parse::<u64>().ok());
    match days {
        Some(days) if days > 0 => Ok(Duration::from_secs(days.saturating_mul(DAY))),
        _ => parse_duration(text).map_err(|_| "write a time above 0, such as 90d or 12h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole() {
        assert_eq!(parse_count("12").map(NonZeroU32::get), Ok(12));
        for text in ["", "0", "-1", "1.5", "many", "99999999999"] {
            assert_eq!(parse_count(text), Err("write a whole number from 1 to 4294967295".to_owned()), "{text}");
        }
        assert_eq!(parse_number("0"), Ok(0_u64));
        for text in ["", "-1", "x", "1e3"] {
            assert_eq!(parse_number::<u64>(text), Err("write a whole number, such as 10".to_owned()), "{text}");
        }
    }

    #[test]
    fn costs_are_dollars() {
        assert_eq!(parse_cost("0.50"), parse_cost(" $.5 "));
        assert_eq!(parse_cost("0"), Ok(Cost::FREE));
        for text in ["", "$", "-1", "nan", "much", "1e9"] {
            assert_eq!(parse_cost(text), Err("write a number of dollars, such as 0.50".to_owned()), "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for text in ["", "0", "-3", "3x", "s", "1e99999h", "99999999999999999999h"] {
            assert_eq!(parse_duration(text), Err("write a time above 0, such as 30s, 2m or 1h".to_owned()), "{text}");
        }
    }

    #[test]
    fn model_errors_have_hints() {
        let error = |text: &str| parse_model(text).unwrap_err();
        assert_eq!(error("gpt-4o"), "`gpt-4o` is missing a provider; write the provider first, as in `OpenAI/gpt-4o`");
        assert_eq!(
            error("OpenAI/"),
            "`OpenAI/` is missing a model; write the model after the provider, as in `OpenAI/gpt-4o-mini`"
        );
        // The project may declare it.
        assert_eq!(parse_model("OpnAI/x").unwrap().to_string(), "OpnAI/x");
    }

    #[test]
    fn rates_are_intervals() {
        let table = [("60/min", 1_000), ("2/s", 500), ("1/h", 3_600_000), ("5/10s", 2_000), (" 3 / m ", 20_000)];
        for (text, milliseconds) in table {
            assert_eq!(parse_rate(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["fast", "0/s", "60/", "60/day", "-1/s", "60"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
