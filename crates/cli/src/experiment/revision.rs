//! Files of a git revision.

use crate::error::CommandError;
use patter::os_error::describe;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files of a revision, in a temporary folder.
pub(super) struct Revision {
    _folder: tempfile::TempDir,
    /// The temporary folder.
    tree: PathBuf,
    /// The top folder of the repository.
    top: PathBuf,
}

impl Revision {
    /// Checks out a revision of the repository around a file into a temporary folder. Neither the work tree nor the index
    /// of the repository changes.
    pub(super) fn checkout(revision: &str, file: &Path) -> Result<Self, CommandError> {
        let folder = tempfile::tempdir()?;
        let tree = folder.path().join("tree");
        let prefix = format!("--prefix={}/", tree.display());
        let check_out = || {
            let there = around(file);
            let top = PathBuf::from(git(Some(there), &["rev-parse", "--show-toplevel"])?);
            let commit =
                git(Some(&top), &["rev-parse", "--verify", "--end-of-options", &format!("{revision}^{{tree}}")])?;
            let objects = git(Some(&top), &["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
            let format = git(Some(&top), &["rev-parse", "--show-object-format"])?;
            // The settings of a repository can run commands, for file systems and for filters of content, and a repository
            // may come from anywhere. So its files are read through another one, which has only the user's settings.
            let own = folder.path().join("git");
            let own_option = format!("--git-dir={}", own.display());
            let created = folder.path().display().to_string();
            let format = format!("--object-format={format}");
            git(None, &["-C", &created, "init", "--quiet", "--bare", "--template=", &format, "git"])?;
            std::fs::write(own.join("objects/info/alternates"), format!("{objects}\n"))
                .map_err(|error| describe(&error))?;
            std::fs::create_dir(&tree).map_err(|error| describe(&error))?;
            let work_tree = format!("--work-tree={}", tree.display());
            git(None, &[&own_option, &work_tree, "read-tree", &commit])?;
            git(None, &[&own_option, &work_tree, "checkout-index", "--all", &prefix])?;
            top.canonicalize().map_err(|error| error.to_string())
        };
        let top = check_out().map_err(|message: String| {
            let message = message.lines().next().unwrap_or("git failed").trim_start_matches("fatal: ");
            if message.starts_with("not a git repository") {
                let file = file.display();
                return CommandError::failure(format!("cannot read the revision `{revision}`: `{file}` is not in git"))
                    .with_hint("`git:` names a commit of the repository around the file; create one with `git init`");
            }
            CommandError::failure(format!("cannot read the revision `{revision}`: {message}"))
                .with_hint("name a commit, a branch or a tag, as in `git:HEAD~1`; `git log` lists commits")
        })?;
        Ok(Self { _folder: folder, tree, top })
    }

    /// Returns the path of a file of the repository in the revision. Other paths stay the same.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        // A deleted file may still be in the revision.
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

fn git(folder: Option<&Path>, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    if let Some(folder) = folder {
        command.arg("-C").arg(folder);
    } else {
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
            command.env_remove(name);
        }
    }
    // Objects that are missing are not fetched: that would run commands which the repository names.
    command.args(arguments).env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none").stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("cannot run `git`: {}", describe(&error)))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
