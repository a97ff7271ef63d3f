//! The journal: where the events of a run are saved.

use crate::store::StoreError;
use crate::tool::BoxFuture;
use patter_core::message::attachment::AttachmentContents;
use patter_core::message::conversation::Conversation;
use patter_core::run::Run;
use patter_core::session::LogEntry;
use std::sync::Arc;
use thiserror::Error;

/// Saves what happens in a run, so that another process can resume it. See [`patter_core::session`].
pub trait Journal: Send + Sync {
    /// Appends entries, all or none. Once this returns, they survive the end of the process. The run waits for it before
    /// every step that cannot be undone, and fails if it fails.
    fn append(&self, entries: Vec<LogEntry>) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Returns once all appended entries survive a power cut too. The run waits for it before calls that must not be
    /// repeated.
    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns the run of a called agent that was under way when the process ended.
    fn unfinished_run(&self, path: &[String]) -> Option<Run> {
        let _ = path;
        None
    }

    /// Returns a key that is the same if a call is made again, and different for every other call; `None` if runs are not
    /// resumed.
    fn call_key(&self, path: &[String], call_id: &str) -> Option<Arc<str>> {
        let _ = (path, call_id);
        None
    }

    /// Returns the contents of the attachments of messages, as far as they are known.
    fn attachments<'a>(
        &'a self,
        messages: &'a Conversation,
    ) -> BoxFuture<'a, Result<AttachmentContents, JournalError>> {
        let _ = messages;
        Box::pin(async { Ok(AttachmentContents::default()) })
    }

    /// Records an entry the moment it is created, before it is appended. Recordings also receive entries that are never
    /// appended, such as the pieces of replies.
    fn record(&self, entry: &LogEntry) {
        let _ = entry;
    }

    /// Returns whether entries are recorded; if not, entries that are only recorded are not created.
    fn is_recording(&self) -> bool {
        false
    }
}

/// An error saving a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot save the run: {message}")]
pub struct JournalError {
    /// The cause.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl JournalError {
    /// Returns an error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        Self { message: error.to_string(), hint: error.hint() }
    }
}
