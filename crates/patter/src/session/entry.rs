//! Entries as JSON text, as stores and recordings hold them.

use crate::drive::JournalError;
use crate::store::{SessionId, Store, StoreError};
use patter_core::message::attachment::AttachmentContents;
use patter_core::session::LogEntry;

/// The size of most entries.
const USUAL_BYTES: usize = 512;

pub(super) fn to_json(entry: &LogEntry) -> Result<String, JournalError> {
    let mut json = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut json, entry).map_err(|error| JournalError::new(error.to_string()))?;
    String::from_utf8(json).map_err(|error| JournalError::new(error.to_string()))
}

/// Returns the entries of a stored session with the images and documents that tools returned, for which the store has hashes.
/// What the store no longer has is left out.
pub async fn with_media(
    store: &dyn Store,
    session: &SessionId,
    mut entries: Vec<String>,
) -> Result<Vec<String>, StoreError> {
    let mut contents = AttachmentContents::default();
    for text in entries.iter_mut().filter(|text| text.contains(r#""sha256":"#)) {
        // Whoever reads the log reports an entry that is damaged.
        let Ok(mut entry) = serde_json::from_str::<LogEntry>(text) else { continue };
        let hashes = entry.detached_media();
        if hashes.is_empty() {
            continue;
        }
        for sha256 in hashes {
            if contents.shared(&sha256).is_none()
                && let Some(content) = store.attachment(session, &sha256).await?
            {
                contents.insert(&sha256, content.into());
            }
        }
        entry.reattach_media(&contents);
        *text = to_json(&entry).map_err(|error| StoreError::Failed { message: error.to_string() })?;
    }
    Ok(entries)
}
