//! Findings of the check, and the files they are in.

use crate::error::CommandError;
use crate::file::{Input, check_readable, unreadable};
use crate::ui;
use patter::gram::Dialect;
use patter::project::{Finding, LoadedProject, Project, find_root};
use patter::rule;
use std::collections::HashSet;
use std::path::Path;

/// Reads a file as the first of its project. Errors in it are mentioned on stderr.
pub(crate) fn read_file(path: &Path) -> Result<Project, CommandError> {
    let root = find_root();
    let loaded = LoadedProject::read(&[path.to_owned()], root.as_deref(), Dialect::Patter)?;
    if !loaded.selected.contains(&0) {
        check_readable(&loaded.unreadable)?;
    }
    for (path, error) in &loaded.unreadable {
        unreadable(&Input::Path(path.clone()), error).print_problem()?;
    }
    let diagnostics = loaded.project.files().first().map_or(&[][..], |file| &file.diagnostics);
    let errors = diagnostics.iter().filter(|found| found.is_error()).count();
    if let Some(errors) = ui::nonzero(errors, "error") {
        ui::status(&format!("{} has {errors}; run `patter check` for details", path.display()))?;
    }
    Ok(loaded.project)
}

/// Adds the declarations that nothing implements, in place of the weaker finding that they are not declared.
pub(crate) fn add_unbound(findings: &mut Vec<Finding>, unbound: Vec<Finding>) {
    let places: HashSet<_> = unbound.iter().map(|other| (other.file, other.diagnostic.span)).collect();
    findings.retain(|finding| {
        finding.diagnostic.code != rule::UNDEFINED_REFERENCE.code
            || !places.contains(&(finding.file, finding.diagnostic.span))
    });
    findings.extend(unbound);
    findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start));
}
