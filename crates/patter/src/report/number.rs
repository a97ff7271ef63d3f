//! Numbers as the page writes them. The space before a unit does not break.

use super::html::{Html, html};
use jiff::Timestamp;
use patter_core::stats::{Contrast, Kind};

const MINUS: char = '−';

/// Returns a duration: `840 ms`, `1.24 s`, `2 min 5 s`.
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

/// Returns a number of things, in groups of three digits: `1 234 567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns so many of something: `1 case`, `12 cases`.
pub(super) fn several(number: usize, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{}\u{a0}{one}{plural}", count(number as u64))
}

/// Returns a share in percent: `92.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{}\u{a0}%", digits(share * 100.0))
}

/// Returns a p-value.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "below 0.001".to_owned(),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// Returns an amount of dollars.
pub(super) fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        amount if amount.abs() >= 100.0 => format!("${amount:.0}"),
        amount => format!("${}", digits(amount)),
    }
}

/// Returns the mean of a metric as people read it.
pub(super) fn value(contrast: &Contrast, value: f64) -> String {
    let metric = &contrast.metric;
    match (metric.kind, metric.unit.as_str()) {
        (Kind::Pass, _) => percent(value),
        (_, "ms") => duration(value),
        (_, "") if metric.name == "cost" => dollars(value),
        (_, "") => digits(value),
        (_, "tokens") => count(value.round().max(0.0) as u64),
        (_, unit) => format!("{}\u{a0}{unit}", digits(value)),
    }
}

/// Returns an effect with its sign: `+4.2 points`, `−12 %`, `+0.5 calls`.
pub(super) fn effect(contrast: &Contrast, effect: f64) -> String {
    let shown = shown(contrast.kind, effect);
    let unit = match contrast.kind {
        Kind::Pass if digits(shown.abs()) == "1" => "\u{a0}point",
        Kind::Pass => "\u{a0}points",
        Kind::Ratio => "\u{a0}%",
        Kind::Difference => &format!("\u{a0}{}", contrast.metric.unit),
    };
    format!("{}{}", signed(shown), unit.trim_end_matches('\u{a0}'))
}

/// Returns an effect on the scale on which it is drawn: points, percent more, or as it is.
pub(super) fn shown(kind: Kind, effect: f64) -> f64 {
    match kind {
        Kind::Pass => effect * 100.0,
        Kind::Ratio => (effect - 1.0) * 100.0,
        Kind::Difference => effect,
    }
}

/// Returns a number with its sign.
pub(super) fn signed(number: f64) -> String {
    match digits(number.abs()) {
        zero if zero == "0" => zero,
        size if number < 0.0 => format!("{MINUS}{size}"),
        size => format!("+{size}"),
    }
}

/// Returns a number with three digits that count.
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
    let written = format!("{number:.decimals$}");
    let trimmed = match written.contains('.') {
        true => written.trim_end_matches('0').trim_end_matches('.'),
        false => &written,
    };
    if trimmed == "-0" { "0".to_owned() } else { trimmed.replace('-', "−") }
}

/// Returns a moment, in universal time: whoever gets the page may live elsewhere.
pub(super) fn moment(ms: u64) -> Html {
    let found = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    match found {
        Some(moment) => {
            let shown = moment.strftime("%Y-%m-%d %H:%M UTC").to_string();
            html!("<time datetime=\"{}\">{}</time>", moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), shown)
        }
        None => html!("at an unknown time"),
    }
}
