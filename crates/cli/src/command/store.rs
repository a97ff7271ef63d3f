//! `patter store`: looks after the session store.

use super::Command;
use crate::argument::parse_age;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::session::{OpenStore, StoreOption};
use crate::ui;
use crate::ui::style::{CAUTION, DIM};
use clap::{Args, Subcommand};
use patter::drive::now_ms;
use patter::store::{self, Copied, SessionSummary, Store, StoreError, StoreLocation, StoreUsage};
use patter::text::{format_size, milliseconds};
use serde_json::json;
use std::time::Duration;

/// How many sessions are listed by name.
const MAX_LISTED: usize = 20;

/// Show the size of the session store, remove old sessions, and copy them elsewhere
///
/// Sessions are stored with the project, by default in `.patter/sessions.db`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter store\n  \
                        patter store prune --older-than 90d\n  \
                        patter store prune --older-than 90d --delete\n  \
                        patter store compact\n  \
                        patter store copy postgres://db.example.com/agents\n  \
                        patter store claims --store 'postgres://db.example.com/agents?claims=lease'")]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    #[command(flatten)]
    store: StoreOption,
}

#[derive(Subcommand)]
enum Action {
    /// List sessions that have not changed for a time, and with --delete remove them
    ///
    /// Sessions with an unfinished run are kept, and so are those that a program uses.
    Prune {
        /// How long sessions are kept: 90d, 12h
        #[arg(long, value_name = "TIME", value_parser = parse_age)]
        older_than: Duration,
        /// Delete them permanently; without this, they are only listed
        #[arg(long)]
        delete: bool,
        /// Also those with a run that was interrupted, or that waits for an approval
        #[arg(long)]
        unfinished: bool,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Give space back to the system that deleted sessions took
    #[command(alias = "vacuum")]
    Compact {
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Copy all sessions to another store: a file, or postgres://…
    ///
    /// Sessions that the other store has are skipped, so an interrupted copy is continued by repeating it. A session that differs
    /// there is not overwritten.
    Copy {
        /// Store to copy to
        #[arg(value_name = "URL")]
        to: String,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Claim the sessions of a PostgreSQL database as its address says: by locks, or with claims=lease by leases
    ///
    /// Everything that uses the database must do so in the same way, so nothing may use it meanwhile. Leases are for poolers that
    /// assign a connection per transaction.
    Claims {
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
}

impl Command for StoreCommand {
    fn error_format(&self) -> ErrorFormat {
        self.chosen_format().error_format()
    }

    fn run(&self) -> CommandResult {
        if let Some(Action::Claims { .. }) = &self.action {
            let (location, changed) = self.store.change_claims()?;
            self.show_claims(&location, changed)?;
            return Ok(Outcome::Success);
        }
        let OpenStore { runtime, store } = self.store.open_existing()?;
        let store = &*store;
        match &self.action {
            None => self.show(&runtime.block_on(store.usage())?)?,
            Some(Action::Prune { older_than, delete, unfinished, .. }) => {
                let moment = now_ms().saturating_sub(milliseconds(*older_than));
                let mut sessions = runtime.block_on(store.list_unchanged_since(moment))?;
                sessions.retain(|session| *unfinished || !session.state.is_open());
                if *delete {
                    let removed = runtime.block_on(remove(store, &sessions))?;
                    self.show_removed(&removed)?;
                } else {
                    self.show_old(&sessions)?;
                }
            }
            Some(Action::Compact { .. }) => {
                let before = runtime.block_on(store.usage())?;
                runtime.block_on(store.compact())?;
                let after = runtime.block_on(store.usage())?;
                self.show_compacted(&before, &after)?;
            }
            Some(Action::Copy { to, .. }) => {
                let location = StoreLocation::parse(to)?;
                let copied = runtime.block_on(async {
                    let other = store::open(&location).await?;
                    copy(store, &*other).await
                })?;
                return self.show_copied(&copied, &location);
            }
            // It does not open the store.
            Some(Action::Claims { .. }) => {}
        }
        Ok(Outcome::Success)
    }
}

/// The sessions that were deleted, and how many were left because they are in use.
struct Removed {
    deleted: Vec<SessionSummary>,
    busy: usize,
}

async fn remove(store: &dyn Store, sessions: &[SessionSummary]) -> Result<Removed, StoreError> {
    let mut removed = Removed { deleted: Vec::new(), busy: 0 };
    for session in sessions {
        match store.remove(&session.id).await {
            Ok(()) => removed.deleted.push(session.clone()),
            Err(StoreError::Busy { .. }) => removed.busy += 1,
            // Somebody else deleted it.
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

/// What became of the sessions of a copied store.
#[derive(Default)]
struct CopiedSessions {
    new: usize,
    unchanged: usize,
    differing: Vec<String>,
}

async fn copy(from: &dyn Store, to: &dyn Store) -> Result<CopiedSessions, StoreError> {
    let mut copied = CopiedSessions::default();
    for session in from.list_unchanged_since(u64::MAX).await? {
        match store::copy_session(from, to, &session).await? {
            Copied::New => copied.new += 1,
            Copied::Unchanged => copied.unchanged += 1,
            Copied::Differs => copied.differing.push(session.id.to_string()),
        }
    }
    Ok(copied)
}

impl StoreCommand {
    /// Returns the format, which may be given before or after a subcommand.
    fn chosen_format(&self) -> DataFormat {
        let own = match &self.action {
            Some(
                Action::Prune { format, .. }
                | Action::Compact { format }
                | Action::Copy { format, .. }
                | Action::Claims { format },
            ) => format.format,
            None => self.format.format,
        };
        if own == DataFormat::Json { own } else { self.format.format }
    }

    fn show(&self, usage: &StoreUsage) -> Result<(), CommandError> {
        if self.chosen_format() == DataFormat::Json {
            return Ok(ui::print(&format!("{:#}\n", json!(usage)))?);
        }
        let mut text = format!(
            "{}, {}, {}",
            count(usage.sessions, "session", "sessions"),
            count(usage.entries, "entry", "entries"),
            format_size(usage.bytes)
        );
        if usage.unused_bytes > 0 {
            text += &format!(
                " {DIM}({} unused: `patter store compact` gives them back){DIM:#}",
                format_size(usage.unused_bytes)
            );
        }
        if let Some(oldest) = usage.oldest_ms {
            text += &format!("\nthe oldest was last changed {} ago", ui::format_age(now_ms().saturating_sub(oldest)));
        }
        Ok(ui::print(&format!("{text}\n"))?)
    }

    fn show_old(&self, sessions: &[SessionSummary]) -> Result<(), CommandError> {
        if self.chosen_format() == DataFormat::Json {
            let ids: Vec<_> = sessions.iter().map(|session| session.id.as_str()).collect();
            return Ok(ui::print(&format!("{:#}\n", json!({"wouldDelete": ids})))?);
        }
        self.list(sessions)?;
        let note = match sessions.len() {
            0 => "there is nothing to delete".to_owned(),
            count => format!("--delete deletes {} permanently", ui::plural(count, "session")),
        };
        Ok(ui::status(&note)?)
    }

    fn show_removed(&self, removed: &Removed) -> Result<(), CommandError> {
        if self.chosen_format() == DataFormat::Json {
            let ids: Vec<_> = removed.deleted.iter().map(|session| session.id.as_str()).collect();
            return Ok(ui::print(&format!("{:#}\n", json!({"deleted": ids, "inUse": removed.busy})))?);
        }
        ui::status(&format!("deleted {}", ui::plural(removed.deleted.len(), "session")))?;
        if removed.busy > 0 {
            ui::status(&format!("{} in use, and kept", ui::plural(removed.busy, "session")))?;
        }
        Ok(())
    }

    fn list(&self, sessions: &[SessionSummary]) -> Result<(), CommandError> {
        let mut text = String::new();
        for session in sessions.iter().take(MAX_LISTED) {
            let age = ui::format_age(now_ms().saturating_sub(session.changed_ms));
            text += &format!("{}  {age}  {}\n", session.id, session.agent);
        }
        if sessions.len() > MAX_LISTED {
            text += &format!("… and {} more\n", sessions.len() - MAX_LISTED);
        }
        Ok(ui::print(&text)?)
    }

    fn show_compacted(&self, before: &StoreUsage, after: &StoreUsage) -> Result<(), CommandError> {
        if self.chosen_format() == DataFormat::Json {
            let sizes = json!({"bytesBefore": before.bytes, "bytes": after.bytes});
            return Ok(ui::print(&format!("{sizes:#}\n"))?);
        }
        Ok(ui::status(&format!("{} before, {} now", format_size(before.bytes), format_size(after.bytes)))?)
    }

    fn show_claims(&self, location: &StoreLocation, changed: bool) -> Result<(), CommandError> {
        if self.chosen_format() == DataFormat::Json {
            return Ok(ui::print(&format!("{:#}\n", json!({"changed": changed})))?);
        }
        let how = if location.claims_by_lease() { "leases" } else { "locks" };
        let now = if changed { "are now" } else { "already are" };
        Ok(ui::status(&format!("the sessions of `{location}` {now} claimed by {how}"))?)
    }

    fn show_copied(&self, copied: &CopiedSessions, to: &StoreLocation) -> CommandResult {
        let CopiedSessions { new, unchanged, differing } = copied;
        if self.chosen_format() == DataFormat::Json {
            let document = json!({"copied": new, "alreadyThere": unchanged, "differing": differing});
            ui::print(&format!("{document:#}\n"))?;
        } else {
            let known = if *unchanged > 0 { format!("; {unchanged} were known there") } else { String::new() };
            ui::status(&format!("copied {} to `{to}`{known}", ui::plural(*new, "session")))?;
            for id in differing {
                ui::status(&format!("{CAUTION}kept{CAUTION:#} `{id}`, which differs there"))?;
            }
        }
        Ok(if differing.is_empty() { Outcome::Success } else { Outcome::Findings })
    }
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
