//! Durations in the form people write them.

use std::time::Duration;

/// Milliseconds per unit.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000)];

/// Parses a positive duration: `500ms`, `30s`, `2m`, `1h`, or a number of seconds.
///
/// ```
/// use patter_core::text::parse_duration;
/// use std::time::Duration;
/// assert_eq!(parse_duration("1h"), Some(Duration::from_secs(3600)));
/// assert_eq!(parse_duration("1.5s"), parse_duration("1500ms"));
/// assert_eq!(parse_duration("30"), Some(Duration::from_secs(30)));
/// assert_eq!(parse_duration("2 min"), parse_duration("2m"));
/// assert_eq!(parse_duration("0s"), None);
/// assert_eq!(parse_duration("3 weeks"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(number)? {
        "" => "s",
        unit => unit,
    };
    let number = number.trim_end();
    let duration = if number.bytes().all(|byte| byte.is_ascii_digit()) {
        duration_in(number.parse().ok()?, unit)?
    } else {
        let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let amount: f64 = is_decimal.then(|| number.parse().ok())??;
        Duration::try_from_secs_f64(amount * milliseconds_per(unit)? as f64 / 1e3).ok()?
    };
    (!duration.is_zero()).then_some(duration)
}

/// Returns the duration of `amount` units: `ms`, `s`, `m` (or `min`) or `h`.
///
/// ```
/// use patter_core::text::duration_in;
/// use std::time::Duration;
/// assert_eq!(duration_in(2, "m"), Some(Duration::from_secs(120)));
/// assert_eq!(duration_in(2, "km"), None);
/// ```
pub fn duration_in(amount: u64, unit: &str) -> Option<Duration> {
    amount.checked_mul(milliseconds_per(unit)?).map(Duration::from_millis)
}

/// Formats a duration exactly to the millisecond: `350 ms`, `1.25 s`, `90 s`.
///
/// ```
/// use patter_core::text::format_duration;
/// use std::time::Duration;
/// assert_eq!(format_duration(Duration::from_millis(350)), "350 ms");
/// assert_eq!(format_duration(Duration::from_millis(1250)), "1.25 s");
/// assert_eq!(format_duration(Duration::from_secs(90)), "90 s");
/// ```
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds, duration.subsec_millis()) {
        (0, rest) => format!("{rest} ms"),
        (_, 0) => format!("{seconds} s"),
        (_, rest) => format!("{seconds}.{rest:03}").trim_end_matches('0').to_owned() + " s",
    }
}

/// Returns a duration in whole milliseconds.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(patter_core::text::milliseconds(Duration::from_secs(2)), 2_000);
/// ```
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn milliseconds_per(unit: &str) -> Option<u64> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, milliseconds)| *milliseconds)
}
