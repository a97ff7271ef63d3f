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

/// Cuts a text to so many columns.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let is_fit = width <= left;
        left = left.saturating_sub(width);
        is_fit
    };
    let head: String = text.chars().take_while(fits).collect();
    if head.len() == text.len() {
        return head;
    }
    let mut head: Vec<char> = head.chars().collect();
    head.pop();
    head.into_iter().chain(['…']).collect()
}
