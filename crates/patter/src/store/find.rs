//! Finding sessions by what people type.

use super::backend::Store;
use super::error::StoreError;
use super::id::SessionId;
use patter_core::text::nearest;

/// The maximum number of ids to report for an ambiguous prefix.
const MAX_MATCHES: usize = 5;
/// The number of recent sessions to search.
const RECENT: usize = 1000;

/// Finds a session by its id, by an unambiguous prefix of its id, or as `latest`.
pub async fn find(store: &dyn Store, text: &str) -> Result<SessionId, StoreError> {
    let text = text.trim();
    if text == "latest" {
        let recent = store.list(RECENT).await?;
        let latest = recent.into_iter().find(|summary| !summary.is_experiment());
        return latest.map(|latest| latest.id).ok_or(StoreError::Empty);
    }
    if text.is_empty() {
        SessionId::parse(text)?;
    }
    let ids = store.ids(text, MAX_MATCHES).await?;
    match ids.as_slice() {
        [] => Err(not_found(store, text).await),
        [first, ..] if ids.len() == 1 || first.as_str() == text => Ok(first.clone()),
        _ => Err(StoreError::Ambiguous { text: text.to_owned(), ids }),
    }
}

/// Returns an error for a session that does not exist, with a similar id if there is one. That takes a while: it is for people,
/// not for programs that only want to know whether a session exists.
async fn not_found(store: &dyn Store, text: &str) -> StoreError {
    let recent = store.list(RECENT).await.unwrap_or_default();
    let near = nearest(text, recent.iter().map(|summary| summary.id.as_str()));
    let near = recent.iter().find(|summary| Some(summary.id.as_str()) == near).map(|summary| summary.id.clone());
    StoreError::NotFound { text: text.to_owned(), nearest: near }
}
