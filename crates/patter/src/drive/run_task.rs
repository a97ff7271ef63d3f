//! The loop that performs the steps of a run.

use super::account::Account;
use super::approve::{ApprovalAnswer, OUTCOME_UNKNOWN};
use super::call::{CallEnd, CallResult, CallTask};
use super::clock::{milliseconds, now_ms};
use super::driver::{Driver, Start};
use super::host::{Sampled, SampledTotal, UsedBefore};
use super::interrupt::{Interruption, interruptible};
use super::journal::JournalError;
use super::listener::emit;
use crate::tool::{BoxFuture, CancellationToken, Executor};
use crate::trace::SessionTracer;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use patter_core::compile::CompiledAgent;
use patter_core::event::{EventLog, RunEventKind};
use patter_core::message::conversation::{Conversation, Message};
use patter_core::run::{CallTarget, PendingCall, Run, RunInput, RunOutcome, Step};
use patter_core::session::{LogEntry, RunPath};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl Driver {
    /// Performs the steps of a new run until it is done, and returns it.
    pub fn drive<'d>(
        &'d self,
        compiled: &'d CompiledAgent,
        run: Run,
        cancellation: &'d CancellationToken,
    ) -> BoxFuture<'d, Run> {
        self.perform(compiled, run, RunPath::new(), Start::New, self.account.clone(), cancellation)
    }

    /// Resumes a run that was under way when a process ended. Completed steps are not repeated; calls that had started are
    /// repeated if their tools are idempotent, or if the approver agrees.
    pub fn resume<'d>(
        &'d self,
        compiled: &'d CompiledAgent,
        run: Run,
        cancellation: &'d CancellationToken,
    ) -> BoxFuture<'d, Run> {
        self.perform(compiled, run, RunPath::new(), Start::Resumed, self.account.clone(), cancellation)
    }

    // Boxed, because runs of agents that call agents are nested.
    pub(super) fn perform<'d>(
        &'d self,
        compiled: &'d CompiledAgent,
        run: Run,
        path: RunPath,
        start: Start,
        account: Option<Arc<Account>>,
        cancellation: &'d CancellationToken,
    ) -> BoxFuture<'d, Run> {
        let account = Account::of_run(&run, account);
        Box::pin(async move {
            let compiled = match run.new_messages().next() {
                Some(Message::User { text, .. }) => compiled.for_input(text),
                _ => compiled.clone(),
            };
            let mut task = RunTask::new(self, &compiled, run, path, account, cancellation);
            task.run_to_end(start).await;
            task.run
        })
    }
}

/// How long saving may take after the run was stopped or its time was up.
const SAVE_GRACE: Duration = Duration::from_secs(1);

/// A run being driven.
pub(super) struct RunTask<'d> {
    pub(super) driver: &'d Driver,
    pub(super) compiled: &'d CompiledAgent,
    pub(super) executor: Executor,
    pub(super) run: Run,
    pub(super) path: RunPath,
    /// What it may use.
    pub(super) account: Arc<Account>,
    pub(super) cancellation: &'d CancellationToken,
    /// The events emitted so far, if there is a listener.
    pub(super) event_log: EventLog,
    /// Entries that are not in the journal yet.
    unsaved: Vec<LogEntry>,
    /// What tools have asked the model.
    sampled: SampledTotal,
    /// The calls whose approval nobody decides now.
    undecided: HashSet<String>,
    /// Whether it called agents whose runs are suspended.
    has_suspended_calls: bool,
    /// Whether it called the model or made calls.
    has_stepped: bool,
    /// The conversations of the agents that a workflow called, by call, for those that continue them.
    conversations: Arc<Mutex<HashMap<String, Conversation>>>,
}

/// The calls under way.
pub(super) type RunningCalls<'c> = FuturesUnordered<BoxFuture<'c, CallEnd>>;

/// The next step, without borrowing the run.
enum NextStep {
    CallModel,
    Compact,
    /// The calls to start; those under way are awaited.
    CallTools(Vec<PendingCall>),
    Ask(PendingCall, String),
    /// A workflow makes further calls.
    Plan,
    AskPerson(PendingCall),
    /// Everything that is left needs somebody who is not there: wait for the calls under way, then stop.
    Suspend,
    Done,
}

