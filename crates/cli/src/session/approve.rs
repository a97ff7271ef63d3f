//! Approvals at the terminal.

use super::question::{Asker, answer_at_terminal, ask_step};
use crate::ui;
use patter::drive::{ApprovalAnswer, Approver, OUTCOME_UNKNOWN, PersonAnswer};
use patter::run::PendingCall;
use patter::tool::{Answer, BoxFuture, Question};
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

/// Asks the person at the terminal, if there is one.
#[derive(Debug, Default)]
pub(crate) struct TerminalApprover {
    /// Approve all calls.
    pub(crate) yes: bool,
    /// Repeat calls whose outcome is unknown.
    pub(crate) repeat: bool,
    /// The answer to the first question of a workflow.
    pub(crate) answer: Mutex<Option<String>>,
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, _: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            if self.yes {
                return ApprovalAnswer::Approve;
            }
            if !io::stdin().is_terminal() {
                return ApprovalAnswer::Refuse("it needs an approval, and there is nobody to ask".to_owned());
            }
            let question = format!("call {} with {} ({because})?", call.tool, arguments(call));
            match ask(format!("{question} [y/n, r no with a reason] "), &['y', 'n', 'r']).await {
                Some('y') => ApprovalAnswer::Approve,
                Some('r') => refusal(ui::line(|| drop(ui::ask("reason: "))).await.as_deref()),
                _ => refusal(None),
            }
        })
    }

    fn repeat<'a>(&'a self, _: &'a str, call: &'a PendingCall) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            if self.repeat {
                return ApprovalAnswer::Approve;
            }
            let call = format!("{} with {}", call.tool, arguments(call));
            if !io::stdin().is_terminal() {
                // RefusingApprover can be asked, so the decision is at least visible.
                let _ = ui::warning(&format!(
                    "{call} was in progress when the run stopped, and is not repeated (--repeat does that)"
                ));
                return ApprovalAnswer::Refuse(OUTCOME_UNKNOWN.to_owned());
            }
            match ask(format!("{call} was in progress when the run stopped; call it again? [y/n] "), &['y', 'n']).await
            {
                Some('y') => ApprovalAnswer::Approve,
                _ => ApprovalAnswer::Refuse(OUTCOME_UNKNOWN.to_owned()),
            }
        })
    }

    fn answer_step<'a>(
        &'a self,
        _: &'a str,
        call: &'a PendingCall,
        question: &'a str,
        problem: Option<&'a str>,
    ) -> BoxFuture<'a, PersonAnswer> {
        Box::pin(async move {
            let given = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(answer) = given {
                return PersonAnswer::Answer(answer);
            }
            if !io::stdin().is_terminal() {
                if let Some(problem) = problem {
                    let _ = ui::warning(problem);
                }
                return PersonAnswer::Later;
            }
            ask_step(&Asker::Stderr, call, question, problem).await
        })
    }

    fn answer<'a>(&'a self, _: &'a str, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(answer_at_terminal(question, self.yes))
    }
}

fn arguments(call: &PendingCall) -> String {
    call.arguments.to_string()
}

/// Returns the answer that refuses a call; the model reads the reason.
pub(crate) fn refusal(reason: Option<&str>) -> ApprovalAnswer {
    let refused = "the person at the terminal refused it";
    ApprovalAnswer::Refuse(match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{refused}: {reason}"),
        None => refused.to_owned(),
    })
}

/// Asks, and waits for one of the keys. What was typed before the question does not answer it.
async fn ask(question: String, keys: &[char]) -> Option<char> {
    let ask = move || {
        // A question that cannot be shown is not answered, which refuses the call.
        let _ = ui::ask(&question);
    };
    let answer = ui::key(keys.to_vec(), ask).await;
    let _ = ui::status(if answer == Some('y') { "yes" } else { "no" });
    answer
}
