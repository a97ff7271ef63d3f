//! What is shown of a run.

use crate::{Outcome, diagnostics, print, print_as_is, terminal};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use patter::drive::{RunEvent, RunEventKind, RunFailure};
use patter::provider::price::Cost;
use patter::run::{self, FailureKind, Run};
use serde_json::{Value as Json, json};
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The answer as it comes
    Text,
    /// One JSON document at the end
    Json,
    /// A JSON document for each event, one a line
    StreamJson,
}

const TOOL: Style = AnsiColor::Cyan.on_default();
const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();

/// Which session events are about, said before the first of them.
pub(crate) type Opening = Arc<OnceLock<String>>;

/// Returns what shows what happens. That it cannot be shown is no reason to stop.
pub(crate) fn listener(format: Format, opening: Opening) -> impl Fn(&RunEvent) + Send + Sync {
    // Whether the last that was printed is a text whose line is not over, and whether nothing was printed yet.
    let (is_open, is_new) = (AtomicBool::new(false), AtomicBool::new(true));
    move |event| {
        let _ = match format {
            Format::Text => {
                let ends = matches!(&event.kind, RunEventKind::Replied { calls, .. } if *calls > 0 && event.depth == 0);
                if matches!(&event.kind, RunEventKind::Text { .. }) && event.depth == 0 {
                    is_open.store(true, Ordering::Relaxed);
                } else if ends && is_open.swap(false, Ordering::Relaxed) {
                    // What the model says before it calls tools is a line of its own.
                    let _ = print("\n");
                }
                show(event)
            }
            Format::StreamJson => {
                if let (Some(id), true) = (opening.get(), is_new.swap(false, Ordering::Relaxed)) {
                    let _ = print(&format!("{}\n", json!({"event": "session", "id": id})));
                }
                print(&format!("{}\n", json!(event)))
            }
            Format::Json => Ok(()),
        };
    }
}

/// Prints a document for machines where nothing could be run; stderr has said why.
pub(crate) fn show_nothing(format: Format, kind: &str, message: &str) -> io::Result<Outcome> {
    let error = json!({"kind": kind, "message": message});
    match format {
        Format::Text => {}
        Format::Json => print(&format!("{:#}\n", json!({"content": "", "tools_used": [], "error": error})))?,
        Format::StreamJson => print(&format!("{}\n", json!({"event": "failed", "error": error})))?,
    }
    Ok(Outcome::Failure)
}

/// Shows how a run ended, and what it cost.
pub(crate) fn show_end(
    format: Format,
    run: &Run,
    bindings: &str,
    cost: Option<Cost>,
    session: Option<&str>,
) -> io::Result<Outcome> {
    let (usage, response) = (run.usage(), run.response());
    match format {
        Format::Text => {
            print("\n")?;
            let seconds = f64::from(u32::try_from(run.elapsed_ms()).unwrap_or(u32::MAX)) / 1000.0;
            let counts = [
                diagnostics::counted(run.model_calls() as usize, "model call"),
                diagnostics::counted(response.tools_used.len(), "tool call"),
                diagnostics::counted(usage.input_tokens.saturating_add(usage.output_tokens) as usize, "token"),
                Some(format!("{seconds:.1} s")),
                Some(cost.map_or_else(|| "cost unknown".to_owned(), |cost| cost.to_string())),
                session.map(|id| format!("session {id}")),
            ];
            let counts: Vec<_> = counts.into_iter().flatten().collect();
            diagnostics::say(&format!("{DIM}{}{DIM:#}", counts.join(", ")))?;
        }
        Format::Json => {
            let mut document = json!(response);
            if let Json::Object(document) = &mut document {
                document.insert("usage".to_owned(), json!(usage));
                document.insert("cost_usd".to_owned(), json!(cost.map(Cost::dollars)));
                document.insert("model_calls".to_owned(), json!(run.model_calls()));
                document.insert("bindings".to_owned(), json!(bindings));
                document.insert("session".to_owned(), json!(session));
                document.insert("conversation".to_owned(), json!(run.conversation()));
                if let Some(error) = RunFailure::of(run) {
                    document.insert("error".to_owned(), json!(error));
                }
            }
            print(&format!("{document:#}\n"))?;
        }
        Format::StreamJson => {}
    }
    match run.outcome() {
        Some(run::RunOutcome::Answer { .. }) => Ok(Outcome::Success),
        Some(run::RunOutcome::Failed(failure)) => {
            let hint = match failure.kind {
                FailureKind::ModelCalls => Some("--max-turns allows more"),
                _ => None,
            };
            diagnostics::error(&format!("{}: {failure}", failure.kind.name()), hint)?;
            Ok(Outcome::Failure)
        }
        Some(run::RunOutcome::Cancelled) | None => {
            diagnostics::say("the run was stopped")?;
            Ok(Outcome::Code(130))
        }
    }
}

fn show(event: &RunEvent) -> io::Result<()> {
    let indent = "  ".repeat(event.depth as usize);
    match &event.kind {
        // What other agents say is for the one that called them.
        RunEventKind::Text { text } if event.depth == 0 => {
            // A terminal obeys what it is sent; a file or a pipe gets the answer as it is.
            if io::stdout().is_terminal() { print(&diagnostics::visible(text)) } else { print_as_is(text) }
        }
        RunEventKind::ToolProgress { message, .. } => diagnostics::say(&format!("{indent}  {DIM}{message}{DIM:#}")),
        _ => event_line(event).map_or(Ok(()), |line| diagnostics::say(&line)),
    }
}

/// Returns how a call is shown that begins or ends, or a wait: in one line, which at a terminal is not broken.
pub(crate) fn event_line(event: &RunEvent) -> Option<String> {
    let indent = "  ".repeat(event.depth as usize);
    let width = if io::stderr().is_terminal() { terminal::columns() } else { LINE };
    let one_line = |text: &str, used: usize| {
        let text = diagnostics::visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
        terminal::cut(&text, width.saturating_sub(used + indent.len()).max(TERSEST))
    };
    match &event.kind {
        RunEventKind::ToolStarted { tool, arguments, .. } => {
            let tool = &diagnostics::visible(tool);
            let arguments = one_line(&arguments.to_string(), tool.len() + 3);
            Some(format!("{indent}{DIM}→{DIM:#} {TOOL}{tool}{TOOL:#} {arguments}"))
        }
        RunEventKind::ToolFinished { tool, outcome, duration_ms, .. } => {
            let tool = &diagnostics::visible(tool);
            let time = format!("{duration_ms} ms");
            let text = one_line(&outcome.text(), tool.len() + time.len() + 4);
            let style = if outcome.is_value() { Style::new() } else { BAD };
            Some(format!("{indent}{DIM}←{DIM:#} {TOOL}{tool}{TOOL:#} {style}{text}{style:#} {DIM}{time}{DIM:#}"))
        }
        RunEventKind::Waiting { seconds, because } => {
            let wait = format!("waiting {seconds:.1} s:");
            Some(format!("{indent}{DIM}{wait} {}{DIM:#}", one_line(because, wait.len() + 1)))
        }
        _ => None,
    }
}

/// How long lines are that no terminal shows.
const LINE: usize = 120;
/// What is shown of a text even where there is no room for it.
const TERSEST: usize = 12;

/// Cuts a text to one line of a terminal.
pub(crate) fn short(text: &str) -> String {
    let line = diagnostics::visible(text).replace('\n', " ");
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
