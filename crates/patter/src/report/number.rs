//! Formatting of numbers. The space before a unit is a non-breaking space.

use crate::html::{Html, html};
use jiff::Timestamp;
use patter_core::stats::{Contrast, MetricKind};

const MINUS: char = '−';

/// Formats a duration: `840 ms`, `1.24 s`, `2 min 5 s`.
pub(super) fn duration(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() => "–".to_owned(),
        ms if ms < 1.0 && ms > 0.0 => "under 1\u{a0}ms".to_owned(),
        ms if ms < 999.5 => format!("{ms:.0}\u{a0}ms"),
        ms if ms < 9_995.0 => format!("{:.2}\u{a0}s", ms / 1e3),
        ms if ms < 59_950.0 => format!("{:.1}\u{a0}s", ms / 1e3),
        ms => {
            let seconds = (ms / 1e3).round() as u64;
            match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
                (0, minutes, seconds) => format!("{minutes}\u{a0}min\u{a0}{seconds}\u{a0}s"),
                (hours, minutes, _) => format!("{hours}\u{a0}h\u{a0}{minutes}\u{a0}min"),
            }
        }
    }
}

/// Formats a count with thousands separators: `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a count with its noun: `1 case`, `12 cases`.
pub(super) fn plural(number: usize, one: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{}\u{a0}{one}{ending}", count(number as u64))
}

/// Formats a share as a percentage: `92.5%`.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", digits(share * 100.0))
}

/// Formats a p-value.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "< 0.001".to_owned(),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// Formats an amount of dollars.
pub(super) fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        amount if amount.abs() >= 100.0 => format!("${amount:.0}"),
        amount => format!("${}", digits(amount)),
    }
}

/// Formats the mean of a metric, without a unit that the name of the metric implies.
pub(super) fn mean(contrast: &Contrast, value: f64) -> String {
    let metric = &contrast.metric;
    match (metric.kind, metric.unit.as_str()) {
        (MetricKind::Pass, _) => percent(value),
        (_, "ms") => duration(value),
        (_, "") if metric.name == "cost" => dollars(value),
        (_, "tokens") => count(value.round().max(0.0) as u64),
        _ => digits(value),
    }
}

/// Formats a value of a metric with its unit.
pub(super) fn value(contrast: &Contrast, value: f64) -> String {
    match contrast.metric.unit.as_str() {
        "" | "ms" | "tokens" => mean(contrast, value),
        unit => format!("{}\u{a0}{unit}", mean(contrast, value)),
    }
}

/// From this ratio on, a change is written as a multiple instead of a percentage.
const MULTIPLE: f64 = 3.0;

/// Formats an effect with its sign: `+4.2 points`, `−12%`, `12×`, `+0.5 calls`.
pub(super) fn effect(contrast: &Contrast, effect: f64) -> String {
    if contrast.kind == MetricKind::Ratio && effect >= MULTIPLE {
        return multiple(effect);
    }
    if contrast.metric.name == "cost" && contrast.kind == MetricKind::Difference {
        return signed_dollars(effect);
    }
    let scaled = rounded(contrast.kind, effect);
    let unit = match contrast.kind {
        MetricKind::Pass if digits(scaled.abs()) == "1" => "\u{a0}point",
        MetricKind::Pass => "\u{a0}points",
        MetricKind::Ratio => "%",
        MetricKind::Difference => &format!("\u{a0}{}", contrast.metric.unit),
    };
    format!("{}{}", signed(scaled), unit.trim_end_matches('\u{a0}'))
}

/// Formats an interval of effects: `−58 to −22`, `+12% to +22%`, `0.5× to 20×`.
pub(super) fn effect_range(contrast: &Contrast, low: f64, high: f64) -> String {
    match contrast.kind {
        MetricKind::Ratio if high >= MULTIPLE => format!("{} to {}", multiple(low), multiple(high)),
        MetricKind::Difference if contrast.metric.name == "cost" => {
            format!("{} to {}", signed_dollars(low), signed_dollars(high))
        }
        kind => {
            let unit = if kind == MetricKind::Ratio { "%" } else { "" };
            format!("{}{unit} to {}{unit}", signed(rounded(kind, low)), signed(rounded(kind, high)))
        }
    }
}

/// Returns an effect on the scale of the page. Points and percentages have at most one decimal, unless they are small.
fn rounded(kind: MetricKind, effect: f64) -> f64 {
    let scaled = display_scale(kind, effect);
    if kind == MetricKind::Difference || scaled.abs() < 1.0 { scaled } else { (scaled * 10.0).round() / 10.0 }
}

fn multiple(ratio: f64) -> String {
    format!("{}×", digits(ratio))
}

fn signed_dollars(amount: f64) -> String {
    match amount {
        amount if amount < 0.0 => format!("{MINUS}{}", dollars(-amount)),
        amount if amount > 0.0 => format!("+{}", dollars(amount)),
        _ => dollars(0.0),
    }
}

/// Converts an effect to the scale of the page: percentage points, percent, or the unit of the metric.
pub(super) fn display_scale(kind: MetricKind, effect: f64) -> f64 {
    match kind {
        MetricKind::Pass => effect * 100.0,
        MetricKind::Ratio => (effect - 1.0) * 100.0,
        MetricKind::Difference => effect,
    }
}

/// Formats a number with its sign.
pub(super) fn signed(number: f64) -> String {
    match digits(number.abs()) {
        zero if zero == "0" => zero,
        size if number < 0.0 => format!("{MINUS}{size}"),
        size => format!("+{size}"),
    }
}

/// Formats a number with three significant digits.
pub(super) fn digits(number: f64) -> String {
    let size = number.abs();
    if !number.is_finite() {
        return "–".to_owned();
    }
    if size >= 1e15 {
        return format!("{number:.1e}");
    }
    if size >= 999.5 {
        let sign = if number < 0.0 { "−" } else { "" };
        return format!("{sign}{}", count(size.round() as u64));
    }
    let decimals = if size > 0.0 { (2.0 - size.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    let text = format!("{number:.decimals$}");
    let trimmed = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    if trimmed == "-0" { "0".to_owned() } else { trimmed.replace('-', "−") }
}

/// Formats a time in UTC, because readers may be in other time zones.
pub(super) fn timestamp(ms: u64) -> Html {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    match time {
        Some(time) => {
            let text = time.strftime("%Y-%m-%d %H:%M UTC").to_string();
            html!("<time datetime=\"{}\">{}</time>", time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), text)
        }
        None => html!("unknown time"),
    }
}
