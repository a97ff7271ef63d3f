//! The formats that sessions are exported in.

use crate::error::{CommandError, ErrorFormat};
use crate::file::{Existing, unwritable, write_private};
use crate::format::OutputFormat;
use crate::session::{markdown, summary_json};
use crate::ui;
use clap::ValueEnum;
use patter::session::{Log, Recording, session_pattern};
use patter::store::StoredSession;
use patter::trace::SessionTrace;
use serde_json::{Map, Value as Json, json};
use std::io;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(super) enum ExportFormat {
    /// The conversation, for people
    #[default]
    #[value(alias = "text")]
    Markdown,
    /// Everything as one JSON document
    Json,
    /// The log, for `patter replay`
    Recording,
    /// Everything as a pattern, in the notation of agents
    Gram,
    /// The spans of a trace, as an OTLP request in protobuf
    Otlp,
    /// The spans of a trace, as an OTLP request in JSON
    OtlpJson,
}

impl OutputFormat for ExportFormat {
    const DEFAULT: &'static str = "markdown";

    fn error_format(self) -> ErrorFormat {
        match self {
            ExportFormat::Markdown
            | ExportFormat::Recording
            | ExportFormat::Gram
            | ExportFormat::Otlp
            | ExportFormat::OtlpJson => ErrorFormat::Text,
            ExportFormat::Json => ErrorFormat::Json,
        }
    }
}

/// Returns a session as JSON.
pub(super) fn document(stored: &StoredSession, log: &Log) -> Json {
    let mut document = summary_json(&stored.summary);
    if let Json::Object(fields) = &mut document {
        fields.insert("usage".to_owned(), json!(log.usage()));
        fields.insert("turns".to_owned(), json!(log.turns()));
        fields.insert("conversation".to_owned(), json!(log.conversation()));
    }
    document
}

/// Writes a session to a file, or to stdout.
pub(super) fn export(
    stored: &StoredSession,
    log: &Log,
    format: ExportFormat,
    output: Option<&PathBuf>,
) -> Result<(), CommandError> {
    let text = match format {
        ExportFormat::Markdown => markdown(&stored.summary.agent, log.conversation()),
        ExportFormat::Json => format!("{:#}\n", document(stored, log)),
        ExportFormat::Recording => Recording::from_log(&stored.summary.id, &stored.entries),
        ExportFormat::Gram => {
            let summary = summary_json(&stored.summary);
            session_pattern(stored.summary.id.as_str(), summary.as_object().unwrap_or(&Map::new()), log)
        }
        ExportFormat::OtlpJson => format!("{:#}\n", session_trace(stored)?.to_json()),
        ExportFormat::Otlp => return export_bytes(&session_trace(stored)?.to_protobuf(), output),
    };
    match output {
        None => ui::print(&text)?,
        Some(path) => write_private(path, &text, Existing::Keep).map_err(|error| unwritable(path, &error))?,
    }
    Ok(())
}

/// Returns the spans of a session, as if it had been traced.
fn session_trace(stored: &StoredSession) -> Result<SessionTrace, CommandError> {
    let id = stored.summary.id.as_str();
    SessionTrace::new(id, &stored.entries, |name| std::env::var(name).ok())
        .map_err(|error| CommandError::failure(format!("the session `{id}` is damaged: {error}")))
}

fn export_bytes(bytes: &[u8], output: Option<&PathBuf>) -> Result<(), CommandError> {
    match output {
        None => ui::print_bytes(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => CommandError::usage("protobuf cannot be shown at a terminal")
                .with_hint("write it to a file with --output, or use `--format otlp-json`"),
            _ => error.into(),
        }),
        Some(path) => write_private(path, bytes, Existing::Keep).map_err(|error| unwritable(path, &error)),
    }
}
