//! How far an experiment is.

use crate::{diagnostics, terminal};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use patter::experiment::Trial;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// How long nothing is said where there is no terminal.
const QUIET: Duration = Duration::from_secs(10);

/// Shows how far an experiment is: a bar at a terminal, and a line now and then elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    all: usize,
    said: Instant,
}

impl Progress {
    pub(super) fn new(all: usize, done: &[Trial]) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let bar = (io::stderr().is_terminal() && !is_dumb).then(|| {
            let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
            let wide = if terminal::columns() >= 60 { "{bar:30} " } else { "" };
            let template = format!("{wide}{{pos}}/{{len}} {{msg}} {{eta}}");
            bar.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(done.len() as u64);
            bar.reset_eta();
            bar
        });
        Self { bar, all, said: Instant::now() }
    }

    pub(super) fn show(&mut self, done: &[Trial]) {
        let passed = || done.iter().filter(|trial| trial.passed).count();
        if let Some(bar) = &self.bar {
            bar.set_message(format!("runs, {} passed,", passed()));
            bar.set_position(done.len() as u64);
        } else if self.said.elapsed() >= QUIET {
            self.said = Instant::now();
            // That it cannot be said is no reason to stop.
            let _ = diagnostics::say(&format!("{} of {} runs, {} passed", done.len(), self.all, passed()));
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
