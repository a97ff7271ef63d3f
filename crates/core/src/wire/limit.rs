//! Headers about rate limits.

use super::retry::days_since_epoch;
use std::time::{Duration, SystemTime};

/// A rate limit that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExhaustedLimit {
    /// The limited resource: `requests`, `tokens`, `input tokens` or `output tokens`.
    pub resource: &'static str,
    /// The time until the limit is reset.
    pub resets_in: Duration,
}

/// Resources, and the headers with what remains of them and when they are reset. The first two are used by OpenAI and
/// compatible servers, the others by Anthropic.
const HEADERS: [(&str, &str, &str); 6] = [
    ("requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("requests", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("tokens", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("input tokens", "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("output tokens", "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// Returns whether a header may be about a rate limit. Most responses have none, and need not be examined further.
pub fn is_limit_header(name: &str) -> bool {
    name.starts_with("x-ratelimit-") || name.starts_with("anthropic-ratelimit-")
}

/// Returns the limit that is used up according to the headers of a response; of several, the one that is reset last.
/// Invalid values are ignored.
///
/// ```
/// use patter_core::wire::exhausted_limit;
/// use std::time::{Duration, SystemTime};
/// let headers = |name: &str| match name {
///     "x-ratelimit-remaining-requests" => Some("0"),
///     "x-ratelimit-reset-requests" => Some("1m30s"),
///     _ => None,
/// };
/// let limit = exhausted_limit(headers, SystemTime::UNIX_EPOCH).unwrap();
/// assert_eq!((limit.resource, limit.resets_in), ("requests", Duration::from_secs(90)));
/// ```
pub fn exhausted_limit<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> Option<ExhaustedLimit> {
    let limits = HEADERS.into_iter().filter_map(|(resource, remaining, reset)| {
        if header(remaining)?.trim().parse::<u64>().ok()? > 0 {
            return None;
        }
        let reset = header(reset)?.trim();
        let resets_in =
            parse_span(reset).or_else(|| Some(parse_time(reset)?.duration_since(now).unwrap_or_default()))?;
        (!resets_in.is_zero()).then_some(ExhaustedLimit { resource, resets_in })
    });
    // Unlike `max_by_key`, this returns the first of equal ones.
    limits.reduce(|longest, other| if other.resets_in > longest.resets_in { other } else { longest })
}

/// Parses a duration such as `6m0s`, `1.5s` or `20ms`, or a bare number of seconds.
fn parse_span(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) =
            rest.split_at_checked(rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len()))?;
        let (unit, next) = after.split_at_checked(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()))?;
        let size = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            "" if number.len() == text.len() => 1.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * size;
        rest = next;
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(seconds).ok() }
}

/// Parses a time such as `2026-01-31T12:00:00Z`, with or without a fraction of a second.
fn parse_time(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, separator: char| -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> = text.split(separator).map(|part| part.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time.split('.').next()?, ':')?;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 24 || minute > 60 || second > 60 {
        return None;
    }
    let seconds = days_since_epoch(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}
