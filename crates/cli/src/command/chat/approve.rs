//! Approvals within the conversation.

use crate::session::{Asker, answer, ask_step, refusal};
use crate::ui::style::{ACCENT, BOLD, CAUTION, DIM};
use crate::ui::{Screen, columns, fitting, key, line};
use patter::drive::{ApprovalAnswer, Approver, OUTCOME_UNKNOWN, PersonAnswer, RefusingApprover};
use patter::run::PendingCall;
use patter::tool::{Answer, BoxFuture, Question};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of lines of arguments.
const MAX_LINES: usize = 40;
const INDENT: &str = "    ";
/// The minimum width of arguments.
const MIN_WIDTH: usize = 10;

/// Asks the person in the conversation, if there is one.
pub(super) struct ChatApprover {
    yes: bool,
    screen: Option<Arc<Screen>>,
    /// The tools that are approved for the whole chat.
    always: Mutex<HashSet<String>>,
}

impl ChatApprover {
    pub(super) fn new(yes: bool, screen: Option<Arc<Screen>>) -> Self {
        Self { yes, screen, always: Mutex::default() }
    }

    fn is_always_approved(&self, tool: &str) -> bool {
        self.always.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }
}

impl Approver for ChatApprover {
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            if self.yes || self.is_always_approved(&call.tool) {
                return ApprovalAnswer::Approve;
            }
            let Some(screen) = &self.screen else { return RefusingApprover.ask(agent, call, because).await };
            let tool = &call.tool;
            let what = format!("{agent} wants to call {ACCENT}{tool}{ACCENT:#} {DIM}({because}){DIM:#}");
            show(screen, &what, call);
            match ask(screen, &[('y', "yes"), ('n', "no"), ('r', "no with a reason"), ('a', "always in this chat")])
                .await
            {
                Some('y') => ApprovalAnswer::Approve,
                Some('a') => {
                    self.always.lock().unwrap_or_else(PoisonError::into_inner).insert(call.tool.clone());
                    ApprovalAnswer::Approve
                }
                Some('r') => {
                    let asking = Arc::clone(screen);
                    // A question that cannot be shown is not answered.
                    let reason = line(move || drop(asking.ask("  reason:"))).await;
                    screen.answered();
                    refusal(reason.as_deref())
                }
                _ => refusal(None),
            }
        })
    }

    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let Some(screen) = &self.screen else { return RefusingApprover.repeat(agent, call).await };
            let tool = &call.tool;
            let what = format!("{ACCENT}{tool}{ACCENT:#} was in progress when the run stopped; call it again?");
            show(screen, &what, call);
            match ask(screen, &[('y', "yes"), ('n', "no")]).await {
                Some('y') => ApprovalAnswer::Approve,
                _ => ApprovalAnswer::Refuse(OUTCOME_UNKNOWN.to_owned()),
            }
        })
    }

    fn answer_step<'a>(
        &'a self,
        agent: &'a str,
        call: &'a PendingCall,
        question: &'a str,
        problem: Option<&'a str>,
    ) -> BoxFuture<'a, PersonAnswer> {
        match &self.screen {
            Some(screen) => {
                Box::pin(async move { ask_step(&Asker::Screen(Arc::clone(screen)), call, question, problem).await })
            }
            None => RefusingApprover.answer_step(agent, call, question, problem),
        }
    }

    fn answer<'a>(&'a self, agent: &'a str, question: &'a Question) -> BoxFuture<'a, Answer> {
        match &self.screen {
            Some(screen) => Box::pin(async move { answer(&Asker::Screen(Arc::clone(screen)), question).await }),
            None => RefusingApprover.answer(agent, question),
        }
    }
}

/// Shows a question about a call, with the arguments. A question that cannot be shown approves nothing.
fn show(screen: &Screen, what: &str, call: &PendingCall) {
    let lines = format_arguments(&call.arguments, columns().saturating_sub(INDENT.len()));
    let hidden = lines.len().saturating_sub(MAX_LINES);
    let mut text = format!("{CAUTION}?{CAUTION:#} {what}");
    for line in lines.iter().take(MAX_LINES) {
        text.push_str(&format!("\n{INDENT}{line}"));
    }
    if hidden > 0 {
        text.push_str(&format!("\n{INDENT}{DIM}… and {hidden} more lines{DIM:#}"));
    }
    let _ = screen.note(&text);
}

/// Formats arguments as lines: as JSON if that fits on one, else each by itself, with texts of several lines unquoted.
fn format_arguments(arguments: &Json, width: usize) -> Vec<String> {
    let width = width.max(MIN_WIDTH);
    let line = arguments.to_string();
    if fitting(&line, width) == line.len() {
        return vec![line];
    }
    let Json::Object(arguments) = arguments else { return lines(&format!("{arguments:#}"), width) };
    let mut out = Vec::new();
    for (name, value) in arguments {
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

/// Breaks a text into lines that the terminal does not wrap, so that a text cannot imitate the prefix of a line.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.replace('\t', "    ").lines() {
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

/// Asks for one of several keys, and shows the answer.
pub(super) async fn ask(screen: &Arc<Screen>, answers: &[(char, &str)]) -> Option<char> {
    let names: Vec<_> = answers.iter().map(|(key, name)| format!("{BOLD}{key}{BOLD:#} {name}")).collect();
    let question = format!("  {}:", names.join(", "));
    let asking = Arc::clone(screen);
    let ask = move || {
        // A question that cannot be shown is not answered.
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
    fn arguments_are_formatted_as_lines() {
        let check = |arguments: Json, width: usize, expected: &[&str]| {
            let lines: Vec<_> = format_arguments(&arguments, width);
            let lines: Vec<_> = lines.iter().map(|line| crate::ui::plain(line).into_owned()).collect();
            assert_eq!(lines, expected);
        };
        let arguments = json!({"path": "a.txt", "content": "one\n\u{1b}[2Jtwo\n", "options": {"mode": 1}});
        check(json!({"path": "a.txt"}), 40, &["{\"path\":\"a.txt\"}"]);
        let expected = ["path: \"a.txt\"", "content:", "│ one", "│ \u{1b}[2Jtwo", "options: {", "  \"mode\": 1", "}"];
        check(arguments, 40, &expected);
        check(json!({"a": "一二三四五\n六"}), 10, &["a:", "│ 一二三四", "│ 五", "│ 六"]);
        check(json!(["a long list", 1]), 16, &["[", "  \"a long list\",", "  1", "]"]);
    }
}
