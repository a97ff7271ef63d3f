//! Formatting of numbers in verdicts.

use super::MetricKind;

/// The unit that is written before a number.
pub(super) const DOLLARS: &str = "$";

/// Formats a size with its unit: `5 points`, `10%`, `250 ms`.
pub(super) fn amount(value: f64, kind: MetricKind, unit: &str) -> String {
    let number = digits(value, 0);
    match kind {
        MetricKind::Pass if number == "1" => "1 point".to_owned(),
        _ => with_unit(&number, kind, unit),
    }
}

/// Formats a range of sizes: `12–19%`.
pub(super) fn range(low: f64, high: f64, kind: MetricKind, unit: &str) -> String {
    with_unit(&factors(low, high), kind, unit)
}

/// Formats a range of factors: `8.6–8.9`.
pub(super) fn factors(low: f64, high: f64) -> String {
    let (low, high) = distinct_digits(low, high);
    if low == high { low } else { format!("{low}–{high}") }
}

/// Formats a range of differences: `−3% to +8%`, `−3 to +8 points`.
pub(super) fn signed_range(low: f64, high: f64, kind: MetricKind, unit: &str) -> String {
    let sign = |number: String| match number.strip_prefix('-') {
        Some(number) => format!("−{number}"),
        None if number == "0" => number,
        None => format!("+{number}"),
    };
    let (low, high) = distinct_digits(low, high);
    let low = match kind {
        MetricKind::Ratio => sign(low) + "%",
        MetricKind::Difference if unit == DOLLARS => with_unit(&sign(low), kind, unit),
        MetricKind::Pass | MetricKind::Difference => sign(low),
    };
    format!("{low} to {}", with_unit(&sign(high), kind, unit))
}

fn with_unit(number: &str, kind: MetricKind, unit: &str) -> String {
    match kind {
        MetricKind::Pass => format!("{number} points"),
        MetricKind::Ratio => format!("{number}%"),
        MetricKind::Difference if unit.is_empty() => number.to_owned(),
        MetricKind::Difference if unit == DOLLARS => {
            let size = number.trim_start_matches(['+', '−']);
            format!("{}${size}", number.strip_suffix(size).unwrap_or_default())
        }
        MetricKind::Difference => format!("{number} {unit}"),
    }
}

/// Formats two numbers with enough digits to distinguish them.
fn distinct_digits(low: f64, high: f64) -> (String, String) {
    let format = |additional| (digits(low, additional), digits(high, additional));
    (0..3).map(format).find(|(low, high)| low != high).unwrap_or_else(|| format(0))
}

/// Formats a number with two significant digits, plus additional ones.
fn digits(value: f64, additional: usize) -> String {
    let size = value.abs();
    if size >= 1e15 {
        return format!("{value:.1e}");
    }
    let decimals = if size > 0.0 { (1.0 - libm::log10(size).floor()).clamp(0.0, 12.0) as usize } else { 0 };
    let formatted = format!("{value:.*}", decimals + additional);
    let trimmed = match formatted.contains('.') {
        true => formatted.trim_end_matches('0').trim_end_matches('.'),
        false => &formatted,
    };
    if trimmed == "-0" { "0".to_owned() } else { trimmed.to_owned() }
}
