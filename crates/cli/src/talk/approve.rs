//! Asking the person at the terminal.

use crate::{diagnostics, terminal};
use patter::drive::{Answer, Approver, IN_DOUBT};
use patter::run::PendingCall;
use patter::tool::BoxFuture;
use std::io::{self, IsTerminal};

/// Asks at the terminal, where there is one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Terminal {
    /// Whether all calls are approved.
    pub(crate) yes: bool,
    /// Whether calls are made again of which nobody knows what came of them.
    pub(crate) repeat: bool,
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, _: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.yes {
                return Answer::Approve;
            }
            if !io::stdin().is_terminal() {
                return Answer::Refuse("it needs an approval, and there is nobody to ask".to_owned());
            }
            let refused = "the person at the terminal refused it";
            answered(format!("call {} with {} ({because})?", call.tool, arguments(call)), refused).await
        })
    }

    fn repeat<'a>(&'a self, _: &'a str, call: &'a PendingCall) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.repeat {
                return Answer::Approve;
            }
            let what = format!("{} with {} was under way when the run was stopped", call.tool, arguments(call));
            if !io::stdin().is_terminal() {
                // Nobody can be asked, so that they should know.
                let _ = diagnostics::warning(&format!("{what}, and is not called again; --repeat does that"));
                return Answer::Refuse(IN_DOUBT.to_owned());
            }
            answered(format!("{what}; call it again?"), IN_DOUBT).await
        })
    }
}

fn arguments(call: &PendingCall) -> String {
    diagnostics::visible(&call.arguments.to_string())
}

/// Asks, and takes a key for an answer: what was typed before the question does not answer it.
async fn answered(question: String, refused: &str) -> Answer {
    let ask = move || {
        // Nobody can answer what is not shown, so nothing is lost by going on.
        let _ = diagnostics::ask(&format!("{question} [y/n] "));
    };
    let answer = terminal::key(vec!['y', 'n'], ask).await;
    let _ = diagnostics::say(if answer == Some('y') { "yes" } else { "no" });
    if answer == Some('y') { Answer::Approve } else { Answer::Refuse(refused.to_owned()) }
}
