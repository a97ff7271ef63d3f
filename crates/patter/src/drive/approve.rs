//! Who answers whether calls may be made.

use crate::tool::BoxFuture;
use patter_core::run::PendingCall;
use std::sync::Arc;

/// Answers whether calls may be made.
pub trait Approver: Send + Sync {
    /// Asks about a call. Whoever drives the run waits for the answer, or for the run to be cancelled.
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer>;

    /// Asks whether a call is to be made again that was under way when the program ended, so that nobody knows what came
    /// of it. Without a word on this it is not.
    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, Answer> {
        let _ = (agent, call);
        Box::pin(async { Answer::Refuse(IN_DOUBT.to_owned()) })
    }
}

/// What the model reads of a call that was under way when the program ended, and is not made again.
pub const IN_DOUBT: &str = "the run was stopped while this was under way, and nobody knows what came of it";

impl<A: Approver + ?Sized> Approver for Arc<A> {
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer> {
        (**self).ask(agent, call, because)
    }

    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, Answer> {
        (**self).repeat(agent, call)
    }
}

/// What is answered about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may be made.
    Approve,
    /// It may not, and why, which the model gets to read.
    Refuse(String),
}

/// An approver for runs that nobody watches: it refuses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Refuse("it needs an approval, and there is nobody to ask".to_owned()) })
    }
}
