//! The folders that may be used, and paths in them.

use crate::tool::Failure;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, File, Metadata, OpenOptions, OpenOptionsExt};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder that may be used, by a name.
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
    /// Names a folder.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: path.into() }
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}:` ({})", self.name, self.path.display())
    }
}

/// The folders that may be used; the first one is where relative paths begin.
pub(super) struct Roots {
    roots: Vec<Root>,
}

/// A path in a folder that may be used. Whether it stays there is found when it is used, each time.
pub(super) struct Place<'r> {
    pub(super) dir: Dir,
    pub(super) path: PathBuf,
    /// The path as it was given.
    given: String,
    root: &'r Root,
    roots: &'r Roots,
}

impl Roots {
    pub(super) fn new(roots: Vec<Root>) -> Self {
        Self { roots }
    }

    /// Finds the folder that a path begins in.
    pub(super) fn place(&self, given: &str) -> Result<Place<'_>, Failure> {
        if given.contains('\0') {
            return Err(Failure::new("a path holds no NUL byte"));
        }
        let (root, path) = self.split(given).ok_or_else(|| self.outside(given))?;
        let dir = Dir::open_ambient_dir(&root.path, ambient_authority())
            .map_err(|error| Failure::new(format!("the folder {root} cannot be used")).with_detail(error))?;
        let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
        Ok(Place { dir, path, given: given.to_owned(), root, roots: self })
    }

    fn split(&self, given: &str) -> Option<(&Root, PathBuf)> {
        let path = Path::new(given);
        if path.is_absolute() {
            let inside = self.roots.iter().filter_map(|root| {
                let canonical = root.path.canonicalize().ok();
                let rest = path.strip_prefix(&root.path).ok();
                let rest = rest.or_else(|| path.strip_prefix(canonical.as_ref()?).ok())?;
                Some((root, rest.to_owned()))
            });
            // Roots may lie within one another: the innermost one is meant.
            return inside.min_by_key(|(_, rest)| rest.components().count());
        }
        let named = self.roots.iter().find_map(|root| {
            let rest = given.strip_prefix(root.name.as_str())?.strip_prefix(':')?;
            Some((root, PathBuf::from(rest.trim_start_matches('/'))))
        });
        named.or_else(|| Some((self.roots.first()?, path.to_owned())))
    }

    fn outside(&self, given: &str) -> Failure {
        let allowed: Vec<_> = self.roots.iter().map(Root::to_string).collect();
        Failure::new(match allowed.as_slice() {
            [] => "no folder may be used".to_owned(),
            [only] => format!("`{given}` is outside of the only folder that may be used, {only}"),
            several => format!("`{given}` is outside of the folders that may be used: {}", several.join(", ")),
        })
    }
}

impl Place<'_> {
    /// Opens a file to read. What is no file is refused, and never waited for.
    pub(super) fn open(&self) -> Result<(File, Metadata), Failure> {
        let metadata = self.dir.metadata(&self.path).map_err(|error| self.explain(&error))?;
        if metadata.is_file() {
            let file = open_without_waiting(&self.dir, &self.path, OpenOptions::new().read(true));
            let file = file.map_err(|error| self.explain(&error))?;
            // It may have become another one since.
            let metadata = file.metadata().map_err(|error| self.explain(&error))?;
            if metadata.is_file() {
                return Ok((file, metadata));
            }
        }
        Err(self.no_file(&metadata))
    }

    pub(super) fn no_file(&self, metadata: &Metadata) -> Failure {
        let given = &self.given;
        Failure::new(match metadata.is_dir() {
            true => format!("`{given}` is a folder, not a file"),
            false => format!("`{given}` is no regular file, but a device, a pipe or a socket"),
        })
    }

    /// Says what an error means for the path.
    pub(super) fn explain(&self, error: &io::Error) -> Failure {
        let given = &self.given;
        let failure = match error.kind() {
            // The library says so without asking the system; the system says why it refuses by a number.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => self.roots.outside(given),
            ErrorKind::PermissionDenied => Failure::new(format!("`{given}` may not be used: permission denied")),
            ErrorKind::NotFound => Failure::new(format!("there is no `{given}`")),
            ErrorKind::NotADirectory => Failure::new(format!("`{given}` leads through something that is no folder")),
            ErrorKind::IsADirectory => Failure::new(format!("`{given}` is a folder, not a file")),
            ErrorKind::AlreadyExists => Failure::new(format!("`{given}` is there already")),
            ErrorKind::InvalidFilename => Failure::new("the path is longer than a path can be"),
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                Failure::new(format!("`{given}` leads through links in a circle"))
            }
            ErrorKind::StorageFull => Failure::new(format!("there is no space left for `{given}`")),
            _ => Failure::new(format!("`{given}` cannot be used")),
        };
        failure.with_detail(error)
    }

    /// Writes a path in the same root so that it can be given.
    pub(super) fn show(&self, path: &Path) -> String {
        match self.roots.roots.first() {
            Some(first) if first == self.root => path.to_string_lossy().into_owned(),
            _ => format!("{}:{}", self.root.name, path.display()),
        }
    }

    /// Returns the path as it was given.
    pub(super) fn given(&self) -> &str {
        &self.given
    }
}

/// Opens a file so that a pipe or a device does not hold the call up.
pub(super) fn open_without_waiting(dir: &Dir, path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    dir.open_with(path, without_waiting(options))
}

/// Opens an entry of a folder in the same way.
pub(super) fn open_entry(entry: &DirEntry, options: &mut OpenOptions) -> io::Result<File> {
    entry.open_with(without_waiting(options))
}

fn without_waiting(options: &mut OpenOptions) -> &OpenOptions {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed())
}
