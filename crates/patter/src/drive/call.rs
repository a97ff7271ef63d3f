//! Calls of tools and of other agents.

use super::{Driver, RunEventKind, Start, event, now};
use crate::agent::CompiledAgent;
use crate::tool::{Approval, Call, CallError, CancellationToken, Executor, ToolEvent, ToolEventKind};
use patter_core::message::conversation::{ToolOutcome, Usage};
use patter_core::name::FullName;
use patter_core::permission::Decision;
use patter_core::run::{self, PendingCall, Ruling, Run, Target};
use patter_core::session::{Entry, RunPath};
use patter_core::wire::without_nulls;
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// A call that is to be made.
pub(super) struct Calling {
    pub(super) driver: Driver,
    pub(super) compiled: CompiledAgent,
    pub(super) executor: Executor,
    /// How deep the run is that asked for it.
    pub(super) depth: u32,
    /// Which run that is.
    pub(super) path: RunPath,
    /// That run, as it was then, where the call is one of an agent.
    pub(super) parent: Option<Run>,
    pub(super) cancellation: CancellationToken,
    pub(super) call: PendingCall,
}

/// A call that was made.
pub(super) struct Called {
    pub(super) id: String,
    pub(super) outcome: ToolOutcome,
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

    async fn tool(&self, name: &str) -> ToolOutcome {
        let mut arguments = self.call.arguments.clone();
        if let Some(schema) = self.compiled.strict_schema(&self.call.tool) {
            without_nulls(&mut arguments, schema);
        }
        // The declaration has a say in what its own defaults are, before the tool has in its.
        if let Err(message) = self.compiled.declared_arguments(&self.call.tool, &mut arguments) {
            return ToolOutcome::Error { message };
        }
        let mut executor = self.executor.clone();
        let listener = self.driver.listener.clone();
        let journal = self.driver.journal.clone().filter(|journal| journal.takes_notes());
        if listener.is_some() || journal.is_some() {
            let (agent, depth, call_id) = (self.compiled.name().to_owned(), self.depth, self.call.id.clone());
            let run = self.path.clone();
            executor = executor.with_listener(move |event: &ToolEvent<'_>| {
                let ToolEventKind::Progress(progress) = &event.kind else { return };
                let (call_id, fraction, message) = (call_id.clone(), progress.fraction, progress.message.clone());
                if let Some(journal) = &journal {
                    let (run, call_id, message) = (run.clone(), call_id.clone(), message.clone());
                    journal.note(&Entry::Progressed { run, call_id, fraction, message });
                }
                if let Some(listener) = &listener {
                    event::tell(listener, &agent, depth, RunEventKind::ToolProgress { call_id, fraction, message });
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
            Ok(value) => ToolOutcome::Value { value },
            Err(CallError::Cancelled { .. }) => ToolOutcome::Cancelled,
            Err(error @ CallError::PermissionDenied { .. }) => ToolOutcome::Denied { message: error.to_string() },
            Err(error) => ToolOutcome::Error { message: error.to_string() },
        }
    }

    async fn agent(&self, name: &str) -> (ToolOutcome, Usage) {
        let failed = |message: String| (ToolOutcome::Error { message }, Usage::default());
        let compiled = match self.driver.ready(name) {
            Some(Ok(compiled)) => compiled,
            Some(Err(error)) => return failed(error.to_string()),
            None => return failed(format!("there is no agent `{name}`")),
        };
        let Some(parent) = &self.parent else {
            return failed(format!("the run that called `{name}` is not known"));
        };
        let path: RunPath = self.path.iter().chain([&self.call.id]).cloned().collect();
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
            Some(run::RunOutcome::Answer { value: Some(value), .. }) => ToolOutcome::Value { value: value.clone() },
            Some(run::RunOutcome::Answer { text, .. }) => ToolOutcome::Value { value: Json::from(text.as_str()) },
            Some(run::RunOutcome::Failed(failure)) => ToolOutcome::Error { message: failure.to_string() },
            Some(run::RunOutcome::Cancelled) | None => ToolOutcome::Cancelled,
        };
        (outcome, run.usage())
    }
}
