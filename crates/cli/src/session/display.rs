//! What is shown of a run.

use super::run_failure;
use crate::error::{CommandError, CommandResult, ErrorKind, INTERRUPTED, Outcome};
use crate::format::RunFormat;
use crate::inspect::UsedOverrides;
use crate::setup::stop_name;
use crate::ui::style::DIM;
use crate::ui::{self, HeldText, TextStep, ThoughtLines, nonzero};
use patter::drive::{RunEvent, RunEventKind};
use patter::message::request::FinishReason;
use patter::provider::price::{Bill, Cost};
use patter::run::{self, FailureKind, Run};
use serde_json::{Value as Json, json};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What precedes the first event in a stream of JSON documents, set before it.
pub(crate) type Opening = Arc<OnceLock<Vec<Json>>>;

/// Returns the document that names the session of a stream.
pub(crate) fn session_line(id: &str) -> Json {
    json!({"event": "session", "id": id})
}

/// Returns a listener that shows events. Events that cannot be shown do not stop the run.
pub(crate) fn listener(
    format: RunFormat,
    thoughts: ThoughtLines,
    opening: Opening,
) -> impl Fn(&RunEvent) + Send + Sync {
    // Whether a line of the answer is open, and whether no event was printed yet.
    let is_open = AtomicBool::new(false);
    let is_first = AtomicBool::new(true);
    let held = Mutex::new(HeldText::default());
    let thoughts = Mutex::new(thoughts);
    move |event| {
        let _ = match format {
            RunFormat::Text => {
                for line in lock(&thoughts).take(event) {
                    let _ = ui::status(&line);
                }
                match lock(&held).take(event) {
                    Ok(TextStep::Hold) => return,
                    Ok(TextStep::Accept(answer)) => {
                        let _ = ui::print(&answer);
                    }
                    Ok(TextStep::Show) | Err(_) => {}
                }
                match &event.kind {
                    RunEventKind::Text { text } if event.depth == 0 => {
                        is_open.store(!text.ends_with('\n'), Ordering::Relaxed);
                    }
                    // The answer ends with a line break; text before tool calls is a line of its own.
                    RunEventKind::Replied { .. } | RunEventKind::Incomplete { .. } | RunEventKind::Finished { .. }
                        if event.depth == 0 && is_open.swap(false, Ordering::Relaxed) =>
                    {
                        let _ = ui::print("\n");
                    }
                    _ => {}
                }
                show(event)
            }
            RunFormat::StreamJson => {
                warn_incomplete(event);
                if is_first.swap(false, Ordering::Relaxed) {
                    for document in opening.get().into_iter().flatten() {
                        let _ = ui::print(&format!("{document}\n"));
                    }
                }
                ui::print(&format!("{}\n", json!(event)))
            }
            RunFormat::Json => {
                warn_incomplete(event);
                Ok(())
            }
        };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Warns about an incomplete reply and about another model on stderr too, where people read it.
fn warn_incomplete(event: &RunEvent) {
    if let (RunEventKind::Incomplete { .. } | RunEventKind::FellBack { .. }, Some(line)) =
        (&event.kind, ui::event_line(event))
    {
        let _ = ui::status(&line);
    }
}

/// Shows how a run ended, and what it cost. A run without an answer is an error.
pub(crate) fn finish_run(
    format: RunFormat,
    run: &Run,
    bindings: &str,
    cost: Bill,
    session: Option<&str>,
    store: &str,
    overrides: &UsedOverrides,
) -> CommandResult {
    let failure = failure(run, session, store);
    match format {
        RunFormat::Text => {
            ui::status(&format!("{DIM}{}{DIM:#}", summary(run, cost, session)))?;
        }
        RunFormat::Json => {
            let mut document = document(run, bindings, cost, session);
            overrides.add_to(&mut document);
            match failure {
                Some(error) => return Err(error.with_document(document)),
                None => ui::print(&format!("{document:#}\n"))?,
            }
        }
        RunFormat::StreamJson => {}
    }
    failure.map_or(Ok(Outcome::Success), Err)
}

/// Shows that a signal suspended a run, and how to resume it. `resume` is the command for that, if the run is stored.
pub(crate) fn finish_suspended(
    format: RunFormat,
    run: Option<&Run>,
    bindings: &str,
    cost: Bill,
    session: Option<&str>,
    store: &str,
    resume: Option<&str>,
) -> CommandError {
    let signal = stop_name().unwrap_or("a signal");
    let kind = ErrorKind::Named { name: "Suspended", code: INTERRUPTED };
    let Some(run) = run else {
        return CommandError::new(kind, format!("stopped by {signal} before the run started"));
    };
    let message = match (resume, session) {
        (Some(resume), _) => format!("the run was stopped by {signal}; resume it with `{resume}`"),
        // The store failed, or did not answer in time.
        (None, Some(session)) => {
            format!(
                "the run was stopped by {signal}, and its last step was not saved; {}",
                unsaved_hint(session, store)
            )
        }
        (None, None) => format!("the run was stopped by {signal}, and cannot be resumed because it is not stored"),
    };
    let error = CommandError::new(kind, message);
    match format {
        RunFormat::Json => error.with_document(document(run, bindings, cost, session)),
        RunFormat::Text => {
            // The error says what matters; without the summary it is still complete.
            let _ = ui::status(&format!("{DIM}{}{DIM:#}", summary(run, cost, session)));
            error
        }
        RunFormat::StreamJson => error,
    }
}

fn failure(run: &Run, session: Option<&str>, store: &str) -> Option<CommandError> {
    match run.outcome() {
        Some(run::RunOutcome::Answer { .. }) => None,
        Some(run::RunOutcome::Failed(failure)) => {
            let hint = match failure.kind {
                FailureKind::ModelCalls => Some("raise the limit with --max-turns".to_owned()),
                FailureKind::Tokens => Some("raise the limit with --max-total-tokens".to_owned()),
                FailureKind::Cost if failure.message.starts_with("the run ") => {
                    Some("raise the limit with --max-cost".to_owned())
                }
                FailureKind::Store => session.map(|session| unsaved_hint(session, store)),
                _ => None,
            };
            Some(run_failure(failure.kind.name(), &failure.to_string(), hint.as_deref()))
        }
        None => {
            let waiting = run.person_calls().next().map_or_else(
                || "the run waits for somebody".to_owned(),
                |call| {
                    let question = call.arguments.get("question").and_then(Json::as_str).unwrap_or_default();
                    format!("`{}` waits for an answer: {question}", call.tool)
                },
            );
            let hint = match session {
                Some(session) => format!("answer with `patter resume {session}{store} --answer TEXT`"),
                None => {
                    "the run is not stored, so it cannot be resumed; run it with a store, or at a terminal".to_owned()
                }
            };
            Some(run_failure("Waiting", &waiting, Some(&hint)))
        }
        Some(run::RunOutcome::Cancelled) => {
            let kind = ErrorKind::Named { name: "Cancelled", code: INTERRUPTED };
            Some(CommandError::new(kind, "the run was stopped"))
        }
    }
}

/// Returns what is left of a run that could not be saved to its end, and how to continue. `store` is the option with which
/// other commands find the session.
pub(crate) fn unsaved_hint(session: &str, store: &str) -> String {
    format!(
        "`patter sessions show {session}{store}` shows what was saved; `patter resume {session}{store}` continues \
         from there"
    )
}

fn summary(run: &Run, cost: Bill, session: Option<&str>) -> String {
    let usage = run.usage();
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    let seconds = f64::from(u32::try_from(run.elapsed_ms()).unwrap_or(u32::MAX)) / 1000.0;
    let parts = [
        nonzero(run.model_calls() as usize, "model call"),
        nonzero(run.response().tools_used.len(), "tool call"),
        nonzero(tokens as usize, "token"),
        Some(format!("{seconds:.1} s")),
        Some(describe_cost(cost, matches!(run.outcome(), Some(run::RunOutcome::Answer { .. })))),
        session.map(|id| format!("session {id}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes what a run cost. A run without an answer has cost that much so far.
fn describe_cost(cost: Bill, has_answer: bool) -> String {
    match cost.total() {
        Some(Cost::FREE) if !has_answer => "nothing spent".to_owned(),
        Some(_) if !has_answer => format!("{cost} so far"),
        _ => cost.to_string(),
    }
}

fn document(run: &Run, bindings: &str, cost: Bill, session: Option<&str>) -> Json {
    let response = run.response();
    let mut document = json!(response);
    if let Json::Object(document) = &mut document {
        document.insert("finish".to_owned(), json!(response.finish.as_ref().map(FinishReason::name)));
        document.insert("usage".to_owned(), json!(run.usage()));
        document.insert("cost_usd".to_owned(), json!(cost.total().map(Cost::dollars)));
        document.insert("model_calls".to_owned(), json!(run.model_calls()));
        document.insert("bindings".to_owned(), json!(bindings));
        document.insert("session".to_owned(), json!(session));
        document.insert("conversation".to_owned(), json!(run.conversation()));
    }
    document
}

fn show(event: &RunEvent) -> io::Result<()> {
    let indent = "  ".repeat(event.depth as usize);
    match &event.kind {
        // The answers of other agents go to the agent that called them.
        RunEventKind::Text { text } if event.depth == 0 => ui::print(text),
        RunEventKind::ToolProgress { message, .. } => ui::status(&format!("{indent}  {DIM}{message}{DIM:#}")),
        _ => ui::event_line(event).map_or(Ok(()), |line| ui::status(&line)),
    }
}
