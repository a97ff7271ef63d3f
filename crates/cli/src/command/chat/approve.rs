//! Approvals, asked in the conversation.

use crate::diagnostics::visible;
use crate::terminal::{Screen, columns, fitting, key};
use anstyle::{AnsiColor, Style};
use patter::drive::{Answer, Approver, IN_DOUBT, Nobody};
use patter::run::PendingCall;
use patter::tool::BoxFuture;
use serde_json::Value as Json;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

const ASK: Style = AnsiColor::Yellow.on_default().bold();
const TOOL: Style = AnsiColor::Cyan.on_default();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// How many lines of arguments are shown at most.
const MOST_LINES: usize = 40;
const INDENT: &str = "    ";
/// How wide arguments are shown at least.
const NARROWEST: usize = 10;

/// Asks the person in the conversation, where there is one.
pub(super) struct InPlace {
    yes: bool,
    screen: Option<Arc<Screen>>,
    /// The tools that need no more asking.
    always: Mutex<HashSet<String>>,
}

impl InPlace {
    pub(super) fn new(yes: bool, screen: Option<Arc<Screen>>) -> Self {
        Self { yes, screen, always: Mutex::default() }
    }

    fn always(&self, tool: &str) -> bool {
        self.always.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }
}

impl Approver for InPlace {
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.yes || self.always(&call.tool) {
                return Answer::Approve;
            }
            let Some(screen) = &self.screen else { return Nobody.ask(agent, call, because).await };
            let tool = visible(&call.tool);
            let what = format!("{agent} wants to call {TOOL}{tool}{TOOL:#} {DIM}({}){DIM:#}", visible(because));
            show(screen, &what, call);
            match answered(screen, &[('y', "yes"), ('n', "no"), ('a', "always in this chat")]).await {
                Some('y') => Answer::Approve,
                Some('a') => {
                    self.always.lock().unwrap_or_else(PoisonError::into_inner).insert(call.tool.clone());
                    Answer::Approve
                }
                _ => Answer::Refuse("the person at the terminal refused it".to_owned()),
            }
        })
    }

    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Some(screen) = &self.screen else { return Nobody.repeat(agent, call).await };
            let tool = visible(&call.tool);
            let what = format!("{TOOL}{tool}{TOOL:#} was under way when the run was stopped; call it again?");
            show(screen, &what, call);
            match answered(screen, &[('y', "yes"), ('n', "no")]).await {
                Some('y') => Answer::Approve,
                _ => Answer::Refuse(IN_DOUBT.to_owned()),
            }
        })
    }
}

/// Shows what is asked about, with the arguments. That it cannot be shown is no reason to stop: nothing is approved by
/// itself.
fn show(screen: &Screen, what: &str, call: &PendingCall) {
    let lines = readable(&call.arguments, columns().saturating_sub(INDENT.len()));
    let hidden = lines.len().saturating_sub(MOST_LINES);
    let mut text = format!("{ASK}?{ASK:#} {what}");
    for line in lines.iter().take(MOST_LINES) {
        text.push_str(&format!("\n{INDENT}{line}"));
    }
    if hidden > 0 {
        text.push_str(&format!("\n{INDENT}{DIM}… and {hidden} more lines{DIM:#}"));
    }
    let _ = screen.say(&text);
}

/// Writes arguments in lines: as JSON if that fits in one, else each for itself, and texts of several lines as they are.
fn readable(arguments: &Json, width: usize) -> Vec<String> {
    let width = width.max(NARROWEST);
    let line = visible(&arguments.to_string());
    if fitting(&line, width) == line.len() {
        return vec![line];
    }
    let Json::Object(arguments) = arguments else { return lines(&format!("{arguments:#}"), width) };
    let mut out = Vec::new();
    for (name, value) in arguments {
        let name = visible(name);
        match value {
            Json::String(text) if text.contains('\n') => {
                out.push(format!("{name}:"));
                out.extend(lines(text, width - 2).iter().map(|line| format!("{DIM}│{DIM:#} {line}")));
            }
            Json::Object(_) | Json::Array(_) => out.extend(lines(&format!("{name}: {value:#}"), width)),
            value => out.extend(lines(&format!("{name}: {value}"), width)),
        }
    }
    out
}

/// Breaks a text into lines that the terminal does not break again: what stands in front of them cannot be imitated.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for line in visible(text).replace('\t', "    ").lines() {
        let mut left = line;
        loop {
            let (head, rest) = left.split_at(fitting(left, width));
            out.push(head.to_owned());
            left = rest;
            if left.is_empty() {
                break;
            }
        }
    }
    out
}

/// Asks for one of some keys, and shows what was answered.
pub(super) async fn answered(screen: &Arc<Screen>, answers: &[(char, &str)]) -> Option<char> {
    let names: Vec<_> = answers.iter().map(|(key, name)| format!("{BOLD}{key}{BOLD:#} {name}")).collect();
    let (asking, question) = (Arc::clone(screen), format!("  {}:", names.join(", ")));
    let ask = move || {
        // Who cannot be asked does not answer.
        let _ = asking.ask(&question);
    };
    let pressed = key(answers.iter().map(|(key, _)| *key).collect(), ask).await;
    let name = answers.iter().find(|(key, _)| Some(*key) == pressed).map_or("", |(_, name)| name);
    let _ = screen.answer(name);
    pressed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_readable() {
        let check = |arguments: Json, width: usize, expected: &[&str]| {
            let lines: Vec<_> = readable(&arguments, width);
            let lines: Vec<_> = lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
            assert_eq!(lines, expected);
        };
        let arguments = json!({"path": "a.txt", "content": "one\n\u{1b}[2Jtwo\n", "options": {"mode": 1}});
        check(json!({"path": "a.txt"}), 40, &["{\"path\":\"a.txt\"}"]);
        let expected = ["path: \"a.txt\"", "content:", "│ one", "│ \\u{1b}[2Jtwo", "options: {", "  \"mode\": 1", "}"];
        check(arguments, 40, &expected);
        check(json!({"a": "一二三四五\n六"}), 10, &["a:", "│ 一二三四", "│ 五", "│ 六"]);
        check(json!(["a long list", 1]), 16, &["[", "  \"a long list\",", "  1", "]"]);
    }
}
