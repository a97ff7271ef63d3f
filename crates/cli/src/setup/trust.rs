//! Trust in the project: what it defines is started only after the user has agreed to it.

use super::signal::until_stopped;
use crate::error::{CommandError, ErrorKind};
use crate::ui;
use crate::ui::style::{BOLD, DIM};
use patter::project::{CONFIG, Definition, TrustError, TrustRecord, TrustStore, Untrusted};
use patter::tool::CancellationToken;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tokio::runtime::Runtime;

/// The kind of error of a project that is not trusted, with an exit code of its own.
pub(crate) const UNTRUSTED: ErrorKind = ErrorKind::Named { name: "untrusted", code: 8 };

/// Whether `--trust` is given.
static GIVEN: OnceLock<bool> = OnceLock::new();

/// What a command does with a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// It describes tools. Nothing but MCP servers is started for that.
    Describe,
    /// It calls tools or models.
    Call,
}

/// Trusts every project, as `--trust` asks for.
pub(crate) fn set_trust(given: bool) {
    let _ = GIVEN.set(given);
}

/// Returns whether the user trusts every project: by option, or by a variable of the process. The file `.env` has no say.
pub(crate) fn is_trust_given() -> bool {
    let is_set = || std::env::var("PATTER_TRUST").is_ok_and(|value| matches!(value.as_str(), "1" | "true"));
    GIVEN.get().copied().unwrap_or(false) || is_set()
}

/// Makes sure that the user trusts what a project defines: asks at a terminal, and returns an error elsewhere.
pub(crate) fn require_trust<'d>(
    runtime: &Runtime,
    stop: &CancellationToken,
    root: Option<&Path>,
    definitions: impl IntoIterator<Item = &'d Definition>,
) -> Result<(), CommandError> {
    let definitions: Vec<_> = definitions.into_iter().collect();
    if definitions.is_empty() || is_trust_given() {
        return Ok(());
    }
    let folder = root.unwrap_or(Path::new("."));
    let store = TrustStore::of_user();
    let record = match &store {
        Some(store) => store.read(folder)?,
        None => TrustRecord::default(),
    };
    let untrusted = record.untrusted(definitions.iter().copied());
    if untrusted.is_empty() {
        return Ok(());
    }
    ui::status(&describe(root, &record, &untrusted))?;
    if !(io::stdin().is_terminal() && ui::is_stderr_terminal()) {
        return Err(refusal(&untrusted));
    }
    let question = ui::confirm("Trust it?".to_owned());
    if !until_stopped(runtime, stop, question).ok_or_else(CommandError::interrupted)? {
        return Err(refusal(&untrusted));
    }
    match store {
        Some(store) => store.add(folder, definitions)?,
        None => ui::warning("this cannot be remembered: neither HOME nor XDG_STATE_HOME is set")?,
    }
    Ok(())
}

/// Remembers that the user trusts definitions which were shown and accepted.
pub(crate) fn remember_trust(root: Option<&Path>, definitions: &[Definition]) -> Result<(), CommandError> {
    match TrustStore::of_user() {
        Some(store) if !definitions.is_empty() && !is_trust_given() => {
            Ok(store.add(root.unwrap_or(Path::new(".")), definitions)?)
        }
        _ => Ok(()),
    }
}

/// Returns why a command was not run. The definitions are on stderr already.
fn refusal(untrusted: &[Untrusted<'_>]) -> CommandError {
    let details = untrusted.iter().map(|found| CommandError::new(UNTRUSTED, found.to_string()).marked_printed());
    CommandError::new(UNTRUSTED, "the project is not trusted, so nothing was started")
        .with_hint("review these, then run `patter trust`; or pass --trust to trust them for one command")
        .with_details(details)
}

/// Describes what is not trusted, a line each.
fn describe(root: Option<&Path>, record: &TrustRecord, untrusted: &[Untrusted<'_>]) -> String {
    let folder = shown_folder(root);
    let head = match (root, record.definitions.is_empty()) {
        (Some(_), true) => format!("the project in {folder} needs your trust, because it defines:"),
        (None, true) => format!("files in {folder} need your trust, because they define:"),
        (_, false) => format!("what {folder} defines has changed since you trusted it:"),
    };
    let mut text = format!("{BOLD}{head}{BOLD:#}");
    for found in untrusted {
        let _ = write!(text, "\n{}", definition_line(found.definition));
        let note = match found.before {
            Some(before) if before != found.definition.detail => format!("before: {before}"),
            Some(_) => "changed".to_owned(),
            None => continue,
        };
        let _ = write!(text, "  {DIM}({}){DIM:#}", note.replace('\n', "\\n"));
    }
    text
}

/// Returns a line about a definition.
pub(crate) fn definition_line(definition: &Definition) -> String {
    let Definition { kind, name, detail, .. } = definition;
    let line = format!("  {:<8}  {name}  {detail}", kind.name());
    // Nothing is left out, and a line break does not start a line that looks like a definition.
    line.trim_end().replace('\n', "\\n")
}

/// Returns the full path of a project.
pub(crate) fn shown_folder(root: Option<&Path>) -> String {
    let folder = root.unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| PathBuf::from(folder)).display().to_string()
}

/// Trusts what a command of the user added to a project whose other definitions are trusted. Otherwise the user is asked
/// when the project is used.
pub(crate) fn extend_trust(
    root: Option<&Path>,
    present: &[Definition],
    added: &[Definition],
) -> Result<(), CommandError> {
    let Some(store) = TrustStore::of_user().filter(|_| !added.is_empty()) else { return Ok(()) };
    let folder = root.unwrap_or(Path::new("."));
    let record = store.read(folder)?;
    // Other files may send more to the same server, which is then a different definition.
    let added: Vec<_> = added.iter().filter(|definition| present.contains(definition)).collect();
    let others = present.iter().filter(|definition| !added.contains(definition));
    if added.is_empty() || !record.untrusted(others).is_empty() {
        return Ok(());
    }
    store.add(folder, added.iter().copied())?;
    let lines: Vec<_> = added.into_iter().map(definition_line).collect();
    ui::status(&format!("trusted, because you imported it:\n{}", lines.join("\n")))?;
    Ok(())
}

impl From<TrustError> for CommandError {
    fn from(error: TrustError) -> Self {
        let hint = error.hint();
        Self::new(UNTRUSTED, format!("cannot find out whether the project of this `{CONFIG}` is trusted: {error}"))
            .with_hint(hint)
    }
}
