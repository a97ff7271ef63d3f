//! `patter sessions`: lists, shows, exports, forks, removes, redacts and backs up sessions.

mod export;
mod redact;

use super::Command;
use crate::argument::{parse_age, parse_count};
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::session::{OpenStore, RECENT_SESSIONS, StoreOption, fork_log, state, summary_json};
use crate::ui::style::{CAUTION, DIM};
use crate::ui::{self, Align, Column, listing, short};
use clap::{Args, Subcommand};
use export::{ExportFormat, document, export};
use patter::drive::now_ms;
use patter::message::attachment::readable;
use patter::message::conversation::Message;
use patter::run::{self, FailureKind};
use patter::session::{Log, SessionError, with_media};
use patter::store::{self, NewSession, SessionId, SessionState, SessionSummary, Store, StoreError, StoredSession};
use patter::text::nearest;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// List, show, fork, export, delete, redact and back up sessions
///
/// Sessions are stored with the project, by default in `.patter/sessions.db`. A session is named by its id, by the start
/// of it, or as `latest`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter sessions\n  \
                        patter sessions show latest\n  \
                        patter sessions export 20261115-1930 --format recording -o bug.jsonl\n  \
                        patter sessions fork latest --at 4\n  \
                        patter sessions rm 20261115-1930\n  \
                        patter sessions redact --older-than 90d --dry-run\n  \
                        patter sessions backup sessions-monday.db")]
pub(crate) struct Sessions {
    #[command(subcommand)]
    action: Option<Action>,

    /// Maximum number of sessions to list
    #[arg(long, default_value = "20", value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    limit: NonZeroU32,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    /// List as JSON
    #[arg(long, hide = true, conflicts_with = "format")]
    json: bool,

    #[command(flatten)]
    store: StoreOption,
}

