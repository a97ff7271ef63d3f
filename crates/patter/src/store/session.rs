//! The metadata of sessions.

use super::id::SessionId;
use patter_core::message::attachment::AttachmentContents;
use serde::{Deserialize, Serialize};

/// The agent name of sessions that hold the trials of an experiment instead of a conversation.
pub const EXPERIMENT_AGENT: &str = "(experiment)";

/// The maximum number of characters of a title and of an agent name.
const MAX_CHARACTERS: usize = 200;

/// A session to create.
///
/// ```
/// use patter::store::{NewSession, SessionId};
/// let new = NewSession::new(SessionId::parse("greeting")?, "greeter", "Hello\nthere\0");
/// assert_eq!(new.title(), "Hello there");
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The id, which must be unused.
    pub id: SessionId,
    agent: String,
    title: String,
    /// The session that it was forked from.
    pub forked_from: Option<SessionId>,
    /// The first entries of its log.
    pub(super) entries: Vec<String>,
    pub(super) state: SessionState,
    /// The contents of the attachments that the entries name.
    pub(super) attachments: AttachmentContents,
}

impl NewSession {
    /// Returns a session with an agent. Title and agent name are reduced to one line without control characters, and
    /// truncated.
    pub fn new(id: SessionId, agent: &str, title: &str) -> Self {
        let agent = line(agent);
        let title = line(title);
        let state = SessionState::Idle;
        Self {
            id,
            agent,
            title,
            forked_from: None,
            entries: Vec::new(),
            state,
            attachments: AttachmentContents::default(),
        }
    }

    /// Sets the first entries of the log, and the state. The session is created with all of them or not at all.
    #[must_use]
    pub fn with_entries(mut self, entries: Vec<String>, state: SessionState) -> Self {
        self.entries = entries;
        self.state = state;
        self
    }

    /// Sets the contents of the attachments that the first entries name.
    #[must_use]
    pub fn with_attachments(mut self, attachments: AttachmentContents) -> Self {
        self.attachments = attachments;
        self
    }

    /// Sets the session that it was forked from.
    #[must_use]
    pub fn forked_from(mut self, origin: SessionId) -> Self {
        self.forked_from = Some(origin);
        self
    }

    /// Returns the name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the title.
    pub fn title(&self) -> &str {
        &self.title
    }
}

/// The state of a session.
///
/// ```
/// use patter::store::SessionState;
/// assert_eq!(serde_json::to_string(&SessionState::Running).unwrap(), r#""running""#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The last run has ended.
    Idle,
    /// The last run has not ended. It is under way if the session is claimed, and was interrupted if not.
    Running,
    /// The last run has not ended, and waits for somebody: for the approval of a call, or for a result of the client.
    Waiting,
}

impl SessionState {
    const ALL: [Self; 3] = [Self::Idle, Self::Running, Self::Waiting];

    /// Returns the state that a database stores as this text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Returns whether the last run has not ended.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }

    /// Returns the state as databases store it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
        }
    }
}

/// The metadata of a session.
///
/// ```
/// use patter::store::{SessionId, SessionState, SessionSummary};
/// let summary = SessionSummary {
///     id: SessionId::parse("greeting")?,
///     agent: "greeter".to_owned(),
///     title: "Hello there".to_owned(),
///     created_ms: 1,
///     changed_ms: 2,
///     entries: 3,
///     state: SessionState::Idle,
///     forked_from: None,
/// };
/// assert!(serde_json::to_string(&summary).unwrap().starts_with(r#"{"id":"greeting","agent":"greeter","#));
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The id.
    pub id: SessionId,
    /// The name of the agent.
    pub agent: String,
    /// The title, in one line.
    pub title: String,
    /// When the session was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When the session last changed, in milliseconds since 1970. It may be up to a second ago while a run is under way:
    /// the order of sessions is not worth a write with every step.
    pub changed_ms: u64,
    /// The number of entries in the log.
    pub entries: u64,
    /// The state.
    pub state: SessionState,
    /// The session that it was forked from.
    pub forked_from: Option<SessionId>,
}

impl SessionSummary {
    /// Returns whether the session holds the trials of an experiment instead of a conversation.
    pub fn is_experiment(&self) -> bool {
        self.agent == EXPERIMENT_AGENT
    }
}

/// A session with its entries.
///
/// ```
/// # use patter::store::{SessionId, SessionState, SessionSummary, StoredSession};
/// # let summary = SessionSummary {
/// #     id: SessionId::parse("a")?,
/// #     agent: String::new(),
/// #     title: String::new(),
/// #     created_ms: 1,
/// #     changed_ms: 2,
/// #     entries: 1,
/// #     state: SessionState::Idle,
/// #     forked_from: None,
/// # };
/// let stored = StoredSession { summary, entries: vec!["{}".to_owned()] };
/// assert_eq!(stored.summary.entries, 1);
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// The metadata.
    pub summary: SessionSummary,
    /// The entries that were read, in order.
    pub entries: Vec<String>,
}

/// Reduces a text to one line that every terminal can show and every database accepts.
fn line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::with_capacity(text.len());
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if let Some((end, _)) = line.char_indices().nth(MAX_CHARACTERS) {
        line.truncate(end);
    }
    line
}
