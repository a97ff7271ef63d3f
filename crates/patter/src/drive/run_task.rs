//! The loop itself: a run that is being driven.

use super::call::{self, Called, Calling};
use super::{Answer, Driver, EventLog, JournalError, RunEventKind, event, milliseconds, now};
use crate::agent::CompiledAgent;
use crate::model::{ModelError, Sink};
use crate::tool::{CancellationToken, Executor};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use patter_core::message::conversation::{self, Usage};
use patter_core::message::request::{Delta, Reply};
use patter_core::run::{Failure, FailureKind, PendingCall, Ruling, Run, RunInput, Step, Target};
use patter_core::session::{Entry, RunPath};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// How a run comes to be driven.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    New,
    Again,
}

/// A run that is being driven.
pub(super) struct RunTask<'d> {
    driver: &'d Driver,
    compiled: &'d CompiledAgent,
    executor: Executor,
    run: Run,
    path: RunPath,
    cancellation: &'d CancellationToken,
    /// What was heard of it, if someone listens.
    account: EventLog,
    /// What happened, and was not kept yet.
    unkept: Vec<Entry>,
}

/// What to do next, without holding on to the run.
enum Next {
    Model,
    /// The calls that are to begin; those under way are waited for.
    Tools(Vec<PendingCall>),
    Ask(PendingCall, String),
    Done,
}

impl<'d> RunTask<'d> {
    pub(super) fn new(
        driver: &'d Driver,
        compiled: &'d CompiledAgent,
        run: Run,
        path: RunPath,
        cancellation: &'d CancellationToken,
    ) -> Self {
        let executor = Executor::new(Arc::clone(&driver.library), driver.permissions(compiled));
        let executor = executor.with_state(driver.state.clone());
        let account = EventLog::new(&compiled.model().to_string(), compiled.bindings_hash());
        Self { driver, compiled, executor, run, path, cancellation, account, unkept: Vec::new() }
    }

    /// Performs the steps of the run until it is done.
    pub(super) async fn done(mut self, start: Start) -> Run {
        self.start(start);
        self.perform().await;
        self.run
    }

    fn start(&mut self, start: Start) {
        let bindings = self.compiled.bindings_hash().to_owned();
        if start == Start::Again {
            if self.takes_notes() {
                let (frame, saved) = (Some(Arc::clone(self.compiled.frame())), Box::new(self.run.clone()));
                self.note(&Entry::Restored { run: self.path.clone(), frame, bindings, saved });
            }
            return self.tell(RunInput::Resumed { at: now() });
        }
        if self.driver.journal.is_some() {
            let frame = Some(Arc::clone(self.compiled.frame()));
            let beginning = self.run.beginning();
            let began = Entry::Began { run: self.path.clone(), frame, bindings, beginning };
            self.note(&began);
            self.unkept.push(began);
        }
        self.hear(EventLog::began);
    }

    async fn perform(&mut self) {
        let mut running = FuturesUnordered::new();
        for call in self.stalled().await {
            running.push(self.calling(call).made());
        }
        loop {
            // A run that ended by this is seen to have.
            let _ = self.keep().await;
            match self.next() {
                Next::Done => break,
                Next::Model => self.call_model().await,
                Next::Tools(calls) if calls.is_empty() => {
                    match bounded(self.cancellation, self.time_left(), running.next()).await {
                        Ok(Some(called)) => self.called(called),
                        // Nothing is under way, so nothing would ever come.
                        Ok(None) => self.cancel(),
                        Err(cut) => self.cut(cut),
                    }
                }
                Next::Tools(calls) => {
                    // RunInput and kept before they begin, so that it is known after a crash.
                    for call in &calls {
                        self.tell(RunInput::Started { call_id: call.id.clone() });
                    }
                    if self.keep().await.is_ok() {
                        running.extend(calls.into_iter().map(|call| self.calling(call).made()));
                    }
                }
                Next::Ask(call, because) => self.ask(&call, &because, &mut running).await,
            }
        }
    }

