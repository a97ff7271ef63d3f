//! Reads cases.

use crate::diagnostics;
use crate::source::{Input, Source};
use patter::case::{self, Case, CaseFormat};
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

/// Reads the cases of files that have one of the tags, or all where there is none. Says why where it cannot.
pub(super) fn read(paths: &[PathBuf], tags: &[String]) -> io::Result<Option<Vec<Case>>> {
    let (mut cases, mut ids) = (Vec::new(), HashSet::new());
    for path in paths {
        let name = path.display().to_string();
        let Some(format) = CaseFormat::of(&name) else {
            let endings: Vec<_> = CaseFormat::ENDINGS.iter().map(|ending| format!("*.{ending}")).collect();
            let hint = format!("cases are in {}", endings.join(", "));
            diagnostics::error(&format!("`{name}` has not the ending of a file with cases"), Some(&hint))?;
            return Ok(None);
        };
        let source = match Source::read(&Input::Path(path.clone())) {
            Ok(source) => source,
            Err(error) => return diagnostics::unreadable(&Input::Path(path.clone()), &error).map(|_| None),
        };
        let (read, problems) = case::read(&name, format, &source.bytes);
        for problem in &problems {
            diagnostics::error(&problem.to_string(), problem.hint.as_deref())?;
        }
        // A case that cannot be read would be missing without a word in all that comes of the others.
        if !problems.is_empty() {
            return Ok(None);
        }
        for case in read {
            if !ids.insert(case.id.clone()) {
                let message = format!("{}: there is a case `{}` in another file", case.place, case.id);
                diagnostics::error(&message, Some("give one of the two another name"))?;
                return Ok(None);
            }
            cases.push(case);
        }
    }
    if !tags.is_empty() {
        cases.retain(|case| case.tags.iter().any(|tag| tags.contains(tag)));
        if cases.is_empty() {
            let tags: Vec<_> = tags.iter().map(|tag| format!("`{tag}`")).collect();
            diagnostics::error(&format!("no case has the tag {}", tags.join(" or ")), None)?;
            return Ok(None);
        }
    }
    Ok(Some(cases))
}
