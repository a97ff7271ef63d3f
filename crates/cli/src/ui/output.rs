//! Writing to stdout and stderr. All text passes here, and nothing in it can act on a terminal: styles are kept where they
//! are supported, and other escape sequences are shown literally.

use super::Limit;
use super::style::{BOLD, ERROR, HELP, WARNING};
use super::text::{escape, is_dangerous};
use anstream::ColorChoice;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Writes a result for people to stdout, without styles where stdout does not support them.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text, has_stdout_styles())
}

/// Writes data to stdout: exactly as it is to a file or another program, and escaped on a terminal.
pub(crate) fn print_data(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() { Cow::Owned(escape(text)) } else { Cow::Borrowed(text) };
    ignore_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
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
pub(super) fn write_stderr(text: &str) -> io::Result<()> {
    let has_styles = anstream::AutoStream::choice(&io::stderr()) != ColorChoice::Never;
    write(&mut io::stderr().lock(), text, has_styles)
}

fn write(stream: &mut (impl Write + IsTerminal), text: &str, has_styles: bool) -> io::Result<()> {
    let text = for_stream(text, has_styles, stream.is_terminal());
    ignore_closed(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()))
}

/// Returns a text with its styles only where they are supported, and escaped for a terminal.
fn for_stream(text: &str, has_styles: bool, is_terminal: bool) -> Cow<'_, str> {
    let is_unchanged = |c: char| c != ESCAPE && !(is_terminal && is_dangerous(c));
    if text.chars().all(is_unchanged) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = style_length(rest);
        let (head, tail) = rest.split_at(style.unwrap_or(c.len_utf8()));
        match style {
            Some(_) if has_styles => out.push_str(head),
            Some(_) => {}
            None if is_terminal && is_dangerous(c) => out.extend(c.escape_unicode()),
            None => out.push(c),
        }
        rest = tail;
    }
    Cow::Owned(out)
}

const ESCAPE: char = '\u{1b}';

/// Returns the length of the escape sequence at the start of a text, if it sets a style and nothing else.
fn style_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
    parameters.get(end..)?.starts_with('m').then_some(end + "\u{1b}[m".len())
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
    fn styles_and_nothing_else_reach_a_terminal() {
        let text = "\u{1b}[1mbold\u{1b}[0m \u{1b}[2J\u{1b}]0;x\u{7} \u{9b}2J \u{202e} \u{1b}[";
        let shown = "\u{1b}[1mbold\u{1b}[0m \\u{1b}[2J\\u{1b}]0;x\\u{7} \\u{9b}2J \\u{202e} \\u{1b}[";
        assert_eq!(for_stream(text, true, true), shown);
        assert_eq!(for_stream(text, false, false), "bold \u{1b}[2J\u{1b}]0;x\u{7} \u{9b}2J \u{202e} \u{1b}[");
        assert_eq!(for_stream("a\0\u{b}\u{7f}\tb\n", false, false), "a\0\u{b}\u{7f}\tb\n");
    }
}
