//! Sessions: opening, listing, deleting, and the agent that answers.

use super::{Connection, done};
use crate::host::api_error;
use patter::drive::now_ms;
use patter::session::with_media;
use patter::store::{SessionId, SessionSummary};
use patter::tool::CancellationToken;
use patter_core::serve::acp::{
    AgentChoice, AgentMode, Replay, RpcError, SessionSetup, mode_update, notice, option_update,
};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// How many sessions are listed at a time.
const PAGE: usize = 50;
/// How many sessions are listed in all.
const MAX_LISTED: usize = 10_000;

/// The sessions that a client has opened.
#[derive(Default)]
pub(super) struct OpenSessions(Mutex<HashMap<String, OpenSession>>);

/// A session that a client has opened.
pub(super) struct OpenSession {
    pub(super) id: SessionId,
    /// The agent that answers.
    pub(super) agent: String,
    /// The last prompt, until it has ended.
    pub(super) prompt: Option<ActivePrompt>,
    /// Held by the prompt that runs.
    pub(super) turn: Arc<AsyncMutex<()>>,
}

/// A prompt that has not ended.
#[derive(Clone)]
pub(super) struct ActivePrompt {
    /// The id of its request.
    pub(super) request: Json,
    pub(super) cancellation: CancellationToken,
}

impl OpenSessions {
    /// Does something with a session that is open.
    pub(super) fn with<T>(
        &self,
        session: &str,
        work: impl FnOnce(&mut OpenSession) -> Result<T, RpcError>,
    ) -> Result<T, RpcError> {
        match self.sessions().get_mut(session) {
            Some(open) => work(open),
            None => {
                let message = format!("the session `{session}` is not open: create, load or resume it first");
                Err(RpcError::new(RpcError::NOT_FOUND, message))
            }
        }
    }

    /// Cancels the prompt of a session.
    pub(super) fn cancel(&self, session: &str) {
        if let Some(prompt) = self.sessions().get(session).and_then(|open| open.prompt.as_ref()) {
            prompt.cancellation.cancel();
        }
    }

    /// Cancels the prompt of a request.
    pub(super) fn cancel_request(&self, id: &Json) {
        let sessions = self.sessions();
        let prompts = sessions.values().filter_map(|open| open.prompt.as_ref());
        prompts.filter(|prompt| prompt.request == *id).for_each(|prompt| prompt.cancellation.cancel());
    }

    /// Opens a session, or chooses its agent if it is open.
    fn open(&self, id: &SessionId, agent: String) {
        let mut sessions = self.sessions();
        match sessions.get_mut(id.as_str()) {
            Some(open) => open.agent = agent,
            None => {
                let open = OpenSession { id: id.clone(), agent, prompt: None, turn: Arc::default() };
                sessions.insert(id.to_string(), open);
            }
        }
    }

