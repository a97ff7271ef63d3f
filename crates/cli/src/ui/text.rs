//! Text for people: escaped, shortened, counted.

use unicode_width::UnicodeWidthChar;

/// The length of a value that is shown as part of a line.
const SHORT: usize = 100;

/// Escapes text from a model or a tool so that a terminal shows it literally: characters that move the cursor, change the
/// direction of text or are invisible become `\u{…}`.
pub(crate) fn escape(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_hidden(c) && c != '\n' && c != '\t' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// Returns how many bytes of a text fit into this many columns, and at least one character.
pub(crate) fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns && at > 0 {
            return at;
        }
    }
    text.len()
}

/// Truncates a text to this many columns.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if fitting(text, columns) == text.len() {
        return text.to_owned();
    }
    let head = text.get(..fitting(text, columns.saturating_sub(1))).unwrap_or(text);
    format!("{}…", head.trim_end())
}

/// Escapes a text, joins its lines, and truncates it to this many columns.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    truncate(&escape(text).split_whitespace().collect::<Vec<_>>().join(" "), columns)
}

/// Escapes a text and shortens it to part of a line.
pub(crate) fn short(text: &str) -> String {
    one_line(text, SHORT)
}

/// Returns a number with its noun: `1 tool`, `3 tools`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Returns a number with its noun, unless it is zero.
pub(crate) fn nonzero(count: usize, noun: &str) -> Option<String> {
    (count > 0).then(|| plural(count, noun))
}

/// Formats an age in the largest unit that fits.
pub(crate) fn format_age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        86_400..172_800 => "1 day".to_owned(),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shortened_to_columns() {
        assert_eq!(truncate("hello", 5), "hello");
        assert_eq!(truncate("hello world", 7), "hello…");
        assert_eq!(truncate("一二三", 5), "一二…");
        assert_eq!(one_line("a\n  b\u{1b}[2J", 20), "a b\\u{1b}[2J");
    }

    #[test]
    fn ages_have_one_unit() {
        let table =
            [(59_000, "59 s"), (60_000, "1 min"), (7_200_000, "2 h"), (90_000_000, "1 day"), (180_000_000, "2 days")];
        for (milliseconds, expected) in table {
            assert_eq!(format_age(milliseconds), expected);
        }
    }
}
