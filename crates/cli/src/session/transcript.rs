//! Stored sessions as documents.

use patter::message::attachment::readable;
use patter::message::conversation::{Conversation, Message};
use patter::session::Log;
use patter::store::{SessionId, SessionState, SessionSummary};
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// Returns the metadata of a session as JSON.
pub(crate) fn summary_json(session: &SessionSummary) -> Json {
    json!({
        "id": session.id.as_str(),
        "agent": session.agent,
        "title": session.title,
        "created_ms": session.created_ms,
        "changed_ms": session.changed_ms,
        "entries": session.entries,
        "state": state(session),
        "forked_from": session.forked_from.as_ref().map(SessionId::as_str),
    })
}

/// Returns the name of the state of a session.
pub(crate) fn state(session: &SessionSummary) -> &'static str {
    match session.state {
        SessionState::Running => "open",
        SessionState::Waiting => "waiting",
        SessionState::Idle => "idle",
    }
}

/// Returns the log of a session that starts with the first messages of another.
pub(crate) fn fork_log(log: &Log, from: &SessionId, messages: usize) -> Vec<String> {
    log.fork(from.as_str(), messages).iter().map(|entry| json!(entry).to_string()).collect()
}

/// Returns a conversation as Markdown, with the first message as its title.
pub(crate) fn markdown(agent: &str, conversation: &Conversation) -> String {
    let title = conversation.iter().find_map(|message| match message {
        Message::User { text, .. } => text.trim().lines().next(),
        _ => None,
    });
    let mut out = format!("# {}\n", title.unwrap_or("Conversation"));
    for message in conversation {
        let _ = match message {
            Message::User { text, attachments } => write!(out, "\n## You\n\n{}\n", readable(text, attachments)),
            Message::Assistant { text, calls, .. } => {
                let calls = calls.iter().map(|call| fenced(&format!("→ {} {}", call.tool, call.arguments)));
                let text = if text.is_empty() { String::new() } else { format!("\n{text}\n") };
                write!(out, "\n## {agent}\n{text}{}", calls.collect::<String>())
            }
            Message::Compacted { summary, kept_from, .. } => {
                write!(out, "\n{}\n", compaction_note(*kept_from, summary))
            }
            Message::Tool { tool, outcome, .. } => out.write_str(&fenced(&format!("← {tool} {}", outcome.text()))),
        };
    }
    out
}

/// Describes what is no longer sent to the model from a point of a conversation on, in Markdown.
fn compaction_note(left_out: usize, summary: &str) -> String {
    match (left_out, summary) {
        (0, _) => "*From here on, earlier results of tools are sent shortened.*".to_owned(),
        (count, "") => format!("*From here on, the first {count} messages are no longer sent to the model.*"),
        (count, summary) => {
            format!(
                "*From here on, a summary of the first {count} messages is sent to the model instead:*\n\n{summary}"
            )
        }
    }
}

/// Returns a text as a code block, with a fence that the text does not contain.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("\n{fence}\n{text}\n{fence}\n")
}
