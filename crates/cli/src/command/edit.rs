//! `patter edit`: changes everything that a query finds.

use super::Command;
use super::query::parse_query;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::file::{Input, check_readable, replace_file, unreadable, unwritable};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::ui::{self, Excerpts, Limit};
use clap::Args;
use patter::edit::{ChangedFile, DeclarationEdit, DeclarationEditError};
use patter::gram::Dialect;
use patter::project::{Config, File, LoadedProject, Project, ProjectCheck, find_root, find_root_of};
use patter::query::{Answer, AnswerCell, Limits, PROJECT_SCHEMA, Paths, ProjectGraph, Query};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Change all agents or tools that a query finds
///
/// The first variable of the query is changed, or the one that --of names: properties are set or removed, and elements
/// added or removed. Everything else is preserved, comments included. By default, the changes are only shown; --write
/// makes them. Files with errors are not changed, and neither is anything if there would be errors afterwards.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter edit '(a:Agent)-[:served_by]->(:Model { name: \"OpenAI/gpt-4o\" })' --set model=OpenAI/gpt-5\n  \
                        patter edit '(a:Agent) [:Not | (a { maxCost: _ })]' --set maxCost=0.5 --write\n  \
                        patter edit '(a:Agent)-[:calls]->(:Tool { name: \"mail/send\" })' --remove mail/send --add mail/draft")]
pub(crate) struct EditCommand {
    /// What to change, as for `patter query`
    #[arg(value_name = "PATTERN")]
    pattern: String,

    /// Files and folders
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// Variable of the query that is changed; by default the first
    #[arg(long, value_name = "VARIABLE")]
    of: Option<String>,

    /// Set a property; a value that is not a number, a boolean, a list or quoted is a text
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Remove a property
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,

    /// Add an element, a name or `[name:Tool {…} | …]`, unless there is one with that name
    #[arg(long, value_name = "ELEMENT")]
    add: Vec<String>,

    /// Remove the elements with a name
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,

    /// Change the files instead of showing what would change
    #[arg(long, conflicts_with = "diff")]
    write: bool,

    /// Show what would change as a unified diff, which is the default
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    format: FormatOption<DataFormat>,
}

impl Command for EditCommand {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let query = parse_query(&self.pattern, &PROJECT_SCHEMA, "")?;
        let column = self.column(&query)?;
        let edit = self.edit()?;
        let root = self.paths.first().map_or_else(find_root, |path| find_root_of(path));
        let config = Config::read(root.as_deref())?;
        let loaded = LoadedProject::read(&self.paths, root.as_deref(), Dialect::Patter)?;
        check_readable(&loaded.unreadable)?;
        let project = &loaded.project;
        let known = ProjectCheck::read(project, root.as_deref(), &config);
        let rules = config.permissions.rules()?;
        let findings = known.findings(project, &config);
        let graph = ProjectGraph { project, library: known.library(), rules: &rules, findings: &findings }.build();
        let answer = Answer::new(&graph, &query, Limits::default(), Paths::Skip)
            .map_err(|stop| CommandError::failure(stop.to_string()).with_hint(stop.hint()))?;
        let mut places = Vec::new();
        let mut elsewhere = Vec::new();
        for row in &answer.rows {
            let Some(AnswerCell::Vertex(vertex)) = row.cells.get(column) else { continue };
            match vertex.place.filter(|place| loaded.selected.contains(&place.file)) {
                Some(place) => places.push(place),
                None if !elsewhere.contains(&vertex.name) => elsewhere.push(vertex.name.clone()),
                None => {}
            }
        }
        let changed = known.edit(project, &edit, places).map_err(|error| edit_error(project, &error))?;
        self.report(project, &changed)?;
        if !elsewhere.is_empty() {
            let names = ui::short(&elsewhere.join(", "));
            ui::warning(&format!("not declared in these files, and not changed: {names}"))?;
        }
        Ok(Outcome::Success)
    }
}

