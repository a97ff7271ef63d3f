//! What a run that has ended means: a result, or a failure.

use super::process::{Finished, Tail};
use crate::tool::secrets::Secrets;
use crate::tool::{Failure, ToolContext};
use patter_core::declare::CommandSpec;
use patter_core::declare::command::CommandResult;
use serde_json::{Map, Value as Json, json};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How much of stderr the operator gets.
pub(super) const STDERR_BYTES: usize = 8 * 1024;
/// How much of stderr a model gets, in characters.
const EXCERPT: usize = 300;
/// How much of an output that cannot be read the operator gets, in characters.
const UNREADABLE: usize = 500;

/// Returns the result of a run.
pub(super) fn of(
    spec: &CommandSpec,
    arguments: &Map<String, Json>,
    finished: Finished,
    context: &ToolContext,
    secrets: &Secrets,
) -> Result<Json, Failure> {
    let Finished { status, stdout, stderr, is_held_open } = finished;
    if is_held_open {
        context.progress(None, "a process that the command left behind holds its output open; it was not waited for");
    }
    let Some(code) = status.code().and_then(|code| u8::try_from(code).ok()) else {
        return Err(failed(&ended_by(status), &stderr, secrets));
    };
    if let Some(message) = spec.error(code, arguments) {
        let detail = format!("exit code {code}\n{}", stderr_detail(&stderr, secrets));
        return Err(Failure::new(message).with_detail(detail));
    }
    if !spec.succeeds.contains(code) {
        return Err(failed(&format!("the command ended with exit code {code}"), &stderr, secrets));
    }
    match spec.result {
        CommandResult::Exit => Ok(json!(code)),
        CommandResult::Text => Ok(Json::String(text(stdout, context))),
        CommandResult::Json => read_json(&stdout).map_err(|reason| {
            let shown = cut(&secrets.redact(&String::from_utf8_lossy(&stdout)), UNREADABLE);
            let detail = format!("stdout: {shown}\n{}", stderr_detail(&stderr, secrets));
            Failure::new(format!("the output of the command is no JSON: {reason}")).with_detail(detail)
        }),
    }
}

/// Returns the end of stderr for the operator.
pub(super) fn stderr_detail(stderr: &Tail, secrets: &Secrets) -> String {
    match stderr_text(stderr, secrets) {
        text if text.is_empty() => "stderr is empty".to_owned(),
        text if stderr.is_cut => format!("the end of stderr: {text}"),
        text => format!("stderr: {text}"),
    }
}

fn stderr_text(stderr: &Tail, secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(&stderr.bytes);
    let text = if stderr.is_cut { secrets.redact_tail(&text) } else { secrets.redact(&text) };
    text.trim().to_owned()
}

/// Fails with what stderr says at its end.
fn failed(what: &str, stderr: &Tail, secrets: &Secrets) -> Failure {
    let excerpt = excerpt(&stderr_text(stderr, secrets));
    let message = if excerpt.is_empty() { what.to_owned() } else { format!("{what}: {excerpt}") };
    Failure::new(message).with_detail(stderr_detail(stderr, secrets))
}

fn ended_by(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else { return format!("the command ended in an unknown way: {status}") };
    let name = match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    };
    format!("the command was ended by signal {signal}{name}")
}

/// Reads a text, without one newline at its end.
fn text(stdout: Vec<u8>, context: &ToolContext) -> String {
    let mut text = String::from_utf8(stdout).unwrap_or_else(|error| {
        context.progress(None, "the output of the command is not UTF-8; what cannot be read is replaced by `\u{fffd}`");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

fn read_json(stdout: &[u8]) -> Result<Json, String> {
    let text = std::str::from_utf8(stdout).map_err(|_| "it is not UTF-8".to_owned())?;
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Returns the last lines of a text that are short enough for a model, without what steers a terminal.
fn excerpt(text: &str) -> String {
    let safe = without_controls(text);
    let safe = safe.trim();
    let surplus = safe.chars().count().saturating_sub(EXCERPT);
    if surplus == 0 {
        return safe.to_owned();
    }
    let end: String = safe.chars().skip(surplus).collect();
    // Whole lines are read more easily than the end of one.
    let whole = end.split_once('\n').map(|(_, whole)| whole.trim()).filter(|whole| !whole.is_empty());
    format!("…{}", whole.unwrap_or(&end))
}

fn without_controls(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A sequence such as `ESC [31m` ends with its first letter.
            if chars.clone().next() == Some('[') {
                chars.next();
                chars.by_ref().find(|c| ('@'..='~').contains(c));
            }
        } else if !c.is_control() || c == '\n' {
            safe.push(c);
        } else if c == '\t' {
            safe.push(' ');
        }
    }
    safe
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
