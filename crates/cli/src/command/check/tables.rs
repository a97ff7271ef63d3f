//! Cases in JSON Lines and CSV files, which are not gram.

use crate::error::CommandError;
use crate::file::{Input, Source};
use patter::case::{self, CaseFormat};
use patter::check::check_cases;
use patter::project::Project;
use std::path::{Path, PathBuf};

/// Files with cases that are not gram, and what is wrong with them.
#[derive(Default)]
pub(super) struct CaseTables {
    pub(super) files: usize,
    pub(super) cases: usize,
    pub(super) problems: Vec<CommandError>,
}

impl CaseTables {
    /// Returns whether a path is such a file, by its extension.
    pub(super) fn is_table(path: &Path) -> bool {
        let format = CaseFormat::from_path(&path.display().to_string());
        matches!(format, Some(CaseFormat::JsonLines | CaseFormat::Csv)) && !path.is_dir()
    }

    /// Reads and checks files.
    pub(super) fn check(paths: &[PathBuf], project: &Project) -> Self {
        let mut tables = Self::default();
        for path in paths {
            let name = path.display().to_string();
            let Some(format) = CaseFormat::from_path(&name) else { continue };
            match Source::read(&Input::Path(path.clone())) {
                Ok(source) => {
                    let (cases, mut problems) = case::read(&name, format, &source.bytes);
                    problems.extend(check_cases(project, &cases));
                    tables.files += 1;
                    tables.cases += cases.len();
                    tables.problems.extend(problems.into_iter().map(CommandError::from));
                }
                Err(error) => tables.problems.push(error),
            }
        }
        tables
    }
}
