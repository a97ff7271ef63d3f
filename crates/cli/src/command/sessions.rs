//! `patter sessions`: lists conversations, shows them, and takes them elsewhere.

use crate::source::{Existing, write_whole};
use crate::talk::{DIM, StoreOption, Stores, short};
use crate::{Outcome, diagnostics, print, print_as_is};
use clap::{Args, Subcommand, ValueEnum};
use patter::drive::now;
use patter::message::conversation::Message;
use patter::run;
use patter::session::{Entry, Log, LogError, Recording};
use patter::store::{self, NewSession, SessionId, SessionState, Store, StoreError, Stored, Summary};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// List conversations, show them, and take them elsewhere
///
/// Conversations are kept in the store of the project, `.patter/sessions.db` if nothing else is said. A session is named
/// by its id, by the beginning of it, or as `latest`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter sessions\n  \
                        patter sessions show latest\n  \
                        patter sessions export 20261115-1930 --format recording -o bug.jsonl\n  \
                        patter sessions fork latest --at 4\n  \
                        patter sessions rm 20261115-1930")]
pub(crate) struct Sessions {
    #[command(subcommand)]
    action: Option<Action>,

    /// How many are listed
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,

    /// List as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    store: StoreOption,
}

#[derive(Subcommand)]
enum Action {
    /// Show a conversation, with each message's number
    Show {
        /// Session
        session: String,
        /// Show results of tools, and arguments, whole
        #[arg(long)]
        full: bool,
    },
    /// Write a conversation as Markdown, JSON, or a recording for `patter replay`
    Export {
        /// Session
        session: String,
        /// In which form
        #[arg(long, value_enum, default_value_t = Form::Markdown)]
        format: Form,
        /// Into this file instead of stdout
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Begin a new session with the first messages of another
    Fork {
        /// Session
        session: String,
        /// How many messages the new one begins with; without it all
        #[arg(long, value_name = "N")]
        at: Option<usize>,
        /// Id of the new session
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Remove conversations, for good
    Rm {
        /// Sessions
        #[arg(required = true)]
        sessions: Vec<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    Markdown,
    Json,
    Recording,
}

/// Among how many sessions those are looked for that are no experiments.
const LISTED: usize = 1000;

impl Sessions {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let Some(Stores { runtime, store }) = self.store.open()? else { return Ok(Outcome::Failure) };
        let store = &*store;
        let done = match &self.action {
            None => runtime.block_on(store.list(self.limit.max(LISTED))).map(|mut sessions| {
                sessions.retain(|session| !session.is_experiment());
                sessions.truncate(self.limit);
                listed(&sessions, self.json)
            }),
            Some(Action::Show { session, full }) => runtime.block_on(read(store, session)).map(|stored| match stored {
                (stored, Ok(log)) => print(&shown(&stored.summary, &log, *full)).map(|()| Outcome::Success),
                (stored, Err(error)) => damaged(&stored, &error),
            }),
            Some(Action::Export { session, format, output }) => {
                runtime.block_on(read(store, session)).map(|stored| match stored {
                    (stored, Ok(log)) => export(&stored, &log, *format, output.as_ref()),
                    (stored, Err(error)) => damaged(&stored, &error),
                })
            }
            Some(Action::Fork { session, at, id }) => runtime.block_on(fork(store, session, *at, id.as_deref())),
            Some(Action::Rm { sessions }) => runtime.block_on(remove(store, sessions)),
        };
        match done {
            Ok(outcome) => outcome,
            Err(error) => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                Ok(Outcome::Failure)
            }
        }
    }
}

type Read = (Stored, Result<Log, LogError>);

async fn read(store: &dyn Store, text: &str) -> Result<Read, StoreError> {
    let id = store::find(store, text).await?;
    let stored = store.read(&id).await?;
    let log = Log::read(&stored.entries);
    Ok((stored, log))
}

fn damaged(stored: &Stored, error: &LogError) -> io::Result<Outcome> {
    diagnostics::error(&format!("the session `{}` is damaged: {error}", stored.summary.id), None)?;
    Ok(Outcome::Failure)
}

async fn remove(store: &dyn Store, sessions: &[String]) -> Result<io::Result<Outcome>, StoreError> {
    for text in sessions {
        let id = store::find(store, text).await?;
        store.remove(&id).await?;
        if let Err(error) = diagnostics::say(&format!("removed {id}")) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(Outcome::Success))
}

async fn fork(
    store: &dyn Store,
    text: &str,
    at: Option<usize>,
    id: Option<&str>,
) -> Result<io::Result<Outcome>, StoreError> {
    let (stored, log) = read(store, text).await?;
    let log = match log {
        Ok(log) => log,
        Err(error) => return Ok(damaged(&stored, &error)),
    };
    let count = log.conversation().len();
    let Some(messages) = log.conversation().get(..at.unwrap_or(count)) else {
        let message = format!("there is no message {}: the conversation has {count}", at.unwrap_or_default());
        return Ok(diagnostics::error(&message, Some("`patter sessions show` numbers them")).map(|()| Outcome::Failure));
    };
    let from = stored.summary.id.clone();
    let id = id.map_or_else(|| Ok(SessionId::new(now())), SessionId::parse)?;
    let forked = Entry::Forked { from: from.to_string(), messages: messages.to_vec() };
    let entries = log.source().map(|source| Entry::Opened { source: source.clone() }).into_iter().chain([forked]);
    let texts: Vec<_> = entries.map(|entry| json!(entry).to_string()).collect();
    let new = NewSession::new(id.clone(), &stored.summary.agent, &stored.summary.title).forked_from(from);
    store.create(new, now()).await?.append(&texts, SessionState::Idle, now()).await?;
    Ok(print(&format!("{id}\n")).map(|()| Outcome::Success))
}

fn listed(sessions: &[Summary], as_json: bool) -> io::Result<Outcome> {
    if as_json {
        print(&format!("{:#}\n", Json::Array(sessions.iter().map(summary_json).collect())))?;
        return Ok(Outcome::Success);
    }
    if sessions.is_empty() {
        diagnostics::say("there are no sessions yet; `patter run` begins one")?;
        return Ok(Outcome::Success);
    }
    let width = |part: fn(&Summary) -> usize| sessions.iter().map(part).max().unwrap_or(0);
    let ids = width(|session| session.id.as_str().len());
    let agents = width(|session| session.agent.chars().count());
    let mut text = String::new();
    for session in sessions {
        let state = if session.state == SessionState::Running { "open" } else { "    " };
        let age = ago(now().saturating_sub(session.changed_ms));
        let (id, agent, title) = (&session.id, diagnostics::visible(&session.agent), short(&session.title));
        let _ = writeln!(text, "{id:ids$}  {age:>8}  {state}  {agent:agents$}  {title}", id = id.as_str());
    }
    print(&text)?;
    Ok(Outcome::Success)
}

fn summary_json(session: &Summary) -> Json {
    json!({
        "id": session.id.as_str(),
        "agent": session.agent,
        "title": session.title,
        "created_ms": session.created_ms,
        "changed_ms": session.changed_ms,
        "entries": session.entries,
        "state": if session.state == SessionState::Running { "open" } else { "idle" },
        "forked_from": session.forked_from.as_ref().map(SessionId::as_str),
    })
}

/// Returns how long ago something was, in the greatest unit that fits.
pub(crate) fn ago(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn shown(summary: &Summary, log: &Log, full: bool) -> String {
    let cut = |text: &str| if full { diagnostics::visible(text) } else { short(text) };
    let mut text = format!("{DIM}session {}, agent {}{DIM:#}\n", summary.id, diagnostics::visible(&summary.agent));
    if let Some(from) = &summary.forked_from {
        let _ = writeln!(text, "{DIM}forked from {from}{DIM:#}");
    }
    for (index, message) in log.conversation().iter().enumerate() {
        let number = index + 1;
        match message {
            Message::User { text: said } => {
                let _ = writeln!(text, "\n{DIM}{number:>3}{DIM:#}  > {}", diagnostics::visible(said));
            }
            Message::Assistant { text: said, calls, .. } => {
                if !said.is_empty() || calls.is_empty() {
                    let _ = writeln!(text, "{DIM}{number:>3}{DIM:#}  {}", diagnostics::visible(said));
                }
                for call in calls {
                    let _ = writeln!(
                        text,
                        "{DIM}{number:>3}{DIM:#}  → {} {}",
                        diagnostics::visible(&call.tool),
                        cut(&call.arguments)
                    );
                }
            }
            Message::Tool { tool, outcome, .. } => {
                let _ = writeln!(
                    text,
                    "{DIM}{number:>3}{DIM:#}  ← {} {}",
                    diagnostics::visible(tool),
                    cut(&outcome.text())
                );
            }
        }
    }
    match (log.run(), log.turns().last()) {
        (Some(_), _) => text.push_str("\nthe last run has not ended; `patter resume` goes on with it\n"),
        (None, Some(turn)) => match &turn.outcome {
            run::RunOutcome::Answer { .. } => {}
            run::RunOutcome::Failed(failure) => {
                let _ = writeln!(text, "\nthe last run failed: {}", diagnostics::visible(&failure.message));
            }
            run::RunOutcome::Cancelled => text.push_str("\nthe last run was stopped\n"),
        },
        (None, None) => {}
    }
    text
}

fn export(stored: &Stored, log: &Log, form: Form, output: Option<&PathBuf>) -> io::Result<Outcome> {
    let text = match form {
        Form::Markdown => markdown(&stored.summary.agent, log.conversation()),
        Form::Json => {
            let mut document = summary_json(&stored.summary);
            if let Json::Object(fields) = &mut document {
                fields.insert("usage".to_owned(), json!(log.usage()));
                fields.insert("turns".to_owned(), json!(log.turns()));
                fields.insert("conversation".to_owned(), json!(log.conversation()));
            }
            format!("{document:#}\n")
        }
        Form::Recording => Recording::of_log(&stored.summary.id, &stored.entries),
    };
    match output {
        // A terminal obeys what it is sent; a file or a pipe gets the text as it is.
        None if io::stdout().is_terminal() => print(&diagnostics::visible(&text))?,
        None => print_as_is(&text)?,
        Some(path) => {
            if let Err(error) = write_whole(path, &text, Existing::Kept) {
                diagnostics::error(&format!("cannot write `{}`: {error}", path.display()), None)?;
                return Ok(Outcome::Failure);
            }
        }
    }
    Ok(Outcome::Success)
}

/// Returns a conversation for people to read elsewhere. What was said first is its title.
pub(crate) fn markdown(agent: &str, conversation: &[Message]) -> String {
    let title = conversation.iter().find_map(|message| match message {
        Message::User { text } => text.trim().lines().next(),
        _ => None,
    });
    let mut text = format!("# {}\n", title.unwrap_or("Conversation"));
    for message in conversation {
        let _ = match message {
            Message::User { text: said } => write!(text, "\n## You\n\n{said}\n"),
            Message::Assistant { text: said, calls, .. } => {
                let calls = calls.iter().map(|call| fenced(&format!("→ {} {}", call.tool, call.arguments)));
                let said = if said.is_empty() { String::new() } else { format!("\n{said}\n") };
                write!(text, "\n## {agent}\n{said}{}", calls.collect::<String>())
            }
            Message::Tool { tool, outcome, .. } => text.write_str(&fenced(&format!("← {tool} {}", outcome.text()))),
        };
    }
    text
}

/// Returns a text as a block that nothing in it can end.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("\n{fence}\n{text}\n{fence}\n")
}
