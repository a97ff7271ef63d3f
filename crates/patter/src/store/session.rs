//! What is known of a session beside its entries.

use super::{EXPERIMENT, SessionId, StoreError, signed};
use serde::{Deserialize, Serialize};

/// The most characters of a title, and of the name of an agent.
const LONGEST: usize = 200;

/// A session that begins.
///
/// ```
/// use patter::store::{NewSession, SessionId};
/// let new = NewSession::new(SessionId::parse("greeting")?, "greeter", "Hello\nthere\0");
/// assert_eq!(new.title(), "Hello there");
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id, which no other has.
    pub id: SessionId,
    agent: String,
    title: String,
    /// The session whose log it begins with.
    pub forked_from: Option<SessionId>,
}

impl NewSession {
    /// Returns a session of an agent. Its title becomes one line, without characters that control something, and not too
    /// long; so does the name of the agent.
    pub fn new(id: SessionId, agent: &str, title: &str) -> Self {
        Self { id, agent: line(agent), title: line(title), forked_from: None }
    }

    /// Returns the session with where it comes from.
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

/// Whether the last run of a session has ended.
///
/// ```
/// use patter::store::SessionState;
/// assert_eq!(serde_json::to_string(&SessionState::Running).unwrap(), r#""running""#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It has.
    Idle,
    /// It has not: it is under way where somebody holds the claim, and was interrupted where nobody does.
    Running,
}

impl SessionState {
    /// Returns the state as it is written in databases.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
        }
    }
}

/// A session without its entries.
///
/// ```
/// use patter::store::{SessionId, SessionState, Summary};
/// let summary = Summary {
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
pub struct Summary {
    /// Its id.
    pub id: SessionId,
    /// The name of the agent.
    pub agent: String,
    /// What it is about, in a line.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it changed last, in milliseconds since 1970.
    pub changed_ms: u64,
    /// How many entries its log has.
    pub entries: u64,
    /// Whether its last run has ended.
    pub state: SessionState,
    /// The session whose log it began with.
    pub forked_from: Option<SessionId>,
}

impl Summary {
    /// Tells whether it is no conversation, but the runs of an experiment.
    pub fn is_experiment(&self) -> bool {
        self.agent == EXPERIMENT
    }
}

/// A session with its entries.
///
/// ```
/// # use patter::store::{SessionId, SessionState, Stored, Summary};
/// # let (id, agent, title) = (SessionId::parse("a")?, String::new(), String::new());
/// # let (created_ms, changed_ms, entries, state, forked_from) = (1, 2, 1, SessionState::Idle, None);
/// # let summary = Summary { id, agent, title, created_ms, changed_ms, entries, state, forked_from };
/// let stored = Stored { summary, entries: vec!["{}".to_owned()] };
/// assert_eq!(stored.summary.entries, 1);
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What is known of it.
    pub summary: Summary,
    /// The entries in their order.
    pub entries: Vec<String>,
}

/// A row with a summary: what [`summary_columns!`] selects.
pub(super) type Row = (String, String, String, i64, i64, i64, String, Option<String>);

/// The columns of a [`Row`], to put into a statement.
macro_rules! summary_columns {
    () => {
        "id, agent, title, created_ms, changed_ms, entries, state, forked_from"
    };
}
pub(super) use summary_columns;

/// Reads a row.
pub(super) fn summary(row: Row) -> Result<Summary, StoreError> {
    let (id, agent, title, created_ms, changed_ms, entries, state, forked_from) = row;
    let damaged = || StoreError::Failed { message: format!("what is stored of session `{id}` cannot be read") };
    let number = |number: i64| u64::try_from(number).map_err(|_| damaged());
    let state = [SessionState::Idle, SessionState::Running].into_iter().find(|known| known.as_str() == state);
    Ok(Summary {
        created_ms: number(created_ms)?,
        changed_ms: number(changed_ms)?,
        entries: number(entries)?,
        state: state.ok_or_else(damaged)?,
        forked_from: forked_from.as_deref().map(SessionId::parse).transpose()?,
        id: SessionId::parse(&id)?,
        agent,
        title,
    })
}

/// A log that is being read.
pub(super) struct Log {
    summary: Summary,
    entries: Vec<String>,
}

impl Log {
    pub(super) fn new(summary: Summary) -> Self {
        Self { summary, entries: Vec::new() }
    }

    /// Takes the entry that is next.
    pub(super) fn push(&mut self, (number, entry): (i64, String)) -> Result<(), StoreError> {
        if number != signed(self.entries.len() as u64) {
            return Err(self.damaged());
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Returns the whole log.
    pub(super) fn end(self) -> Result<Stored, StoreError> {
        match self.entries.len() as u64 == self.summary.entries {
            true => Ok(Stored { summary: self.summary, entries: self.entries }),
            false => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> StoreError {
        let (id, at) = (&self.summary.id, self.entries.len());
        StoreError::Failed { message: format!("the log of session `{id}` is damaged: there is no entry {at}") }
    }
}

/// Returns a text as one line that anybody can show and any database takes.
fn line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}
