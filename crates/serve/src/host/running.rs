//! Turns that run.

use super::driver::LaterApprover;
use super::work::Ticket;
use super::{Choice, Host, Lifetime, Turn, TurnDetails, api_error};
use patter::session::{AgentSelection, Log, Session};
use patter::tool::{BoxFuture, CancellationToken};
use patter_core::message::attachment::UserInput;
use patter_core::message::conversation::Usage;
use patter_core::serve::{ApiError, ApiErrorKind, Segment, TurnEnd};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

/// What a turn does.
pub(super) enum Work {
    /// Sends a message.
    Say(UserInput, Choice),
    /// Continues a run, with what is known of the segment that the turn is about.
    Resume(Box<Segment>),
}

impl Host {
    pub(super) fn spawn(
        self: &Arc<Self>,
        session: Session,
        about: TurnDetails,
        work: Work,
        lifetime: Lifetime,
        permit: OwnedSemaphorePermit,
        ticket: Option<Ticket>,
    ) -> Arc<Turn> {
        let grace = match lifetime {
            Lifetime::Attached => Some(self.settings.limits.disconnect_grace),
            Lifetime::Detached => None,
        };
        let choice = match &work {
            Work::Say(_, choice) => choice.clone(),
            Work::Resume(_) => session.read_log(recorded_choice),
        };
        let source = AgentSelection { variant: choice.variant.clone(), ..self.selection(&about.agent) };
        let agent = about.agent.clone();
        let turn = Arc::new(Turn::new(session.id(), about, CancellationToken::new(), grace));
        if let Work::Resume(segment) = &work {
            segment.events.iter().for_each(|event| turn.push(event));
        }
        if let Some(id) = session.id() {
            self.active().insert(id, Arc::clone(&turn));
        }
        let mut session = session;
        let pause = ticket.as_ref().map(|_| self.handover.clone());
        if let Some(ticket) = &ticket {
            self.watch_cancellation(ticket, turn.cancellation.clone());
            session.set_request(Some(ticket.key.clone()));
        }
        let drivers = Arc::clone(&self.drivers);
        let model = choice.model.clone();
        let listening = Arc::clone(&turn);
        let mut session = session.with_source(source).with_agent(&agent).with_driver(move |driver| {
            let turn = Arc::clone(&listening);
            let driver = drivers
                .configured(driver, choice.variant.as_deref())
                .with_approver(LaterApprover)
                .with_listener(move |event| turn.push(event));
            match &pause {
                Some(pause) => driver.with_pause(pause.clone()),
                None => driver,
            }
        });
        if let Some(model) = model {
            session.set_model(model);
        }
        self.metrics.started();
        let running = RunningTurn { host: Arc::clone(self), turn: Arc::clone(&turn), ticket, start: Instant::now() };
        self.tasks.spawn(running.run(session, work, permit));
        turn
    }

    /// Returns how an agent is found when its session is resumed elsewhere: its file comes first.
    fn selection(&self, agent: &str) -> AgentSelection {
        let driver = self.project.driver();
        let project = driver.project();
        let is_agent = |declared: &patter_core::declare::Agent| declared.name().is_some_and(|name| name == agent);
        let declared = project.agents().find(|(_, declared)| is_agent(declared));
        let own = declared.and_then(|(declaration, _)| self.files.get(declaration.file));
        let others = self.files.iter().filter(|file| Some(*file) != own);
        let files = own.into_iter().chain(others).cloned().collect();
        AgentSelection { files, agent: Some(agent.to_owned()), ..AgentSelection::default() }
    }
}

/// Returns what the turn used that a session resumes.
fn recorded_choice(log: &Log) -> Choice {
    let Some(selection) = log.selection() else { return Choice::default() };
    let model = selection.model.as_ref().and_then(|model| model.parse().ok());
    Choice { model, variant: selection.variant.clone() }
}

/// A turn that runs. However it ends, its clients learn about it.
struct RunningTurn {
    host: Arc<Host>,
    turn: Arc<Turn>,
    /// The work that the turn is.
    ticket: Option<Ticket>,
    start: Instant,
}

impl RunningTurn {
    async fn run(mut self, mut session: Session, work: Work, permit: OwnedSemaphorePermit) {
        let turn = Arc::clone(&self.turn);
        let stop = self.host.stop.clone();
        let usage_before = match &work {
            Work::Say(..) => Usage::default(),
            Work::Resume(segment) => segment.usage_before,
        };
        // Thousands of turns wait, so each takes only the memory of what it does.
        let performed: BoxFuture<'_, _> = match &work {
            Work::Say(input, _) => Box::pin(session.say(input.clone(), &turn.cancellation)),
            Work::Resume(_) => Box::pin(session.resume(&turn.cancellation)),
        };
        // A turn that is stopped with the server is unfinished, and can be resumed.
        let end = match stop.run_until_cancelled(performed).await {
            Some(Ok(run)) if run.outcome().is_none() && !session.read_log(Log::is_waiting) => {
                Err(ApiError::new(ApiErrorKind::Unavailable, "the server stopped; another one continues the run"))
            }
            Some(Ok(run)) => Ok(session.read_log(|log| TurnEnd::new(&run, log)).since(usage_before)),
            Some(Err(error)) => Err(api_error(&error)),
            None => {
                let _ = session.wait_until_saved().await;
                Err(ApiError::new(ApiErrorKind::Unavailable, "the server stopped; the run can be resumed"))
            }
        };
        // The next request may follow at once, so the session is free before this one ends.
        drop(session);
        if let Some(ticket) = self.ticket.take() {
            Box::pin(self.host.settle_turn(ticket, &turn, &end)).await;
        }
        self.finish(end);
        drop(permit);
    }

    fn finish(&self, end: Result<TurnEnd, ApiError>) {
        if let Some(id) = &self.turn.session {
            self.host.active().remove(id);
        }
        self.host.metrics.ended(end.as_ref().ok(), self.start.elapsed());
        self.turn.end(end);
        self.host.freed.notify_one();
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        if let (Some(ticket), Ok(runtime)) = (self.ticket.take(), Handle::try_current()) {
            let host = Arc::clone(&self.host);
            let settlement = host.again(&ticket, "the turn broke off".to_owned());
            runtime.spawn(async move { host.settle(ticket, settlement).await });
        }
        if self.turn.ending().is_none() {
            self.finish(Err(ApiError::new(ApiErrorKind::Server, "the turn broke off")));
        }
    }
}
