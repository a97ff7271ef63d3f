//! Looking after a store: how large it is, and copying its sessions to another, with their attachments.

use super::backend::Store;
use super::error::StoreError;
use super::id::SessionId;
use super::session::{NewSession, SessionSummary};
use patter_core::message::attachment::{AttachmentContents, attachments};
use patter_core::message::conversation::Conversation;
use patter_core::session::{Log, redacted_entries};
use serde::Serialize;

/// What a store contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StoreUsage {
    /// The number of sessions, experiments included.
    pub sessions: u64,
    /// The number of entries of all sessions.
    pub entries: u64,
    /// The size on disk, in bytes.
    pub bytes: u64,
    /// The part of it that [`Store::compact`] gives back, as far as that is known.
    pub unused_bytes: u64,
    /// When the session that was not changed for the longest time was changed, in milliseconds since 1970.
    pub oldest_ms: Option<u64>,
}

/// Reads the contents of the attachments of a session: all, or those that messages name.
pub async fn read_attachments(
    store: &dyn Store,
    id: &SessionId,
    messages: Option<&Conversation>,
) -> Result<AttachmentContents, StoreError> {
    let mut contents = AttachmentContents::default();
    let hashes = match messages {
        Some(messages) => attachments(messages).into_iter().map(|attachment| attachment.sha256.clone()).collect(),
        None => store.attachments(id).await?,
    };
    for sha256 in hashes {
        if let Some(content) = store.attachment(id, &sha256).await?
            && !contents.insert(&sha256, content.into())
        {
            let message = format!("the attachment {sha256} of session `{id}` is damaged");
            return Err(StoreError::Failed { message });
        }
    }
    Ok(contents)
}

/// Removes the contents of a session permanently: what people and models said, arguments and results of calls, reasoning,
/// attachments and errors. Its shape stays: runs, calls, times, tokens, costs and ends. Returns whether it had contents.
///
/// In a SQLite file, [`Store::compact`] afterwards makes sure that no page has remains of them; PostgreSQL removes them for
/// good when it vacuums its tables, which compacting does too.
pub async fn redact_session(store: &dyn Store, id: &SessionId, now_ms: u64) -> Result<bool, StoreError> {
    let stored = store.read(id).await?;
    let refused = |problem: &str, hint: String| StoreError::Unusable {
        message: format!("session `{id}` {problem}"),
        hint: Some(hint),
    };
    if stored.summary.is_experiment() {
        return Err(refused(
            "is an experiment, not a conversation",
            format!("remove it with `patter sessions rm {id}`"),
        ));
    }
    if stored.summary.state.is_open() {
        let hint = format!("end it with `patter resume {id}`, or with `patter resume {id} --abandon`");
        return Err(refused("has an unfinished run", hint));
    }
    let damaged = |error: &dyn std::fmt::Display| StoreError::Failed { message: format!("the log of `{id}`: {error}") };
    let log = Log::read(&stored.entries).map_err(|error| damaged(&error))?;
    if log.redacted_at().is_some() {
        return Ok(false);
    }
    let redacted = redacted_entries(&stored.entries, now_ms).map_err(|error| damaged(&error))?;
    let entries = redacted.iter().map(serde_json::to_string).collect::<Result<_, _>>();
    store.replace_log(id, stored.summary.entries, entries.map_err(|error| damaged(&error))?).await?;
    Ok(true)
}

/// What copying a session did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The session is in the other store now.
    New,
    /// The other store has it, with the same entries.
    Unchanged,
    /// The other store has a session of this id with other entries, which was left alone.
    Differs,
}

/// Copies a session to another store, with its times and its state. Doing that twice changes nothing.
pub async fn copy_session(from: &dyn Store, to: &dyn Store, session: &SessionSummary) -> Result<Copied, StoreError> {
    let stored = from.read(&session.id).await?;
    let summary = &stored.summary;
    match to.read(&summary.id).await {
        Ok(there) if there.entries == stored.entries => return Ok(Copied::Unchanged),
        Ok(_) => return Ok(Copied::Differs),
        Err(StoreError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut new = NewSession::new(summary.id.clone(), &summary.agent, &summary.title);
    if let Some(origin) = &summary.forked_from {
        new = new.forked_from(origin.clone());
    }
    let new = new.with_entries(stored.entries.clone(), summary.state);
    let new = new.with_attachments(read_attachments(from, &summary.id, None).await?);
    let mut claim = to.create(new, summary.created_ms).await?;
    // Creating sets both times; this sets that of the last change.
    claim.append(&[], summary.state, summary.changed_ms).await?;
    claim.sync().await?;
    Ok(Copied::New)
}
