//! `patter new`: creates a project.

use super::Command;
use crate::error::{CommandError, CommandResult, Outcome};
use crate::file::unwritable;
use crate::ui;
use clap::Args;
use patter::project::{Config, Environment, Project, Tools, TrustStore};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Create a working project: an agent, a toolbox and a README
///
/// Creates the folder NAME; without a name the files go into the current folder. Existing files are never overwritten.
#[derive(Args)]
#[command(after_help = "Examples:\n  patter new greeter\n  mkdir greeter && cd greeter && patter new")]
pub(crate) struct New {
    /// Name of the project and of its folder
    name: Option<String>,
}

/// The files of a new project. `{name}` is replaced by the name of the project.
const FILES: &[(&str, &str)] = &[
    ("patter.toml", include_str!("new/patter.toml")),
    ("agents/hello.gram", include_str!("new/hello.gram")),
    ("tools/example.gram", include_str!("new/example.gram")),
    (".gitignore", include_str!("new/gitignore")),
    ("README.md", include_str!("new/README.md")),
];

const MAX_NAME_LENGTH: usize = 64;

impl Command for New {
    fn run(&self) -> CommandResult {
        let (folder, name) = match &self.name {
            Some(name) if !is_name(name) => {
                let hint = "use letters, digits, `-`, `_` and `.`, and start with a letter or a digit";
                return Err(CommandError::usage(format!("`{name}` is not a valid project name")).with_hint(hint));
            }
            Some(name) => (PathBuf::from(name), name.clone()),
            None => (PathBuf::new(), current_name()),
        };
        if folder.symlink_metadata().is_ok() {
            let hint = match folder.is_dir() {
                true => format!("choose another name, or create the project inside it: `cd {name} && patter new`"),
                false => "choose another name".to_owned(),
            };
            return Err(CommandError::failure(format!("`{name}` already exists")).with_hint(hint));
        }
        if let Some((file, _)) = FILES.iter().find(|(file, _)| is_taken(&folder, file)) {
            let error = CommandError::failure(format!("`{file}` already exists; no files were written"));
            return Err(error.with_hint("start in an empty folder, or name a new one: `patter new NAME`"));
        }
        for (file, text) in FILES {
            let path = folder.join(file);
            write(&path, &text.replace("{name}", &name)).map_err(|error| unwritable(&path, &error))?;
            ui::status(&format!("created {}", path.display()))?;
        }
        trust_own(&folder)?;
        let enter = if folder.as_os_str().is_empty() { String::new() } else { format!("  cd {name}\n") };
        ui::status(&format!(
            "\nNext:\n{enter}  patter check\n  patter run agents/hello.gram \"Hello! My name is Ada.\" --model demo\n  \
             patter chat agents/hello.gram --model demo"
        ))?;
        Ok(Outcome::Success)
    }
}

/// Trusts what the created files define, since the user asked for them. Other files in the folder are not trusted.
fn trust_own(folder: &Path) -> Result<(), CommandError> {
    let root = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let grams = FILES.iter().filter(|(file, _)| Path::new(file).extension().is_some_and(|ending| ending == "gram"));
    let project = Project::read(grams.copied());
    let tools = Tools::read(&project, Some(root), &Config::default(), &Environment::default())?;
    match TrustStore::of_user() {
        Some(store) => Ok(store.add(root, tools.definitions())?),
        None => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Returns the name of the current folder.
fn current_name() -> String {
    let folder = std::env::current_dir().ok();
    let name = folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "A project".to_owned())
}

/// Returns whether something exists where a file or its folder would go.
fn is_taken(folder: &Path, file: &str) -> bool {
    let path = folder.join(file);
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    path.symlink_metadata().is_ok() || above.is_some_and(|above| above.symlink_metadata().is_ok() && !above.is_dir())
}

/// Writes a new file, and creates the folders above it.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}
