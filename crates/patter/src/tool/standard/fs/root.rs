//! The allowed folders, and paths in them.

use super::guard::{Guard, SECRETS};
use crate::os_error;
use crate::tool::ToolFailure;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};

/// An allowed folder, with a name.
///
/// ```
/// use patter::tool::standard::fs::Root;
/// let root = Root::new("docs", "/srv/docs");
/// assert_eq!(root.to_string(), "`docs:` (/srv/docs)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    name: String,
    path: PathBuf,
}

impl Root {
    /// Creates a root.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: path.into() }
    }

    fn canonical(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}:` ({})", self.name, self.path.display())
    }
}

/// The allowed folders. Relative paths are resolved in the first one.
pub(super) struct Roots {
    roots: Vec<Root>,
    guard: Guard,
}

/// A path in an allowed folder. Each use checks that it does not lead outside.
pub(super) struct ScopedPath<'r> {
    pub(super) dir: Dir,
    pub(super) path: PathBuf,
    /// The path as given by the caller.
    given: String,
    root: &'r Root,
    roots: &'r Roots,
}

impl Roots {
    pub(super) fn new(guard: Guard, roots: Vec<Root>) -> Self {
        Self { roots, guard }
    }

    /// Finds the folder that a path is in.
    pub(super) fn resolve(&self, given: &str) -> Result<ScopedPath<'_>, ToolFailure> {
        if given.contains('\0') {
            return Err(ToolFailure::new("the path contains a NUL byte"));
        }
        let (root, path) = self.split(given).ok_or_else(|| self.outside_failure(given))?;
        let dir = Dir::open_ambient_dir(&root.path, ambient_authority()).map_err(|error| {
            ToolFailure::new(format!("cannot open the folder {root}"))
                .with_detail(format!("{}; fix `roots` under `[fs]` in patter.toml", os_error::describe(&error)))
        })?;
        let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
        Ok(ScopedPath { dir, path, given: given.to_owned(), root, roots: self })
    }

    fn split(&self, given: &str) -> Option<(&Root, PathBuf)> {
        let path = Path::new(given);
        if path.is_absolute() {
            let inside = self.roots.iter().filter_map(|root| {
                let rest = path.strip_prefix(&root.path).or_else(|_| path.strip_prefix(root.canonical())).ok()?;
                Some((root, rest.to_owned()))
            });
            // Roots may be nested: the innermost one applies.
            return inside.min_by_key(|(_, rest)| rest.components().count());
        }
        let named = self.roots.iter().find_map(|root| {
            let rest = given.strip_prefix(root.name.as_str())?.strip_prefix(':')?;
            Some((root, PathBuf::from(rest.trim_start_matches('/'))))
        });
        named.or_else(|| Some((self.roots.first()?, path.to_owned())))
    }

    /// Returns the canonical forms of a path, which rules can rely on: with its links as written, and with its links
    /// resolved.
    pub(super) fn canonical_paths(&self, given: &str) -> Vec<String> {
        let Some((root, path)) = self.split(given) else { return Vec::new() };
        let path = root.canonical().join(path);
        let real_roots = self.real_paths();
        let mut forms = vec![self.canonical_form(&normalize(&path), &real_roots)];
        let resolved = self.canonical_form(&resolve_links(&path), &real_roots);
        if !forms.contains(&resolved) {
            forms.push(resolved);
        }
        forms
    }

    /// Returns the paths of the roots without links, in order.
    pub(super) fn real_paths(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|root| normalize(&root.canonical())).collect()
    }

    /// Returns an absolute path without `.` and `..` relative to the first root that contains it, with the name of that
    /// root unless it is the first one.
    pub(super) fn canonical_form(&self, path: &Path, real_roots: &[PathBuf]) -> String {
        let mut inside = self.roots.iter().zip(real_roots).filter_map(|(root, real)| {
            let rest = path.strip_prefix(real).ok()?;
            Some(self.show(root, if rest.as_os_str().is_empty() { Path::new(".") } else { rest }))
        });
        // Paths that lead outside are rejected when they are used.
        inside.next().unwrap_or_else(|| path.to_string_lossy().into_owned())
    }

    fn show(&self, root: &Root, path: &Path) -> String {
        match self.roots.first() {
            Some(first) if first == root => path.to_string_lossy().into_owned(),
            _ => format!("{}:{}", root.name, path.display()),
        }
    }

    /// Returns whether a file is a file of secrets, also through links.
    pub(super) fn is_secret(&self, found: &Metadata) -> bool {
        let files = self.folders().map(|folder| folder.join(SECRETS));
        files.filter_map(|file| std::fs::metadata(file).ok()).any(|file| {
            use std::os::unix::fs::MetadataExt;
            (file.dev(), file.ino()) == (found.dev(), found.ino())
        })
    }

    /// Iterates over the allowed folders and the root of the project.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.path.as_path()).chain([self.guard.project()])
    }

    fn outside_failure(&self, given: &str) -> ToolFailure {
        let allowed: Vec<_> = self.roots.iter().map(Root::to_string).collect();
        ToolFailure::new(match allowed.as_slice() {
            [] => "no folders are allowed".to_owned(),
            [only] => format!("`{given}` is outside the allowed folder {only}"),
            several => format!("`{given}` is outside the allowed folders: {}", several.join(", ")),
        })
        .with_detail("`[fs] roots` in patter.toml lists the allowed folders")
    }
}

impl ScopedPath<'_> {
    /// Opens a file for reading. Anything but a regular file is rejected, without blocking.
    pub(super) fn open(&self) -> Result<(File, Metadata), ToolFailure> {
        let metadata = self.dir.metadata(&self.path).map_err(|error| self.explain(&error))?;
        if metadata.is_file() {
            let file = open_nonblocking(&self.dir, &self.path, OpenOptions::new().read(true));
            let file = file.map_err(|error| self.explain(&error))?;
            // The file may have been replaced since.
            let metadata = file.metadata().map_err(|error| self.explain(&error))?;
            if self.roots.is_secret(&metadata) {
                return Err(self.secret_failure());
            }
            if metadata.is_file() {
                return Ok((file, metadata));
            }
        }
        Err(self.not_a_file(&metadata))
    }

    /// Returns the failure for a path that permission rules exclude.
    pub(super) fn excluded_failure(&self) -> ToolFailure {
        ToolFailure::new(format!("`{}` leads to a place that permission rules exclude", self.given))
    }

    /// Returns the failure for a file that changed while the call ran.
    pub(super) fn changed_failure(&self) -> ToolFailure {
        ToolFailure::new(format!("`{}` was changed by another program in the meantime; read it again", self.given))
    }

    pub(super) fn secret_failure(&self) -> ToolFailure {
        ToolFailure::new(format!("`{}` contains secrets, which tools cannot access", self.given))
    }

    /// Returns whether a file is a file of secrets.
    pub(super) fn is_secret(&self, opened: &Metadata) -> bool {
        self.roots.is_secret(opened)
    }

    /// Refuses to write a path that defines the project, before anything is created.
    pub(super) fn check_target(&self, target: &Path) -> Result<(), ToolFailure> {
        self.roots.guard.check_path(self, target)
    }

    /// Refuses to write an existing file that defines the project, whatever its name is.
    pub(super) fn check_file(&self, found: &Metadata) -> Result<(), ToolFailure> {
        if self.is_secret(found) { Err(self.secret_failure()) } else { self.roots.guard.check_file(self, found) }
    }

    pub(super) fn setting_failure(&self) -> ToolFailure {
        ToolFailure::new(format!("`{}` configures the project, and tools cannot write it", self.given))
    }

    pub(super) fn definition_failure(&self) -> ToolFailure {
        self.setting_failure().with_detail("the project can allow it: `writable` under `[fs]` in patter.toml")
    }

    /// Returns the absolute path of the root, without links.
    pub(super) fn root_path(&self) -> PathBuf {
        self.root.canonical()
    }

    /// Returns a full path as seen from the root.
    pub(super) fn inside_root<'f>(&self, full: &'f Path) -> Option<&'f Path> {
        full.strip_prefix(self.root.canonical()).ok()
    }

    /// Iterates over the allowed folders and the root of the project.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.roots.folders()
    }

    pub(super) fn not_a_file(&self, metadata: &Metadata) -> ToolFailure {
        let given = &self.given;
        ToolFailure::new(match metadata.is_dir() {
            true => format!("`{given}` is a folder, not a file"),
            false => format!("`{given}` is a device, a pipe or a socket, not a file"),
        })
    }

    /// Returns the failure for an error with this path.
    pub(super) fn explain(&self, error: &io::Error) -> ToolFailure {
        let given = &self.given;
        match error.kind() {
            // Errors of cap-std about paths that lead outside have no OS error code.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => self.roots.outside_failure(given),
            ErrorKind::PermissionDenied => ToolFailure::new(format!("permission denied for `{given}`")),
            ErrorKind::NotFound => ToolFailure::new(format!("`{given}` does not exist")),
            ErrorKind::NotADirectory => ToolFailure::new(format!("a parent of `{given}` is not a folder")),
            ErrorKind::IsADirectory => ToolFailure::new(format!("`{given}` is a folder, not a file")),
            ErrorKind::AlreadyExists => ToolFailure::new(format!("`{given}` already exists")),
            ErrorKind::InvalidFilename => ToolFailure::new("the path is too long"),
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                ToolFailure::new(format!("`{given}` contains a loop of symbolic links"))
            }
            ErrorKind::StorageFull => ToolFailure::new(format!("no space left to write `{given}`")),
            _ => ToolFailure::new(format!("cannot access `{given}`")).with_detail(os_error::describe(error)),
        }
    }

    /// Returns a path in the same root in the form that callers use.
    pub(super) fn show(&self, path: &Path) -> String {
        self.roots.show(self.root, path)
    }

    /// Returns the path as given by the caller.
    pub(super) fn given(&self) -> &str {
        &self.given
    }
}

/// Resolves the links of a path, as far as it exists.
fn resolve_links(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|start| Some((start, start.canonicalize().ok()?)));
    match existing {
        Some((start, resolved)) => normalize(&resolved.join(path.strip_prefix(start).unwrap_or(path))),
        None => normalize(path),
    }
}

/// Returns the path of an opened file or folder without links, if the system knows it.
pub(super) fn real_path(opened: impl AsFd) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    return {
        use std::os::fd::AsRawFd;
        std::fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd())).ok()
    };
    #[cfg(target_vendor = "apple")]
    return {
        use std::os::unix::ffi::OsStringExt;
        let path = rustix::fs::getpath(opened).ok()?;
        Some(std::ffi::OsString::from_vec(path.into_bytes()).into())
    };
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    return {
        drop(opened);
        None
    };
}

/// Resolves the `.` and `..` of a path without accessing the file system.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for step in path.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            step => normalized.push(step),
        }
    }
    normalized
}

/// Opens a file without blocking on pipes and devices.
pub(super) fn open_nonblocking(dir: &Dir, path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    dir.open_with(path, nonblocking(options))
}

/// Opens an entry of a folder without blocking.
pub(super) fn open_entry(entry: &DirEntry, options: &mut OpenOptions) -> io::Result<File> {
    entry.open_with(nonblocking(options))
}

fn nonblocking(options: &mut OpenOptions) -> &OpenOptions {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed())
}
