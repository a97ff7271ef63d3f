//! Diagnostics with excerpts of their source.

use super::output::write_stderr;
use super::style::{BOLD, mark};
use super::text::nonzero;
use crate::argument::parse_number;
use crate::place::Place;
use clap::Args;
use patter::gram::{Diagnostic, LineIndex, Rendering, Severity, render};
use patter::text::mask_secrets;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::io;

/// How many diagnostics to show.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// Show at most this many problems per file; 0 shows all
    #[arg(long, default_value_t = Limit::default().max_errors, value_name = "N", value_parser = parse_number::<usize>, allow_negative_numbers = true)]
    max_errors: usize,
}

impl Default for Limit {
    fn default() -> Self {
        Self { max_errors: 50 }
    }
}

impl Limit {
    /// Returns how many of this many are shown.
    pub(crate) fn shown_of(self, count: usize) -> usize {
        if self.max_errors == 0 { count } else { count.min(self.max_errors) }
    }
}

/// Diagnostics of one file.
#[derive(Debug)]
pub(crate) struct Excerpts {
    diagnostics: Vec<Diagnostic>,
    source: String,
    file: String,
    limit: Limit,
}

impl Excerpts {
    /// Excerpts show no secrets, whatever the diagnostics are about.
    pub(crate) fn new(diagnostics: Vec<Diagnostic>, source: &str, file: &str, limit: Limit) -> Self {
        Self { diagnostics, source: mask_secrets(source).into_owned(), file: file.to_owned(), limit }
    }

    /// Writes the diagnostics with excerpts to stderr, and a line with their number.
    pub(crate) fn print(&self) -> io::Result<()> {
        if self.diagnostics.is_empty() {
            return Ok(());
        }
        write_stderr(&self.render())
    }

    fn render(&self) -> String {
        let Self { diagnostics, source, file, limit } = self;
        let index = LineIndex::new(source);
        let mut out = String::new();
        let shown = limit.shown_of(diagnostics.len());
        for diagnostic in diagnostics.iter().take(shown) {
            let rendered = render(diagnostic, source, &index, file, Rendering::Colored);
            let _ = writeln!(out, "{}\n", mark(&rendered));
        }
        if diagnostics.len() > shown {
            let hidden = diagnostics.len() - shown;
            let _ = writeln!(out, "… and {hidden} more (--max-errors 0 shows all)\n");
        }
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        let counts = [nonzero(errors, "error"), nonzero(diagnostics.len() - errors, "warning")];
        let counts: Vec<_> = counts.into_iter().flatten().collect();
        let _ = writeln!(out, "{BOLD}{file}: {}{BOLD:#}", counts.join(", "));
        out
    }

    /// Returns the diagnostics as details of an error.
    pub(crate) fn to_json(&self) -> Vec<Json> {
        let to_json = |diagnostic: &Diagnostic| {
            let level = match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            json!({
                "code": diagnostic.code,
                "level": level,
                "message": diagnostic.message,
                "place": Place::in_source(&self.file, &self.source, diagnostic.span).to_json(),
                "hint": diagnostic.hint,
            })
        };
        self.diagnostics.iter().map(to_json).collect()
    }
}
