//! `patter new`: starts a project.

use crate::{Outcome, diagnostics};
use clap::Args;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Start a project that works at once: an agent, a toolbox and a README
///
/// Makes the folder NAME; without a name the files go into the current folder. Nothing is ever overwritten.
#[derive(Args)]
#[command(after_help = "Examples:\n  patter new greeter\n  mkdir greeter && cd greeter && patter new")]
pub(crate) struct New {
    /// Name of the project, and of its folder
    name: Option<String>,
}

/// The files of a new project. `{name}` stands for the name of the project.
const FILES: &[(&str, &str)] = &[
    ("patter.toml", include_str!("new/patter.toml")),
    ("agents/hello.gram", include_str!("new/hello.gram")),
    ("tools/example.gram", include_str!("new/example.gram")),
    (".gitignore", include_str!("new/gitignore")),
    ("README.md", include_str!("new/README.md")),
];

/// How long a name may be.
const LONGEST_NAME: usize = 64;

impl New {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let (folder, name) = match self.name {
            Some(name) if !is_name(&name) => {
                let hint = "use letters, digits, `-`, `_` and `.`, and start with a letter or a digit";
                diagnostics::error(&format!("`{name}` cannot be the name of a project"), Some(hint))?;
                return Ok(Outcome::Usage);
            }
            Some(name) => (PathBuf::from(&name), name),
            None => (PathBuf::new(), current_name()),
        };
        if folder.symlink_metadata().is_ok() {
            let hint = format!("choose another name, or run `patter new` in it: `cd {name} && patter new`");
            return fail(&format!("`{name}` exists already"), Some(&hint));
        }
        let taken: Vec<_> = FILES.iter().map(|(file, _)| *file).filter(|file| is_taken(&folder, file)).collect();
        if let [first, ..] = taken.as_slice() {
            let message = format!("`{first}` is here already, and nothing was written");
            return fail(&message, Some("start in an empty folder, or name a new one: `patter new NAME`"));
        }
        for (file, text) in FILES {
            let path = folder.join(file);
            if let Err(error) = write(&path, &text.replace("{name}", &name)) {
                return fail(&format!("cannot write `{}`: {error}", path.display()), None);
            }
            diagnostics::say(&format!("made {}", path.display()))?;
        }
        let enter = if folder.as_os_str().is_empty() { String::new() } else { format!("  cd {name}\n") };
        diagnostics::say(&format!(
            "\nNow try:\n{enter}  patter check\n  patter show agents/hello.gram\n  patter call sayHello '{{\"personName\":\"Ada\"}}'"
        ))?;
        Ok(Outcome::Success)
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Returns the name of the current folder.
fn current_name() -> String {
    let folder = std::env::current_dir().ok();
    let name = folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "A project".to_owned())
}

/// Tells whether something is where a file would go, or where its folder would.
fn is_taken(folder: &Path, file: &str) -> bool {
    let path = folder.join(file);
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    path.symlink_metadata().is_ok() || above.is_some_and(|above| above.symlink_metadata().is_ok() && !above.is_dir())
}

/// Writes a file that is not there, and the folders above it.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

fn fail(message: &str, hint: Option<&str>) -> io::Result<Outcome> {
    diagnostics::error(message, hint)?;
    Ok(Outcome::Failure)
}
