//! Emphasis, code and links within a line.

use super::{CODE, DIM, LINK, Style};
use anstyle::Effects;

/// The start of a text. Lengths are those of the source, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Span<'t> {
    /// It depends on what follows.
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

/// The characters that a backslash escapes.
const ESCAPABLE: &[char] = &['\\', '`', '*', '_', '[', ']', '#', '~'];

/// Determines what a nonempty text starts with, given the character before it. Unclosed markup that must be decided is
/// literal.
pub(super) fn scan(text: &str, before: Option<char>, must_decide: bool) -> Span<'_> {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return Span::Undecided };
    let plain = |length: usize| Span::Plain { length, shown: text.get(..length).unwrap_or(text) };
    let undecided = |length: usize| if must_decide { plain(length) } else { Span::Undecided };
    match first {
        '\\' => match chars.next() {
            None => undecided(1),
            Some(next) if ESCAPABLE.contains(&next) => Span::Plain { length: 2, shown: text.get(1..2).unwrap_or("") },
            Some(_) => plain(1),
        },
        '`' => {
            let run = run_of(text, '`');
            match code(text, run, must_decide) {
                Some(content) => Span::Code { length: content.len() + 2 * run, content: trimmed(content) },
                None => undecided(run),
            }
        }
        '*' | '_' | '~' => emphasis(text, first, before, must_decide),
        '!' if text == "!" => undecided(1),
        '!' if text.starts_with("![") => match link(text.get(1..).unwrap_or_default()) {
            Link::Complete { length, content, address } => Span::Link { length: length + 1, content, address },
            Link::No => plain(1),
            Link::Undecided => undecided(1),
        },
        '[' => match link(text) {
            Link::Complete { length, content, address } => Span::Link { length, content, address },
            Link::No => plain(1),
            Link::Undecided => undecided(1),
        },
        other => plain(other.len_utf8()),
    }
}

fn run_of(text: &str, marker: char) -> usize {
    text.chars().take_while(|c| *c == marker).count()
}

/// Returns the text between two runs of this many backticks.
fn code(text: &str, run: usize, must_decide: bool) -> Option<&str> {
    let inner = text.get(run..)?;
    let mut at = 0;
    while let Some(next) = inner.get(at..)?.find('`') {
        let start = at + next;
        let found = run_of(inner.get(start..)?, '`');
        // A run at the end of the text may still grow.
        let is_whole = must_decide || start + found < inner.len();
        if found == run && is_whole && start > 0 {
            return inner.get(..start);
        }
        at = start + found;
    }
    None
}

/// Returns code without the space on both sides that separates it from backticks.
fn trimmed(code: &str) -> &str {
    match code.strip_prefix(' ').and_then(|code| code.strip_suffix(' ')) {
        Some(inner) if !inner.trim().is_empty() => inner,
        _ => code,
    }
}

/// Parses text that starts with `*`, `_` or `~`.
fn emphasis(text: &str, marker: char, before: Option<char>, must_decide: bool) -> Span<'_> {
    let run = run_of(text, marker);
    let plain = Span::Plain { length: run, shown: text.get(..run).unwrap_or(text) };
    let effects = match (marker, run) {
        ('~', 2) => Effects::STRIKETHROUGH,
        ('~', 1) if text.len() == 1 && !must_decide => return Span::Undecided,
        ('*' | '_', 1) => Effects::ITALIC,
        ('*' | '_', 2) => Effects::BOLD,
        ('*' | '_', 3) => Effects::BOLD | Effects::ITALIC,
        _ => return plain,
    };
    let Some(next) = text.chars().nth(run) else {
        return if must_decide { plain } else { Span::Undecided };
    };
    // `2*3*4` and `snake_case_name` have no emphasis; `**` within a word is intended.
    let is_in_word = before.is_some_and(char::is_alphanumeric) && (run == 1 || marker == '_');
    if next.is_whitespace() || is_in_word {
        return plain;
    }
    match closing(text, marker, run, must_decide) {
        Some(end) => Span::Styled { length: end + run, content: text.get(run..end).unwrap_or_default(), effects },
        None if must_decide => plain,
        None => Span::Undecided,
    }
}

/// Finds the end of emphasis, skipping code within it.
fn closing(text: &str, marker: char, run: usize, must_decide: bool) -> Option<usize> {
    let mut at = run;
    let mut last = None;
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
                // A run at the end of the text may still grow.
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

/// Writes a complete text.
pub(super) fn write_inline(mut text: &str, style: Style, put: &mut dyn FnMut(char, Style)) {
    let mut before = None;
    while !text.is_empty() {
        let length = write_span(&scan(text, before, true), style, put);
        let (done, left) = text.split_at_checked(length.max(1)).unwrap_or((text, ""));
        before = done.chars().next_back();
        text = left;
    }
}

/// Writes what was found at the start of a text, and returns its length.
pub(super) fn write_span(found: &Span<'_>, style: Style, put: &mut dyn FnMut(char, Style)) -> usize {
    match *found {
        Span::Undecided => 0,
        Span::Plain { length, shown } => {
            shown.chars().for_each(|c| put(c, style));
            length
        }
        Span::Code { length, content } => {
            let style = CODE.with_effects_of(style);
            content.chars().for_each(|c| put(c, style));
            length
        }
        Span::Styled { length, content, effects } => {
            write_inline(content, style.with_effects(effects), put);
            length
        }
        Span::Link { length, content, address } => {
            write_inline(content, style.with_color_of(LINK), put);
            if !address.is_empty() && content != address {
                let address = if content.is_empty() { address.to_owned() } else { format!(" ({address})") };
                address.chars().for_each(|c| put(c, DIM));
            }
            length
        }
    }
}

enum Link<'t> {
    No,
    Undecided,
    Complete { length: usize, content: &'t str, address: &'t str },
}

/// Parses `[content](address)`.
fn link(text: &str) -> Link<'_> {
    let Some(end) = matching(text, '[', ']') else { return Link::Undecided };
    let content = text.get(1..end).unwrap_or_default();
    let rest = text.get(end + 1..).unwrap_or_default();
    match rest.chars().next() {
        None => return Link::Undecided,
        Some('(') => {}
        Some(_) => return Link::No,
    }
    let Some(close) = matching(rest, '(', ')') else { return Link::Undecided };
    let address = rest.get(1..close).unwrap_or_default();
    Link::Complete { length: end + 1 + close + 1, content, address: address.trim() }
}

/// Finds the bracket that closes the one at the start of a text.
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
