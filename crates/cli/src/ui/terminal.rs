//! Properties of the terminal.

use std::io::{self, IsTerminal};
use std::sync::Mutex;

/// The maximum width of running text: longer lines are hard to read.
pub(super) const MAX_TEXT_WIDTH: usize = 100;
/// The width of a terminal that does not report one.
const DEFAULT_COLUMNS: usize = 80;

/// Held while keys are read, so that two readers do not undo each other's terminal settings.
pub(super) static KEYBOARD: Mutex<()> = Mutex::new(());

/// Returns whether a person sits at a terminal that supports cursor movement.
pub(crate) fn is_interactive() -> bool {
    !is_dumb() && io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Returns whether the terminal, if there is one, lacks cursor movement.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Returns whether stderr is a terminal.
pub(crate) fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns the maximum width of lines on stdout: that of a terminal, and none elsewhere.
pub(crate) fn line_width() -> usize {
    if io::stdout().is_terminal() { columns() } else { usize::MAX }
}

/// Returns the width of the terminal.
pub(crate) fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => DEFAULT_COLUMNS,
    }
}
