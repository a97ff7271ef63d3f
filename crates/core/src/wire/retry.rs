//! Headers and bodies about retrying.

use serde_json::Value as Json;
use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The advice of a provider about retrying a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAdvice {
    /// Whether to retry.
    pub should_retry: ShouldRetry,
    /// The time to wait before.
    pub delay: Option<Duration>,
}

/// Whether to retry a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShouldRetry {
    /// Retry, whatever the status.
    Yes,
    /// Do not retry, whatever the status.
    No,
    /// It depends on the error: see [`WireError::is_transient`](super::WireError::is_transient).
    Unspecified,
}

/// Parses the headers of a response about retrying: `x-should-retry`, `retry-after-ms`, and `retry-after` in seconds or as
/// a date. Invalid values are ignored, and a date in the past means no delay.
///
/// ```
/// use patter_core::wire::{ShouldRetry, retry_advice};
/// use std::time::{Duration, SystemTime};
/// let headers = |name: &str| (name == "retry-after").then_some("1.5");
/// let advice = retry_advice(headers, SystemTime::UNIX_EPOCH);
/// assert_eq!(advice.should_retry, ShouldRetry::Unspecified);
/// assert_eq!(advice.delay, Some(Duration::from_millis(1500)));
/// ```
pub fn retry_advice<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> RetryAdvice {
    let should_retry = match header("x-should-retry").map(str::trim) {
        Some("true") => ShouldRetry::Yes,
        Some("false") => ShouldRetry::No,
        _ => ShouldRetry::Unspecified,
    };
    let delay = header("retry-after-ms").and_then(|text| parse_number(text, 1000.0));
    let delay = delay.or_else(|| parse_retry_after(header("retry-after")?, now));
    RetryAdvice { should_retry, delay }
}

/// Returns the time to wait that the body of an error asks for, as Google does: `"retryDelay": "34.5s"` in the details.
///
/// ```
/// use patter_core::wire::retry_delay;
/// use std::time::Duration;
/// let body = br#"{"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}}"#;
/// assert_eq!(retry_delay(body), Some(Duration::from_millis(34_500)));
/// assert_eq!(retry_delay(b"{}"), None);
/// ```
pub fn retry_delay(body: &[u8]) -> Option<Duration> {
    let json: Json = serde_json::from_slice(body).ok()?;
    let json = json.get(0).unwrap_or(&json);
    let details = json.pointer("/error/details")?.as_array()?;
    let text = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    parse_number(text.strip_suffix('s')?, 1.0)
}

/// Parses a `retry-after` header: a number of seconds or a date.
///
/// ```
/// use patter_core::wire::parse_retry_after;
/// use std::time::{Duration, SystemTime};
/// assert_eq!(parse_retry_after("2", SystemTime::UNIX_EPOCH), Some(Duration::from_secs(2)));
/// let date = "Thu, 01 Jan 1970 00:01:00 GMT";
/// assert_eq!(parse_retry_after(date, SystemTime::UNIX_EPOCH), Some(Duration::from_secs(60)));
/// assert_eq!(parse_retry_after("soon", SystemTime::UNIX_EPOCH), None);
/// ```
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    parse_number(value, 1.0).or_else(|| Some(parse_date(value)?.duration_since(now).unwrap_or_default()))
}

fn parse_number(text: &str, units_per_second: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse::<f64>().ok()? / units_per_second).ok()
}

/// Parses a date in any of the three formats of HTTP.
fn parse_date(text: &str) -> Option<SystemTime> {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match words.as_slice() {
        [_, day, month, year, hour, minute, second, "GMT"] => (day, month, year, [hour, minute, second]),
        [_, month, day, hour, minute, second, year] => (day, month, year, [hour, minute, second]),
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let year: u64 = year.parse().ok()?;
    // In the oldest format, years have two digits.
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    let day = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let [hour, minute, second] = time.map(|part| part.parse::<u64>().ok().filter(|part| *part <= 60));
    let days = days_since_epoch(year, u64::try_from(month).ok()? + 1, day)?;
    let seconds = days * 86_400 + hour? * 3600 + minute? * 60 + second?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Returns the number of days since 1970. Years are counted from March, so that a leap day is the last day of its year.
pub(super) fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..10_000).contains(&year) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}