impl<'d> RunTask<'d> {
    fn new(
        driver: &'d Driver,
        compiled: &'d CompiledAgent,
        run: Run,
        path: RunPath,
        account: Arc<Account>,
        cancellation: &'d CancellationToken,
    ) -> Self {
        let executor = Executor::new(Arc::clone(&driver.library), driver.permissions(compiled));
        let executor = executor.with_state(driver.state.clone());
        let event_log = EventLog::new(&compiled.model_name(), compiled.bindings_hash());
        Self {
            driver,
            compiled,
            executor,
            run,
            path,
            account,
            cancellation,
            event_log,
            unsaved: Vec::new(),
            sampled: SampledTotal::default(),
            undecided: HashSet::new(),
            has_suspended_calls: false,
            has_stepped: false,
            conversations: Arc::default(),
        }
    }

    async fn run_to_end(&mut self, start: Start) {
        tracing::debug!(
            agent = self.compiled.name(),
            model = self.compiled.model_name(),
            depth = self.run.depth(),
            "{}",
            match start {
                Start::New => "run started",
                Start::Resumed => "run resumed",
            }
        );
        self.start(start);
        self.perform_steps().await;
        if let Some(listener) = self.driver.listener.as_ref().filter(|_| self.run.outcome().is_some()) {
            emit(listener, self.compiled.name(), &self.path, EventLog::finished(&self.run));
        }
        let usage = self.run.usage();
        tracing::debug!(
            agent = self.compiled.name(),
            depth = self.run.depth(),
            outcome = match self.run.outcome() {
                Some(RunOutcome::Answer { .. }) => "answer",
                Some(RunOutcome::Failed(failure)) => failure.kind.name(),
                Some(RunOutcome::Cancelled) => "cancelled",
                None => "unfinished",
            },
            model_calls = self.run.model_calls(),
            input_tokens = usage.input_tokens,
            output_tokens = usage.output_tokens,
            elapsed_ms = self.run.elapsed_ms(),
            "run ended"
        );
    }

    fn start(&mut self, start: Start) {
        let bindings = self.compiled.bindings_hash().to_owned();
        if start == Start::Resumed {
            if self.is_recording() || self.driver.tracer.is_some() {
                let frame = Some(Arc::clone(self.compiled.frame()));
                let snapshot = Box::new(self.run.clone());
                let entry = LogEntry::RunRestored { run: self.path.clone(), frame, bindings, snapshot };
                self.trace(&entry);
                if self.is_recording() {
                    self.record(&entry);
                }
            }
            return self.apply(RunInput::Resumed { at: now_ms() });
        }
        if self.driver.journal.is_some() || self.driver.tracer.is_some() {
            let frame = Some(Arc::clone(self.compiled.frame()));
            let start = self.run.to_start();
            let tracer = self.driver.tracer.as_ref().filter(|_| self.path.is_empty());
            let traceparent = tracer.and_then(SessionTracer::parent);
            let entry = LogEntry::RunStarted { run: self.path.clone(), frame, bindings, start, traceparent };
            self.log(entry);
        }
        self.emit(EventLog::start);
    }

    async fn perform_steps(&mut self) {
        // Calls and what is rare are boxed: a run that waits for a model takes no memory for them.
        let mut running = RunningCalls::new();
        for call in Box::pin(self.interrupted_calls()).await {
            self.has_stepped = true;
            running.push(Box::pin(self.call_task(call).run()));
        }
        loop {
            let is_paused = self.is_paused();
            // That calls start is saved together with the reply that requests them.
            if !is_paused
                && let NextStep::CallTools(calls) = self.next_step()
                && !calls.is_empty()
            {
                if self.announce_start(&calls).await.is_ok() {
                    self.has_stepped = true;
                    for call in calls {
                        running.push(Box::pin(self.call_task(call).run()));
                    }
                }
                continue;
            }
            if let NextStep::Plan = self.next_step() {
                self.plan();
                continue;
            }
            // An error ends the run, which the next step shows.
            let _ = self.save().await;
            self.expire_questions();
            match self.next_step() {
                NextStep::Done => break,
                _ if is_paused && running.is_empty() => break,
                NextStep::CallModel => {
                    self.has_stepped = true;
                    self.call_model().await;
                }
                NextStep::Compact => Box::pin(self.compact()).await,
                NextStep::Plan => self.plan(),
                NextStep::AskPerson(call) => Box::pin(self.ask_person(&call, &mut running)).await,
                NextStep::Suspend if running.is_empty() => break,
                NextStep::CallTools(_) if running.is_empty() && self.has_suspended_calls => break,
                // No call is under way, so waiting would never end.
                NextStep::CallTools(_) if running.is_empty() => self.cancel(),
                NextStep::CallTools(_) | NextStep::Suspend => {
                    match interruptible(self.cancellation, self.time_left(), running.next()).await {
                        Ok(Some(ended)) => drop(self.end_call(ended)),
                        Ok(None) => self.has_suspended_calls = true,
                        Err(interruption) => self.interrupt(interruption),
                    }
                }
                NextStep::Ask(call, because) => Box::pin(self.ask(&call, &because, &mut running)).await,
            }
        }
    }

