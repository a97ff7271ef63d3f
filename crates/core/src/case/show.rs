//! Formatting of texts, values and durations for checks and judgements.

use crate::text;
use serde_json::Value as Json;
use std::fmt::{self, Write};
use std::time::Duration;

/// The maximum length of an excerpt, in characters.
const MAX_LENGTH: usize = 80;

/// Returns the start of a text, on one line.
pub(super) fn excerpt(text: &str) -> String {
    let mut excerpt = String::new();
    let mut left = MAX_LENGTH;
    let words = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    for c in words {
        if left == 0 {
            excerpt.push('…');
            break;
        }
        if c == ' ' && excerpt.ends_with(' ') {
            continue;
        }
        excerpt.push(c);
        left -= 1;
    }
    excerpt
}

/// Returns the start of a text, in quotes.
pub(super) fn quote_excerpt(text: &str) -> String {
    patter_gram::quote(&excerpt(text))
}

/// Returns the start of a value as JSON, without formatting the rest of it.
pub(super) fn format_json(value: &Json) -> String {
    struct Truncated(String, usize);
    impl Write for Truncated {
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
    let mut truncated = Truncated(String::new(), MAX_LENGTH);
    // An error only means that the value was truncated.
    let _ = write!(truncated, "{value}");
    truncated.0
}

/// Formats a number of milliseconds.
pub(super) fn format_duration(milliseconds: u64) -> String {
    text::format_duration(Duration::from_millis(milliseconds))
}

/// Formats a number of times.
pub(super) fn format_times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}