impl EditCommand {
    /// Returns the column of the variable that is changed.
    fn column(&self, query: &Query) -> Result<usize, CommandError> {
        let names: Vec<_> = query.columns().collect();
        match &self.of {
            None if names.is_empty() => Err(CommandError::usage("the query has no variable to change")
                .with_hint("name what to change, as in `(a:Agent)`")),
            None => Ok(0),
            Some(of) => names.iter().position(|name| name == of).ok_or_else(|| {
                CommandError::usage(format!("the query has no variable `{of}`"))
                    .with_hint(format!("its variables are {}", names.join(", ")))
            }),
        }
    }

    fn edit(&self) -> Result<DeclarationEdit, CommandError> {
        let invalid = |error: DeclarationEditError| CommandError::usage(error.to_string());
        let mut edit = DeclarationEdit { unset: self.unset.clone(), remove: self.remove.clone(), ..Default::default() };
        self.set.iter().try_for_each(|assignment| edit.set(assignment)).map_err(invalid)?;
        self.add.iter().try_for_each(|element| edit.add(element)).map_err(invalid)?;
        if edit.is_empty() {
            let error = CommandError::usage("there is nothing to change");
            return Err(error.with_hint("pass --set, --unset, --add or --remove"));
        }
        Ok(edit)
    }

    /// Writes or shows what changes.
    fn report(&self, project: &Project, changed: &[ChangedFile]) -> Result<(), CommandError> {
        let mut files = Vec::new();
        for change in changed {
            let Some(file) = project.files().get(change.file) else { continue };
            match (self.write, self.format.format) {
                (true, _) => write_change(file, change)?,
                (false, DataFormat::Text) => {
                    ui::print(&ui::unified_diff(&file.path, "changed", file.tree.source(), &change.text))?;
                }
                (false, DataFormat::Json) => {}
            }
            files.push(json!({"file": file.path, "declarations": change.declarations}));
        }
        let declarations = changed.iter().map(|change| change.declarations).sum();
        match self.format.format {
            DataFormat::Json => {
                ui::print(&format!("{:#}\n", json!({"version": 1, "written": self.write, "files": files})))?;
            }
            DataFormat::Text if changed.is_empty() => ui::status("nothing changes")?,
            DataFormat::Text => {
                let counts = [ui::plural(declarations, "declaration"), ui::plural(changed.len(), "file")].join(" in ");
                ui::status(&match self.write {
                    true => format!("changed {counts}"),
                    false => format!("{counts} would change; --write changes them"),
                })?;
            }
        }
        Ok(())
    }
}

/// Writes a file, unless somebody else changed it in the meantime.
fn write_change(file: &File, change: &ChangedFile) -> Result<(), CommandError> {
    let path = Path::new(&file.path);
    let now = std::fs::read(path).map_err(|error| unreadable(&Input::Path(path.to_owned()), &error))?;
    if now != file.tree.to_bytes() {
        let error = CommandError::failure(format!("`{}` changed while it was being edited", file.path));
        return Err(error.with_hint("run the command again"));
    }
    replace_file(path, &change.text).map_err(|error| unwritable(path, &error))
}

fn edit_error(project: &Project, error: &DeclarationEditError) -> CommandError {
    match error {
        DeclarationEditError::Invalid(_) | DeclarationEditError::Rejected { .. } => {
            CommandError::failure(error.to_string())
        }
        DeclarationEditError::Broken(_) => {
            CommandError::failure(error.to_string()).with_hint("run `patter check` for details")
        }
        DeclarationEditError::NewErrors { project: after, findings } => {
            let file = findings.first().map_or(0, |finding| finding.file);
            let found = findings.iter().filter(|finding| finding.file == file);
            let diagnostics = found.map(|finding| finding.diagnostic.clone()).collect();
            let source = after.files().get(file).map_or("", |file| file.tree.source());
            let path = project.files().get(file).map_or("", |file| file.path.as_str());
            CommandError::failure(error.to_string()).with_excerpts(Excerpts::new(
                diagnostics,
                source,
                path,
                Limit::default(),
            ))
        }
    }
}
