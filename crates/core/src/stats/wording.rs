//! Numbers and phrases as verdicts write them.

use super::Kind;

/// Returns a size with its unit: `5 points`, `10 %`, `250 ms`.
pub(super) fn amount(value: f64, kind: Kind, unit: &str) -> String {
    let number = digits(value, 0);
    match kind {
        Kind::Pass if number == "1" => "1 point".to_owned(),
        _ => with_unit(number, kind, unit),
    }
}

/// Returns sizes from one to another: `12–19 %`.
pub(super) fn range(low: f64, high: f64, kind: Kind, unit: &str) -> String {
    let (low, high) = apart(low, high);
    with_unit(if low == high { low } else { format!("{low}–{high}") }, kind, unit)
}

/// Returns differences from one to another: `−3 to +8 %`.
pub(super) fn signed_range(low: f64, high: f64, kind: Kind, unit: &str) -> String {
    let sign = |number: String| match number.strip_prefix('-') {
        Some(number) => format!("−{number}"),
        None if number == "0" => number,
        None => format!("+{number}"),
    };
    let (low, high) = apart(low, high);
    with_unit(format!("{} to {}", sign(low), sign(high)), kind, unit)
}

/// Returns two phrases as one: `is slower or faster`, `uses more or fewer tokens`.
pub(super) fn either(one: &str, other: &str) -> String {
    let (words, others): (Vec<&str>, Vec<&str>) = (one.split(' ').collect(), other.split(' ').collect());
    let start = words.iter().zip(&others).take_while(|(word, other)| word == other).count();
    let rest = words.len().min(others.len()) - start;
    let end = words.iter().rev().zip(others.iter().rev()).take(rest).take_while(|(word, other)| word == other).count();
    let between = |words: &[&str]| words.get(start..words.len() - end).unwrap_or_default().join(" ");
    let shared = |words: Option<&[&str]>| words.unwrap_or_default().join(" ");
    let parts = [
        shared(words.get(..start)),
        between(&words),
        "or".to_owned(),
        between(&others),
        shared(words.get(words.len() - end..)),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn with_unit(number: String, kind: Kind, unit: &str) -> String {
    match kind {
        Kind::Pass => number + " points",
        Kind::Ratio => number + " %",
        Kind::Difference if unit.is_empty() => number,
        Kind::Difference => format!("{number} {unit}"),
    }
}

/// Returns both numbers, with as many digits as it takes to tell them apart.
fn apart(low: f64, high: f64) -> (String, String) {
    let written = |more| (digits(low, more), digits(high, more));
    (0..3).map(written).find(|(low, high)| low != high).unwrap_or_else(|| written(0))
}

/// Returns a number with two digits that count, or more.
fn digits(value: f64, more: usize) -> String {
    let size = value.abs();
    if size >= 1e15 {
        return format!("{value:.1e}");
    }
    let decimals = if size > 0.0 { (1.0 - libm::log10(size).floor()).clamp(0.0, 12.0) as usize } else { 0 };
    let written = format!("{value:.*}", decimals + more);
    let trimmed = match written.contains('.') {
        true => written.trim_end_matches('0').trim_end_matches('.'),
        false => &written,
    };
    if trimmed == "-0" { "0".to_owned() } else { trimmed.to_owned() }
}
