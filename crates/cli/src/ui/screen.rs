//! The display of a turn in progress.

use super::held::{HeldText, TextStep, ThoughtLines};
use super::markdown::Markdown;
use super::output::{Control, control, write_stderr};
use super::style::DIM;
use super::terminal::{MAX_TEXT_WIDTH, columns};
use super::{event_line, print, status, truncate};
use patter::drive::{RunEvent, RunEventKind};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The time before the progress indicator appears.
const DELAY: Duration = Duration::from_millis(300);

/// Shows a turn: the answer on stdout, everything else on stderr. At a terminal the answer is rendered as Markdown, and a
/// progress indicator is shown until the next output.
pub(crate) struct Screen {
    is_terminal: bool,
    state: Mutex<State>,
}

struct State {
    markdown: Markdown,
    /// Where the output of the answer ended.
    position: Position,
    /// The current wait, other than for tools.
    wait: Option<Wait>,
    calls: Vec<ToolCall>,
    is_indicator_drawn: bool,
    thoughts: ThoughtLines,
    held: HeldText,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Nothing was written yet.
    Start,
    /// Within a line.
    InLine,
    /// After the end of a line.
    LineEnd,
}

struct Wait {
    label: String,
    since: Instant,
}

/// A tool call in progress.
struct ToolCall {
    id: String,
    tool: String,
    progress: String,
    since: Instant,
}

impl Screen {
    /// Returns a screen, which shows reasoning or not.
    pub(crate) fn new(is_terminal: bool, thoughts: ThoughtLines) -> Self {
        let markdown = Markdown::new(columns().min(MAX_TEXT_WIDTH));
        let state = State {
            markdown,
            position: Position::Start,
            wait: None,
            calls: Vec::new(),
            is_indicator_drawn: false,
            thoughts,
            held: HeldText::default(),
        };
        Self { is_terminal, state: Mutex::new(state) }
    }

    /// Shows an event. Events that cannot be shown do not stop the run.
    pub(crate) fn show(&self, event: &RunEvent) {
        let _ = self.try_show(event);
    }

    /// Updates the progress indicator, unless a line is being written.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        if self.is_terminal && state.position != Position::InLine {
            let _ = state.draw_indicator();
        }
    }

    /// Writes a line to stderr.
    pub(crate) fn note(&self, line: &str) -> io::Result<()> {
        self.state().end_line(self.is_terminal)?;
        status(line)
    }

    /// Shows a complete text as the agent would say it.
    pub(crate) fn say(&self, text: &str) -> io::Result<()> {
        self.state().write(text, self.is_terminal)?;
        self.end()
    }

    /// Writes a question to stderr. The answer follows in the same line.
    pub(crate) fn ask(&self, question: &str) -> io::Result<()> {
        let mut state = self.state();
        state.end_line(self.is_terminal)?;
        state.position = Position::InLine;
        write_stderr(&format!("{question} "))
    }

    /// Writes the answer to a question.
    pub(crate) fn answer(&self, answer: &str) -> io::Result<()> {
        self.state().position = Position::LineEnd;
        status(answer)
    }

    /// Continues after an answer that ended its line itself.
    pub(crate) fn answered(&self) {
        self.state().position = Position::LineEnd;
    }

    /// Ends a turn: flushes the answer, and removes the progress indicator.
    pub(crate) fn end(&self) -> io::Result<()> {
        let mut state = self.state();
        state.end_line(self.is_terminal)?;
        state.wait = None;
        state.position = Position::Start;
        state.calls.clear();
        state.markdown = Markdown::new(columns().min(MAX_TEXT_WIDTH));
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_show(&self, event: &RunEvent) -> io::Result<()> {
        let mut state = self.state();
        let thoughts = state.thoughts.take(event);
        if !thoughts.is_empty() {
            state.end_line(self.is_terminal)?;
            thoughts.iter().try_for_each(|line| status(line))?;
        }
        match state.held.take(event)? {
            TextStep::Hold => return Ok(()),
            TextStep::Accept(answer) => return state.write(&answer, self.is_terminal),
            TextStep::Show => {}
        }
        match &event.kind {
            RunEventKind::ModelCalled { .. } => state.start_wait("thinking"),
            RunEventKind::Text { text } if event.depth == 0 => return state.write(text, self.is_terminal),
            RunEventKind::Replied { .. } => state.wait = None,
            RunEventKind::ToolStarted { call_id, tool, .. } => state.calls.push(ToolCall {
                id: call_id.clone(),
                tool: tool.clone(),
                progress: String::new(),
                since: Instant::now(),
            }),
            RunEventKind::ToolProgress { call_id, fraction, message } => {
                if let Some(call) = state.calls.iter_mut().find(|call| call.id == *call_id) {
                    let percent = fraction.map_or_else(String::new, |part| format!(" {:.0}%", part * 100.0));
                    call.progress = format!("{percent} {}", message.replace('\n', " "));
                }
            }
            RunEventKind::ToolFinished { call_id, .. } => state.calls.retain(|call| call.id != *call_id),
            RunEventKind::Asked { .. } => state.wait = None,
            _ => {}
        }
        match event_line(event) {
            Some(line) => {
                state.end_line(self.is_terminal)?;
                status(&line)
            }
            None => Ok(()),
        }
    }
}

impl State {
    fn start_wait(&mut self, label: &str) {
        self.wait = Some(Wait { label: label.to_owned(), since: Instant::now() });
    }

    fn write(&mut self, text: &str, is_terminal: bool) -> io::Result<()> {
        self.wait = None;
        self.erase_indicator()?;
        let rendered = if is_terminal { self.markdown.push(text) } else { text.to_owned() };
        if let Some(last) = rendered.chars().next_back() {
            self.position = if last == '\n' { Position::LineEnd } else { Position::InLine };
            print(&rendered)?;
        }
        Ok(())
    }

    /// Ends the current line of the answer, so that something else can be written.
    fn end_line(&mut self, is_terminal: bool) -> io::Result<()> {
        self.erase_indicator()?;
        let held = if is_terminal { self.markdown.end() } else { String::new() };
        if !held.is_empty() {
            print(&held)?;
        } else if self.position == Position::InLine {
            print("\n")?;
        }
        if self.position != Position::Start {
            self.position = Position::LineEnd;
        }
        Ok(())
    }

    fn draw_indicator(&mut self) -> io::Result<()> {
        let call = self.calls.first();
        let (label, since) = match (call, &self.wait) {
            (Some(call), _) => {
                let others = self.calls.iter().skip(1).map(|call| format!(", {}", call.tool));
                (format!("{}{}{}", call.tool, call.progress, others.collect::<String>()), call.since)
            }
            (None, Some(wait)) => (wait.label.clone(), wait.since),
            (None, None) => return Ok(()),
        };
        let elapsed = since.elapsed();
        if elapsed < DELAY {
            return Ok(());
        }
        let frame = usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % FRAMES.len();
        let frame = FRAMES.get(frame).copied().unwrap_or_default();
        let seconds = elapsed.as_secs();
        let text = truncate(&format!("{frame} {label} {seconds} s"), columns().saturating_sub(1));
        self.is_indicator_drawn = true;
        control(Control::LineStart)?;
        write_stderr(&format!("{DIM}{text}{DIM:#}"))?;
        control(Control::EraseLine)
    }

    /// Removes the progress indicator.
    fn erase_indicator(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_indicator_drawn) {
            control(Control::LineStart)?;
            control(Control::EraseLine)?;
        }
        Ok(())
    }
}
