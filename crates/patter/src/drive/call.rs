//! Calls of tools and of other agents.

use super::{Driver, Happened, Start, event, now};
use crate::agent::Compiled;
use crate::tool::{Approval, Call, CallError, CancellationToken, Event, Executor, Happening};
use patter_core::conversation::{Outcome, Usage};
use patter_core::name::FullName;
use patter_core::permission::Decision;
use patter_core::run::{self, PendingCall, Ruling, Run, Target};
use patter_core::session::{Entry, Path};
use patter_core::wire::without_nulls;
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// A call that is to be made.
pub(super) struct Calling {
    pub(super) driver: Driver,
    pub(super) compiled: Compiled,
    pub(super) executor: Executor,
    /// How deep the run is that asked for it.
    pub(super) depth: u32,
    /// Which run that is.
    pub(super) path: Path,
    /// That run, as it was then, where the call is one of an agent.
    pub(super) parent: Option<Run>,
    pub(super) cancellation: CancellationToken,
    pub(super) call: PendingCall,
}

/// A call that was made.
pub(super) struct Called {
    pub(super) id: String,
    pub(super) outcome: Outcome,
    pub(super) duration: Duration,
    pub(super) usage: Usage,
}

/// Decides about a call.
pub(super) fn ruling(executor: &Executor, call: &PendingCall) -> Ruling {
    match &call.target {
        Target::Tool { name, .. } => match executor.verdict(name.as_str(), &call.arguments) {
            Ok(verdict) => verdict.into(),
            // The executor says what is wrong when the call is made.
            Err(_) => Ruling { decision: Decision::Allow, because: String::new() },
        },
        Target::Agent { name } => match FullName::parse(name) {
            Ok(name) => executor.verdict_for_agent(&name, &call.arguments).into(),
            Err(error) => Ruling { decision: Decision::Deny, because: error.to_string() },
        },
    }
}

impl Calling {
    /// Makes the call. Dropping this cancels it.
    pub(super) async fn made(self) -> Called {
        let begin = Instant::now();
        let _guard = self.cancellation.clone().drop_guard();
        let (outcome, usage) = match &self.call.target {
            Target::Tool { name, .. } => (self.tool(name.as_str()).await, Usage::default()),
            Target::Agent { name } => self.agent(name).await,
        };
        Called { id: self.call.id, outcome, duration: begin.elapsed(), usage }
    }

    async fn tool(&self, name: &str) -> Outcome {
        let mut arguments = self.call.arguments.clone();
        if let Some(schema) = self.compiled.strict_schema(&self.call.tool) {
            without_nulls(&mut arguments, schema);
        }
        // The declaration has a say in what its own defaults are, before the tool has in its.
        if let Err(message) = self.compiled.declared_arguments(&self.call.tool, &mut arguments) {
            return Outcome::Error { message };
        }
        let mut executor = self.executor.clone();
        let listener = self.driver.listener.clone();
        let journal = self.driver.journal.clone().filter(|journal| journal.takes_notes());
        if listener.is_some() || journal.is_some() {
            let (agent, depth, call_id) = (self.compiled.name().to_owned(), self.depth, self.call.id.clone());
            let run = self.path.clone();
            executor = executor.with_listener(move |happened: &Event<'_>| {
                let Happening::Progress(progress) = &happened.happening else { return };
                let (call_id, fraction, message) = (call_id.clone(), progress.fraction, progress.message.clone());
                if let Some(journal) = &journal {
                    let (run, call_id, message) = (run.clone(), call_id.clone(), message.clone());
                    journal.note(&Entry::Progressed { run, call_id, fraction, message });
                }
                if let Some(listener) = &listener {
                    event::tell(listener, &agent, depth, Happened::ToolProgress { call_id, fraction, message });
                }
            });
        }
        let call = Call {
            tool: name.to_owned(),
            arguments,
            id: self.call.id.as_str().into(),
            approval: if self.call.approved { Approval::Given } else { Approval::None },
            cancellation: self.cancellation.clone(),
        };
        match executor.call(call).await {
            Ok(value) => Outcome::Value { value },
            Err(CallError::Cancelled { .. }) => Outcome::Cancelled,
            Err(error @ CallError::PermissionDenied { .. }) => Outcome::Denied { message: error.to_string() },
            Err(error) => Outcome::Error { message: error.to_string() },
        }
    }

    async fn agent(&self, name: &str) -> (Outcome, Usage) {
        let failed = |message: String| (Outcome::Error { message }, Usage::default());
        let compiled = match self.driver.ready(name) {
            Some(Ok(compiled)) => compiled,
            Some(Err(error)) => return failed(error.to_string()),
            None => return failed(format!("there is no agent `{name}`")),
        };
        let Some(parent) = &self.parent else {
            return failed(format!("the run that called `{name}` is not known"));
        };
        let path: Path = self.path.iter().chain([&self.call.id]).cloned().collect();
        let kept = self.driver.journal.as_ref().and_then(|journal| journal.open_run(&path));
        let (run, start) = match kept {
            Some(run) => (run, Start::Again),
            None => match parent.child(&self.call.id, compiled.spec().clone(), now()) {
                Ok(run) => (run, Start::New),
                Err(error) => return failed(error.to_string()),
            },
        };
        let run = self.driver.perform(&compiled, run, path, start, &self.cancellation).await;
        let outcome = match run.outcome() {
            Some(run::Outcome::Answer { value: Some(value), .. }) => Outcome::Value { value: value.clone() },
            Some(run::Outcome::Answer { text, .. }) => Outcome::Value { value: Json::from(text.as_str()) },
            Some(run::Outcome::Failed(failure)) => Outcome::Error { message: failure.to_string() },
            Some(run::Outcome::Cancelled) | None => Outcome::Cancelled,
        };
        (outcome, run.usage())
    }
}
