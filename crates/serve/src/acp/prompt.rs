//! Prompts: a message of the user, until the agent has answered.

use super::Connection;
use super::session::{ActivePrompt, timestamp};
use crate::host::{Answer, Choice, Follower, Lifetime, SessionChoice, TurnItem, TurnRequest, WhenBusy, api_error};
use futures_util::future::join_all;
use patter::session::{CallAnswer, Session};
use patter::store::SessionId;
use patter::tool::CancellationToken;
use patter_core::message::attachment::{AttachmentContents, UserInput};
use patter_core::message::conversation::ToolOutcome;
use patter_core::serve::acp::{
    PermissionOutcome, RpcError, StopReason, ToolKind, UpdateStream, permission_params, session_info, stop_reason,
};
use patter_core::serve::{ApiError, ApiErrorKind, TurnEnd, TurnOutcome, Waiting};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Mutex as AsyncMutex;

/// A prompt.
pub(super) struct Prompt {
    connection: Arc<Connection>,
    session: SessionId,
    agent: String,
    request: Json,
    cancellation: CancellationToken,
    /// Prompts of a session run one after the other.
    turn: Arc<AsyncMutex<()>>,
}

/// What the user decided about all calls that wait.
enum Decision {
    Answers(Vec<Answer>),
    Cancelled,
    /// Nobody is there to decide, so the calls wait in the store.
    Gone,
}

impl Prompt {
    /// Registers a prompt, so that it can be cancelled. A session has one at a time; the next may be sent once the one before it
    /// was cancelled.
    pub(super) fn begin(connection: &Arc<Connection>, request: &Json, session: &str) -> Result<Self, RpcError> {
        connection.sessions.with(session, |open| {
            if open.prompt.as_ref().is_some_and(|prompt| !prompt.cancellation.is_cancelled()) {
                return Err(RpcError::invalid_request(format!("a prompt of the session `{session}` is under way")));
            }
            let cancellation = CancellationToken::new();
            open.prompt = Some(ActivePrompt { request: request.clone(), cancellation: cancellation.clone() });
            Ok(Self {
                connection: Arc::clone(connection),
                session: open.id.clone(),
                agent: open.agent.clone(),
                request: request.clone(),
                cancellation,
                turn: Arc::clone(&open.turn),
            })
        })
    }

    /// Runs the agent, and returns why it stopped.
    pub(super) async fn run(self, input: UserInput, contents: AttachmentContents) -> Result<Json, RpcError> {
        let turn = Arc::clone(&self.turn);
        let _turn = turn.lock().await;
        let mut updates = UpdateStream::default().with_notices(self.connection.has_notices.load(Ordering::Relaxed));
        let stopped = match self.say(input, contents, &mut updates).await {
            // A client that cancelled a prompt expects no error.
            Err(_) if self.cancellation.is_cancelled() => Ok(StopReason::Cancelled),
            stopped => stopped,
        };
        self.report_session().await;
        // The next prompt may follow the response at once.
        let _ = self.connection.sessions.with(self.session.as_str(), |open| {
            if open.prompt.as_ref().is_some_and(|prompt| prompt.request == self.request) {
                open.prompt = None;
            }
            Ok(())
        });
        Ok(json!({"stopReason": stopped?.name()}))
    }

    async fn say(
        &self,
        input: UserInput,
        contents: AttachmentContents,
        updates: &mut UpdateStream,
    ) -> Result<StopReason, RpcError> {
        let Connection { host, access, .. } = &*self.connection;
        let stored = host.find_session(access, &self.session).await?;
        if stored.is_some_and(|summary| summary.state.is_open())
            && let Some(stopped) = self.finish_run(&input, updates).await?
        {
            return Ok(stopped);
        }
        if self.is_over() {
            return Ok(StopReason::Cancelled);
        }
        let request = TurnRequest {
            agent: self.agent.clone(),
            session: SessionChoice::Named(self.session.clone()),
            history: Vec::new(),
            client: None,
            input,
            contents,
            choice: Choice::default(),
            lifetime: Lifetime::Attached,
            when_busy: WhenBusy::Reject,
            parent: None,
            webhook: None,
        };
        let follower = host.start(access, request).await?;
        let stopped = self.complete(follower, updates).await?;
        if stopped == StopReason::Refusal {
            self.undo().await?;
        }
        Ok(stopped)
    }

