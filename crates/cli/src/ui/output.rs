//! Writing to stdout and stderr.

use super::Limit;
use super::style::{BOLD, ERROR, HELP, WARNING};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Writes a result to stdout, without styles where stdout does not support them.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    ignore_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes bytes meant for a file or another program to stdout, unchanged.
pub(crate) fn print_raw(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    ignore_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes a line to stderr.
pub(crate) fn status(line: &str) -> io::Result<()> {
    ignore_closed(writeln!(anstream::stderr().lock(), "{line}"))
}

/// Writes an error to stderr, with its hint on a line of its own.
pub(crate) fn error(message: &str, hint: Option<&str>) -> io::Result<()> {
    let hint = hint.map_or_else(String::new, |hint| format!("\n  {HELP}help{HELP:#}: {hint}"));
    status(&format!("{ERROR}error{ERROR:#}{BOLD}: {message}{BOLD:#}{hint}"))
}

/// Writes a warning to stderr.
pub(crate) fn warning(message: &str) -> io::Result<()> {
    status(&format!("{WARNING}warning{WARNING:#}{BOLD}: {message}{BOLD:#}"))
}

/// Writes warnings to stderr, up to a limit.
pub(crate) fn warnings<W: Display>(warnings: &[W], limit: Limit) -> io::Result<()> {
    let shown = limit.shown_of(warnings.len());
    for warning in warnings.iter().take(shown) {
        self::warning(&warning.to_string())?;
    }
    match warnings.len() - shown {
        0 => Ok(()),
        hidden => status(&format!("… and {hidden} more (--max-errors 0 shows all)")),
    }
}

/// Treats a reader that closed the pipe as success.
pub(super) fn ignore_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
