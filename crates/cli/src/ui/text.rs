//! Text for people: escaped, shortened, counted.
//!
//! Only the writer escapes. Everything before it works on the text as it is, and counts columns as the terminal will show
//! it, so that a pipe gets the same text unescaped.

use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The length of a value that is shown as part of a line.
const SHORT: usize = 100;

/// Escapes text so that a terminal shows it literally: characters that move the cursor, change the direction of text or
/// hide something become `\u{…}`.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_dangerous(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    }))
}

/// Returns whether a character could deceive the reader of a terminal.
///
/// Joiners are shown as they are: emoji, Persian and Hindi are not readable without them. So are marks of direction, which
/// unlike embeddings, overrides and isolates cannot reorder letters.
pub(super) fn is_dangerous(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Soft hyphen, zero-width space, separators of lines and paragraphs, embeddings and overrides, invisible
        // operators, isolates, byte order mark, annotations of text, and tags, which can carry a whole hidden text.
        '\u{ad}'
        | '\u{200b}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Returns the number of columns that a text takes on a terminal, where it is escaped.
pub(crate) fn width(text: &str) -> usize {
    if !text.chars().any(is_dangerous) {
        return text.width();
    }
    let of_char = |c: char| if is_dangerous(c) { c.escape_unicode().len() } else { c.width().unwrap_or(0) };
    text.chars().map(of_char).sum()
}

/// Pads a text with spaces to this many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// Returns how many bytes of a text fit into this many columns, and at least one character with all that is joined to it.
pub(crate) fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        used += width(cluster);
        if used > columns && at > 0 {
            return at;
        }
    }
    text.len()
}

/// The narrowest column of text beside something else.
const MIN_COLUMN: usize = 24;
/// The indentation of text below what it belongs to.
const BELOW: usize = 6;

/// Returns a line that starts with a lead of this width, followed by a text that is broken between words. Where there is no
/// room beside the lead, the text is below it.
pub(crate) fn with_hanging_text(lead: &str, lead_width: usize, text: &str, columns: usize) -> String {
    if columns.saturating_sub(lead_width) >= MIN_COLUMN {
        let lines = wrap(text, columns.saturating_sub(lead_width));
        return format!("{lead}{}\n", lines.join(&format!("\n{:lead_width$}", "")));
    }
    let lines = wrap(text, columns.saturating_sub(BELOW).max(1));
    format!("{}\n{:BELOW$}{}\n", lead.trim_end(), "", lines.join(&format!("\n{:BELOW$}", "")))
}

/// Breaks a text between words into lines of at most this many columns. Longer words are broken where they have to be.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word = word;
        while !word.is_empty() {
            let Some(line) = lines.last_mut() else { break };
            let space = usize::from(!line.is_empty());
            if width(line) + space + width(word) <= columns {
                line.push_str(&" ".repeat(space));
                line.push_str(word);
                break;
            }
            if line.is_empty() {
                let (head, tail) = word.split_at(fitting(word, columns));
                line.push_str(head);
                word = tail;
            }
            if !word.is_empty() {
                lines.push(String::new());
            }
        }
    }
    lines
}

/// Truncates a text to this many columns.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if fitting(text, columns) == text.len() {
        return text.to_owned();
    }
    let head = text.get(..fitting(text, columns.saturating_sub(1))).unwrap_or(text);
    format!("{}…", head.trim_end())
}

/// Joins the lines of a text, and truncates it to this many columns.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    truncate(&text.split_whitespace().collect::<Vec<_>>().join(" "), columns)
}

/// Shortens a text to part of a line.
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
        assert_eq!(one_line("a\n  b\u{1b}[2J", 20), "a b\u{1b}[2J");
        // What is escaped takes more columns.
        assert_eq!((width("b\u{1b}[2J"), width("\u{9b}")), (10, 6));
        assert_eq!(truncate("ab\u{1b}c", 8), "ab…");
        assert_eq!(truncate("ab\u{1b}c", 9), "ab\u{1b}c");
    }

    #[test]
    fn only_dangerous_characters_are_escaped() {
        let shown = [
            "👩\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "שלום\u{200f}!",
            "é",
            "a\tb\n",
            "中文",
        ];
        for text in shown {
            assert_eq!(escape(text), text);
        }
        let table = [
            ("a\u{1b}[2J", "a\\u{1b}[2J"),
            ("\u{7f}\0\r", "\\u{7f}\\u{0}\\u{d}"),
            ("\u{9b}", "\\u{9b}"),
            ("x\u{202e}y\u{2066}", "x\\u{202e}y\\u{2066}"),
            ("\u{200b}\u{feff}", "\\u{200b}\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}"),
        ];
        for (text, expected) in table {
            assert_eq!(escape(text), expected);
        }
    }

    #[test]
    fn joined_characters_are_not_separated() {
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!((width(family), width("می\u{200c}خواهم"), width("e\u{301}")), (2, 7, 1));
        assert_eq!(truncate(&format!("a{family}bc"), 4), format!("a{family}…"));
        assert_eq!(fitting(&format!("{family}x"), 1), family.len());
        assert_eq!(pad("中", 4), "中  ");
    }

    #[test]
    fn text_is_broken_between_words() {
        let table: [(&str, usize, &[&str]); 5] = [
            ("one two three", 20, &["one two three"]),
            ("one two  three", 7, &["one two", "three"]),
            ("a verylongword b", 5, &["a", "veryl", "ongwo", "rd b"]),
            ("中文 中文", 5, &["中文", "中文"]),
            ("", 5, &[""]),
        ];
        for (text, columns, expected) in table {
            assert_eq!(wrap(text, columns), expected, "{text}");
        }
    }

    #[test]
    fn text_hangs_beside_or_below() {
        assert_eq!(
            with_hanging_text("a   ", 4, "one two three four five six seven", 30),
            "a   one two three four five\n    six seven\n"
        );
        assert_eq!(with_hanging_text("a long lead  ", 13, "one two three", 20), "a long lead\n      one two three\n");
        assert_eq!(with_hanging_text("a  ", 3, "one two", usize::MAX), "a  one two\n");
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
