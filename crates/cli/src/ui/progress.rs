//! Progress of long work.

use super::terminal::{columns, is_dumb, is_stderr_terminal};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two lines of progress where stderr is not a terminal.
const INTERVAL: Duration = Duration::from_secs(10);
/// The narrowest terminal that has room for a bar.
const BAR_COLUMNS: usize = 60;
/// The time between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// The MCP servers that are starting: a line with a spinner at a terminal, elsewhere nothing.
pub(crate) struct StartingServers {
    spinner: Option<ProgressBar>,
    names: Mutex<Vec<String>>,
}

impl StartingServers {
    /// Starts to show the servers with these names.
    pub(crate) fn new(names: Vec<String>) -> Self {
        let is_shown = !names.is_empty() && is_stderr_terminal() && !is_dumb();
        let spinner = is_shown.then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            spinner.set_message(Self::message(&names));
            spinner.enable_steady_tick(TICK);
            spinner
        });
        Self { spinner, names: Mutex::new(names) }
    }

    /// Removes a server that has started, or has failed to.
    pub(crate) fn set_done(&self, name: &str) {
        let Some(spinner) = &self.spinner else { return };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|starting| starting != name);
        if !names.is_empty() {
            spinner.set_message(Self::message(&names));
        }
    }

    fn message(names: &[String]) -> String {
        let noun = if names.len() == 1 { "server" } else { "servers" };
        format!("starting the MCP {noun} {}", names.join(", "))
    }
}

impl Drop for StartingServers {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// The progress of runs: a bar at a terminal, elsewhere a line now and then.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    last_line: Instant,
}

impl Progress {
    /// Starts to show progress, with this many of the runs done.
    pub(crate) fn new(total: usize, done: usize) -> Self {
        let bar = (is_stderr_terminal() && !is_dumb()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            let wide = if columns() >= BAR_COLUMNS { "{bar:30} " } else { "" };
            let template = format!("{wide}{{pos}}/{{len}} {{msg}} {{eta}}");
            bar.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(done as u64);
            bar.reset_eta();
            bar
        });
        Self { bar, total, last_line: Instant::now() }
    }

    /// Shows how many runs are done, and how many of them passed.
    pub(crate) fn update(&mut self, done: usize, passed: impl Fn() -> usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("runs, {} passed,", passed()));
            bar.set_position(done as u64);
        } else if self.last_line.elapsed() >= INTERVAL {
            self.last_line = Instant::now();
            // Progress that cannot be shown does not stop the work.
            let _ = super::status(&format!("{done} of {} runs, {} passed", self.total, passed()));
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
