//! `patter doctor`: looks whether all is there that a project needs.

mod look;
mod model;
mod tool;

use crate::setup::{Turn, stop_signal, until_stopped};
use crate::{Outcome, diagnostics, print};
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use patter::project::find_root;
use serde_json::json;
use std::fmt::Write;
use std::io;
use tokio::runtime::Builder;

/// Look whether all is there that the project needs
///
/// Reads the project around the current folder and checks its agents, looks for keys, asks the providers of models
/// whether they take them, starts the MCP servers, looks for the programs of command tools, and whether the store can be
/// written. No key is ever shown, and no token is spent. Exits with 1 where something is broken.
#[derive(Args)]
#[command(after_help = "Examples:\n  patter doctor\n  patter doctor --offline --format json")]
pub(crate) struct Doctor {
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Do not ask the providers of models
    #[arg(long)]
    offline: bool,

    /// Do not start MCP servers
    #[arg(long)]
    no_mcp: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
}

/// What was found out about one thing.
struct Line {
    state: State,
    message: String,
    /// What to do about what is broken.
    hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    Broken,
    /// It was not looked at, or there is nothing to look at.
    Skipped,
}

/// Things of one sort.
struct Section {
    name: &'static str,
    lines: Vec<Line>,
}

impl Doctor {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let stop = stop_signal(&runtime, Turn::default())?;
        let root = find_root();
        let Some(sections) = until_stopped(&runtime, &stop, look::look(root.as_deref(), &self)) else {
            diagnostics::say("stopped")?;
            return Ok(Outcome::Code(130));
        };
        let lines = || sections.iter().flat_map(|section| &section.lines);
        let broken = lines().filter(|line| line.state == State::Broken).count();
        match self.format {
            Format::Text => {
                print(&text(&sections))?;
                let found = diagnostics::counted(broken, "broken thing").map(|things| format!("found {things}"));
                diagnostics::say(found.as_deref().unwrap_or("all is well"))?;
            }
            Format::Json => print(&json_of(&sections, broken == 0))?,
        }
        Ok(if broken == 0 { Outcome::Success } else { Outcome::Failure })
    }
}

impl Line {
    fn well(message: impl Into<String>) -> Self {
        Self { state: State::Well, message: message.into(), hint: None }
    }

    fn broken(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { state: State::Broken, message: message.into(), hint: Some(hint.into()) }
    }

    fn skipped(message: impl Into<String>) -> Self {
        Self { state: State::Skipped, message: message.into(), hint: None }
    }
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Well => "ok",
            State::Broken => "broken",
            State::Skipped => "skipped",
        }
    }

    const fn mark(self) -> (Style, char) {
        match self {
            State::Well => (AnsiColor::Green.on_default(), '✓'),
            State::Broken => (AnsiColor::Red.on_default().bold(), '✗'),
            State::Skipped => (Style::new().dimmed(), '–'),
        }
    }
}

fn text(sections: &[Section]) -> String {
    const HELP: Style = AnsiColor::Cyan.on_default();
    const BOLD: Style = Style::new().bold();
    let mut out = String::new();
    for section in sections.iter().filter(|section| !section.lines.is_empty()) {
        let _ = writeln!(out, "{BOLD}{}{BOLD:#}", section.name);
        for line in &section.lines {
            let (style, mark) = line.state.mark();
            // What servers and providers say may be of several lines.
            let message = diagnostics::visible(&line.message).replace('\n', "\n    ");
            let _ = writeln!(out, "  {style}{mark}{style:#} {message}");
            if let Some(hint) = &line.hint {
                let hint = diagnostics::visible(hint).replace('\n', "\n          ");
                let _ = writeln!(out, "    {HELP}help{HELP:#}: {hint}");
            }
        }
    }
    out
}

fn json_of(sections: &[Section], is_well: bool) -> String {
    let checks: Vec<_> = sections
        .iter()
        .flat_map(|section| section.lines.iter().map(|line| (section.name, line)))
        .map(|(topic, line)| json!({"topic": topic, "state": line.state.name(), "message": line.message, "hint": line.hint}))
        .collect();
    format!("{:#}\n", json!({"version": 1, "ok": is_well, "checks": checks}))
}
