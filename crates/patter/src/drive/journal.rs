//! Who keeps what happens.

use crate::tool::BoxFuture;
use patter_core::run::Run;
use patter_core::session::Entry;
use thiserror::Error;

/// Keeps what happens in the course of a run, so that it can go on in another program. See [`patter_core::session`].
pub trait Journal: Send + Sync {
    /// Keeps entries, all or none. Once this returns, they survive the end of the program. A run waits for it before it
    /// does anything that cannot be taken back, and ends if it fails.
    fn keep(&self, entries: Vec<Entry>) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Returns a run of a called agent that was under way when the program ended.
    fn open_run(&self, path: &[String]) -> Option<Run> {
        let _ = path;
        None
    }

    /// Notes an entry the moment that it is made, before it is kept: for recordings, which also get what is not kept, such
    /// as the pieces of replies.
    fn note(&self, entry: &Entry) {
        let _ = entry;
    }

    /// Tells whether entries are noted; else those that are not kept are not even made.
    fn takes_notes(&self) -> bool {
        false
    }
}

/// Why something is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("what happens cannot be kept: {0}")]
pub struct JournalError(pub String);
