//! Files that change during a conversation: they are used after the person agreed.

use super::Conversation;
use crate::error::CommandError;
use crate::setup::{definition_line, remember_trust};
use crate::ui;
use crate::ui::style::{BAD, DIM, GOOD};
use patter::live::ProjectChanges;
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::sync::Arc;

/// The maximum number of lines that describe changes.
const MAX_LINES: usize = 40;

impl Conversation {
    /// Asks whether to use changed files. Where nobody can be asked, the conversation continues with the version it has.
    pub(super) fn settle_changes(&mut self) -> Result<(), CommandError> {
        let project = Arc::clone(&self.open.agents);
        let Some(changes) = project.changes()? else { return Ok(()) };
        self.screen.note(&describe(&changes))?;
        if !self.is_interactive {
            project.decline(changes);
            self.note(
                "nobody can be asked, so the version from before is used; start the chat again to use the new one",
            )?;
            return Ok(());
        }
        if self.ask(&[('y', "use the new version"), ('n', "keep the version from before")]) == Some('y') {
            remember_trust(project.root(), changes.definitions())?;
            let accepting = self.runtime.block_on(self.begin_turn().run_until_cancelled(project.accept(changes)));
            let report = accepting.ok_or_else(CommandError::interrupted)??;
            for warning in &report.warnings {
                self.note(warning)?;
            }
            for problem in &report.problems {
                CommandError::from(problem).print_problem()?;
            }
        } else {
            project.decline(changes);
        }
        Ok(())
    }
}

/// Describes what changed: files, declarations with their texts, and what would be started.
fn describe(changes: &ProjectChanges) -> String {
    let files = changes.files().map(|(path, change)| format!("{path} {}", change.name()));
    let mut text = format!("{}:", files.collect::<Vec<_>>().join(", "));
    let mut lines = Vec::new();
    for change in changes.changes() {
        lines.push(format!("  {change}"));
        if let Some((old, new)) = &change.texts {
            lines.extend(changed_lines(old, new));
        }
    }
    let shown = lines.len().min(MAX_LINES);
    let hidden = lines.len() - shown;
    lines.truncate(shown);
    if hidden > 0 {
        lines.push(format!("  {DIM}… and {}{DIM:#}", ui::plural(hidden, "more line")));
    }
    for line in lines {
        let _ = write!(text, "\n{line}");
    }
    // All of these are shown, however many there are.
    for definition in changes.definitions() {
        let _ = write!(text, "\n{}", definition_line(definition));
    }
    text
}

fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(old, new);
    let lines = diff.iter_all_changes().filter_map(|change| {
        let line = change.value().trim_end();
        match change.tag() {
            ChangeTag::Equal => None,
            ChangeTag::Delete => Some(format!("    {BAD}- {line}{BAD:#}")),
            ChangeTag::Insert => Some(format!("    {GOOD}+ {line}{GOOD:#}")),
        }
    });
    lines.collect()
}
