//! Files as a revision has them.

use crate::diagnostics;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of a revision, in a folder that goes away with it.
pub(super) struct Revision {
    _folder: tempfile::TempDir,
    /// Where the files are now.
    tree: PathBuf,
    /// Where they are in the repository.
    top: PathBuf,
}

impl Revision {
    /// Puts the files of a revision of the repository around a file into a folder. The repository stays as it is, its index
    /// too. Says why where it cannot.
    pub(super) fn checkout(revision: &str, file: &Path) -> io::Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let (index, tree) = (folder.path().join("index"), folder.path().join("tree"));
        let prefix = format!("--prefix={}/", tree.display());
        let steps = || {
            let top = PathBuf::from(git(around(file), &index, &["rev-parse", "--show-toplevel"])?);
            git(&top, &index, &["read-tree", revision])?;
            git(&top, &index, &["checkout-index", "--all", &prefix])?;
            top.canonicalize().map_err(|error| error.to_string())
        };
        match steps() {
            Ok(top) => Ok(Some(Self { _folder: folder, tree, top })),
            Err(message) => {
                let message = message.lines().next().unwrap_or("git failed").to_owned();
                diagnostics::error(&format!("the revision `{revision}` cannot be read: {message}"), None)?;
                Ok(None)
            }
        }
    }

    /// Returns where a file of the repository is in the revision; others are where they are.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        // A file that is not there any more may still be in the revision.
        let folder =
            || around(path).canonicalize().ok().map(|folder| folder.join(path.file_name().unwrap_or_default()));
        let Some(full) = path.canonicalize().ok().or_else(folder) else { return path.to_owned() };
        full.strip_prefix(&self.top).map_or_else(|_| path.to_owned(), |path| self.tree.join(path))
    }
}

/// Returns the folder of a file.
fn around(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn git(folder: &Path, index: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).env("GIT_INDEX_FILE", index);
    let output = command.output().map_err(|error| format!("cannot run `git`: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
