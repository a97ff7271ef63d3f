//! Telling people what is wrong.

use crate::source::Input;
use crate::{Outcome, or_closed};
use anstyle::{AnsiColor, Style};
use clap::Args;
use patter::gram::{Diagnostic, LineIndex, Rendering, render};
use patter::project::LoadError;
use std::io::{self, BufRead, ErrorKind, Write};

/// How many diagnostics to show.
#[derive(Args, Clone, Copy)]
pub(crate) struct Limit {
    /// Show at most this many problems of a file; 0 shows all
    #[arg(long, default_value_t = Limit::default().max_errors, value_name = "N")]
    max_errors: usize,
}

impl Default for Limit {
    fn default() -> Self {
        Self { max_errors: 50 }
    }
}

const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
const WARNING: Style = AnsiColor::BrightYellow.on_default().bold();
const HELP: Style = AnsiColor::BrightCyan.on_default().bold();
const BOLD: Style = Style::new().bold();

/// Shows diagnostics with excerpts, and how many there are if there are several.
pub(crate) fn show(diagnostics: &[Diagnostic], source: &str, name: &str, limit: Limit) -> io::Result<()> {
    if diagnostics.is_empty() {
        return Ok(());
    }
    or_closed(write_all(diagnostics, source, name, limit))
}

fn write_all(diagnostics: &[Diagnostic], source: &str, name: &str, limit: Limit) -> io::Result<()> {
    let index = LineIndex::new(source);
    let mut stderr = anstream::stderr().lock();
    let most = if limit.max_errors == 0 { diagnostics.len() } else { limit.max_errors };
    for diagnostic in diagnostics.iter().take(most) {
        writeln!(stderr, "{}\n", render(diagnostic, source, &index, name, Rendering::Colored))?;
    }
    if diagnostics.len() > most {
        let hidden = diagnostics.len() - most;
        writeln!(stderr, "… and {hidden} more, which --max-errors 0 shows\n")?;
    }
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let counts = [counted(errors, "error"), counted(diagnostics.len() - errors, "warning")];
    let counts: Vec<_> = counts.into_iter().flatten().collect();
    writeln!(stderr, "{BOLD}{name}: {}{BOLD:#}", counts.join(", "))
}

/// Returns a number with its noun, or nothing for none.
pub(crate) fn counted(count: usize, noun: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        _ => Some(format!("{count} {noun}s")),
    }
}

/// Says that something went wrong that is not about a place in a text.
pub(crate) fn error(message: &str, hint: Option<&str>) -> io::Result<()> {
    let hint = hint.map_or_else(String::new, |hint| format!("\n  {HELP}help{HELP:#}: {hint}"));
    say(&format!("{ERROR}error{ERROR:#}{BOLD}: {message}{BOLD:#}{hint}"))
}

/// Says what is not wrong, and yet should be known.
pub(crate) fn warnings<W: std::fmt::Display>(warnings: &[W], limit: Limit) -> io::Result<()> {
    let most = if limit.max_errors == 0 { warnings.len() } else { limit.max_errors };
    for warning in warnings.iter().take(most) {
        self::warning(&warning.to_string())?;
    }
    match warnings.len().saturating_sub(most) {
        0 => Ok(()),
        hidden => say(&format!("… and {hidden} more, which --max-errors 0 shows")),
    }
}

/// Says one such thing.
pub(crate) fn warning(message: &str) -> io::Result<()> {
    say(&format!("{WARNING}warning{WARNING:#}{BOLD}: {message}{BOLD:#}"))
}

/// Writes a line to stderr.
pub(crate) fn say(line: &str) -> io::Result<()> {
    or_closed(writeln!(anstream::stderr().lock(), "{line}"))
}

/// Writes what comes from a model or a tool so that a terminal shows it as it is: what would move the cursor, turn the
/// direction of text or not be seen at all is written as its number.
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_hidden(c) && c != '\n' && c != '\t' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// Writes a question to stderr, where the answer stands behind it.
pub(crate) fn ask(question: &str) -> io::Result<()> {
    let mut stderr = anstream::stderr().lock();
    write!(stderr, "{question}")?;
    stderr.flush()
}

/// Asks the person at the terminal; everything but yes is no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    ask(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Says that an input cannot be read.
pub(crate) fn unreadable(input: &Input, cause: &io::Error) -> io::Result<Outcome> {
    let (reason, hint) = match (cause.kind(), input) {
        (ErrorKind::NotFound, _) => ("there is no such file".to_owned(), None),
        (ErrorKind::IsADirectory, Input::Path(path)) => (
            "it is a folder".to_owned(),
            Some(format!("name a file in it, such as {}", path.join("agent.gram").display())),
        ),
        _ => (cause.to_string(), None),
    };
    error(&format!("cannot read `{input}`: {reason}"), hint.as_deref())?;
    Ok(Outcome::Failure)
}

/// Says why a project cannot be read.
pub(crate) fn unloaded(error: &LoadError) -> io::Result<Outcome> {
    let hint = match error {
        LoadError::Config { .. } => Some("docs/cli.md says what may stand in it"),
        LoadError::Empty(_) => Some("name a file or another folder"),
    };
    self::error(&error.to_string(), hint)?;
    Ok(Outcome::Failure)
}
