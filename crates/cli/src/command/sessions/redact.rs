//! `patter sessions redact`.

use crate::error::CommandError;
use crate::format::DataFormat;
use crate::ui;
use patter::drive::now_ms;
use patter::store::{self, SessionId, Store, StoreError};
use patter::text::milliseconds;
use serde_json::json;
use std::time::Duration;

/// What removing contents did, or would do.
#[derive(Default)]
pub(super) struct Redaction {
    is_dry_run: bool,
    redacted: Vec<SessionId>,
    /// Those whose contents had been removed before.
    unchanged: Vec<SessionId>,
    /// Those that are in use, or have an unfinished run.
    kept: Vec<SessionId>,
}

/// Removes the contents of sessions: of those that are named, or of all that have not changed for a time.
pub(super) async fn redact(
    store: &dyn Store,
    sessions: &[String],
    older_than: Option<Duration>,
    is_dry_run: bool,
) -> Result<Redaction, CommandError> {
    let mut redaction = Redaction { is_dry_run, ..Redaction::default() };
    let mut ids = Vec::new();
    if let Some(age) = older_than {
        for session in store.list_unchanged_since(now_ms().saturating_sub(milliseconds(age))).await? {
            match session.state.is_open() {
                _ if session.is_experiment() => {}
                true => redaction.kept.push(session.id),
                false => ids.push(session.id),
            }
        }
    }
    // All are found before any is changed, so that a typo changes nothing.
    for text in sessions {
        let id = store::find(store, text).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for id in ids {
        if is_dry_run {
            redaction.redacted.push(id);
            continue;
        }
        match store::redact_session(store, &id, now_ms()).await {
            Ok(true) => redaction.redacted.push(id),
            Ok(false) => redaction.unchanged.push(id),
            Err(StoreError::Busy { .. }) if older_than.is_some() => redaction.kept.push(id),
            Err(error) => return Err(error.into()),
        }
    }
    if !redaction.redacted.is_empty() && !is_dry_run {
        // Nothing is left of them in unused parts of the database.
        store.compact().await?;
    }
    Ok(redaction)
}

impl Redaction {
    pub(super) fn show(&self, format: DataFormat) -> Result<(), CommandError> {
        let texts = |ids: &[SessionId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        if format == DataFormat::Json {
            let name = if self.is_dry_run { "wouldRedact" } else { "redacted" };
            let document =
                json!({name: texts(&self.redacted), "unchanged": texts(&self.unchanged), "kept": texts(&self.kept)});
            return Ok(ui::print(&format!("{document:#}\n"))?);
        }
        if self.is_dry_run {
            let list: String = self.redacted.iter().map(|id| format!("{id}\n")).collect();
            ui::print(&list)?;
            let note = match self.redacted.len() {
                0 => "there is nothing to redact".to_owned(),
                count => format!(
                    "without --dry-run, the contents of {} are removed permanently",
                    ui::plural(count, "session")
                ),
            };
            ui::status(&note)?;
        } else {
            ui::status(&format!("removed the contents of {}", ui::plural(self.redacted.len(), "session")))?;
        }
        for id in &self.unchanged {
            ui::status(&format!("`{id}` had no contents any more"))?;
        }
        if !self.kept.is_empty() {
            let kept = ui::plural(self.kept.len(), "session");
            ui::status(&format!("{kept} in use, or with an unfinished run, and kept"))?;
        }
        Ok(())
    }
}
