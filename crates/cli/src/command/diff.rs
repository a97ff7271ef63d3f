//! `patter diff`: compares two versions of agents and tools by meaning.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::file::check_readable;
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::ui;
use crate::ui::style::{BAD, DIM, GOOD, Style};
use clap::Args;
use patter::diff::{Change, ChangeLocation, Judgement, diff};
use patter::gram::{Diagnostic, Dialect};
use patter::project::{LoadedProject, Project, diff_settings};
use serde_json::{Value as Json, json};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Compare two versions of agents and tools by meaning
///
/// Each change is breaking (something that worked may fail, or may do what it could not do before), compatible or
/// cosmetic. Exits with 1 if a change is breaking. Of two folders, what patter.toml permits is compared too.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter diff old.gram new.gram\n  \
                        patter diff agents.v1 agents --format json\n\n\
                        As a driver of git diff:\n  \
                        echo '*.gram diff=patter' >> .gitattributes\n  \
                        git config diff.patter.command 'patter diff --git'")]
pub(crate) struct Diff {
    /// Old and new version: two files or two folders
    #[arg(value_name = "OLD NEW", num_args = 1.., required = true)]
    versions: Vec<PathBuf>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    /// Accept the arguments of a git diff driver, and exit with 0
    #[arg(long)]
    git: bool,
}

impl Command for Diff {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        // Git passes: path, old file, old hash, old mode, new file, new hash, new mode.
        let (old, new, title) = match (self.git, self.versions.as_slice()) {
            (true, [path, old, _, _, new, ..]) => (old, new, Some(path)),
            (false, [old, new]) => (old, new, None),
            _ => {
                let hint = if self.git { "git passes seven arguments" } else { "name two files, or two folders" };
                return Err(CommandError::usage("two versions are required").with_hint(hint));
            }
        };
        let before = read(old)?;
        let after = read(new)?;
        let mut changes = diff(&before, &after);
        if old.is_dir() && new.is_dir() {
            changes.extend(diff_settings(old, new)?);
        }
        match self.format.format {
            DataFormat::Text => {
                let title = title.map_or_else(String::new, |path| format!("patter diff {}\n", path.display()));
                ui::print(&(title + &text(&changes)))?;
            }
            DataFormat::Json => ui::print(&format!("{:#}\n", to_json(&changes)))?,
        }
        let is_breaking = changes.iter().any(|change| change.judgement == Judgement::Breaking);
        // Whether a new version with errors is compatible is unknown.
        let is_broken = after.files().iter().any(|file| file.diagnostics.iter().any(Diagnostic::is_error));
        Ok(Outcome::from_findings((is_breaking || is_broken) && !self.git))
    }
}

/// Reads a version. A file with errors is compared as far as it can be parsed. Git passes `/dev/null` for no file.
fn read(path: &Path) -> Result<Project, CommandError> {
    let loaded = LoadedProject::read(&[path.to_owned()], None, Dialect::Patter)?;
    check_readable(&loaded.unreadable)?;
    for file in loaded.project.files() {
        let errors = file.diagnostics.iter().filter(|found| found.is_error()).count();
        if let Some(errors) = ui::nonzero(errors, "error") {
            ui::status(&format!("{} has {errors}; what cannot be parsed is not compared", file.path))?;
        }
    }
    Ok(loaded.project)
}

fn text(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "no changes\n".to_owned();
    }
    let mut out = String::new();
    for change in changes {
        let style = match change.judgement {
            Judgement::Breaking => BAD.bold(),
            Judgement::Compatible => GOOD,
            Judgement::Cosmetic => DIM,
        };
        let place = change.new.as_ref().or(change.old.as_ref());
        let place = place.map_or_else(String::new, |place| format!("  {DIM}{}{DIM:#}", format_place(place)));
        let judgement = change.judgement.name();
        let _ = writeln!(out, "{style}{judgement:<10}{style:#}  {change}{place}");
        if let Some((old, new)) = &change.texts {
            for line in word_diff(old, new).lines() {
                let _ = writeln!(out, "              {line}");
            }
        }
    }
    let count = |judgement| changes.iter().filter(|change| change.judgement == judgement).count();
    let counts = [Judgement::Breaking, Judgement::Compatible, Judgement::Cosmetic]
        .map(|judgement| (count(judgement), judgement))
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, judgement)| format!("{count} {}", judgement.name()));
    let _ = writeln!(out, "{}", counts.collect::<Vec<_>>().join(", "));
    out
}

/// Merges both versions of a text into one, with removed and added words marked.
fn word_diff(old: &str, new: &str) -> String {
    const REMOVED: Style = BAD;
    const ADDED: Style = GOOD;
    let mut out = String::new();
    for change in TextDiff::from_words(old, new).iter_all_changes() {
        let text = change.value();
        let is_blank = text.trim().is_empty();
        match change.tag() {
            ChangeTag::Equal => out.push_str(text),
            ChangeTag::Insert if is_blank => out.push_str(text),
            ChangeTag::Delete if is_blank => {}
            ChangeTag::Insert => {
                let _ = write!(out, "{ADDED}{{+{text}+}}{ADDED:#}");
            }
            ChangeTag::Delete => {
                let _ = write!(out, "{REMOVED}[-{text}-]{REMOVED:#}");
            }
        }
    }
    // Adjacent changes become one mark.
    out.replace(&format!("+}}{ADDED:#} {ADDED}{{+"), " ").replace(&format!("-]{REMOVED:#} {REMOVED}[-"), " ")
}

fn to_json(changes: &[Change]) -> Json {
    let place = |place: &ChangeLocation| json!({ "file": place.file, "line": place.line, "column": place.column });
    let list: Vec<_> = changes
        .iter()
        .map(|change| {
            json!({
                "judgement": change.judgement.name(),
                "subject": change.subject,
                "what": change.description,
                "old": change.old.as_ref().map(place),
                "new": change.new.as_ref().map(place),
                "texts": change.texts.as_ref().map(|(old, new)| json!({ "old": old, "new": new })),
            })
        })
        .collect();
    let worst = changes.iter().map(|change| change.judgement).max().map(Judgement::name);
    json!({ "version": 1, "worst": worst, "changes": list })
}

fn format_place(place: &ChangeLocation) -> String {
    format!("{}:{}:{}", place.file, place.line, place.column)
}
