//! Emphasis, code and links within a line.

use anstyle::Effects;

/// What a text begins with. Lengths are those of the source, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'t> {
    /// That depends on what comes.
    Undecided,
    Plain {
        length: usize,
        shown: &'t str,
    },
    Code {
        length: usize,
        content: &'t str,
    },
    Styled {
        length: usize,
        content: &'t str,
        effects: Effects,
    },
    Link {
        length: usize,
        content: &'t str,
        address: &'t str,
    },
}

/// What can be marked to be itself.
const ESCAPABLE: &[char] = &['\\', '`', '*', '_', '[', ']', '#', '~'];

/// Tells what a text begins with, which is not empty and comes after a character. What must be decided and is not closed
/// is text.
pub(super) fn scan(text: &str, before: Option<char>, must_decide: bool) -> Found<'_> {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return Found::Undecided };
    let plain = |length: usize| Found::Plain { length, shown: text.get(..length).unwrap_or(text) };
    let undecided = |length: usize| if must_decide { plain(length) } else { Found::Undecided };
    match first {
        '\\' => match chars.next() {
            None => undecided(1),
            Some(next) if ESCAPABLE.contains(&next) => Found::Plain { length: 2, shown: text.get(1..2).unwrap_or("") },
            Some(_) => plain(1),
        },
        '`' => {
            let run = run_of(text, '`');
            match code(text, run, must_decide) {
                Some(content) => Found::Code { length: content.len() + 2 * run, content: trimmed(content) },
                None => undecided(run),
            }
        }
        '*' | '_' | '~' => emphasis(text, first, before, must_decide),
        '!' if text == "!" => undecided(1),
        '!' if text.starts_with("![") => match link(text.get(1..).unwrap_or_default()) {
            Link::Of { length, content, address } => Found::Link { length: length + 1, content, address },
            Link::No => plain(1),
            Link::Undecided => undecided(1),
        },
        '[' => match link(text) {
            Link::Of { length, content, address } => Found::Link { length, content, address },
            Link::No => plain(1),
            Link::Undecided => undecided(1),
        },
        other => plain(other.len_utf8()),
    }
}

fn run_of(text: &str, marker: char) -> usize {
    text.chars().take_while(|c| *c == marker).count()
}

/// Returns what stands between two runs of so many backticks.
fn code(text: &str, run: usize, must_decide: bool) -> Option<&str> {
    let inner = text.get(run..)?;
    let mut at = 0;
    while let Some(next) = inner.get(at..)?.find('`') {
        let begin = at + next;
        let found = run_of(inner.get(begin..)?, '`');
        // A run at the very end may become longer.
        let is_whole = must_decide || begin + found < inner.len();
        if found == run && is_whole && begin > 0 {
            return inner.get(..begin);
        }
        at = begin + found;
    }
    None
}

/// Returns code without the one space on both sides that sets off backticks.
fn trimmed(code: &str) -> &str {
    match code.strip_prefix(' ').and_then(|code| code.strip_suffix(' ')) {
        Some(inner) if !inner.trim().is_empty() => inner,
        _ => code,
    }
}

/// Reads what begins with `*`, `_` or `~`.
fn emphasis(text: &str, marker: char, before: Option<char>, must_decide: bool) -> Found<'_> {
    let run = run_of(text, marker);
    let plain = Found::Plain { length: run, shown: text.get(..run).unwrap_or(text) };
    let effects = match (marker, run) {
        ('~', 2) => Effects::STRIKETHROUGH,
        ('~', 1) if text.len() == 1 && !must_decide => return Found::Undecided,
        ('*' | '_', 1) => Effects::ITALIC,
        ('*' | '_', 2) => Effects::BOLD,
        ('*' | '_', 3) => Effects::BOLD | Effects::ITALIC,
        _ => return plain,
    };
    let Some(next) = text.chars().nth(run) else {
        return if must_decide { plain } else { Found::Undecided };
    };
    // `2*3*4` and `snake_case_name` have none; `**` within a word is meant.
    let is_in_word = before.is_some_and(char::is_alphanumeric) && (run == 1 || marker == '_');
    if next.is_whitespace() || is_in_word {
        return plain;
    }
    match closing(text, marker, run, must_decide) {
        Some(end) => Found::Styled { length: end + run, content: text.get(run..end).unwrap_or_default(), effects },
        None if must_decide => plain,
        None => Found::Undecided,
    }
}

/// Finds where emphasis ends, past code in it.
fn closing(text: &str, marker: char, run: usize, must_decide: bool) -> Option<usize> {
    let (mut at, mut last) = (run, None);
    loop {
        let rest = text.get(at..)?;
        let c = rest.chars().next()?;
        let length = match c {
            '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            '`' => {
                let ticks = run_of(rest, '`');
                match code(rest, ticks, must_decide) {
                    Some(content) => content.len() + 2 * ticks,
                    None if must_decide => ticks,
                    None => return None,
                }
            }
            _ if c == marker => {
                let found = run_of(rest, marker);
                let after = rest.chars().nth(found);
                // A run at the very end may become longer.
                if after.is_none() && !must_decide {
                    return None;
                }
                let is_longer = found > run && found >= 3;
                let is_after_text = last.is_some_and(|last: char| !last.is_whitespace());
                let is_in_word = after.is_some_and(char::is_alphanumeric) && (run == 1 || marker == '_');
                if (found == run || is_longer) && is_after_text && !is_in_word {
                    return Some(at + found - run);
                }
                found
            }
            _ => c.len_utf8(),
        };
        last = Some(c);
        at += length;
    }
}

enum Link<'t> {
    No,
    Undecided,
    Of { length: usize, content: &'t str, address: &'t str },
}

/// Reads `[content](address)`.
fn link(text: &str) -> Link<'_> {
    let Some(end) = matching(text, '[', ']') else { return Link::Undecided };
    let (content, rest) = (text.get(1..end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default());
    match rest.chars().next() {
        None => return Link::Undecided,
        Some('(') => {}
        Some(_) => return Link::No,
    }
    let Some(close) = matching(rest, '(', ')') else { return Link::Undecided };
    let address = rest.get(1..close).unwrap_or_default();
    Link::Of { length: end + 1 + close + 1, content, address: address.trim() }
}

/// Finds the bracket that closes the one a text begins with.
fn matching(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}
