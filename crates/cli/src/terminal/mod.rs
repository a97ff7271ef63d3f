//! What a person at a terminal sees and types.

mod input;
mod key;
mod markdown;
mod screen;

pub(crate) use input::{Input, Typed};
pub(crate) use key::key;
pub(crate) use screen::Screen;

use markdown::Markdown;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use unicode_width::UnicodeWidthChar;

/// The widest that text is set: longer lines are hard to read.
const WIDEST: usize = 100;
/// How wide a terminal is that does not say.
const USUAL: usize = 80;

/// Held by who reads keys, so that one does not undo how another set the terminal.
static KEYBOARD: Mutex<()> = Mutex::new(());

/// Tells whether there is a person at a terminal that can be drawn on.
pub(crate) fn is_interactive() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Returns how many columns the terminal has.
pub(crate) fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => USUAL,
    }
}

/// Returns how many bytes of a text fit into so many columns, and at least one character.
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

/// Cuts a text to so many columns.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if fitting(text, columns) == text.len() {
        return text.to_owned();
    }
    let head = text.get(..fitting(text, columns.saturating_sub(1))).unwrap_or(text);
    format!("{head}…")
}
