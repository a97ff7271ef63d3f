//! What defines a project, which tools cannot write: otherwise a model could give itself new tools, commands and
//! permissions.

use super::root::ScopedPath;
use crate::project::gram_files;
use crate::tool::ToolFailure;
use cap_std::fs::{Metadata, MetadataExt};
use patter_core::text::Glob;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The file of secrets in a root, which tools can neither read nor write.
pub(super) const SECRETS: &str = ".env";
/// The files that configure a project, wherever they are.
const SETTINGS: [&str; 2] = ["patter.toml", "patter.lock"];
/// The folders that tools cannot write, wherever they are: the history of a project, and its sessions.
const FOLDERS: [&str; 2] = [".git", ".patter"];
/// The extension of files that declare agents and tools.
const GRAM: &str = ".gram";

/// The files that define a project. The toolbox `fs` does not write them.
///
/// By name these are all gram files, `patter.toml`, `patter.lock`, `.env`, and everything in `.git` and `.patter`. Others are
/// added with [`Guard::with_files`], [`Guard::with_folders`] and [`Guard::with_patterns`].
///
/// ```
/// use patter::tool::standard::fs::Guard;
/// let guard = Guard::new("/srv/shop").with_files(["/srv/shop/mcp.json".into()]).with_writable(["drafts/*.gram"]);
/// # drop(guard);
/// ```
#[derive(Debug, Clone)]
pub struct Guard {
    project: PathBuf,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Patterns of absolute paths.
    patterns: Vec<Glob>,
    writable: Vec<Glob>,
}

impl Guard {
    /// Protects what defines the project in a folder.
    pub fn new(project: impl Into<PathBuf>) -> Self {
        Self {
            project: project.into(),
            files: Vec::new(),
            folders: Vec::new(),
            patterns: Vec::new(),
            writable: Vec::new(),
        }
    }

    /// Protects more files, such as scripts, whether they exist or not.
    #[must_use]
    pub fn with_files(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.files.extend(files);
        self
    }

    /// Protects folders with everything in them.
    #[must_use]
    pub fn with_folders(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.folders.extend(folders);
        self
    }

    /// Protects files whose names depend on arguments, such as `scripts/*.sh` in a folder.
    #[must_use]
    pub fn with_patterns(mut self, patterns: impl IntoIterator<Item = (PathBuf, String)>) -> Self {
        let absolute = |(folder, pattern): (PathBuf, String)| {
            let path = resolve(&folder).join(pattern.trim_start_matches("./"));
            Glob::new(&folded_path(&path).to_string_lossy())
        };
        self.patterns.extend(patterns.into_iter().map(absolute));
        self
    }

    /// Lets tools write some of the files: paths relative to the root of the project, with wildcards. `patter.toml`,
    /// `patter.lock`, `.env`, `.git` and `.patter` stay protected.
    #[must_use]
    pub fn with_writable<'g>(mut self, globs: impl IntoIterator<Item = &'g str>) -> Self {
        self.writable.extend(globs.into_iter().map(Glob::new));
        self
    }

    /// Returns the root of the project.
    pub(super) fn project(&self) -> &Path {
        &self.project
    }

    /// Refuses to write a path by its name or place, before anything is created. Links in it are already resolved as far
    /// as it exists.
    pub(super) fn check_path(&self, place: &ScopedPath<'_>, target: &Path) -> Result<(), ToolFailure> {
        let name = folded(target.file_name().unwrap_or_default());
        let full = resolve(&place.root_path().join(target));
        let has_folder = |path: &Path| path.components().any(|step| is_protected_folder(step));
        let is_below = |folder: &PathBuf| folded_path(&full).starts_with(folded_path(&resolve(folder)));
        if SETTINGS.contains(&name.as_str())
            || has_folder(&place.path)
            || place.inside_root(&full).is_some_and(has_folder)
            || self.folders.iter().any(is_below)
        {
            return Err(place.setting_failure());
        }
        let is_file = |file: &PathBuf| folded_path(&full) == folded_path(&resolve(file));
        let is_protected = name.ends_with(GRAM)
            || self.files.iter().any(is_file)
            || self.patterns.iter().any(|pattern| pattern.matches(&folded_path(&full).to_string_lossy()));
        if is_protected && !self.is_writable(&full) {
            return Err(place.definition_failure());
        }
        Ok(())
    }

    /// Refuses to write a file that is a protected one under another name.
    pub(super) fn check_file(&self, place: &ScopedPath<'_>, found: &Metadata) -> Result<(), ToolFailure> {
        let is_same = |path: &PathBuf| {
            use std::os::unix::fs::MetadataExt as _;
            std::fs::metadata(path).is_ok_and(|file| (file.dev(), file.ino()) == (found.dev(), found.ino()))
        };
        let settings: Vec<_> =
            place.folders().flat_map(|folder| SETTINGS.map(|name| folder.join(name))).filter(is_same).collect();
        if !settings.is_empty() {
            return Err(place.setting_failure());
        }
        // Only a file with several names can be a gram file under a name that is not one.
        let grams = if found.nlink() > 1 { gram_files(&self.project, &mut Vec::new()) } else { Vec::new() };
        let protected = self.files.iter().chain(&grams).find(|file| is_same(file));
        match protected.filter(|file| !self.is_writable(&resolve(file))) {
            Some(_) => Err(place.definition_failure()),
            None => Ok(()),
        }
    }

    /// Returns whether the project lets tools write a file that they otherwise could not.
    pub(crate) fn allows_changes(&self, path: &Path) -> bool {
        self.is_writable(&resolve(path))
    }

    fn is_writable(&self, full: &Path) -> bool {
        let project = resolve(&self.project);
        let Some(inside) = full.strip_prefix(&project).ok().and_then(Path::to_str) else { return false };
        self.writable.iter().any(|glob| glob.matches(inside))
    }
}

impl<P: Into<PathBuf>> From<P> for Guard {
    fn from(project: P) -> Self {
        Self::new(project)
    }
}

/// Returns whether a name is that of the file of secrets.
pub(super) fn is_secret_name(name: &OsStr) -> bool {
    folded(name) == SECRETS
}

fn is_protected_folder(step: Component<'_>) -> bool {
    FOLDERS.contains(&folded(step.as_os_str()).as_str())
}

/// Returns an absolute path without links, as far as it exists.
fn resolve(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = Vec::new();
    for above in absolute.ancestors() {
        if let Ok(existing) = above.canonicalize() {
            return missing.iter().rev().fold(existing, |path, step: &PathBuf| path.join(step));
        }
        missing.extend(above.file_name().map(PathBuf::from));
    }
    absolute
}

/// Returns a name in a form that is equal for names of the same file on file systems that ignore case, as macOS does: it
/// also ignores some invisible characters.
fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let visible = name.chars().filter(
        |c| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'),
    );
    visible.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

fn folded_path(path: &Path) -> PathBuf {
    path.components().map(|step| folded(step.as_os_str())).collect()
}