    /// Closes a session: cancels its prompt, and waits for the end of it.
    async fn close(&self, session: &str) {
        self.cancel(session);
        let open = self.sessions().remove(session);
        if let Some(open) = open {
            let _ended = open.turn.lock().await;
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, OpenSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Opens a new session, which is stored with its first message. Returns its id and its state.
    pub(super) fn new_session(&self) -> Result<(SessionId, Json), RpcError> {
        self.host.require_store()?;
        let agent = self.default_agent()?;
        let id = SessionId::unique(now_ms());
        self.sessions.open(&id, agent.clone());
        Ok((id, self.agents(&agent).state()))
    }

    /// Opens a session, and sends what happened in it.
    pub(super) async fn load_session(&self, session: &str, setup: SessionSetup) -> Result<Json, RpcError> {
        let replay = self.open_session(session, setup).await?;
        for update in &replay.updates {
            self.peer.update(session, update).await;
        }
        Ok(self.agents(replay.agent.as_deref().unwrap_or_default()).state())
    }

    /// Opens a session.
    pub(super) async fn resume_session(&self, session: &str, setup: SessionSetup) -> Result<Json, RpcError> {
        let replay = self.open_session(session, setup).await?;
        Ok(self.agents(replay.agent.as_deref().unwrap_or_default()).state())
    }

    /// Lists sessions, newest first. A session does not depend on the folder of the editor, so all of them are listed for any.
    pub(super) async fn list_sessions(&self, cwd: Option<String>, offset: usize) -> Result<Json, RpcError> {
        let folder = || std::env::current_dir().map_or_else(|_| "/".to_owned(), |path| path.display().to_string());
        let folder = cwd.unwrap_or_else(folder);
        let served = self.served_agents();
        let listed = self.host.require_store()?.list(MAX_LISTED).await.map_err(|error| api_error(&error.into()))?;
        let mut listed = listed.iter().filter(|session| served.contains(&session.agent)).skip(offset);
        let info = |session: &SessionSummary| {
            let updated_at = timestamp(session.changed_ms);
            json!({"sessionId": session.id, "cwd": folder, "title": session.title, "updatedAt": updated_at})
        };
        let page: Vec<_> = listed.by_ref().take(PAGE).map(info).collect();
        let mut result = json!({"sessions": page});
        if let (Some(members), true) = (result.as_object_mut(), listed.next().is_some()) {
            members.insert("nextCursor".to_owned(), (offset + PAGE).to_string().into());
        }
        Ok(result)
    }

    /// Deletes a session. There is nothing to do if it does not exist.
    pub(super) async fn delete_session(&self, session: &str) -> Result<Json, RpcError> {
        self.sessions.close(session).await;
        match self.find(session).await {
            Ok(summary) => {
                let removed = self.host.require_store()?.remove(&summary.id).await;
                removed.map_err(|error| api_error(&error.into()))?;
            }
            Err(error) if error.code == RpcError::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
        done()
    }

    /// Closes a session, as if its prompt was cancelled.
    pub(super) async fn close_session(&self, session: &str) -> Result<Json, RpcError> {
        self.sessions.with(session, |_| Ok(()))?;
        self.sessions.close(session).await;
        done()
    }

    /// Chooses the agent that answers from the next prompt on.
    pub(super) fn choose_agent(&self, session: &str, agent: &str) -> Result<AgentChoice, RpcError> {
        let choice = self.agents(agent);
        if !choice.agents.iter().any(|known| known.name == agent) {
            return Err(RpcError::invalid_params(format!("there is no agent `{agent}`")));
        }
        self.host.compile_for(&self.access, agent)?;
        self.sessions.with(session, |open| {
            agent.clone_into(&mut open.agent);
            Ok(())
        })?;
        Ok(choice)
    }

    /// Answers `session/set_mode`. The option says the same.
    pub(super) async fn mode_chosen(&self, session: &str, choice: &AgentChoice) -> Result<Json, RpcError> {
        self.peer.update(session, &option_update(&choice.options())).await;
        done()
    }

    /// Answers `session/set_config_option`. The mode says the same.
    pub(super) async fn option_chosen(&self, session: &str, choice: &AgentChoice) -> Result<Json, RpcError> {
        self.peer.update(session, &mode_update(&choice.current)).await;
        Ok(json!({"configOptions": choice.options()}))
    }

    /// Says that the MCP servers of the client are not used.
    pub(super) async fn report_servers(&self, session: &SessionId, setup: SessionSetup) {
        if setup.offered_servers == 0 {
            return;
        }
        let message = "MCP servers of the editor are not used: the project declares its servers in patter.toml";
        tracing::warn!(servers = setup.offered_servers, "{message}");
        if self.has_notices.load(Ordering::Relaxed) {
            self.peer.update(session.as_str(), &notice("info", message)).await;
        }
    }

    /// Opens a session that is stored, and returns what happened in it and the agent that answers.
    async fn open_session(&self, session: &str, setup: SessionSetup) -> Result<Replay, RpcError> {
        let summary = self.find(session).await?;
        let store = self.host.require_store()?;
        let stored = store.read(&summary.id).await.map_err(|error| api_error(&error.into()))?;
        let entries = with_media(&*store, &summary.id, stored.entries).await;
        let entries = entries.map_err(|error| api_error(&error.into()))?;
        let mut replay = Replay::read(&entries, &|agent, tool| self.tool_kind(agent, tool))
            .map_err(|error| api_error(&error.into()))?;
        // The agent that spoke last, unless it is not served.
        let served = self.served_agents();
        let last = replay.agent.take().filter(|agent| served.contains(agent));
        let agent = last.unwrap_or_else(|| summary.agent.clone());
        self.sessions.open(&summary.id, agent.clone());
        replay.agent = Some(agent);
        self.report_servers(&summary.id, setup).await;
        Ok(replay)
    }

    /// Returns the metadata of a session with an agent that is served.
    async fn find(&self, session: &str) -> Result<SessionSummary, RpcError> {
        let missing = || ApiError::new(ApiErrorKind::NotFound, format!("there is no session `{session}`"));
        let id = SessionId::parse(session).map_err(|_| missing())?;
        let summary = self.host.find_session(&self.access, &id).await?;
        let is_served = |summary: &SessionSummary| self.served_agents().contains(&summary.agent);
        Ok(summary.filter(is_served).ok_or_else(missing)?)
    }

    fn served_agents(&self) -> Vec<String> {
        self.host.agents().into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the agents to choose from.
    fn agents(&self, current: &str) -> AgentChoice {
        let mode = |name: String| {
            let compiled = self.host.compile(&name).ok();
            let description = compiled.and_then(|agent| Some(agent.declaration().description()?.into_owned()));
            AgentMode { name, description }
        };
        AgentChoice { current: current.to_owned(), agents: self.served_agents().into_iter().map(mode).collect() }
    }

    /// Returns the agent of a new session: the one that no other agent calls, or the first.
    fn default_agent(&self) -> Result<String, RpcError> {
        let served = self.served_agents();
        let driver = self.host.project.driver();
        let main = driver.project().main_agent(None).ok();
        let main = main.and_then(|agent| agent.name().map(std::borrow::Cow::into_owned));
        let agent = main.filter(|agent| served.contains(agent)).or_else(|| served.into_iter().next());
        agent.ok_or_else(|| RpcError::new(RpcError::INTERNAL, "there are no agents"))
    }
}

/// Returns a time as the protocol writes it.
pub(super) fn timestamp(ms: u64) -> Option<String> {
    let timestamp = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    timestamp.map(|timestamp| timestamp.to_string())
}
