//! Reading cases.

use crate::error::CommandError;
use crate::file::{Input, Source};
use crate::place::Place;
use patter::case::{self, Case, CaseFormat};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

/// The maximum number of tags in a hint.
const MAX_TAGS: usize = 10;

/// Reads the cases of files that have one of the tags, or all if there are no tags.
pub(crate) fn read(paths: &[PathBuf], tags: &[String]) -> Result<Vec<Case>, CommandError> {
    let mut cases = Vec::new();
    let mut ids = HashSet::new();
    for path in paths {
        let name = path.display().to_string();
        let Some(format) = CaseFormat::from_path(&name) else {
            let endings: Vec<_> = CaseFormat::EXTENSIONS.iter().map(|ending| format!("*.{ending}")).collect();
            let error = CommandError::usage(format!("`{name}` is not a supported cases file"));
            return Err(error.with_hint(format!("use one of {}", endings.join(", "))));
        };
        let source = Source::read(&Input::Path(path.clone()))?;
        let (read, problems) = case::read(&name, format, &source.bytes);
        // Leaving out a malformed case would silently change the results.
        if !problems.is_empty() {
            let errors = problems.into_iter().map(CommandError::from).collect();
            return Err(CommandError::combine(format!("`{name}` has malformed cases"), errors));
        }
        for case in read {
            if !ids.insert(case.id.clone()) {
                let error = CommandError::failure(format!("another file also has a case `{}`", case.id));
                return Err(error.with_place(Place::parse(&case.location)).with_hint("rename one of them"));
            }
            cases.push(case);
        }
    }
    if !tags.is_empty() {
        let known: BTreeSet<_> = cases.iter().flat_map(|case| case.tags.clone()).collect();
        cases.retain(|case| case.tags.iter().any(|tag| tags.contains(tag)));
        if cases.is_empty() {
            let quoted = |tag: &String| format!("`{tag}`");
            let tags: Vec<_> = tags.iter().map(quoted).collect();
            let error = CommandError::failure(format!("no case has the tag {}", tags.join(" or ")));
            let known: Vec<_> = known.iter().take(MAX_TAGS).map(quoted).collect();
            return Err(error.with_hint(match known.as_slice() {
                [] => "the cases have no tags; omit --tag".to_owned(),
                _ => format!("their tags are {}", known.join(", ")),
            }));
        }
    }
    Ok(cases)
}
