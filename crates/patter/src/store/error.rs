//! What goes wrong with a store.

use super::SessionId;
use thiserror::Error;

/// Why a store did not do what it was asked to.
///
/// ```
/// use patter::store::{SessionId, StoreError};
/// let id = SessionId::parse("greeting")?;
/// let error = StoreError::Busy { id: id.clone(), holder: Some("process 7 on ada".to_owned()) };
/// assert_eq!(error.to_string(), "session `greeting` is in use by process 7 on ada");
/// let error = StoreError::NotFound { text: "greting".to_owned(), nearest: Some(id) };
/// assert_eq!(error.to_string(), "there is no session `greting`");
/// assert_eq!(error.hint().unwrap(), "did you mean `greeting`?");
/// # Ok::<(), StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// A text is no id.
    #[error("`{text}` is no id of a session")]
    Id {
        /// The text.
        text: String,
    },
    /// There is no such session.
    #[error("there is no session `{text}`")]
    NotFound {
        /// What was looked for.
        text: String,
        /// What may be meant.
        nearest: Option<SessionId>,
    },
    /// There is no session at all.
    #[error("there is no session yet")]
    Empty,
    /// Several ids begin so.
    #[error("several sessions begin with `{text}`")]
    Ambiguous {
        /// What was looked for.
        text: String,
        /// Some of them.
        ids: Vec<SessionId>,
    },
    /// A session to begin is there already.
    #[error("session `{id}` exists already")]
    Exists {
        /// Its id.
        id: SessionId,
    },
    /// Somebody else holds the claim.
    #[error("session `{id}` is in use by {}", holder.as_deref().unwrap_or("somebody else"))]
    Busy {
        /// The session.
        id: SessionId,
        /// Who holds it, if they say so.
        holder: Option<String>,
    },
    /// The log is not as the holder of the claim left it.
    #[error("session `{id}` was changed by somebody else: entry {expected} is not the next")]
    Conflict {
        /// The session.
        id: SessionId,
        /// The number of the entry that was to be added.
        expected: u64,
    },
    /// An entry has a NUL character, which JSON text has not.
    #[error("entry {index} of those to add is no JSON: it has a NUL character")]
    Entry {
        /// Which of those to add, from 0.
        index: usize,
    },
    /// Something has to be changed first.
    #[error("{message}")]
    Unusable {
        /// What is the matter.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The database failed.
    #[error("the store of sessions failed: {message}")]
    Failed {
        /// What it says.
        message: String,
    },
}

impl StoreError {
    /// Returns what to do about it, where that can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Id { .. } => Some("an id has 1 to 64 characters of `a-z`, `0-9` and `-`".to_owned()),
            Self::NotFound { nearest, .. } => nearest.as_ref().map(|id| format!("did you mean `{id}`?")),
            Self::Ambiguous { ids, .. } => {
                let ids: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
                Some(format!("write more of one, such as {}", ids.join(", ")))
            }
            Self::Busy { .. } => Some("wait until it ends, or fork the session".to_owned()),
            Self::Conflict { .. } => Some("claim the session again, and read what is there".to_owned()),
            Self::Unusable { hint, .. } => hint.clone(),
            Self::Empty | Self::Exists { .. } | Self::Entry { .. } | Self::Failed { .. } => None,
        }
    }
}
