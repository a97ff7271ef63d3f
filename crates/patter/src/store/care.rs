//! Looking after a store: how large it is, and copying its sessions to another, with their attachments.

use super::backend::Store;
use super::error::StoreError;
use super::id::SessionId;
use super::session::{NewSession, SessionSummary};
use patter_core::message::attachment::{AttachmentContents, attachments};
use patter_core::message::conversation::Conversation;
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