    /// Returns whether the run has to stop before its next step.
    fn is_paused(&self) -> bool {
        let is_paused = self.driver.pause.as_ref().is_some_and(CancellationToken::is_cancelled);
        is_paused || (self.driver.is_stepwise && self.has_stepped)
    }

    /// Saves that calls start before they do, so that they are known after a crash.
    async fn announce_start(&mut self, calls: &[PendingCall]) -> Result<(), JournalError> {
        for call in calls {
            self.apply(RunInput::CallStarted { call_id: call.id.clone(), at: Some(now_ms()) });
        }
        self.save().await?;
        let may_repeat = |call: &PendingCall| {
            matches!(call.target, CallTarget::Tool { idempotent: true, .. } | CallTarget::Agent { .. })
        };
        // A power cut must not make a call forgotten that nobody may repeat.
        if calls.iter().all(may_repeat) { Ok(()) } else { self.sync().await }
    }

    /// Returns the calls to repeat of those that had started when the process ended. The others get a result which says
    /// that their outcome is unknown.
    async fn interrupted_calls(&mut self) -> Vec<PendingCall> {
        let calls: Vec<_> = self.run.started_calls().cloned().collect();
        let mut repeated = Vec::new();
        for call in calls {
            // The steps of a called agent are saved as a run of their own, which resumes.
            let is_saved = self.driver.journal.is_some() && matches!(call.target, CallTarget::Agent { .. });
            if is_saved || !call.is_in_doubt() {
                self.announce_repeat(&call);
                repeated.push(call);
                continue;
            }
            let question = self.driver.approver.repeat(self.compiled.name(), &call);
            match interruptible(self.cancellation, self.time_left(), question).await {
                Ok(ApprovalAnswer::Approve) => {
                    self.announce_repeat(&call);
                    repeated.push(call);
                }
                Ok(ApprovalAnswer::Refuse(message)) => self.finish_call(CallResult::not_repeated(call.id, message)),
                // Repeating a call cannot be decided later, because the run continues.
                Ok(ApprovalAnswer::Later) => {
                    self.finish_call(CallResult::not_repeated(call.id, OUTCOME_UNKNOWN.to_owned()));
                }
                Err(interruption) => {
                    self.interrupt(interruption);
                    return Vec::new();
                }
            }
        }
        repeated
    }

    /// Emits and records that a call is repeated. The journal already has its start.
    fn announce_repeat(&mut self, call: &PendingCall) {
        let input = RunInput::CallStarted { call_id: call.id.clone(), at: Some(now_ms()) };
        self.emit(|event_log, run| event_log.input(run, &input));
        self.record(&LogEntry::InputReceived { run: self.path.clone(), input });
    }

    fn next_step(&self) -> NextStep {
        match self.run.step() {
            Step::CallModel { .. } => NextStep::CallModel,
            Step::Compact => NextStep::Compact,
            Step::Plan => NextStep::Plan,
            Step::CallTools { calls } => {
                let is_starting = calls.iter().any(|call| !call.started);
                if let Some(call) = self.next_question().filter(|_| !is_starting) {
                    return NextStep::AskPerson(call);
                }
                NextStep::CallTools(calls.into_iter().filter(|call| !call.started).cloned().collect())
            }
            Step::AskApproval { calls } => {
                match calls.iter().find(|question| !self.undecided.contains(&question.call.id)) {
                    Some(question) => NextStep::Ask(question.call.clone(), question.because.to_owned()),
                    None => match self.next_question() {
                        Some(call) => NextStep::AskPerson(call),
                        None => NextStep::Suspend,
                    },
                }
            }
            Step::AwaitClient { .. } => match self.next_question() {
                Some(call) => NextStep::AskPerson(call),
                None => NextStep::Suspend,
            },
            Step::Done(_) => NextStep::Done,
        }
    }

