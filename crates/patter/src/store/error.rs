//! Errors of stores.

use super::id::{SessionId, SessionIdError};
use thiserror::Error;

/// An error of a store operation.
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
    /// A text is not a session id.
    #[error(transparent)]
    Id(#[from] SessionIdError),
    /// There is no such session.
    #[error("there is no session `{text}`")]
    NotFound {
        /// The requested session.
        text: String,
        /// A session with a similar id.
        nearest: Option<SessionId>,
    },
    /// The store is empty.
    #[error("there are no sessions yet")]
    Empty,
    /// Several ids match.
    #[error("several session ids start with `{text}`")]
    Ambiguous {
        /// The requested session.
        text: String,
        /// Some of the matching ids.
        ids: Vec<SessionId>,
    },
    /// A session with this id exists.
    #[error("session `{id}` already exists")]
    Exists {
        /// The id.
        id: SessionId,
    },
    /// The session is claimed by someone else.
    #[error("session `{id}` is in use by {}", holder.as_deref().unwrap_or("another process"))]
    Busy {
        /// The session.
        id: SessionId,
        /// The holder of the claim, if known.
        holder: Option<String>,
    },
    /// The store did not confirm the claim in time, so somebody else may have the session.
    #[error("session `{id}` is no longer claimed: the session store did not answer in time")]
    Lost {
        /// The session.
        id: SessionId,
    },
    /// The log was changed by someone other than the holder of the claim.
    #[error("session `{id}` was changed by another writer: entry {expected} was expected to be the next")]
    Conflict {
        /// The session.
        id: SessionId,
        /// The number of the entry to append.
        expected: u64,
    },
    /// An entry contains a NUL character or a line break, which JSON on one line cannot.
    #[error("entry {index} is not JSON on one line: it contains a line break or a NUL character")]
    Entry {
        /// The index among the entries to append, from 0.
        index: usize,
    },
    /// The store cannot be used until something is changed.
    #[error("{message}")]
    Unusable {
        /// The reason.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The database failed.
    #[error("the session store failed: {message}")]
    Failed {
        /// The message of the database.
        message: String,
    },
}

impl StoreError {
    /// Returns the error that there is no such session.
    pub(super) fn not_found(id: &SessionId) -> Self {
        Self::NotFound { text: id.to_string(), nearest: None }
    }

    /// Returns a hint for fixing the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Id(error) => Some(error.hint().to_owned()),
            Self::NotFound { nearest: Some(id), .. } => Some(format!("did you mean `{id}`?")),
            Self::NotFound { .. } => Some("list all sessions with `patter sessions`".to_owned()),
            Self::Ambiguous { ids, .. } => {
                let ids: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
                Some(format!("write more of the id; matches include {}", ids.join(", ")))
            }
            Self::Busy { .. } => Some("wait until it ends, or fork the session".to_owned()),
            Self::Lost { id } => Some(format!("if no other program continues the run, `patter resume {id}` does")),
            Self::Conflict { id, .. } => {
                Some(format!("another program continued it; `patter sessions show {id}` shows what it did"))
            }
            Self::Unusable { hint, .. } => hint.clone(),
            Self::Empty | Self::Exists { .. } | Self::Entry { .. } | Self::Failed { .. } => None,
        }
    }
}
