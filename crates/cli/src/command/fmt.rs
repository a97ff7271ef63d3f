//! `patter fmt`: brings gram files into the one canonical layout.

use crate::diagnostics::{self, Limit};
use crate::source::{Input, Source};
use crate::{Outcome, print};
use anstyle::{AnsiColor, Style};
use clap::Args;
use patter::gram::{self, Diagnostic, Dialect};
use patter::project::gram_files;
use similar::{ChangeTag, TextDiff};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

/// Format gram files in place
///
/// Meaning, comments and fenced text stay as they are. Files with errors are reported and not touched. Folders are
/// searched for *.gram; hidden files and what .gitignore names are passed over.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter fmt                 format all *.gram files here and below\n  \
                        patter fmt --check         for CI: list files that would change, exit 1 if there are any\n  \
                        patter fmt --diff agents   show what would change\n  \
                        patter fmt - < a.gram      from stdin to stdout")]
pub(crate) struct Fmt {
    /// Files and folders, or - for stdin to stdout
    #[arg(value_name = "PATH", default_value = ".")]
    inputs: Vec<Input>,

    /// Write nothing; list the files that would change and exit 1 if there are any
    #[arg(long)]
    check: bool,

    /// Write nothing; show what would change as a unified diff
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    limit: Limit,
}

/// What has become of the files.
#[derive(Default)]
struct Tally {
    changed: usize,
    unchanged: usize,
    failed: usize,
}

impl Fmt {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let mut tally = Tally::default();
        for input in &self.inputs {
            match input {
                Input::Stdin => self.format_one(input, &mut tally)?,
                Input::Path(path) => self.format_path(path, &mut tally)?,
            }
        }
        if !self.inputs.contains(&Input::Stdin) {
            self.summarize(&tally)?;
        }
        let would_change = self.check && tally.changed > 0;
        Ok(if tally.failed > 0 || would_change { Outcome::Failure } else { Outcome::Success })
    }

    fn format_path(&self, path: &Path, tally: &mut Tally) -> io::Result<()> {
        let mut unreadable = Vec::new();
        let files = gram_files(path, &mut unreadable);
        for (folder, error) in &unreadable {
            tally.failed += 1;
            diagnostics::unreadable(&Input::Path(folder.clone()), error)?;
        }
        if files.is_empty() && unreadable.is_empty() {
            tally.failed += 1;
            let message = format!("there are no *.gram files in `{}`", path.display());
            return diagnostics::error(&message, Some("name a file or another folder"));
        }
        for file in files {
            self.format_one(&Input::Path(file), tally)?;
        }
        Ok(())
    }

    fn format_one(&self, input: &Input, tally: &mut Tally) -> io::Result<()> {
        let source = match Source::read(input) {
            Ok(source) => source,
            Err(error) => {
                tally.failed += 1;
                return diagnostics::unreadable(input, &error).map(drop);
            }
        };
        let (old, new) = match formatted(&source) {
            Ok(texts) => texts,
            Err((found, text)) => {
                tally.failed += 1;
                return diagnostics::show(&found, &text, &source.name, self.limit);
            }
        };
        let is_changed = old != new;
        if let (Input::Path(path), true, false) = (input, is_changed, self.check || self.diff)
            && let Err(error) = replace(path, &new)
        {
            tally.failed += 1;
            return diagnostics::error(&format!("cannot write `{}`: {error}", source.name), None);
        }
        if is_changed {
            tally.changed += 1;
        } else {
            tally.unchanged += 1;
        }
        if self.diff && is_changed {
            print(&diff(&source.name, old, &new))?;
        }
        match input {
            _ if self.diff => Ok(()),
            _ if self.check && is_changed => print(&format!("{}\n", source.name)),
            _ if self.check => Ok(()),
            Input::Stdin => print(&new),
            Input::Path(_) => Ok(()),
        }
    }

    fn summarize(&self, tally: &Tally) -> io::Result<()> {
        let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let verb = if self.check || self.diff { "would change" } else { "formatted" };
        let mut parts = Vec::new();
        if tally.changed > 0 {
            parts.push(match verb {
                "formatted" => format!("formatted {}", files(tally.changed)),
                _ => format!("{} {verb}", files(tally.changed)),
            });
        }
        if tally.unchanged > 0 {
            parts.push(format!("{} unchanged", files(tally.unchanged)));
        }
        if tally.failed > 0 {
            parts.push(format!("{} failed", tally.failed));
        }
        diagnostics::say(&parts.join(", "))
    }
}

/// Returns a text before and after, or what is wrong with it.
fn formatted(source: &Source) -> Result<(&str, String), (Vec<Diagnostic>, String)> {
    let not_formatted = || {
        let (tree, found) = gram::parse_bytes(&source.bytes, Dialect::Patter);
        (found, tree.source().to_owned())
    };
    let Ok(old) = str::from_utf8(&source.bytes) else { return Err(not_formatted()) };
    match gram::format(old) {
        Ok(new) => Ok((old, new)),
        Err(_) => Err(not_formatted()),
    }
}

/// Replaces a file in one step, so that it is never half written. Permissions and links stay.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize()?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".patter-fmt-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(path.metadata()?.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// Returns a unified diff with three lines of context.
fn diff(name: &str, old: &str, new: &str) -> String {
    const REMOVED: Style = AnsiColor::Red.on_default();
    const ADDED: Style = AnsiColor::Green.on_default();
    const PLACE: Style = AnsiColor::Cyan.on_default();
    let diff = TextDiff::from_lines(old, new);
    let mut out = format!("--- {name}\n+++ {name} (formatted)\n");
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let _ = writeln!(out, "{PLACE}{}{PLACE:#}", hunk.header());
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', REMOVED),
                ChangeTag::Insert => ('+', ADDED),
                ChangeTag::Equal => (' ', Style::new()),
            };
            let line = change.value();
            let text = line.strip_suffix('\n').unwrap_or(line);
            let _ = writeln!(out, "{style}{sign}{text}{style:#}");
            if change.missing_newline() {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
    out
}