    /// Returns the calls that had begun when the program ended, and that are to be made again. The others get a result:
    /// nobody knows what came of them.
    async fn stalled(&mut self) -> Vec<PendingCall> {
        let calls: Vec<_> = self.run.under_way().cloned().collect();
        let mut again = Vec::new();
        for call in calls {
            // What an agent did is kept as its own run; it goes on where it was.
            let is_kept = self.driver.journal.is_some() && matches!(call.target, Target::Agent { .. });
            if is_kept || !call.in_doubt() {
                self.begins_again(&call);
                again.push(call);
                continue;
            }
            let question = self.driver.approver.repeat(self.compiled.name(), &call);
            match bounded(self.cancellation, self.time_left(), question).await {
                Ok(Answer::Approve) => {
                    self.begins_again(&call);
                    again.push(call);
                }
                Ok(Answer::Refuse(message)) => self.called(Called {
                    id: call.id,
                    outcome: conversation::ToolOutcome::Error { message },
                    duration: Duration::ZERO,
                    usage: Usage::default(),
                }),
                Err(cut) => {
                    self.cut(cut);
                    return Vec::new();
                }
            }
        }
        again
    }

    /// Tells that a call is made again. It is kept already that it began.
    fn begins_again(&mut self, call: &PendingCall) {
        let input = RunInput::Started { call_id: call.id.clone() };
        self.hear(|account, run| account.input(run, &input));
        self.note(&Entry::Input { run: self.path.clone(), input });
    }

    fn next(&self) -> Next {
        match self.run.step() {
            Step::CallModel { .. } => Next::Model,
            Step::CallTools { calls } => Next::Tools(calls.into_iter().filter(|call| !call.started).cloned().collect()),
            Step::AskApproval { calls } => match calls.first() {
                Some(question) => Next::Ask(question.call.clone(), question.because.to_owned()),
                None => Next::Done,
            },
            Step::Done(_) => Next::Done,
        }
    }

