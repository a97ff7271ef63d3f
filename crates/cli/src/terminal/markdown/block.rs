//! What kind of line a line is.

/// What a line begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) kind: Kind,
    /// How many spaces stand before it.
    pub(super) indent: usize,
    /// How many bytes of the line that is.
    pub(super) length: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but spaces.
    Blank,
    /// A line between parts.
    Rule,
    /// The beginning of code; the rest of the line says what code.
    Fence {
        marker: char,
        length: usize,
    },
    /// The mark of a quote; the rest is a line again.
    Quote,
    Heading(usize),
    /// An item of a list, with its mark.
    Item(String),
    /// A row of a table.
    Row,
    Text,
}

/// The most digits that the number of an item has.
const MOST_DIGITS: usize = 9;

/// Tells what a line is by its beginning; nothing while that is not decided. A line that must be decided has ended, or is
/// too long to wait for.
pub(super) fn begin(line: &str, must_decide: bool) -> Option<Begin> {
    let text = line.trim_start_matches([' ', '\t']);
    let before = line.len() - text.len();
    let indent = line.chars().take(before).map(|c| if c == '\t' { 4 } else { 1 }).sum();
    let found = |kind, length| Some(Begin { kind, indent, length: before + length });
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
            // Code in a line may have three marks too; then they come again.
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
                _ if digits > MOST_DIGITS => found(Kind::Text, 0),
                (None | Some('.' | ')'), None) => undecided(Kind::Text),
                (Some('.' | ')'), Some(' ')) => found(Kind::Item(text.chars().take(digits + 1).collect()), digits + 2),
                _ => found(Kind::Text, 0),
            }
        }
        _ => found(Kind::Text, 0),
    }
}
