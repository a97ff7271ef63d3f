//! Texts, values and times as checks and judgements show them.

use serde_json::Value as Json;
use std::fmt::{self, Write};

/// How much of a text or a value is shown, in characters.
const LONGEST: usize = 80;

/// Shows the beginning of a text in one line.
pub(super) fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    let mut left = LONGEST;
    let words = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    for c in words {
        if left == 0 {
            shown.push('…');
            break;
        }
        if c == ' ' && shown.ends_with(' ') {
            continue;
        }
        shown.push(c);
        left -= 1;
    }
    shown
}

/// Shows the beginning of a text in quotes.
pub(super) fn shown(text: &str) -> String {
    patter_gram::quote(&excerpt(text))
}

/// Shows the beginning of a value as JSON, without making the rest of it.
pub(super) fn brief(value: &Json) -> String {
    struct Short(String, usize);
    impl Write for Short {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for c in text.chars() {
                if self.1 == 0 {
                    self.0.push('…');
                    return Err(fmt::Error);
                }
                self.0.push(c);
                self.1 -= 1;
            }
            Ok(())
        }
    }
    let mut short = Short(String::new(), LONGEST);
    // An error only says that there is more.
    let _ = write!(short, "{value}");
    short.0
}

/// Shows a time.
pub(super) fn duration(milliseconds: u64) -> String {
    let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    match (seconds, rest) {
        (0, _) => format!("{rest} ms"),
        (_, 0) => format!("{seconds} s"),
        _ => format!("{seconds}.{rest:03}").trim_end_matches('0').to_owned() + " s",
    }
}

/// Counts times in words.
pub(super) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}
