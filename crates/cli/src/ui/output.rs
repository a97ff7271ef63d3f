//! Writing to stdout and stderr. All text of the program passes here, and nothing in it can act on a terminal: styles of
//! the program are kept where they are supported, and whatever else could deceive the reader is shown literally. To a
//! file or another program, text goes as it is.

use super::Limit;
use super::style::{BOLD, ERROR, HELP, Part, WARNING, parts, plain};
use super::text::{escape, is_dangerous};
use anstream::ColorChoice;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Writes a result to stdout, without styles where stdout does not support them.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text, has_stdout_styles())
}

/// Writes bytes to stdout. Fails at a terminal, which cannot show them.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stream = io::stdout().lock();
    if stream.is_terminal() {
        return Err(ErrorKind::Unsupported.into());
    }
    ignore_closed(stream.write_all(bytes).and_then(|()| stream.flush()))
}

/// Returns whether stdout shows styles.
pub(crate) fn has_stdout_styles() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Writes a line to stderr.
pub(crate) fn status(line: &str) -> io::Result<()> {
    write_stderr(&format!("{line}\n"))
}

/// Writes text to stderr, without styles where stderr does not support them.
pub(crate) fn write_stderr(text: &str) -> io::Result<()> {
    write(&mut io::stderr().lock(), text, has_stderr_styles())
}

/// Returns whether stderr shows styles.
pub(super) fn has_stderr_styles() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// What the program does to a terminal beside writing text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// Goes to the start of the line.
    LineStart,
    /// Erases the rest of the line.
    EraseLine,
    /// Ends the mode in which pasted text is marked, which the line editor starts.
    EndPasteMode,
}

/// Controls the terminal.
pub(super) fn control(control: Control) -> io::Result<()> {
    let (is_stdout, sequence) = match control {
        Control::LineStart => (false, "\r"),
        Control::EraseLine => (false, "\x1b[K"),
        Control::EndPasteMode => (true, "\x1b[?2004l"),
    };
    let write = |stream: &mut dyn Write| stream.write_all(sequence.as_bytes()).and_then(|()| stream.flush());
    if is_stdout { write(&mut io::stdout().lock()) } else { write(&mut io::stderr().lock()) }
}

fn write(stream: &mut (impl Write + IsTerminal), text: &str, has_styles: bool) -> io::Result<()> {
    let text = for_stream(text, has_styles, stream.is_terminal());
    ignore_closed(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()))
}

/// Returns a text with its styles only where they are supported, and escaped for a terminal.
pub(super) fn for_stream(text: &str, has_styles: bool, is_terminal: bool) -> Cow<'_, str> {
    if !has_styles {
        return match plain(text) {
            text if !is_terminal || !text.chars().any(is_dangerous) => text,
            text => Cow::Owned(escape(&text).into_owned()),
        };
    }
    let mut out = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Style(sequence) => out.extend(["\u{1b}", sequence]),
            Part::Text(text) if is_terminal => out.push_str(&escape(text)),
            Part::Text(text) => out.push_str(text),
        }
    }
    Cow::Owned(out)
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
fn ignore_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_the_program_and_nothing_else_reach_a_terminal() {
        let foreign = "\u{1b}[31mred\u{1b}[8m \u{1b}[2J\u{1b}]0;x\u{7} \u{9b}2J \u{202e} \u{1b}[ 👩\u{200d}🚀";
        let shown = "\\u{1b}[31mred\\u{1b}[8m \\u{1b}[2J\\u{1b}]0;x\\u{7} \\u{9b}2J \\u{202e} \\u{1b}[ 👩\u{200d}🚀";
        let text = format!("{BOLD}{foreign}{BOLD:#}\n");
        assert_eq!(for_stream(&text, true, true), format!("\u{1b}[1m{shown}\u{1b}[0m\n"));
        assert_eq!(for_stream(&text, false, true), format!("{shown}\n"));
        assert_eq!(for_stream(&text, true, false), format!("\u{1b}[1m{foreign}\u{1b}[0m\n"));
        assert_eq!(for_stream(&text, false, false), format!("{foreign}\n"));
        assert_eq!(for_stream("a\0\u{b}\u{7f}\tb\n", false, false), "a\0\u{b}\u{7f}\tb\n");
    }
}
