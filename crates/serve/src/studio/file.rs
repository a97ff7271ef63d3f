//! A file that is edited. It is one of the project's gram files, and what is saved is exactly what was typed.

use super::edit::is_gram;
use patter::file::read_project_file;
use patter::os_error::describe;
use patter::project::Project;
use patter_core::serve::{ApiError, ApiErrorKind};
use patter_core::types::definition::hash;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The maximum size of a file that is edited, in bytes.
const MAX_SIZE: usize = 1 << 20;

/// A file as it is on disk.
pub(super) struct EditedFile {
    /// The index in the project.
    pub(super) index: usize,
    /// The text, with the line ends of browsers.
    pub(super) text: String,
    /// Identifies the content.
    pub(super) hash: String,
    path: PathBuf,
    ends: LineEnds,
}

/// How lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    Unix,
    Windows,
}

impl EditedFile {
    /// Reads a file of a project, by its path in the project. No other file can be edited.
    pub(super) fn open(project: &Project, root: Option<&Path>, name: &str) -> Result<Self, ApiError> {
        let unknown = || ApiError::new(ApiErrorKind::NotFound, format!("`{name}` is not a gram file of this project"));
        let index = project.files().iter().position(|file| file.path == name).ok_or_else(unknown)?;
        let path = PathBuf::from(name);
        if !is_gram(&path) || !is_inside(&path, root) {
            return Err(unknown());
        }
        let refused =
            |why: &str| ApiError::new(ApiErrorKind::Invalid, format!("`{name}` cannot be edited here: {why}"));
        let failed = |error: io::Error| refused(&describe(&error));
        if path.symlink_metadata().map_err(failed)?.is_symlink() {
            return Err(refused("it is a link to another file"));
        }
        let bytes = read_project_file(&path).map_err(failed)?;
        if bytes.len() > MAX_SIZE {
            return Err(refused("it is larger than 1 MiB"));
        }
        let hash = hash(&bytes);
        let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text"))?;
        let ends = line_ends(&text).ok_or_else(|| refused("its lines end in different ways"))?;
        let text = match ends {
            LineEnds::Unix => text,
            LineEnds::Windows => text.replace("\r\n", "\n"),
        };
        Ok(Self { index, text, hash, path, ends })
    }

    /// Returns a text of a browser with the line ends of the file.
    pub(super) fn restored(&self, text: &str) -> String {
        match self.ends {
            LineEnds::Unix => text.to_owned(),
            LineEnds::Windows => text.replace('\n', "\r\n"),
        }
    }

    /// Replaces the file in one step, and returns the new hash.
    pub(super) fn save(&self, text: &str) -> Result<String, ApiError> {
        let failed = |error: io::Error| {
            let name = self.path.display();
            ApiError::new(ApiErrorKind::Server, format!("cannot write `{name}`: {}", describe(&error)))
        };
        if text.len() > MAX_SIZE {
            return Err(ApiError::new(ApiErrorKind::TooLarge, "the text is larger than 1 MiB"));
        }
        if text.contains('\r') {
            return Err(ApiError::invalid("text", "must have line ends without carriage returns"));
        }
        let content = self.restored(text);
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".patter-").tempfile_in(folder).map_err(failed)?;
        file.write_all(content.as_bytes()).map_err(failed)?;
        let permissions = self.path.metadata().map_err(failed)?.permissions();
        file.as_file().set_permissions(permissions).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&self.path).map_err(|error| failed(error.error))?;
        Ok(hash(content.as_bytes()))
    }
}

/// Returns whether a file is inside the project, also if a folder on the way is a link.
fn is_inside(path: &Path, root: Option<&Path>) -> bool {
    let Some(root) = root else { return true };
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(path), Ok(root)) => path.starts_with(root),
        _ => false,
    }
}

/// Returns how the lines of a text end, or nothing if they end in different ways, which browsers cannot keep.
fn line_ends(text: &str) -> Option<LineEnds> {
    let returns = text.matches('\r').count();
    let windows = text.matches("\r\n").count();
    match (returns == windows, windows, text.matches('\n').count()) {
        (true, 0, _) => Some(LineEnds::Unix),
        (true, windows, all) if windows == all => Some(LineEnds::Windows),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn open(folder: &Path, name: &str) -> Result<EditedFile, String> {
        let path = folder.join(name).display().to_string();
        let project = Project::read([(path.clone(), "")]);
        EditedFile::open(&project, Some(folder), &path).map_err(|error| error.message)
    }

    #[test]
    fn every_byte_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "\n[a]\n", "[a]\r\n[b]\r\n", "\u{feff}[a:Agent]  \n\n\n", "é\u{1f600}\t\u{0}"] {
            let path = folder.path().join("a.gram");
            std::fs::write(&path, text).unwrap();
            let file = open(folder.path(), "a.gram").unwrap();
            assert!(!file.text.contains('\r'));
            assert_eq!(file.save(&file.text).unwrap(), file.hash);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn only_gram_files_of_the_project_are_edited() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("x.gram"), "[a]").unwrap();
        std::fs::write(folder.path().join("mixed.gram"), "a\r\nb\n").unwrap();
        std::fs::write(folder.path().join("binary.gram"), [0xff]).unwrap();
        std::fs::write(folder.path().join("large.gram"), " ".repeat(MAX_SIZE + 1)).unwrap();
        std::fs::write(folder.path().join("patter.toml"), "").unwrap();
        std::os::unix::fs::symlink(folder.path().join("mixed.gram"), folder.path().join("link.gram")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
        let why = |name: &str| open(folder.path(), name).err().unwrap();
        assert!(why("mixed.gram").ends_with("its lines end in different ways"));
        assert!(why("binary.gram").ends_with("it is not UTF-8 text"));
        assert!(why("large.gram").ends_with("it is larger than 1 MiB"));
        assert!(why("link.gram").ends_with("it is a link to another file"));
        for name in ["patter.toml", "out/x.gram", "../x.gram", "none.gram"] {
            assert!(why(name).contains("is not a gram file of this project"), "{}", why(name));
        }
        let project = Project::read([("a.gram", "")]);
        assert!(EditedFile::open(&project, None, "/etc/passwd").is_err());
    }
}
