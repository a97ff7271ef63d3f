//! Kinds of lines.

/// The start of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineStart {
    pub(super) kind: Kind,
    /// The number of spaces before it.
    pub(super) indent: usize,
    /// The length of the start, in bytes.
    pub(super) length: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only spaces.
    Blank,
    /// A horizontal rule.
    Rule,
    /// The start of a code block; the rest of the line is its language.
    Fence {
        marker: char,
        length: usize,
    },
    /// The marker of a quote; the rest is a line of its own.
    Quote,
    Heading(usize),
    /// An item of a list, with its marker.
    Item(String),
    /// A row of a table.
    Row,
    Text,
}

/// The maximum number of digits of a list item.
const MAX_DIGITS: usize = 9;

/// Determines the kind of a line by its start; returns nothing while that is ambiguous. A line that has ended, or is too
/// long to hold back, must be decided.
pub(super) fn classify(line: &str, must_decide: bool) -> Option<LineStart> {
    let text = line.trim_start_matches([' ', '\t']);
    let before = line.len() - text.len();
    let indent = line.chars().take(before).map(|c| if c == '\t' { 4 } else { 1 }).sum();
    let found = |kind, length| Some(LineStart { kind, indent, length: before + length });
    let undecided = |otherwise| if must_decide { found(otherwise, 0) } else { None };
    let Some(first) = text.chars().next() else { return undecided(Kind::Blank) };
    let run = text.chars().take_while(|c| *c == first).count();
    match first {
        '>' => found(Kind::Quote, 1),
        '|' => found(Kind::Row, 0),
        '#' if run > 6 => found(Kind::Text, 0),
        '#' => match text.chars().nth(run) {
            None => undecided(Kind::Text),
            Some(' ') => found(Kind::Heading(run), run + 1),
            Some(_) => found(Kind::Text, 0),
        },
        '`' | '~' => match text.chars().nth(run) {
            Some(_) if run < 3 => found(Kind::Text, 0),
            // Inline code may have three backticks too; then they appear again.
            _ if run >= 3 && must_decide && text.chars().skip(run).all(|c| c != first) => {
                found(Kind::Fence { marker: first, length: run }, run)
            }
            _ => undecided(Kind::Text),
        },
        '-' | '*' | '+' | '_' => {
            let is_rule = text.chars().all(|c| c == first || c == ' ') && first != '+';
            let marks = text.chars().filter(|c| *c == first).count();
            let is_item = text.chars().nth(1) == Some(' ') && first != '_';
            match (is_rule, is_item) {
                (true, _) if must_decide && marks >= 3 => found(Kind::Rule, text.len()),
                (true, true) if must_decide => found(Kind::Item("•".to_owned()), 2),
                (true, _) => undecided(Kind::Text),
                (false, true) => found(Kind::Item("•".to_owned()), 2),
                (false, false) if text.len() == 1 => undecided(Kind::Text),
                (false, false) => found(Kind::Text, 0),
            }
        }
        '0'..='9' => {
            let digits = text.chars().take_while(char::is_ascii_digit).count();
            let mut after = text.chars().skip(digits);
            match (after.next(), after.next()) {
                _ if digits > MAX_DIGITS => found(Kind::Text, 0),
                (None | Some('.' | ')'), None) => undecided(Kind::Text),
                (Some('.' | ')'), Some(' ')) => found(Kind::Item(text.chars().take(digits + 1).collect()), digits + 2),
                _ => found(Kind::Text, 0),
            }
        }
        _ => found(Kind::Text, 0),
    }
}