    /// Finishes the run that the session was left with: asks about its calls again, takes the input as the answer to its
    /// question, or resumes it. Returns why the prompt ends with that, if it does.
    async fn finish_run(&self, input: &UserInput, updates: &mut UpdateStream) -> Result<Option<StopReason>, RpcError> {
        let Connection { host, access, .. } = &*self.connection;
        let (_, log) = host.read_session(&self.session).await?;
        let (approvals, others): (Vec<_>, Vec<_>) =
            Waiting::all(&log).into_iter().partition(|call| call.because.is_some());
        if let (true, Some(call)) = (approvals.is_empty(), others.iter().find(|call| call.question.is_some())) {
            updates.start_segment(log.segments());
            return self.answer_question(call, input, updates).await.map(Some);
        }
        let answers = match self.decide(approvals, updates).await? {
            Decision::Answers(answers) => answers,
            Decision::Cancelled => return Ok(Some(StopReason::Cancelled)),
            Decision::Gone => return Err(gone()),
        };
        let follower = host.answer(access, &self.session, answers, Lifetime::Attached).await?;
        let stopped = match self.complete(follower, updates).await {
            Ok(stopped) => stopped,
            // Calls of other clients keep the session from continuing; other failures end the run.
            Err(error) if error.code == RpcError::INVALID_REQUEST => return Err(error),
            Err(_) => return Ok(None),
        };
        // A question that came up meanwhile was not what the input answers.
        let summary = host.find_session(access, &self.session).await?;
        let ends = stopped == StopReason::Cancelled || summary.is_some_and(|summary| summary.state.is_open());
        Ok(ends.then_some(stopped))
    }

    /// Passes a message on as the answer to a question.
    async fn answer_question(
        &self,
        call: &Waiting,
        input: &UserInput,
        updates: &mut UpdateStream,
    ) -> Result<StopReason, RpcError> {
        let Connection { host, access, .. } = &*self.connection;
        let value = Json::from(input.text.as_str());
        if let Err(problem) = call.check_answer(&value) {
            let question = call.question.as_deref().unwrap_or_default();
            self.update(&updates.question(question, Some(&problem))).await;
            return Ok(StopReason::EndTurn);
        }
        let answers = vec![Answer::to(call, CallAnswer::Result(ToolOutcome::Value { value }))];
        let follower = host.answer(access, &self.session, answers, Lifetime::Attached).await?;
        self.complete(follower, updates).await
    }

    /// Follows a run to its end, and asks about its calls.
    async fn complete(&self, mut follower: Follower, updates: &mut UpdateStream) -> Result<StopReason, RpcError> {
        let Connection { host, access, .. } = &*self.connection;
        loop {
            let end = self.follow(&mut follower, updates).await?;
            let calls: Vec<_> = end.approvals().cloned().collect();
            if calls.is_empty() {
                let question = end.calls_for_people().find_map(|call| call.question.as_deref());
                if let Some(question) = question {
                    self.update(&updates.question(question, None)).await;
                }
                let is_waiting = matches!(end.outcome, TurnOutcome::Waiting(_));
                let is_cancelled = self.cancellation.is_cancelled() && !is_waiting;
                return if is_cancelled { Ok(StopReason::Cancelled) } else { stop_reason(&end) };
            }
            let answers = match self.decide(calls, updates).await? {
                Decision::Answers(answers) => answers,
                Decision::Cancelled => return Ok(StopReason::Cancelled),
                Decision::Gone => return Err(gone()),
            };
            follower = host.answer(access, &self.session, answers, Lifetime::Attached).await?;
        }
    }

    /// Sends the events of a turn until its end.
    async fn follow(&self, follower: &mut Follower, updates: &mut UpdateStream) -> Result<TurnEnd, ApiError> {
        updates.start_segment(follower.turn().about.number);
        let turn = Arc::clone(follower.turn());
        let mut is_stopping = false;
        loop {
            let item = tokio::select! {
                item = follower.next() => item,
                () = self.over(), if !is_stopping => {
                    is_stopping = true;
                    turn.cancellation.cancel();
                    continue;
                }
            };
            match item {
                Some(TurnItem::Event(event)) => {
                    let update = updates.event(&event, &|agent, tool| self.tool_kind(agent, tool));
                    if let Some(update) = update {
                        self.update(&update).await;
                    }
                }
                Some(TurnItem::End(end)) => return end,
                None => return Err(ApiError::new(ApiErrorKind::Server, "the turn ended without a result")),
            }
        }
    }

