//! Figures as people write them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use patter_core::message::conversation::Usage;
use patter_core::provider::ModelRef;
use patter_core::provider::price::Prices;

/// Returns a duration: `340 ms`, `1.2 s`, `3 min 20 s`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Returns a count with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with a noun.
pub(super) fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Returns a time, in the zone of the server.
pub(super) fn time(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map(|at| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}

/// Returns the tokens of a reply.
pub(super) fn tokens(usage: &Usage) -> String {
    format!("{} → {}", count(usage.input_tokens), count(usage.output_tokens))
}

/// Returns what tokens cost at current prices, if the price is known.
pub(super) fn cost(prices: &Prices, model: &str, usage: Usage) -> Option<patter_core::provider::price::Cost> {
    let model: ModelRef = model.parse().ok()?;
    prices.cost(&model, usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_readable() {
        assert_eq!(duration(340), "340 ms");
        assert_eq!(duration(1250), "1.2 s");
        assert_eq!(duration(200_000), "3 min 20 s");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(plural(1, "turn"), "1 turn");
    }
}
