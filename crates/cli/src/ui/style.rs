//! The colours of the program, each named by what it marks.

use anstyle::{AnsiColor, Style};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
/// Success, or something added.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Failure, or something removed.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Something that needs attention.
pub(crate) const CAUTION: Style = AnsiColor::Yellow.on_default();
/// Names of tools, and places.
pub(crate) const ACCENT: Style = AnsiColor::Cyan.on_default();
/// The word `error`.
pub(crate) const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
/// The word `warning`.
pub(crate) const WARNING: Style = AnsiColor::BrightYellow.on_default().bold();
/// The word `help`.
pub(crate) const HELP: Style = AnsiColor::BrightCyan.on_default().bold();
