//! Calls of tools and of other agents.

use super::account::Account;
use super::clock::now_ms;
use super::driver::{Driver, Start};
use super::host::{RunHost, Sampled, SampledTotal, UsedBefore};
use super::listener::emit;
use crate::tool::{Approval, CallError, CallHost, CallRequest, CancellationToken, Executor, ToolEvent, ToolEventKind};
use patter_core::compile::CompiledAgent;
use patter_core::event::RunEventKind;
use patter_core::message::conversation::{Conversation, ToolOutcome, Usage};
use patter_core::name::FullName;
use patter_core::permission::Decision;
use patter_core::provider::price::Bill;
use patter_core::run::{CallTarget, PendingCall, Ruling, Run, RunOutcome};
use patter_core::session::{LogEntry, RunPath};
use patter_core::wire::remove_optional_nulls;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A call to be made.
pub(super) struct CallTask {
    pub(super) driver: Driver,
    pub(super) compiled: CompiledAgent,
    pub(super) executor: Executor,
    /// The path of the calling run.
    pub(super) path: RunPath,
    /// The calling run at the time of the call, if the call is to an agent.
    pub(super) parent: Option<Run>,
    /// The conversations of the agents that a workflow called, by call.
    pub(super) conversations: Arc<Mutex<HashMap<String, Conversation>>>,
    pub(super) used: UsedBefore,
    /// What the calling run may use.
    pub(super) account: Arc<Account>,
    /// What the tools of the calling run have sampled.
    pub(super) sampled: SampledTotal,
    pub(super) cancellation: CancellationToken,
    pub(super) call: PendingCall,
}

/// The result of a call.
pub(super) struct CallResult {
    pub(super) id: String,
    pub(super) outcome: ToolOutcome,
    pub(super) duration: Duration,
    pub(super) usage: Usage,
    /// How often it called the model of the agent.
    pub(super) model_calls: u32,
    /// What it cost.
    pub(super) spent: Bill,
}

impl CallResult {
    /// Returns the result of a call that was interrupted and is not repeated.
    pub(super) fn not_repeated(id: String, message: String) -> Self {
        let outcome = ToolOutcome::Error { message };
        Self { id, outcome, duration: Duration::ZERO, usage: Usage::default(), model_calls: 0, spent: Bill::default() }
    }
}

/// How a call ended.
pub(super) enum CallEnd {
    Finished(CallResult),
    /// It is of an agent whose run is suspended. The call stays open.
    Suspended,
}

/// Decides whether a call is allowed.
pub(super) fn ruling(executor: &Executor, call: &PendingCall) -> Ruling {
    match &call.target {
        CallTarget::Tool { name, .. } => match executor.verdict(name.as_str(), &call.arguments) {
            Ok(verdict) => verdict.into(),
            // The executor reports the error when the call is made.
            Err(_) => Ruling { decision: Decision::Allow, because: String::new() },
        },
        // Rules are about the name that the agent calls, wherever the other agent is declared.
        CallTarget::Agent { .. } => match FullName::parse(&call.tool) {
            Ok(name) => executor.verdict_for_agent(&name, &call.arguments).into(),
            Err(error) => Ruling { decision: Decision::Deny, because: error.to_string() },
        },
        // The client decides about its own tools.
        CallTarget::Client | CallTarget::Person => Ruling { decision: Decision::Allow, because: String::new() },
    }
}

impl CallTask {
    /// Makes the call. Dropping the future cancels it.
    pub(super) async fn run(self) -> CallEnd {
        let start = Instant::now();
        let _guard = self.cancellation.clone().drop_guard();
        let (outcome, used) = match &self.call.target {
            CallTarget::Tool { name, .. } => self.call_tool(name.as_str()).await,
            CallTarget::Agent { name } => {
                let Some(finished) = self.call_agent(name).await else { return CallEnd::Suspended };
                finished
            }
            // A run never asks to start these.
            CallTarget::Client | CallTarget::Person => (ToolOutcome::Cancelled, Sampled::default()),
        };
        let duration = start.elapsed();
        let Sampled { usage, model_calls, spent } = used;
        CallEnd::Finished(CallResult { id: self.call.id, outcome, duration, usage, model_calls, spent })
    }

    /// Calls a tool. Returns what it asked of the model of the agent.
    async fn call_tool(&self, name: &str) -> (ToolOutcome, Sampled) {
        let sampled = Arc::new(Mutex::new(Sampled::default()));
        let outcome = self.tool_outcome(name, &sampled).await;
        let sampled = *sampled.lock().unwrap_or_else(PoisonError::into_inner);
        (outcome, sampled)
    }

