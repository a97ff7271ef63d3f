//! Lines that show the events of a run.

use super::style::{ACCENT, BAD, DIM, PLAIN, WARNING};
use super::terminal::is_stderr_terminal;
use super::{columns, one_line, plural, width};
use patter::drive::{RunEvent, RunEventKind};

/// The width of lines where stderr is not a terminal.
const LINE_WIDTH: usize = 120;
/// The minimum width of a text on a line, even where there is no room for it.
const MIN_TEXT_WIDTH: usize = 12;

/// Returns the line that shows the start or end of a call, a wait, another model, or an incomplete reply. At a terminal it is not wrapped.
pub(crate) fn event_line(event: &RunEvent) -> Option<String> {
    let indent = "  ".repeat(event.depth as usize);
    let columns = if is_stderr_terminal() { columns() } else { LINE_WIDTH };
    let rest =
        |text: &str, used: usize| one_line(text, columns.saturating_sub(used + indent.len()).max(MIN_TEXT_WIDTH));
    match &event.kind {
        RunEventKind::ToolStarted { tool, arguments, .. } => {
            let arguments = rest(&arguments.to_string(), width(tool) + 3);
            Some(format!("{indent}{DIM}→{DIM:#} {ACCENT}{tool}{ACCENT:#} {arguments}"))
        }
        RunEventKind::ToolFinished { tool, outcome, duration_ms, .. } => {
            let time = format!("{duration_ms} ms");
            let text = rest(&outcome.text(), width(tool) + time.len() + 4);
            let style = if outcome.is_value() { PLAIN } else { BAD };
            Some(format!("{indent}{DIM}←{DIM:#} {ACCENT}{tool}{ACCENT:#} {style}{text}{style:#} {DIM}{time}{DIM:#}"))
        }
        RunEventKind::Waiting { seconds, because } => {
            let wait = format!("waiting {seconds:.1} s:");
            Some(format!("{indent}{DIM}{wait} {}{DIM:#}", rest(because, wait.len() + 1)))
        }
        RunEventKind::FellBack { from, to, because } => {
            let lead = format!("warning: `{from}` is not available, asking `{to}`: ");
            let because = rest(because, width(&lead));
            Some(format!("{indent}{WARNING}warning{WARNING:#}: `{from}` is not available, asking `{to}`: {because}"))
        }
        RunEventKind::Compacted { left_out, summary, .. } => {
            let lead = match (left_out, summary.is_empty()) {
                (0, _) => "the conversation is long: earlier results of tools are shortened".to_owned(),
                (count, true) => format!("the conversation is long: {} left out", plural(*count, "message")),
                (count, false) => format!("the conversation is long: {} summarized: ", plural(*count, "message")),
            };
            let summary = rest(summary, width(&lead));
            Some(format!("{indent}{DIM}{lead}{}{DIM:#}", if *left_out == 0 { "" } else { &summary }))
        }
        RunEventKind::Incomplete { message, .. } => {
            let agent = match event.depth {
                0 => String::new(),
                _ => format!("`{}`: ", event.agent),
            };
            Some(format!("{indent}{WARNING}warning{WARNING:#}: {agent}{message}"))
        }
        _ => None,
    }
}
