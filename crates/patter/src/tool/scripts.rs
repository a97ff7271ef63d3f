//! The scripts that commands run. They are part of what a project is, so they run only as they were when it was read.

use super::ToolFailure;
use super::command::named_files;
use crate::file::file_hash;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The endings of scripts.
const ENDINGS: [&str; 22] = [
    "awk", "bash", "bat", "cjs", "exs", "fish", "jar", "jl", "js", "jsx", "lua", "mjs", "php", "pl", "ps1", "py", "r",
    "rb", "sh", "ts", "tsx", "zsh",
];

/// The hashes of scripts that are read together: thousands of commands may run the same one, which is read once.
#[derive(Debug, Default)]
pub(crate) struct ScriptHashes(HashMap<PathBuf, String>);

impl ScriptHashes {
    fn get(&mut self, path: &Path) -> String {
        self.0.entry(path.to_owned()).or_insert_with(|| file_hash(path)).clone()
    }
}

/// The scripts of a command, each with its hash.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scripts(Vec<(PathBuf, String)>);

impl Scripts {
    /// Reads the scripts that the words of a command name, as far as they belong to the project. Other files that it names
    /// are data, which may change.
    pub(crate) fn read(words: &[String], folders: &[&Path], root: &Path, hashes: &mut ScriptHashes) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let program = words.first().map_or(&[][..], std::slice::from_ref);
        let programs = named_files(program, folders);
        let is_run = |path: &PathBuf| programs.contains(path) || path.to_str().is_some_and(is_script);
        let is_inside = |path: &PathBuf| path.canonicalize().is_ok_and(|full| full.starts_with(&root));
        let files = named_files(words, folders).into_iter().filter(|path| is_run(path) && is_inside(path));
        let hashed = files.map(|path| {
            let hash = hashes.get(&path);
            (path, hash)
        });
        Self(hashed.collect())
    }

    /// Leaves out scripts that may change.
    pub(crate) fn without(mut self, may_change: impl Fn(&Path) -> bool) -> Self {
        self.0.retain(|(path, _)| !may_change(path));
        self
    }

    /// Returns the paths of the scripts, with the hash of each.
    pub(crate) fn hashes(&self) -> Vec<(PathBuf, String)> {
        self.0.clone()
    }

    /// Fails if a script is not as it was.
    pub(crate) fn check(&self) -> Result<(), ToolFailure> {
        let Some((path, _)) = self.0.iter().find(|(path, hash)| file_hash(path) != *hash) else { return Ok(()) };
        let path = path.display();
        Err(ToolFailure::new(format!("the script `{path}` changed since the project was read, so it does not run"))
            .with_detail("`chat` asks about it before the next message; otherwise, start again to use it"))
    }
}

/// Returns whether a name has the ending of a script.
pub(crate) fn is_script(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_several_commands_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("a.sh"), "one").unwrap();
        let words = ["sh".to_owned(), "a.sh".to_owned()];
        let read = |hashes: &mut ScriptHashes| Scripts::read(&words, &[&root], &root, hashes).hashes();
        let mut hashes = ScriptHashes::default();
        let first = read(&mut hashes);
        assert_eq!(first.len(), 1);
        std::fs::write(root.join("a.sh"), "two").unwrap();
        assert_eq!(read(&mut hashes), first);
        assert_ne!(read(&mut ScriptHashes::default()), first);
    }
}
