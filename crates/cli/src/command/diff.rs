//! `patter diff`: what changed between two versions, and what that means.

use crate::source::Input;
use crate::{Outcome, diagnostics, print};
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use patter::diff::{Change, Judgement, Location, diff};
use patter::gram::{Diagnostic, Dialect};
use patter::project::{Loaded, Project};
use serde_json::{Value as Json, json};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Compare two versions of agents and tools by what they mean
///
/// Each change is judged: breaking (what worked may not work any more, or may do what it might not do before),
/// compatible, or cosmetic. Exits with 1 when a change is breaking.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter diff old.gram new.gram\n  \
                        patter diff agents.v1 agents --format json\n\n\
                        As a driver of git diff:\n  \
                        echo '*.gram diff=patter' >> .gitattributes\n  \
                        git config diff.patter.command 'patter diff --git'")]
pub(crate) struct Diff {
    /// The old version, and the new one: two files or two folders
    #[arg(value_name = "OLD NEW", num_args = 1.., required = true)]
    versions: Vec<PathBuf>,

    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Take the arguments that git gives a diff driver, and exit with 0
    #[arg(long)]
    git: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
}

impl Diff {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        // Git gives: path, old file, old hash, old mode, new file, new hash, new mode.
        let (old, new, title) = match (self.git, self.versions.as_slice()) {
            (true, [path, old, _, _, new, ..]) => (old, new, Some(path)),
            (false, [old, new]) => (old, new, None),
            _ => {
                let hint = if self.git { "git gives seven arguments" } else { "name two files, or two folders" };
                diagnostics::error("two versions are needed to compare", Some(hint))?;
                return Ok(Outcome::Usage);
            }
        };
        let (Some(before), Some(after)) = (read(old)?, read(new)?) else { return Ok(Outcome::Failure) };
        let changes = diff(&before, &after);
        match self.format {
            Format::Text => {
                let title = title.map_or_else(String::new, |path| format!("patter diff {}\n", path.display()));
                print(&(title + &text(&changes)))?;
            }
            Format::Json => print(&format!("{:#}\n", json_of(&changes)))?,
        }
        let is_breaking = changes.iter().any(|change| change.judgement == Judgement::Breaking);
        // A new version that cannot be read cannot be said to be compatible.
        let is_broken = after.files().iter().any(|file| file.diagnostics.iter().any(Diagnostic::is_error));
        Ok(if (is_breaking || is_broken) && !self.git { Outcome::Failure } else { Outcome::Success })
    }
}

/// Reads a version. A file that has mistakes is compared as far as it can be read, and git names none as `/dev/null`.
fn read(path: &Path) -> io::Result<Option<Project>> {
    let loaded = match Loaded::read(&[path.to_owned()], None, Dialect::Patter) {
        Ok(loaded) => loaded,
        Err(error) => return diagnostics::unloaded(&error).map(|_| None),
    };
    for (path, error) in &loaded.unreadable {
        diagnostics::unreadable(&Input::Path(path.clone()), error)?;
    }
    for file in loaded.project.files() {
        let errors = file.diagnostics.iter().filter(|found| found.is_error()).count();
        if let Some(errors) = diagnostics::counted(errors, "error") {
            diagnostics::say(&format!("{} has {errors}; what cannot be read is not compared", file.path))?;
        }
    }
    Ok(if loaded.unreadable.is_empty() { Some(loaded.project) } else { None })
}

fn text(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing has changed\n".to_owned();
    }
    let mut out = String::new();
    for change in changes {
        let style = match change.judgement {
            Judgement::Breaking => AnsiColor::Red.on_default().bold(),
            Judgement::Compatible => AnsiColor::Green.on_default(),
            Judgement::Cosmetic => Style::new().dimmed(),
        };
        let dim = Style::new().dimmed();
        let place = change
            .new
            .as_ref()
            .or(change.old.as_ref())
            .map_or_else(String::new, |place| format!("  {dim}{}{dim:#}", named(place)));
        let _ =
            writeln!(out, "{style}{:<10}{style:#}  {} {}{place}", change.judgement.word(), change.subject, change.what);
        if let Some((old, new)) = &change.texts {
            for line in words(old, new).lines() {
                let _ = writeln!(out, "              {line}");
            }
        }
    }
    let count = |judgement| changes.iter().filter(|change| change.judgement == judgement).count();
    let counts = [Judgement::Breaking, Judgement::Compatible, Judgement::Cosmetic]
        .map(|judgement| (count(judgement), judgement))
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, judgement)| format!("{count} {}", judgement.word()));
    let _ = writeln!(out, "{}", counts.collect::<Vec<_>>().join(", "));
    out
}

/// Writes both versions of a text as one, with what is gone and what is new marked.
fn words(old: &str, new: &str) -> String {
    const GONE: Style = AnsiColor::Red.on_default();
    const NEW: Style = AnsiColor::Green.on_default();
    let mut out = String::new();
    for change in TextDiff::from_words(old, new).iter_all_changes() {
        let text = change.value();
        let is_blank = text.trim().is_empty();
        match change.tag() {
            ChangeTag::Equal => out.push_str(text),
            ChangeTag::Insert if is_blank => out.push_str(text),
            ChangeTag::Delete if is_blank => {}
            ChangeTag::Insert => {
                let _ = write!(out, "{NEW}{{+{text}+}}{NEW:#}");
            }
            ChangeTag::Delete => {
                let _ = write!(out, "{GONE}[-{text}-]{GONE:#}");
            }
        }
    }
    // Neighbours are one mark.
    out.replace(&format!("+}}{NEW:#} {NEW}{{+"), " ").replace(&format!("-]{GONE:#} {GONE}[-"), " ")
}

fn json_of(changes: &[Change]) -> Json {
    let place = |place: &Location| json!({ "file": place.file, "line": place.line, "column": place.column });
    let list: Vec<_> = changes
        .iter()
        .map(|change| {
            json!({
                "judgement": change.judgement.word(),
                "subject": change.subject,
                "what": change.what,
                "old": change.old.as_ref().map(place),
                "new": change.new.as_ref().map(place),
                "texts": change.texts.as_ref().map(|(old, new)| json!({ "old": old, "new": new })),
            })
        })
        .collect();
    let worst = changes.iter().map(|change| change.judgement).max().map(Judgement::word);
    json!({ "version": 1, "worst": worst, "changes": list })
}

fn named(place: &Location) -> String {
    format!("{}:{}:{}", place.file, place.line, place.column)
}
