//! What a provider says about how much may still be asked.

use super::retry::days_since_epoch;
use std::time::{Duration, SystemTime};

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// What there is no more of: `requests`, `tokens`, `input tokens`, `output tokens`.
    pub what: &'static str,
    /// How long it takes until there is more.
    pub after: Duration,
}

/// The headers of OpenAI and of many who speak like it, and those of Anthropic: what remains, and when there is more.
const HEADERS: [(&str, &str, &str); 6] = [
    ("requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("requests", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("tokens", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("input tokens", "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("output tokens", "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// Reads from the headers of a reply whether nothing remains of what may be asked, and for how long: of several limits
/// the one that lasts longest. What cannot be read counts as not said.
///
/// ```
/// use patter_core::wire::exhausted;
/// use std::time::{Duration, SystemTime};
/// let headers = |name: &str| match name {
///     "x-ratelimit-remaining-requests" => Some("0"),
///     "x-ratelimit-reset-requests" => Some("1m30s"),
///     _ => None,
/// };
/// let exhausted = exhausted(headers, SystemTime::UNIX_EPOCH).unwrap();
/// assert_eq!((exhausted.what, exhausted.after), ("requests", Duration::from_secs(90)));
/// ```
pub fn exhausted<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> Option<Exhausted> {
    let reached = HEADERS.into_iter().filter_map(|(what, remaining, reset)| {
        if header(remaining)?.trim().parse::<u64>().ok()? > 0 {
            return None;
        }
        let reset = header(reset)?.trim();
        let after = span(reset).or_else(|| Some(moment(reset)?.duration_since(now).unwrap_or_default()))?;
        (!after.is_zero()).then_some(Exhausted { what, after })
    });
    // Of equal ones the first.
    reached.reduce(|longest, other| if other.after > longest.after { other } else { longest })
}

/// Reads a time as `6m0s`, `1.5s`, `20ms`, or a bare number of seconds.
fn span(text: &str) -> Option<Duration> {
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

/// Reads a moment as `2026-01-31T12:00:00Z`, with parts of a second or without.
fn moment(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, mark: char| -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> = text.split(mark).map(|part| part.parse().ok()).collect();
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