    /// Returns a question to a person that nobody postponed.
    fn next_question(&self) -> Option<PendingCall> {
        self.run.person_calls().find(|call| !self.undecided.contains(&call.id)).cloned()
    }

    /// Returns whether something can be done before a person has answered.
    pub(super) fn has_other_work(&self) -> bool {
        matches!(self.next_step(), NextStep::Plan | NextStep::Ask(..))
            || matches!(self.next_step(), NextStep::CallTools(calls) if !calls.is_empty())
    }

    /// Notes that nobody answers a question now.
    pub(super) fn postpone(&mut self, call_id: String) {
        self.undecided.insert(call_id);
    }

    /// Notes how a call ended. Returns whether it has a result.
    pub(super) fn end_call(&mut self, ended: CallEnd) -> bool {
        match ended {
            CallEnd::Finished(result) => {
                self.finish_call(result);
                true
            }
            CallEnd::Suspended => {
                self.has_suspended_calls = true;
                false
            }
        }
    }

    /// Applies an input to the run and publishes it.
    pub(super) fn apply(&mut self, input: RunInput) {
        let copy = self.is_observed().then(|| input.clone());
        match (self.run.apply(input), copy) {
            (Ok(()), Some(input)) => self.publish(input),
            (Ok(()), None) => {}
            (Err(error), _) => tracing::debug!(%error, "the run did not expect this input"),
        }
    }

    /// Emits the events of an input, and adds it to the entries to be saved.
    pub(super) fn publish(&mut self, input: RunInput) {
        self.emit(|event_log, run| event_log.input(run, &input));
        if self.driver.journal.is_some() || self.driver.tracer.is_some() {
            self.log(LogEntry::InputReceived { run: self.path.clone(), input });
        }
    }

    /// Exports and records an entry, and adds it to those to be saved.
    fn log(&mut self, entry: LogEntry) {
        self.trace(&entry);
        if self.driver.journal.is_some() {
            self.record(&entry);
            self.unsaved.push(entry);
        }
    }

    /// Exports the spans that end with an entry.
    fn trace(&self, entry: &LogEntry) {
        if let Some(tracer) = &self.driver.tracer {
            tracer.record(entry, &self.run);
        }
    }

    pub(super) fn is_observed(&self) -> bool {
        self.driver.journal.is_some() || self.driver.listener.is_some() || self.driver.tracer.is_some()
    }

    fn is_recording(&self) -> bool {
        self.driver.journal.as_ref().is_some_and(|journal| journal.is_recording())
    }

    /// Records an entry immediately, so that recordings have the order of the events.
    fn record(&self, entry: &LogEntry) {
        if let Some(journal) = &self.driver.journal {
            journal.record(entry);
        }
    }