    async fn call_model(&mut self) {
        let compiled = self.compiled;
        let model = match (self.driver.models)(compiled.model()) {
            Ok(model) => model,
            Err(error) => return self.model_failed(&error),
        };
        let (agent, depth) = (compiled.name(), self.run.depth());
        let (listener, account, path) = (self.driver.listener.as_ref(), &self.account, &self.path);
        let recorded = self.driver.journal.as_ref().filter(|journal| journal.takes_notes());
        let sink = (listener.is_some() || recorded.is_some()).then_some({
            move |delta: Delta| {
                if let Some(journal) = recorded {
                    journal.note(&Entry::Streamed { run: path.clone(), pieces: vec![delta.clone()] });
                }
                if let (Some(listener), Some(happened)) = (listener, account.piece(delta)) {
                    event::tell(listener, agent, depth, happened);
                }
            }
        });
        let request = compiled.request(self.run.conversation());
        let sink = sink.as_ref().map(|sink| sink as &Sink<'_>);
        let call = model.call(&request, sink, self.cancellation);
        match bounded(self.cancellation, self.time_left(), call).await {
            Err(cut) => self.cut(cut),
            Ok(Ok(reply)) => self.replied(reply),
            Ok(Err(ModelError::Cancelled)) => self.cancel(),
            Ok(Err(error)) => self.model_failed(&error),
        }
    }

    fn replied(&mut self, reply: Reply) {
        let copy = self.is_followed().then(|| reply.clone());
        let (executor, rulings, at) = (&self.executor, RefCell::new(Vec::<Ruling>::new()), now());
        let decide = |call: &PendingCall| {
            let ruling = call::ruling(executor, call);
            if copy.is_some() {
                rulings.borrow_mut().push(ruling.clone());
            }
            ruling
        };
        if let Err(error) = self.run.reply(reply, at, &decide) {
            return tracing::error!(%error, "a reply came at the wrong time");
        }
        if let Some(reply) = copy {
            self.was_told(RunInput::Reply { reply, rulings: rulings.into_inner(), at });
        }
    }

    /// Tells the run something, to be heard and kept.
    fn tell(&mut self, input: RunInput) {
        let copy = self.is_followed().then(|| input.clone());
        match (self.run.apply(input), copy) {
            (Ok(()), Some(input)) => self.was_told(input),
            (Ok(()), None) => {}
            (Err(error), _) => tracing::debug!(%error, "a run was told what it does not wait for"),
        }
    }

    fn was_told(&mut self, input: RunInput) {
        self.hear(|account, run| account.input(run, &input));
        if self.driver.journal.is_some() {
            let entry = Entry::Input { run: self.path.clone(), input };
            self.note(&entry);
            self.unkept.push(entry);
        }
    }

    /// Tells whether anyone wants to know what the run is told.
    fn is_followed(&self) -> bool {
        self.driver.journal.is_some() || self.driver.listener.is_some()
    }

    fn takes_notes(&self) -> bool {
        self.driver.journal.as_ref().is_some_and(|journal| journal.takes_notes())
    }

    /// Notes an entry at once: what is recorded is in the order in which it was heard.
    fn note(&self, entry: &Entry) {
        if let Some(journal) = &self.driver.journal {
            journal.note(entry);
        }
    }

    /// Keeps what happened. A run that cannot be kept ends.
    async fn keep(&mut self) -> Result<(), JournalError> {
        let Some(journal) = &self.driver.journal else { return Ok(()) };
        // That a run goes on is nothing to keep by itself.
        if let [] | [Entry::Input { input: RunInput::Resumed { .. }, .. }] = self.unkept.as_slice() {
            return Ok(());
        }
        let kept = journal.keep(std::mem::take(&mut self.unkept)).await;
        if let Err(error) = &kept {
            let _ = self.run.fail(Failure { kind: FailureKind::Store, message: error.to_string() }, now());
            self.hear(EventLog::failed);
        }
        kept
    }

    fn model_failed(&mut self, error: &ModelError) {
        let kind = match error {
            ModelError::Configuration { .. } => FailureKind::Configuration,
            _ => FailureKind::Model,
        };
        let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
        let failure = Failure { kind, message: format!("{error}{hint}") };
        self.tell(RunInput::ModelFailed { failure, at: now() });
    }

    fn calling(&self, call: PendingCall) -> Calling {
        Calling {
            driver: self.driver.clone(),
            compiled: self.compiled.clone(),
            executor: self.executor.clone(),
            depth: self.run.depth(),
            // Only an agent that is called needs to know of the run that called it.
            parent: matches!(call.target, Target::Agent { .. }).then(|| self.run.clone()),
            path: self.path.clone(),
            cancellation: self.cancellation.child_token(),
            call,
        }
    }

    fn called(&mut self, called: Called) {
        let Called { id: call_id, outcome, duration, usage } = called;
        self.tell(RunInput::Finished { call_id, outcome, duration_ms: milliseconds(duration), usage, at: now() });
    }

    /// Asks about one call after the other: answers must not be taken for those of others.
    async fn ask(
        &mut self,
        call: &PendingCall,
        because: &str,
        running: &mut FuturesUnordered<impl Future<Output = Called>>,
    ) {
        let (driver, compiled) = (self.driver, self.compiled);
        let mut question = driver.approver.ask(compiled.name(), call, because);
        let call_id = call.id.clone();
        let answer = loop {
            // The others go on meanwhile.
            let first = async {
                tokio::select! {
                    answer = &mut question => First::Answer(answer),
                    Some(called) = running.next() => First::Called(called),
                }
            };
            match bounded(self.cancellation, self.time_left(), first).await {
                Err(cut) => return self.cut(cut),
                Ok(First::Answer(answer)) => break answer,
                Ok(First::Called(called)) => {
                    self.called(called);
                    if self.keep().await.is_err() {
                        return;
                    }
                }
            }
        };
        self.tell(match answer {
            Answer::Approve => RunInput::Approved { call_id },
            Answer::Refuse(why) => RunInput::Refused { call_id, why, at: now() },
        });
    }

    fn time_left(&self) -> Option<Duration> {
        self.run.time_left(now()).map(Duration::from_millis)
    }

    /// Ends the run that was cut short.
    fn cut(&mut self, cut: Cut) {
        match cut {
            Cut::Cancelled => self.cancel(),
            // A clock that is a little behind must not make this wait for nothing.
            Cut::Late => self.tell(RunInput::Tick { at: now() + 1 }),
        }
    }

    fn cancel(&mut self) {
        self.tell(RunInput::Cancelled { at: now() });
    }

    /// Says what is heard, if someone listens; else it is not even put together.
    fn hear(&mut self, heard: impl FnOnce(&mut EventLog, &Run) -> Vec<RunEventKind>) {
        let Some(listener) = &self.driver.listener else { return };
        for happened in heard(&mut self.account, &self.run) {
            event::tell(listener, self.compiled.name(), self.run.depth(), happened);
        }
    }
}

/// What comes first while someone is asked.
enum First {
    Answer(Answer),
    Called(Called),
}

/// Why a wait was cut short.
#[derive(Clone, Copy)]
enum Cut {
    Cancelled,
    Late,
}

/// Waits for something, as long as a run may take.
async fn bounded<T>(
    cancellation: &CancellationToken,
    left: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, Cut> {
    let late = async {
        match left {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(Cut::Cancelled),
        done = work => Ok(done),
        () = late => Err(Cut::Late),
    }
}
