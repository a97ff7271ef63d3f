//! What a provider says about another try.

use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// What a provider says about another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Whether to try again.
    pub verdict: Verdict,
    /// How long to wait before, where it says so.
    pub after: Option<Duration>,
}

/// Whether to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The provider wants it, whatever the status.
    Yes,
    /// The provider does not want it, whatever the status.
    No,
    /// It says nothing: [`WireError::is_passing`](super::WireError::is_passing) tells.
    Unsaid,
}

/// Reads what the headers of a reply say about another try: `x-should-retry`, then `retry-after-ms`, then `retry-after`
/// as seconds or as a date. What cannot be read counts as not said, and a date in the past as no time at all.
///
/// ```
/// use patter_core::wire::{Verdict, retry_after};
/// use std::time::{Duration, SystemTime};
/// let headers = |name: &str| (name == "retry-after").then_some("1.5");
/// let retry = retry_after(headers, SystemTime::UNIX_EPOCH);
/// assert_eq!((retry.verdict, retry.after), (Verdict::Unsaid, Some(Duration::from_millis(1500))));
/// ```
pub fn retry_after<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> Retry {
    let verdict = match header("x-should-retry").map(str::trim) {
        Some("true") => Verdict::Yes,
        Some("false") => Verdict::No,
        _ => Verdict::Unsaid,
    };
    let milliseconds = header("retry-after-ms").and_then(|text| seconds(text, 1000.0));
    let after = milliseconds.or_else(|| {
        let text = header("retry-after")?;
        seconds(text, 1.0).or_else(|| Some(date(text)?.duration_since(now).unwrap_or_default()))
    });
    Retry { verdict, after }
}

fn seconds(text: &str, parts: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse::<f64>().ok()? / parts).ok()
}

/// Reads a date of HTTP in any of its three forms.
fn date(text: &str) -> Option<SystemTime> {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match words.as_slice() {
        [_, day, month, year, hour, minute, second, "GMT"] => (day, month, year, [hour, minute, second]),
        [_, month, day, hour, minute, second, year] => (day, month, year, [hour, minute, second]),
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let year: u64 = year.parse().ok()?;
    // The oldest form has two digits.
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

/// Counts the days from 1970 on, in years that begin in March so that the leap day is the last.
pub(super) fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..10_000).contains(&year) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}
