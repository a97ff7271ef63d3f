//! Approval of calls.

use crate::tool::{Answer, BoxFuture, Question};
use patter_core::run::PendingCall;
use std::sync::Arc;

/// Decides whether calls may be made that need approval.
pub trait Approver: Send + Sync {
    /// Asks for approval of a call. The driver waits for the answer, or until the run is cancelled.
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, ApprovalAnswer>;

    /// Asks whether to repeat a call that was under way when the program ended, so that its outcome is unknown. By
    /// default it is not repeated.
    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, ApprovalAnswer> {
        let _ = (agent, call);
        Box::pin(async { ApprovalAnswer::Refuse(OUTCOME_UNKNOWN.to_owned()) })
    }

    /// Answers the question of a step of a workflow. `problem` says what was wrong with the answer before. By default
    /// nobody answers now, and the run waits until somebody does.
    fn answer_step<'a>(
        &'a self,
        agent: &'a str,
        call: &'a PendingCall,
        question: &'a str,
        problem: Option<&'a str>,
    ) -> BoxFuture<'a, PersonAnswer> {
        let _ = (agent, call, question, problem);
        Box::pin(async { PersonAnswer::Later })
    }

    /// Answers a question that a tool asks during a call. By default it is declined.
    fn answer<'a>(&'a self, agent: &'a str, question: &'a Question) -> BoxFuture<'a, Answer> {
        let _ = (agent, question);
        Box::pin(async { Answer::Decline })
    }
}

/// The message for the model about a call that was interrupted and is not repeated.
pub const OUTCOME_UNKNOWN: &str = "the run was interrupted during this call, and its outcome is unknown";

impl<A: Approver + ?Sized> Approver for Arc<A> {
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        (**self).ask(agent, call, because)
    }

    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, ApprovalAnswer> {
        (**self).repeat(agent, call)
    }

    fn answer_step<'a>(
        &'a self,
        agent: &'a str,
        call: &'a PendingCall,
        question: &'a str,
        problem: Option<&'a str>,
    ) -> BoxFuture<'a, PersonAnswer> {
        (**self).answer_step(agent, call, question, problem)
    }

    fn answer<'a>(&'a self, agent: &'a str, question: &'a Question) -> BoxFuture<'a, Answer> {
        (**self).answer(agent, question)
    }
}

/// The answer to the question of a step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonAnswer {
    /// What the person wrote.
    Answer(String),
    /// Nobody answers now. Other calls of the run end, and then the run is suspended.
    Later,
}

/// The answer to a request for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// The call may be made.
    Approve,
    /// The call may not be made; the model reads the reason.
    Refuse(String),
    /// Nobody answers now. Other calls of the run end, and then the run is suspended: it returns without an outcome, and
    /// asks again when it resumes.
    Later,
}

/// An approver for unattended runs: it refuses every call.
#[derive(Debug, Clone, Copy, Default)]
pub struct RefusingApprover;

impl Approver for RefusingApprover {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async {
            ApprovalAnswer::Refuse("the call needs approval, and nobody is available to approve it".to_owned())
        })
    }
}
