//! `patter fmt`: formats gram files.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::file::{Input, Source, replace_file, unreadable, unwritable};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::place::Place;
use crate::ui::{self, Excerpts, Limit};
use clap::Args;
use patter::gram::{self, Diagnostic, Dialect};
use patter::project::gram_files;
use serde_json::{Value as Json, json};
use std::io;
use std::path::Path;

/// Format gram files in place
///
/// Meaning, comments and fenced text are preserved. Files with errors are reported and not changed. Folders are searched
/// for *.gram; hidden files and files ignored by .gitignore are skipped.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter fmt                 format all *.gram files in this folder and below\n  \
                        patter fmt --check         for CI: list files that would change, and exit 1 if there are any\n  \
                        patter fmt --diff agents   show what would change\n  \
                        patter fmt - < a.gram      format stdin to stdout")]
pub(crate) struct Fmt {
    /// Files and folders, or - to format stdin to stdout
    #[arg(value_name = "PATH", default_value = ".")]
    inputs: Vec<Input>,

    /// Write nothing; list the files that would change, and exit 1 if there are any
    #[arg(long)]
    check: bool,

    /// Write nothing; show what would change as a unified diff
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    #[command(flatten)]
    limit: Limit,
}

/// The result for one file.
struct FileReport {
    name: String,
    state: FileState,
}

enum FileState {
    Changed,
    Unchanged,
    Failed(CommandError),
}

impl Command for Fmt {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        if self.is_json() && (self.diff || self.inputs.contains(&Input::Stdin)) {
            return Err(CommandError::usage(
                "`--format json` reports on files, and goes neither with --diff nor with -",
            ));
        }
        let mut reports = Vec::new();
        for input in &self.inputs {
            match input {
                Input::Stdin => self.format_one(input, &mut reports)?,
                Input::Path(path) => self.format_path(path, &mut reports)?,
            }
        }
        let count = |is_state: fn(&FileState) -> bool| reports.iter().filter(|report| is_state(&report.state)).count();
        let changed = count(|state| matches!(state, FileState::Changed));
        let failed = count(|state| matches!(state, FileState::Failed(_)));
        if self.is_json() {
            let files: Vec<_> = reports.iter().map(FileReport::to_json).collect();
            ui::print(&format!("{:#}\n", json!({"version": 1, "written": !self.check, "files": files})))?;
        } else if !self.inputs.contains(&Input::Stdin) {
            self.summarize(changed, reports.len() - changed - failed, failed)?;
        }
        Ok(Outcome::from_findings(failed > 0 || (self.check && changed > 0)))
    }
}

impl Fmt {
    fn is_json(&self) -> bool {
        self.format.format == DataFormat::Json
    }

    fn format_path(&self, path: &Path, reports: &mut Vec<FileReport>) -> io::Result<()> {
        let mut errors = Vec::new();
        let files = gram_files(path, &mut errors);
        for (folder, error) in &errors {
            let input = Input::Path(folder.clone());
            reports.push(FileReport::failed(&input.to_string(), unreadable(&input, error))?);
        }
        if files.is_empty() && errors.is_empty() {
            let name = path.display().to_string();
            let error = CommandError::failure(format!("no *.gram files in `{name}`"));
            reports.push(FileReport::failed(&name, error.with_hint("name a file or another folder"))?);
        }
        files.into_iter().try_for_each(|file| self.format_one(&Input::Path(file), reports))
    }

    fn format_one(&self, input: &Input, reports: &mut Vec<FileReport>) -> io::Result<()> {
        let name = input.to_string();
        match self.format_input(input) {
            Ok(state) => reports.push(FileReport { name, state }),
            Err(error) => reports.push(FileReport::failed(&name, error)?),
        }
        Ok(())
    }

    fn format_input(&self, input: &Input) -> Result<FileState, CommandError> {
        let source = Source::read(input)?;
        let (old, new) = formatted(&source).map_err(|(found, text)| {
            let place = Place::file(&source.name);
            let error = CommandError::failure(format!("`{}` was not formatted because it has errors", source.name))
                .with_place(place);
            error.with_excerpts(Excerpts::new(found, &text, &source.name, self.limit))
        })?;
        let is_changed = old != new;
        if let (Input::Path(path), true, false) = (input, is_changed, self.check || self.diff) {
            replace_file(path, &new).map_err(|error| unwritable(path, &error))?;
        }
        if self.diff && is_changed {
            ui::print(&ui::unified_diff(&source.name, "formatted", old, &new))?;
        }
        match input {
            _ if self.diff || self.is_json() => {}
            _ if self.check && is_changed => ui::print(&format!("{}\n", source.name))?,
            _ if self.check => {}
            Input::Stdin => ui::print(&new)?,
            Input::Path(_) => {}
        }
        Ok(if is_changed { FileState::Changed } else { FileState::Unchanged })
    }

    fn summarize(&self, changed: usize, unchanged: usize, failed: usize) -> io::Result<()> {
        let changed = ui::nonzero(changed, "file").map(|files| match self.check || self.diff {
            true => format!("{files} would change"),
            false => format!("formatted {files}"),
        });
        let unchanged = ui::nonzero(unchanged, "file").map(|files| format!("{files} unchanged"));
        let failed = (failed > 0).then(|| format!("{failed} failed"));
        ui::status(&[changed, unchanged, failed].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl FileReport {
    /// Returns the report of a file that cannot be formatted, after printing why.
    fn failed(name: &str, mut error: CommandError) -> io::Result<Self> {
        error.print_problem()?;
        Ok(Self { name: name.to_owned(), state: FileState::Failed(error) })
    }

    fn to_json(&self) -> Json {
        match &self.state {
            FileState::Changed => json!({"file": self.name, "state": "changed"}),
            FileState::Unchanged => json!({"file": self.name, "state": "unchanged"}),
            FileState::Failed(error) => json!({"file": self.name, "state": "failed", "error": error.to_json()}),
        }
    }
}

/// Returns a text before and after formatting, or its errors.
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
