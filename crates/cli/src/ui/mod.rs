//! Everything the program shows and reads at the terminal.
//!
//! Results go to stdout, everything else to stderr. A reader that closes the pipe early is not an error: the command
//! finishes its work, and the exit code reports how it ended.

mod browser;
mod diagnostics;
mod diff;
mod event;
mod held;
mod input;
mod key;
mod line;
mod listing;
mod markdown;
mod output;
mod progress;
mod prompt;
mod screen;
pub(crate) mod style;
mod terminal;
mod text;

pub(crate) use browser::open_page;
pub(crate) use diagnostics::{Excerpts, Limit};
pub(crate) use diff::unified_diff;
pub(crate) use event::event_line;
pub(crate) use held::{HeldText, TextStep, ThoughtLines};
pub(crate) use input::{Input, Typed};
pub(crate) use key::key;
pub(crate) use line::line;
pub(crate) use listing::{Align, Column, listing};
pub(crate) use output::{error, print, print_bytes, status, warning, warnings, write_stderr};
pub(crate) use progress::{Progress, StartingServers};
pub(crate) use prompt::{ask, confirm};
pub(crate) use screen::Screen;
pub(crate) use style::plain;
pub(crate) use terminal::{columns, is_interactive, is_stderr_terminal, line_width};
pub(crate) use text::{fitting, format_age, nonzero, one_line, pad, plural, short, truncate, width, with_hanging_text};