    async fn tool_outcome(&self, name: &str, sampled: &Arc<Mutex<Sampled>>) -> ToolOutcome {
        let mut arguments = self.call.arguments.clone();
        if let Some(schema) = self.compiled.strict_schema(&self.call.tool) {
            remove_optional_nulls(&mut arguments, schema);
        }
        // The defaults of the declaration apply before those of the tool.
        if let Err(message) = self.compiled.check_arguments(&self.call.tool, &mut arguments) {
            return ToolOutcome::Error { message };
        }
        let call = CallRequest {
            tool: name.to_owned(),
            arguments,
            id: self.call.id.as_str().into(),
            approval: if self.call.approved { Approval::Given } else { Approval::None },
            cancellation: self.cancellation.clone(),
        };
        let host = RunHost {
            driver: self.driver.clone(),
            compiled: self.compiled.clone(),
            used: self.used.clone(),
            account: Arc::clone(&self.account),
            sampled: self.sampled.clone(),
            own: Arc::clone(sampled),
            cancellation: self.cancellation.clone(),
        };
        let mut state = self.driver.state.clone().with(CallHost(Arc::new(host)));
        let journal = self.driver.journal.as_ref();
        if let Some(key) = journal.and_then(|journal| journal.call_key(&self.path, &self.call.id)) {
            state = state.with_idempotency_key(key);
        }
        let tracer = self.driver.tracer.as_ref();
        if let Some(trace) = tracer.and_then(|tracer| tracer.call(&self.path, &self.call.id)) {
            state = state.with(trace);
        }
        match self.reporting_executor().with_state(state).call(call).await {
            Ok(value) => ToolOutcome::Value { value },
            Err(CallError::Cancelled { .. }) => ToolOutcome::Cancelled,
            Err(error @ CallError::PermissionDenied { .. }) => ToolOutcome::Denied { message: error.to_string() },
            Err(error) => ToolOutcome::Error { message: error.to_string() },
        }
    }

    /// Returns an executor that reports the progress of the call to the listener and to the recording.
    fn reporting_executor(&self) -> Executor {
        let listener = self.driver.listener.clone();
        let journal = self.driver.journal.clone().filter(|journal| journal.is_recording());
        if listener.is_none() && journal.is_none() {
            return self.executor.clone();
        }
        let agent = self.compiled.name().to_owned();
        let run = self.path.clone();
        let call_id = self.call.id.clone();
        self.executor.clone().with_listener(move |event: &ToolEvent<'_>| {
            let (fraction, message) = match &event.kind {
                ToolEventKind::Progress(progress) => (progress.fraction, progress.message.clone()),
                kind => match kind.hook_message() {
                    Some(message) => (None, message),
                    None => return,
                },
            };
            if let Some(journal) = &journal {
                let message = message.clone();
                journal.record(&LogEntry::CallProgressed {
                    run: run.clone(),
                    call_id: call_id.clone(),
                    fraction,
                    message,
                });
            }
            if let Some(listener) = &listener {
                let kind = RunEventKind::ToolProgress { call_id: call_id.clone(), fraction, message };
                emit(listener, &agent, &run, kind);
            }
        })
    }

    fn conversations(&self) -> MutexGuard<'_, HashMap<String, Conversation>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the conversation of the agent that handed over to this one.
    fn continued_conversation(&self) -> Conversation {
        let Some(continues) = &self.call.continues else { return Conversation::default() };
        if let Some(conversation) = self.conversations().get(continues) {
            return conversation.clone();
        }
        // That agent ran before the run resumed.
        let path: RunPath = self.path.iter().chain([continues]).cloned().collect();
        let before = self.driver.journal.as_ref().and_then(|journal| journal.unfinished_run(&path));
        before.map(Run::into_conversation).unwrap_or_default()
    }

    /// Calls an agent. Returns `None` if its run is suspended.
    async fn call_agent(&self, name: &str) -> Option<(ToolOutcome, Sampled)> {
        let failed = |message: String| Some((ToolOutcome::Error { message }, Sampled::default()));
        if let Err(message) = self.compiled.check_arguments(&self.call.tool, &mut self.call.arguments.clone()) {
            return failed(message);
        }
        let compiled = match self.driver.compile_delegate(&self.compiled, &self.call.tool) {
            Some(Ok(compiled)) => compiled.called_by(&self.compiled),
            Some(Err(error)) => return failed(error.to_string()),
            None => return failed(format!("there is no agent `{name}`")),
        };
        let Some(parent) = &self.parent else {
            return failed(format!("the run that called `{name}` is unknown"));
        };
        let path: RunPath = self.path.iter().chain([&self.call.id]).cloned().collect();
        let unfinished = self.driver.journal.as_ref().and_then(|journal| journal.unfinished_run(&path));
        let (run, start) = match unfinished {
            Some(run) => (run, Start::Resumed),
            None => match parent.start_child_with(
                &self.call.id,
                compiled.spec().clone(),
                self.continued_conversation(),
                now_ms(),
            ) {
                Ok(run) => (run, Start::New),
                Err(error) => return failed(error.to_string()),
            },
        };
        let account = Some(Arc::clone(&self.account));
        let run = self.driver.perform(&compiled, run, path, start, account, &self.cancellation).await;
        if parent.is_workflow() {
            let conversation = run.conversation().clone();
            self.conversations().insert(self.call.id.clone(), conversation);
        }
        let outcome = match run.outcome() {
            Some(RunOutcome::Answer { value: Some(value), .. }) => ToolOutcome::Value { value: value.clone() },
            // The calling model must not take a part for the whole.
            Some(RunOutcome::Answer { text, finish, .. }) => ToolOutcome::Value {
                value: Json::from(match finish.incompleteness() {
                    Some(why) => format!("{text}\n\n(incomplete: {why})"),
                    None => text.clone(),
                }),
            },
            Some(RunOutcome::Failed(failure)) => ToolOutcome::Error { message: failure.to_string() },
            Some(RunOutcome::Cancelled) => ToolOutcome::Cancelled,
            None => return None,
        };
        // The calls of its model are its own, but a workflow has no others.
        let model_calls = if parent.is_workflow() { run.model_calls() } else { 0 };
        Some((outcome, Sampled { model_calls, usage: run.usage(), spent: run.spent() }))
    }
}