#[derive(Subcommand)]
enum Action {
    /// Show a conversation, with the number of each message
    Show {
        /// Session
        session: String,
        /// Show full tool results and arguments
        #[arg(long)]
        full: bool,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Export a session as Markdown, JSON, patterns in gram, a recording for `patter replay`, or spans of a trace
    Export {
        /// Session
        session: String,
        #[command(flatten)]
        format: FormatOption<ExportFormat>,
        /// Write to this file instead of stdout
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Start a new session with the first messages of another
    Fork {
        /// Session
        session: String,
        /// Number of messages to copy; by default all
        #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
        at: Option<NonZeroU32>,
        /// Id of the new session
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Delete sessions permanently
    Rm {
        /// Sessions
        #[arg(required = true)]
        sessions: Vec<String>,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Remove the contents of sessions permanently, and keep their shape
    ///
    /// What people and models said, arguments and results of calls, reasoning, attachments and errors are replaced by
    /// `[redacted]`. Runs, calls with the names of their tools, times, tokens, costs and ends stay. This cannot be undone, and the
    /// sessions cannot be continued, forked or compared. Sessions that are in use, or have an unfinished run, are not changed.
    Redact {
        /// Sessions
        #[arg(required_unless_present = "older_than")]
        sessions: Vec<String>,
        /// All that have not changed for this time: 90d, 12h
        #[arg(long, value_name = "TIME", value_parser = parse_age, conflicts_with = "sessions")]
        older_than: Option<Duration>,
        /// Only list them
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Copy all sessions to a new file, while they are in use
    ///
    /// The copy is a session store of its own, as of one moment: `--store FILE` uses it. Copying `sessions.db` itself is not
    /// enough, because the latest entries are in `sessions.db-wal`.
    Backup {
        /// File to create
        file: PathBuf,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Anything else, such as an id without a subcommand
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

impl Command for Sessions {
    fn error_format(&self) -> ErrorFormat {
        match &self.action {
            None | Some(Action::Unknown(_)) => self.list_format().error_format(),
            Some(
                Action::Show { format, .. }
                | Action::Fork { format, .. }
                | Action::Rm { format, .. }
                | Action::Redact { format, .. }
                | Action::Backup { format, .. },
            ) => self.or_own(format).error_format(),
            Some(Action::Export { format, .. }) => format.format.error_format(),
        }
    }

    fn run(&self) -> CommandResult {
        if let Some(Action::Unknown(words)) = &self.action {
            return Err(unknown_subcommand(words.first().map(String::as_str).unwrap_or_default()));
        }
        let OpenStore { runtime, store } = self.store.open_existing()?;
        let store = &*store;
        match &self.action {
            None | Some(Action::Unknown(_)) => {
                let limit = self.limit.get() as usize;
                let mut sessions = runtime.block_on(store.list(limit.max(RECENT_SESSIONS)))?;
                sessions.retain(|session| !session.is_experiment());
                sessions.truncate(limit);
                self.list(&sessions)?;
            }
            Some(Action::Show { session, full, format }) => {
                let (stored, log) = runtime.block_on(read(store, session))?;
                match self.or_own(format) {
                    DataFormat::Text => ui::print(&show(&stored.summary, &log, *full))?,
                    DataFormat::Json => ui::print(&format!("{:#}\n", document(&stored, &log)))?,
                }
            }
            Some(Action::Export { session, format, output }) => {
                let (mut stored, log) = runtime.block_on(read(store, session))?;
                if matches!(format.format, ExportFormat::Recording) {
                    let with_media = with_media(store, &stored.summary.id, stored.entries);
                    stored.entries = runtime.block_on(with_media).map_err(SessionError::from)?;
                }
                export(&stored, &log, format.format, output.as_ref())?;
            }
            Some(Action::Fork { session, at, id, format }) => {
                let id = runtime.block_on(fork(store, session, *at, id.as_deref()))?;
                match self.or_own(format) {
                    DataFormat::Text => ui::print(&format!("{id}\n"))?,
                    DataFormat::Json => ui::print(&format!("{:#}\n", json!({"id": id.as_str()})))?,
                }
            }
            Some(Action::Rm { sessions, format }) => {
                let removed = runtime.block_on(remove(store, sessions))?;
                if self.or_own(format) == DataFormat::Json {
                    let removed: Vec<_> = removed.iter().map(SessionId::as_str).collect();
                    ui::print(&format!("{:#}\n", json!({"removed": removed})))?;
                }
            }
            Some(Action::Redact { sessions, older_than, dry_run, format }) => {
                let redaction = runtime.block_on(redact::redact(store, sessions, *older_than, *dry_run))?;
                redaction.show(self.or_own(format))?;
            }
            Some(Action::Backup { file, format }) => {
                runtime.block_on(store.back_up(file))?;
                let file = file.display().to_string();
                match self.or_own(format) {
                    DataFormat::Text => ui::status(&format!("copied all sessions to `{file}`"))?,
                    DataFormat::Json => ui::print(&format!("{:#}\n", json!({"file": file})))?,
                }
            }
        }
        Ok(Outcome::Success)
    }
}

impl Sessions {
    fn list_format(&self) -> DataFormat {
        if self.json { DataFormat::Json } else { self.format.format }
    }

    /// Returns the format of a subcommand, which may also be given before it.
    fn or_own(&self, format: &FormatOption<DataFormat>) -> DataFormat {
        if format.format == DataFormat::Json { DataFormat::Json } else { self.list_format() }
    }

    fn list(&self, sessions: &[SessionSummary]) -> io::Result<()> {
        if self.list_format() == DataFormat::Json {
            return ui::print(&format!("{:#}\n", Json::Array(sessions.iter().map(summary_json).collect())));
        }
        if sessions.is_empty() {
            return ui::status("no sessions yet; start one with `patter run`");
        }
        let rows = sessions.iter().map(|session| {
            let age = ui::format_age(now_ms().saturating_sub(session.changed_ms));
            let id = session.id.as_str().to_owned();
            [id, age, state(session).to_owned(), session.agent.clone(), short(&session.title)]
        });
        ui::print(&listing(&COLUMNS, &rows.collect::<Vec<_>>(), ui::line_width()))
    }
}

const COLUMNS: [Column; 5] = [
    Column { name: "SESSION", align: Align::Left, max: usize::MAX },
    Column { name: "CHANGED", align: Align::Right, max: usize::MAX },
    Column { name: "STATE", align: Align::Left, max: usize::MAX },
    Column { name: "AGENT", align: Align::Left, max: 20 },
    Column { name: "TITLE", align: Align::Left, max: usize::MAX },
];

/// Returns the error of a word that is not a subcommand: a misspelt one, or a session.
fn unknown_subcommand(word: &str) -> CommandError {
    let hint = match nearest(word, ["show", "export", "fork", "rm", "redact", "backup"]) {
        Some(name) => format!("did you mean `patter sessions {name}`?"),
        None => {
            format!("show a session with `patter sessions show {word}`; `patter sessions --help` lists the subcommands")
        }
    };
    CommandError::usage(format!("`patter sessions` has no subcommand `{word}`")).with_hint(hint)
}

async fn read(store: &dyn Store, text: &str) -> Result<(StoredSession, Log), CommandError> {
    let id = store::find(store, text).await?;
    let stored = store.read(&id).await?;
    if stored.summary.is_experiment() {
        let error = CommandError::failure(format!("`{id}` is an experiment, not a conversation"));
        return Err(error.with_hint(format!("report it with `patter experiments {id}`")));
    }
    match Log::read(&stored.entries) {
        Ok(log) => Ok((stored, log)),
        Err(error) => Err(CommandError::failure(format!("the session `{id}` is damaged: {error}"))),
    }
}

async fn remove(store: &dyn Store, sessions: &[String]) -> Result<Vec<SessionId>, CommandError> {
    // All are found before any is removed, so that a typo removes nothing.
    let mut ids = Vec::new();
    for text in sessions {
        let id = store::find(store, text).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for id in &ids {
        store.remove(id).await?;
        ui::status(&format!("removed {id}"))?;
    }
    Ok(ids)
}

async fn fork(
    store: &dyn Store,
    text: &str,
    at: Option<NonZeroU32>,
    id: Option<&str>,
) -> Result<SessionId, CommandError> {
    let (stored, log) = read(store, text).await?;
    let from = stored.summary.id.clone();
    if log.redacted_at().is_some() {
        return Err(SessionError::Redacted(from).into());
    }
    let count = log.conversation().len();
    let wanted = at.map_or(count, |at| at.get() as usize);
    if wanted > count {
        let message = format!("session `{from}` has no message {wanted}: its conversation has {count}");
        return Err(CommandError::failure(message).with_hint(format!("`patter sessions show {from}` numbers them")));
    }
    let id = match id {
        Some(id) => SessionId::parse(id).map_err(StoreError::from)?,
        None => SessionId::new(now_ms()),
    };
    let entries = fork_log(&log, &from, wanted);
    let messages = log.conversation().range(0..wanted).cloned().collect();
    let contents = store::read_attachments(store, &from, Some(&messages)).await?;
    let new = NewSession::new(id.clone(), &stored.summary.agent, &stored.summary.title).forked_from(from);
    let new = new.with_attachments(contents);
    store.create(new.with_entries(entries, SessionState::Idle), now_ms()).await?;
    Ok(id)
}

fn show(summary: &SessionSummary, log: &Log, full: bool) -> String {
    let shorten = |text: &str| if full { text.to_owned() } else { short(text) };
    let mut out = format!("{DIM}session {}, agent {}{DIM:#}\n", summary.id, summary.agent);
    if let Some(from) = &summary.forked_from {
        let _ = writeln!(out, "{DIM}forked from {from}{DIM:#}");
    }
    if let Some(at) = log.redacted_at() {
        let age = ui::format_age(now_ms().saturating_sub(at));
        let _ = writeln!(out, "{DIM}its contents were removed {age} ago{DIM:#}");
    }
    for (index, message) in log.conversation().iter().enumerate() {
        let number = format!("{DIM}{:>3}{DIM:#}", index + 1);
        match message {
            Message::User { text, attachments } => {
                let _ = writeln!(out, "\n{number}  > {}", readable(text, attachments));
            }
            Message::Assistant { text, calls, .. } => {
                if !text.is_empty() || calls.is_empty() {
                    let _ = writeln!(out, "{number}  {text}");
                }
                for call in calls {
                    let _ = writeln!(out, "{number}  → {} {}", call.tool, shorten(&call.arguments));
                }
            }
            Message::Compacted { summary, kept_from: 0, .. } if summary.is_empty() => {
                let _ = writeln!(out, "{number}  {DIM}results of tools before this are sent shortened{DIM:#}");
            }
            Message::Compacted { summary, kept_from, .. } => {
                let shown = shorten(summary);
                let _ =
                    writeln!(out, "{number}  {DIM}the first {kept_from} messages are no longer sent: {shown}{DIM:#}");
            }
            Message::Tool { tool, outcome, .. } => {
                let _ = writeln!(out, "{number}  ← {} {}", tool, shorten(&outcome.text()));
            }
        }
        if let Some(why) = incompleteness(log, index) {
            let _ = writeln!(out, "     {CAUTION}incomplete: {why}{CAUTION:#}");
        }
    }
    match (log.open_run(), log.turns().last()) {
        (Some(_), _) => out.push_str("\nthe last run has not finished; continue it with `patter resume`\n"),
        (None, Some(turn)) => match &turn.outcome {
            run::RunOutcome::Answer { .. } => {}
            run::RunOutcome::Failed(failure) => {
                let _ = writeln!(out, "\nthe last run failed: {}", failure.message);
            }
            run::RunOutcome::Cancelled => out.push_str("\nthe last run was stopped\n"),
        },
        (None, None) => {}
    }
    out
}

/// Returns why a message is only a part of an answer, if it is.
fn incompleteness(log: &Log, message: usize) -> Option<String> {
    let turns = log.turns();
    let position = turns.iter().rposition(|turn| turn.begin <= message)?;
    let end = turns.get(position + 1).map_or(log.conversation().len(), |next| next.begin);
    let is_last = message + 1 == end && log.open_run().is_none();
    let is_answer =
        matches!(log.conversation().get(message)?, Message::Assistant { calls, .. } if calls.is_empty()) && is_last;
    match &turns.get(position)?.outcome {
        _ if !is_answer => None,
        run::RunOutcome::Answer { finish, .. } => finish.incompleteness(),
        // Other failures follow a whole reply.
        run::RunOutcome::Failed(failure) if !matches!(failure.kind, FailureKind::Model | FailureKind::Deadline) => None,
        run::RunOutcome::Failed(_) | run::RunOutcome::Cancelled => Some("the reply was interrupted".to_owned()),
    }
}
