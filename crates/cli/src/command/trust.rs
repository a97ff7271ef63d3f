//! `patter trust`: agrees to what a project defines.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::experiment::read_cases;
use crate::file::{Input, check_readable, unreadable};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::setup::{definition_line, shown_folder};
use crate::ui;
use clap::Args;
use patter::case::CaseFormat;
use patter::gram::Dialect;
use patter::project::{
    Config, Definition, Environment, LoadError, LoadedProject, Project, Tools, TrustRecord, TrustStore,
    check_definitions, find_root_of,
};
use serde_json::{Value as Json, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Trust a project: let it run its commands, start its servers and send keys to the addresses it names
///
/// Prints what is trusted: the commands, MCP servers and addresses that patter.toml, gram files and .env define. It is
/// remembered by content, for this folder and this user, outside of the project. When a definition is added or changed,
/// commands that would use it ask again, or refuse to run where nobody can be asked.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter trust --list       what the project defines, and whether it is trusted\n  \
                        patter trust\n  \
                        patter trust . cases.jsonl  with the commands that these cases run\n  \
                        patter trust --revoke\n  \
                        patter trust --folders")]
pub(crate) struct Trust {
    /// Folder of the project, or files in it
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// List what the project defines, without trusting it; exits with 1 if something is not trusted
    #[arg(long, conflicts_with = "revoke")]
    list: bool,

    /// Stop trusting the project
    #[arg(long)]
    revoke: bool,

    /// List the folders in which something is trusted
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    folders: bool,

    #[command(flatten)]
    format: FormatOption<DataFormat>,
}

impl Command for Trust {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let store = TrustStore::of_user().ok_or_else(|| {
            let error = CommandError::failure("there is no folder to remember what is trusted");
            error.with_hint("set HOME, XDG_STATE_HOME or PATTER_TRUST_DIR")
        })?;
        if self.folders {
            return self.list_folders(&store);
        }
        // A folder that is gone may still be trusted; it is not part of the current project.
        let missing = self.paths.iter().find(|path| !path.exists());
        let root = match missing {
            Some(path) if !self.revoke => return Err(missing_path(path)),
            Some(path) => Some(path.clone()),
            None => self.paths.first().and_then(|path| find_root_of(path)),
        };
        let folder = root.as_deref().unwrap_or(Path::new("."));
        if self.revoke {
            let was_trusted = store.revoke(folder)?;
            return self.report_revoked(root.as_deref(), was_trusted);
        }
        let definitions = self.definitions(root.as_deref())?;
        let record = if self.list {
            store.read(folder)?
        } else {
            store.replace(folder, definitions.clone())?;
            store.read(folder)?
        };
        self.show(root.as_deref(), &record, &definitions)
    }
}

fn missing_path(path: &Path) -> CommandError {
    let error = unreadable(&Input::Path(path.to_owned()), &ErrorKind::NotFound.into());
    match error.hint() {
        Some(_) => error,
        None => error.with_hint("name the folder of a project, or leave it out for the project of the current folder"),
    }
}

impl Trust {
    /// Returns what the project and the named files define.
    fn definitions(&self, root: Option<&Path>) -> Result<Vec<Definition>, CommandError> {
        let config = Config::read(root)?;
        let environment = Environment::read(root)?;
        let is_table = |path: &PathBuf| {
            let format = CaseFormat::from_path(&path.display().to_string());
            matches!(format, Some(CaseFormat::JsonLines | CaseFormat::Csv)) && !path.is_dir()
        };
        let (tables, files): (Vec<_>, Vec<_>) = self.paths.iter().cloned().partition(is_table);
        let project = match LoadedProject::read(&files, root, Dialect::Patter) {
            Ok(loaded) => {
                check_readable(&loaded.unreadable)?;
                loaded.project
            }
            Err(LoadError::Empty(_)) => Project::read::<String, String>([]),
            Err(error) => return Err(error.into()),
        };
        let tools = Tools::read(&project, root, &config, &environment)?;
        let mut definitions = tools.definitions().to_vec();
        if !tables.is_empty() {
            definitions.extend(check_definitions(&read_cases(&tables, &[])?));
        }
        Ok(definitions)
    }

    fn show(&self, root: Option<&Path>, record: &TrustRecord, definitions: &[Definition]) -> CommandResult {
        let untrusted = record.untrusted(definitions);
        let state = |definition: &Definition| match untrusted.iter().find(|found| found.definition == definition) {
            None => "trusted",
            Some(found) if found.before.is_some() => "changed",
            Some(_) => "new",
        };
        let folder = shown_folder(root);
        match self.format.format {
            DataFormat::Json => {
                let definition = |definition: &Definition| {
                    let Definition { kind, name, detail, .. } = definition;
                    let mut shown =
                        json!({"kind": kind.name(), "name": name, "detail": detail, "state": state(definition)});
                    let found = untrusted.iter().find(|found| found.definition == definition);
                    if let (Some(before), Json::Object(fields)) = (found.and_then(|found| found.before), &mut shown) {
                        fields.insert("before".to_owned(), json!(before));
                    }
                    shown
                };
                let listed: Vec<_> = definitions.iter().map(definition).collect();
                let document =
                    json!({"version": 1, "root": folder, "trusted": untrusted.is_empty(), "definitions": listed});
                ui::print(&format!("{document:#}\n"))?;
            }
            DataFormat::Text => {
                for definition in definitions {
                    let note = match state(definition) {
                        "trusted" => String::new(),
                        other => format!("  ({other})"),
                    };
                    ui::print(&format!("{}{note}\n", definition_line(definition)))?;
                }
                let count = ui::plural(definitions.len(), "definition");
                ui::status(&match (definitions.len(), untrusted.len()) {
                    (0, _) => format!("{folder} defines nothing that needs trust"),
                    (_, 0) => format!("{folder} is trusted: {count}"),
                    (_, new) => format!("{folder} is not trusted: {new} of {count}; `patter trust` trusts it"),
                })?;
            }
        }
        Ok(Outcome::from_findings(!untrusted.is_empty()))
    }

    fn report_revoked(&self, root: Option<&Path>, was_trusted: bool) -> CommandResult {
        let folder = shown_folder(root);
        match self.format.format {
            DataFormat::Json => {
                let document = json!({"version": 1, "root": folder, "trusted": false, "revoked": was_trusted});
                ui::print(&format!("{document:#}\n"))?;
            }
            DataFormat::Text if was_trusted => ui::status(&format!("{folder} is no longer trusted"))?,
            DataFormat::Text => ui::status(&format!("{folder} was not trusted"))?,
        }
        Ok(Outcome::Success)
    }

    fn list_folders(&self, store: &TrustStore) -> CommandResult {
        let records = store.list()?;
        match self.format.format {
            DataFormat::Json => {
                let folder =
                    |record: &TrustRecord| json!({"root": record.root, "definitions": record.definitions.len()});
                let document = json!({"version": 1, "folders": records.iter().map(folder).collect::<Vec<_>>()});
                ui::print(&format!("{document:#}\n"))?;
            }
            DataFormat::Text if records.is_empty() => ui::status("no folder is trusted")?,
            DataFormat::Text => {
                for TrustRecord { root, definitions, .. } in &records {
                    ui::print(&format!("{}  {}\n", root.display(), ui::plural(definitions.len(), "definition")))?;
                }
            }
        }
        Ok(Outcome::Success)
    }
}
