//! Differences between texts.

use super::style::{ACCENT, BAD, GOOD, PLAIN};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;

/// Returns a unified diff with three lines of context. `state` says what the new text is.
pub(crate) fn unified_diff(name: &str, state: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut out = format!("--- {name}\n+++ {name} ({state})\n");
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let _ = writeln!(out, "{ACCENT}{}{ACCENT:#}", hunk.header());
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', BAD),
                ChangeTag::Insert => ('+', GOOD),
                ChangeTag::Equal => (' ', PLAIN),
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
