//! What is seen of a turn while it happens.

use super::{Markdown, WIDEST, columns, cut};
use crate::talk::event_line;
use crate::{diagnostics, print};
use anstyle::Style;
use patter::drive::{RunEvent, RunEventKind};
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const DIM: Style = Style::new().dimmed();
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// What is done sooner is not announced.
const PATIENCE: Duration = Duration::from_millis(300);

/// Shows what happens in a turn: the answer on stdout, everything else on stderr. At a terminal the answer is set, and a
/// line tells what is waited for; it is gone as soon as something else is shown.
pub(crate) struct Screen {
    is_terminal: bool,
    state: Mutex<State>,
}

struct State {
    markdown: Markdown,
    /// How the answer ended so far.
    text: Text,
    /// What is waited for, and since when.
    busy: Option<Busy>,
    calls: Vec<Call>,
    is_drawn: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    None,
    InLine,
    LineEnded,
}

struct Busy {
    label: String,
    since: Instant,
}

/// A tool that runs.
struct Call {
    id: String,
    tool: String,
    progress: String,
    since: Instant,
}

impl Screen {
    pub(crate) fn new(is_terminal: bool) -> Self {
        let markdown = Markdown::new(columns().min(WIDEST));
        let state = State { markdown, text: Text::None, busy: None, calls: Vec::new(), is_drawn: false };
        Self { is_terminal, state: Mutex::new(state) }
    }

    /// Shows what happened. That it cannot be shown is no reason to stop.
    pub(crate) fn hear(&self, event: &RunEvent) {
        let _ = self.show(event);
    }

    /// Draws what is waited for, if that takes long and nothing else is being written.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        if self.is_terminal && state.text != Text::InLine {
            let _ = state.draw();
        }
    }

    /// Writes a line to stderr.
    pub(crate) fn say(&self, line: &str) -> io::Result<()> {
        self.state().rest(self.is_terminal)?;
        diagnostics::say(line)
    }

    /// Writes a question to stderr. The answer follows in the same line.
    pub(crate) fn ask(&self, question: &str) -> io::Result<()> {
        let mut state = self.state();
        state.rest(self.is_terminal)?;
        state.text = Text::InLine;
        let mut stderr = anstream::stderr().lock();
        write!(stderr, "{question} ")?;
        stderr.flush()
    }

    /// Writes the answer to a question.
    pub(crate) fn answer(&self, answer: &str) -> io::Result<()> {
        self.state().text = Text::LineEnded;
        diagnostics::say(answer)
    }

    /// Ends a turn: what was held back is written, and nothing is waited for any more.
    pub(crate) fn end(&self) -> io::Result<()> {
        let mut state = self.state();
        state.rest(self.is_terminal)?;
        (state.busy, state.text) = (None, Text::None);
        state.calls.clear();
        state.markdown = Markdown::new(columns().min(WIDEST));
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, event: &RunEvent) -> io::Result<()> {
        let mut state = self.state();
        match &event.kind {
            RunEventKind::ModelCalled { .. } => state.wait("thinking"),
            RunEventKind::Text { text } if event.depth == 0 => return state.write(text, self.is_terminal),
            RunEventKind::Replied { .. } => state.busy = None,
            RunEventKind::ToolStarted { call_id, tool, .. } => state.calls.push(Call {
                id: call_id.clone(),
                tool: tool.clone(),
                progress: String::new(),
                since: Instant::now(),
            }),
            RunEventKind::ToolProgress { call_id, fraction, message } => {
                if let Some(call) = state.calls.iter_mut().find(|call| call.id == *call_id) {
                    let percent = fraction.map_or_else(String::new, |part| format!(" {:.0} %", part * 100.0));
                    call.progress = format!("{percent} {}", diagnostics::visible(message).replace('\n', " "));
                }
            }
            RunEventKind::ToolFinished { call_id, .. } => state.calls.retain(|call| call.id != *call_id),
            RunEventKind::Asked { .. } => state.busy = None,
            _ => {}
        }
        match event_line(event) {
            Some(line) => {
                state.rest(self.is_terminal)?;
                diagnostics::say(&line)
            }
            None => Ok(()),
        }
    }
}

impl State {
    fn wait(&mut self, label: &str) {
        self.busy = Some(Busy { label: label.to_owned(), since: Instant::now() });
    }

    fn write(&mut self, text: &str, is_terminal: bool) -> io::Result<()> {
        self.busy = None;
        self.erase()?;
        let set = if is_terminal { self.markdown.push(text) } else { text.to_owned() };
        if let Some(last) = set.chars().next_back() {
            self.text = if last == '\n' { Text::LineEnded } else { Text::InLine };
            print(&set)?;
        }
        Ok(())
    }

    /// Ends the line that is being written, so that others can write.
    fn rest(&mut self, is_terminal: bool) -> io::Result<()> {
        self.erase()?;
        let held = if is_terminal { self.markdown.end() } else { String::new() };
        if !held.is_empty() {
            print(&held)?;
        } else if self.text == Text::InLine {
            print("\n")?;
        }
        if self.text != Text::None {
            self.text = Text::LineEnded;
        }
        Ok(())
    }

    fn draw(&mut self) -> io::Result<()> {
        let call = self.calls.first();
        let (label, since) = match (call, &self.busy) {
            (Some(call), _) => {
                let others = self.calls.iter().skip(1).map(|call| format!(", {}", call.tool));
                (format!("{}{}{}", call.tool, call.progress, others.collect::<String>()), call.since)
            }
            (None, Some(busy)) => (busy.label.clone(), busy.since),
            (None, None) => return Ok(()),
        };
        let elapsed = since.elapsed();
        if elapsed < PATIENCE {
            return Ok(());
        }
        let frame = usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % FRAMES.len();
        let frame = FRAMES.get(frame).copied().unwrap_or_default();
        let seconds = elapsed.as_secs();
        let text = cut(&format!("{frame} {label} {seconds} s"), columns().saturating_sub(1));
        self.is_drawn = true;
        let mut stderr = anstream::stderr().lock();
        write!(stderr, "\r{DIM}{text}{DIM:#}\x1b[K")?;
        stderr.flush()
    }

    /// Takes away what was drawn.
    fn erase(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_drawn) {
            let mut stderr = io::stderr().lock();
            stderr.write_all(b"\r\x1b[K")?;
            stderr.flush()?;
        }
        Ok(())
    }
}
