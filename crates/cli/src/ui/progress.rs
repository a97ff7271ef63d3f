//! Progress of long work.

use super::terminal::{columns, is_dumb, is_stderr_terminal};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// The time between two lines of progress where stderr is not a terminal.
const INTERVAL: Duration = Duration::from_secs(10);
/// The narrowest terminal that has room for a bar.
const BAR_COLUMNS: usize = 60;

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
