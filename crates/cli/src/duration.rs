//! Durations on the command line.

use std::time::Duration;

const HELP: &str = "write a time such as 30s, 2m or 1h";

/// Parses a positive duration: `500ms`, `30s`, `2m`, `1h`, or a number of seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| HELP.to_owned())?;
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return Err(HELP.to_owned()),
    };
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(duration) if duration > Duration::ZERO => Ok(duration),
        Ok(_) => Err("the time must be longer than 0".to_owned()),
        Err(_) => Err("the time is too long".to_owned()),
    }
}

/// Parses a rate such as `60/min` or `5/10s` into the time between two events.
pub(crate) fn parse_rate(text: &str) -> Result<Duration, String> {
    let invalid = || "write a number and a unit of time, as in 60/min, 2/s or 500/h".to_owned();
    let (count, time) = text.split_once('/').ok_or_else(invalid)?;
    let count: u32 = count.trim().parse().ok().filter(|count| *count > 0).ok_or_else(invalid)?;
    let time = time.trim();
    let time = match time.starts_with(|c: char| c.is_ascii_digit()) {
        true => parse_duration(time),
        false if time.is_empty() => return Err(invalid()),
        false => parse_duration(&format!("1{time}")),
    };
    time.map(|time| time / count).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let table = [
            ("30", Ok(30_000)),
            ("1.5", Ok(1_500)),
            ("500ms", Ok(500)),
            ("30s", Ok(30_000)),
            ("2m", Ok(120_000)),
            ("2 min", Ok(120_000)),
            ("1h", Ok(3_600_000)),
            ("0", Err("the time must be longer than 0")),
            ("1e99999h", Err(HELP)),
            ("99999999999999999999h", Err("the time is too long")),
            ("-3", Err(HELP)),
            ("3x", Err(HELP)),
            ("s", Err(HELP)),
            ("", Err(HELP)),
        ];
        for (text, expected) in table {
            let expected = expected.map(Duration::from_millis).map_err(str::to_owned);
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }

    #[test]
    fn rates_are_intervals() {
        let table = [("60/min", 1_000), ("2/s", 500), ("1/h", 3_600_000), ("5/10s", 2_000), (" 3 / m ", 20_000)];
        for (text, milliseconds) in table {
            assert_eq!(parse_rate(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["fast", "0/s", "60/", "60/day", "-1/s", "60"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