    /// Asks the user about calls that wait for approval, all at once.
    async fn decide(&self, calls: Vec<Waiting>, updates: &mut UpdateStream) -> Result<Decision, RpcError> {
        for call in &calls {
            let update = updates.waiting(call, &|agent, tool| self.tool_kind(agent, tool));
            self.update(&update).await;
        }
        let asked = join_all(calls.iter().map(|call| self.ask(call)));
        let answers = tokio::select! {
            answers = asked => answers.into_iter().collect::<Option<Vec<_>>>(),
            () = self.cancellation.cancelled() => None,
            () = self.connection.gone.cancelled() => return Ok(Decision::Gone),
        };
        match answers {
            Some(answers) if !self.cancellation.is_cancelled() => {
                for (call, Answer { answer, .. }) in calls.iter().zip(&answers) {
                    if let CallAnswer::Refuse(message) = answer {
                        let outcome = ToolOutcome::Denied { message: message.clone() };
                        self.update(&updates.unmade(call, &outcome)).await;
                    }
                }
                Ok(Decision::Answers(answers))
            }
            _ => {
                self.connection.host.cancel(&self.connection.access, &self.session).await?;
                for call in &calls {
                    self.update(&updates.unmade(call, &ToolOutcome::Cancelled)).await;
                }
                Ok(Decision::Cancelled)
            }
        }
    }

    /// Asks the user about a call. Returns `None` if the turn is cancelled instead. Whatever is not a permission refuses the
    /// call.
    async fn ask(&self, call: &Waiting) -> Option<Answer> {
        let Connection { host, peer, .. } = &*self.connection;
        let params = permission_params(self.session.as_str(), call, &|agent, tool| self.tool_kind(agent, tool));
        let asked = peer.request("session/request_permission", &params);
        let refuse = |reason: &str| CallAnswer::Refuse(reason.to_owned());
        let answer = match tokio::time::timeout(host.settings.approval_expiry, asked).await {
            Err(_) => refuse("nobody approved the call in time"),
            Ok(Err(error)) => refuse(&format!("the user could not be asked: {error}")),
            Ok(Ok(result)) => match PermissionOutcome::read(&result) {
                Some(PermissionOutcome::Allowed) => CallAnswer::Approve,
                Some(PermissionOutcome::Rejected) => refuse("the user did not approve the call"),
                Some(PermissionOutcome::Cancelled) => return None,
                None => refuse("the user chose none of the offered options"),
            },
        };
        Some(Answer::to(call, answer))
    }

    /// Takes the turn back that the model refused.
    async fn undo(&self) -> Result<(), RpcError> {
        let host = &self.connection.host;
        let opened = Session::open(Arc::clone(&host.project), host.require_store()?, &self.session).await;
        let mut session = opened.map_err(|error| api_error(&error))?;
        session.undo().await.map_err(|error| api_error(&error))?;
        Ok(())
    }

    /// Sends the title of the session, and when it changed.
    async fn report_session(&self) {
        let Connection { host, access, .. } = &*self.connection;
        if let Ok(Some(summary)) = host.find_session(access, &self.session).await
            && let Some(changed) = timestamp(summary.changed_ms)
        {
            self.update(&session_info(&summary.title, &changed)).await;
        }
    }

    /// Waits until the prompt is cancelled, or the client is gone.
    async fn over(&self) {
        tokio::select! {
            () = self.cancellation.cancelled() => {}
            () = self.connection.gone.cancelled() => {}
        }
    }

    fn is_over(&self) -> bool {
        self.cancellation.is_cancelled() || self.connection.gone.is_cancelled()
    }

    async fn update(&self, update: &Json) {
        self.connection.peer.update(self.session.as_str(), update).await;
    }

    fn tool_kind(&self, agent: &str, tool: &str) -> ToolKind {
        self.connection.tool_kind(agent, tool)
    }
}

fn gone() -> RpcError {
    RpcError::new(RpcError::INTERNAL, "the call waits for approval")
}
