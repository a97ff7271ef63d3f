//! The result or failure of a command that exited.

use crate::tool::process::{OutputTail, ProcessOutput};
use crate::tool::redact::Redactor;
use crate::tool::{ToolContext, ToolFailure, kept};
use patter_core::declare::CommandSpec;
use patter_core::declare::command::CommandResult;
use patter_core::text::truncate;
use serde_json::{Map, Value as Json, json};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The number of bytes at the end of stderr for the operator.
pub(super) const STDERR_BYTES: usize = 8 * 1024;
/// The number of characters at the end of stderr for the model.
const EXCERPT_CHARS: usize = 300;
/// The number of characters of malformed output for the operator.
const MALFORMED_CHARS: usize = 500;

/// Reads the result of a tool from the output of its command.
pub(super) fn read_result(
    spec: &CommandSpec,
    arguments: &Map<String, Json>,
    output: ProcessOutput,
    context: &ToolContext,
    redactor: &Redactor,
) -> Result<Json, ToolFailure> {
    let ProcessOutput { status, stdout, stderr, is_held_open, is_crowded } = output;
    if is_held_open {
        context.progress(None, "a background process keeps the output of the command open; not waiting for it");
    }
    if is_crowded {
        return Err(failure("the command was killed: it started too many processes", &stderr, redactor));
    }
    let Some(code) = status.code().and_then(|code| u8::try_from(code).ok()) else {
        return Err(failure(&describe_signal(status), &stderr, redactor));
    };
    if let Some(message) = spec.error_message(code, arguments) {
        let detail = format!("exit code {code}\n{}", stderr_detail(&stderr, redactor));
        return Err(ToolFailure::new(message).with_detail(detail));
    }
    if !spec.success_codes.contains(code) {
        return Err(failure(&format!("the command failed with exit code {code}"), &stderr, redactor));
    }
    match spec.result {
        CommandResult::Exit => Ok(json!(code)),
        CommandResult::Text if stdout.len() > spec.max_bytes => {
            // Secrets are redacted before the text is cut, since a part of one is not recognised.
            Ok(kept::cut(redactor.redact(&decode_text(stdout, context)), spec.max_bytes).into())
        }
        CommandResult::Text => Ok(Json::String(decode_text(stdout, context))),
        CommandResult::Json if stdout.len() > spec.max_bytes => {
            Err(kept::too_large(&redactor.redact(&decode_text(stdout, context)), spec.max_bytes))
        }
        CommandResult::Json => parse_json(&stdout).map_err(|reason| {
            let output = truncate(&redactor.redact(&String::from_utf8_lossy(&stdout)), MALFORMED_CHARS);
            let detail = format!("stdout: {output}\n{}", stderr_detail(&stderr, redactor));
            ToolFailure::new(format!("the output of the command is not valid JSON: {reason}")).with_detail(detail)
        }),
    }
}

/// Describes the end of stderr for the operator.
pub(super) fn stderr_detail(stderr: &OutputTail, redactor: &Redactor) -> String {
    match stderr.text(redactor) {
        text if text.is_empty() => "stderr is empty".to_owned(),
        text if stderr.is_truncated() => format!("the end of stderr: {text}"),
        text => format!("stderr: {text}"),
    }
}

/// Returns a failure with the end of stderr.
fn failure(message: &str, stderr: &OutputTail, redactor: &Redactor) -> ToolFailure {
    let excerpt = excerpt(&stderr.text(redactor));
    let message = if excerpt.is_empty() { message.to_owned() } else { format!("{message}: {excerpt}") };
    ToolFailure::new(message).with_detail(stderr_detail(stderr, redactor))
}

fn describe_signal(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else { return format!("the command ended unexpectedly: {status}") };
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
    format!("the command was killed by signal {signal}{name}")
}

/// Decodes an output, without the newline at its end.
fn decode_text(stdout: Vec<u8>, context: &ToolContext) -> String {
    let mut text = String::from_utf8(stdout).unwrap_or_else(|error| {
        context.progress(None, "the output of the command is not UTF-8; invalid bytes are replaced by `\u{fffd}`");
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

fn parse_json(stdout: &[u8]) -> Result<Json, String> {
    let text = std::str::from_utf8(stdout).map_err(|_| "it is not UTF-8".to_owned())?;
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Returns the last lines of a text that are short enough for a model, without escape sequences.
fn excerpt(text: &str) -> String {
    let safe = strip_controls(text);
    let safe = safe.trim();
    let surplus = safe.chars().count().saturating_sub(EXCERPT_CHARS);
    if surplus == 0 {
        return safe.to_owned();
    }
    let end: String = safe.chars().skip(surplus).collect();
    // Whole lines are easier to read than the end of one.
    let whole = end.split_once('\n').map(|(_, whole)| whole.trim()).filter(|whole| !whole.is_empty());
    format!("…{}", whole.unwrap_or(&end))
}

fn strip_controls(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A sequence such as `ESC [31m` ends with a letter.
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
