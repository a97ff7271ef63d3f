//! Helpers for text that people write and read: durations, sizes, wildcards, truncation, suggestions, secrets,
//! markup.

mod duration;
mod glob;
mod markup;
mod secret;
mod size;
mod suggest;

pub use duration::{duration_in, format_duration, milliseconds, parse_duration};
pub use glob::Glob;
pub use markup::{Escaped, is_disguise};
pub use secret::{Secret, find_secrets, mask_secrets};
pub use size::format_size;
pub use suggest::nearest;

/// Truncates a text to at most `max_chars` characters, and marks the cut with an ellipsis.
///
/// ```
/// use patter_core::text::truncate;
/// assert_eq!(truncate("short", 10), "short");
/// assert_eq!(truncate("a longer text", 8), "a longer…");
/// ```
pub fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

/// Returns a noun with its indefinite article.
///
/// ```
/// use patter_core::text::with_article;
/// assert_eq!((with_article("tool"), with_article("agent")), ("a tool".to_owned(), "an agent".to_owned()));
/// ```
pub fn with_article(noun: &str) -> String {
    let is_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
    format!("{} {noun}", if is_vowel { "an" } else { "a" })
}