    /// Appends the unsaved entries to the journal. A run that cannot be saved fails.
    pub(super) async fn save(&mut self) -> Result<(), JournalError> {
        let Some(journal) = &self.driver.journal else { return Ok(()) };
        // Resuming by itself is not worth saving.
        if let [] | [LogEntry::InputReceived { input: RunInput::Resumed { .. }, .. }] = self.unsaved.as_slice() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.unsaved);
        let saved = self.unless_stopped(journal.append(entries)).await;
        saved.inspect_err(|error| self.fail_unsaved(error))
    }

    /// Waits until what was saved survives a power cut.
    async fn sync(&mut self) -> Result<(), JournalError> {
        let Some(journal) = &self.driver.journal else { return Ok(()) };
        self.unless_stopped(journal.sync()).await.inspect_err(|error| self.fail_unsaved(error))
    }

    /// Waits for the journal, but only for a moment once the run was stopped or its time is up.
    pub(super) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, JournalError>>,
    ) -> Result<T, JournalError> {
        let stopped = async {
            let _ = interruptible(self.cancellation, self.time_left(), std::future::pending::<()>()).await;
            tokio::time::sleep(SAVE_GRACE).await;
        };
        tokio::select! {
            biased;
            done = work => done,
            () = stopped => Err(JournalError::new("the session store did not answer after the run was stopped")),
        }
    }

    pub(super) fn fail_unsaved(&mut self, error: &JournalError) {
        let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        let message = match self.run.outcome() {
            Some(RunOutcome::Answer { .. }) => format!("the answer was not saved: {}{hint}", error.message),
            _ => format!("{error}{hint}"),
        };
        self.run.fail_unsaved(message, now_ms());
        if let Some(tracer) = &self.driver.tracer {
            tracer.run_ended(&self.path, &self.run);
        }
        self.emit(EventLog::failure);
    }

    fn call_task(&self, call: PendingCall) -> CallTask {
        CallTask {
            driver: self.driver.clone(),
            compiled: self.compiled.clone(),
            executor: self.executor.clone(),
            // Only the run of a called agent needs the run that called it.
            parent: matches!(call.target, CallTarget::Agent { .. }).then(|| self.run.clone()),
            conversations: self.conversations.clone(),
            path: self.path.clone(),
            used: self.used_before(),
            account: Arc::clone(&self.account),
            sampled: self.sampled.clone(),
            cancellation: self.cancellation.child_token(),
            call,
        }
    }

    fn used_before(&self) -> UsedBefore {
        let usage = self.run.usage();
        UsedBefore {
            limits: self.run.spec().limits.clone(),
            model_calls: self.run.model_calls(),
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        }
    }

    fn finish_call(&mut self, result: CallResult) {
        let CallResult { id: call_id, outcome, duration, usage, model_calls, spent } = result;
        if model_calls > 0 && !self.run.is_workflow() {
            self.sampled.remove(Sampled { model_calls, usage, spent });
        }
        self.charge(spent);
        let duration_ms = milliseconds(duration);
        self.apply(RunInput::CallFinished { call_id, outcome, duration_ms, usage, model_calls, at: now_ms() });
    }

    /// Asks for approval of one call at a time, so that an answer cannot be mistaken for that to another call.
    async fn ask(&mut self, call: &PendingCall, because: &str, running: &mut RunningCalls<'_>) {
        let driver = self.driver;
        let compiled = self.compiled;
        let mut question = driver.approver.ask(compiled.name(), call, because);
        let call_id = call.id.clone();
        let answer = loop {
            // Other calls continue meanwhile.
            let first = async {
                tokio::select! {
                    answer = &mut question => AskEvent::Answered(answer),
                    Some(result) = running.next() => AskEvent::CallEnded(result),
                }
            };
            match interruptible(self.cancellation, self.time_left(), first).await {
                Err(interruption) => return self.interrupt(interruption),
                Ok(AskEvent::Answered(answer)) => break answer,
                Ok(AskEvent::CallEnded(CallEnd::Suspended)) => self.has_suspended_calls = true,
                Ok(AskEvent::CallEnded(CallEnd::Finished(result))) => {
                    self.finish_call(result);
                    if self.save().await.is_err() {
                        return;
                    }
                }
            }
        };
        self.apply(match answer {
            ApprovalAnswer::Approve => RunInput::CallApproved { call_id, at: Some(now_ms()) },
            ApprovalAnswer::Refuse(reason) => RunInput::CallRefused { call_id, reason, at: now_ms() },
            ApprovalAnswer::Later => {
                self.undecided.insert(call_id);
                return;
            }
        });
    }

    pub(super) fn time_left(&self) -> Option<Duration> {
        self.run.time_left(now_ms()).map(Duration::from_millis)
    }

    pub(super) fn interrupt(&mut self, interruption: Interruption) {
        self.apply(interruption.into_input());
    }

    pub(super) fn cancel(&mut self) {
        self.apply(RunInput::Cancelled { at: now_ms() });
    }

    /// Emits events. They are not computed if there is no listener. That the run has finished is known only after its end was
    /// saved.
    fn emit(&mut self, events: impl FnOnce(&mut EventLog, &Run) -> Vec<RunEventKind>) {
        let Some(listener) = &self.driver.listener else { return };
        let events = events(&mut self.event_log, &self.run).into_iter();
        for kind in events.filter(|kind| !matches!(kind, RunEventKind::Finished { .. })) {
            emit(listener, self.compiled.name(), &self.path, kind);
        }
    }
}

/// What happens first while an approval is pending.
enum AskEvent {
    Answered(ApprovalAnswer),
    CallEnded(CallEnd),
}
