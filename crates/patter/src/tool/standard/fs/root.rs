//! The folders that may be used, and paths in them.

use crate::tool::Failure;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

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

    fn canonical(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}:` ({})", self.name, self.path.display())
    }
}

/// The file of secrets in the root of a project, which is not for models.
pub(super) const SECRETS: &str = ".env";
/// The files that say what tools may do, which are not for tools to write.
pub(super) const SETTINGS: [&str; 2] = ["patter.toml", "patter.lock"];

/// The folders that may be used; the first one is where relative paths begin.
pub(super) struct Roots {
    roots: Vec<Root>,
    project: PathBuf,
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
    pub(super) fn new(project: PathBuf, roots: Vec<Root>) -> Self {
        Self { roots, project }
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
                let rest = path.strip_prefix(&root.path).or_else(|_| path.strip_prefix(root.canonical())).ok()?;
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

    /// Writes a path in the one way that rules can count on: without `.` and `..`, from the first folder on that it is
    /// in, and with the name of that folder unless relative paths begin there.
    pub(super) fn seen(&self, given: &str) -> Option<String> {
        let (root, path) = self.split(given)?;
        let path = walked(&root.canonical().join(path));
        let mut inside = self.roots.iter().filter_map(|root| {
            let rest = path.strip_prefix(walked(&root.canonical())).ok()?;
            Some(self.show(root, if rest.as_os_str().is_empty() { Path::new(".") } else { rest }))
        });
        // What leads out is refused when it is used.
        inside.next().or_else(|| Some(path.to_string_lossy().into_owned()))
    }

    fn show(&self, root: &Root, path: &Path) -> String {
        match self.roots.first() {
            Some(first) if first == root => path.to_string_lossy().into_owned(),
            _ => format!("{}:{}", root.name, path.display()),
        }
    }

    /// Tells whether an opened file is one of secrets, by whatever name or link it was reached.
    pub(super) fn is_secret(&self, opened: &Metadata) -> bool {
        self.is_one_of(&[SECRETS], opened)
    }

    /// Tells whether a file is one of settings, by whatever name or link it was reached.
    pub(super) fn is_setting(&self, found: &Metadata) -> bool {
        self.is_one_of(&SETTINGS, found)
    }

    fn is_one_of(&self, names: &[&str], found: &Metadata) -> bool {
        let folders = self.roots.iter().map(|root| &root.path).chain([&self.project]);
        let files = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
        files.filter_map(|file| std::fs::metadata(file).ok()).any(|file| {
            use std::os::unix::fs::MetadataExt;
            (file.dev(), file.ino()) == (found.dev(), found.ino())
        })
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
            if self.roots.is_secret(&metadata) {
                return Err(self.secret());
            }
            if metadata.is_file() {
                return Ok((file, metadata));
            }
        }
        Err(self.no_file(&metadata))
    }

    pub(super) fn secret(&self) -> Failure {
        Failure::new(format!("`{}` holds secrets, and is not for tools", self.given))
    }

    /// Tells whether an opened file is one of secrets.
    pub(super) fn is_secret(&self, opened: &Metadata) -> bool {
        self.roots.is_secret(opened)
    }

    /// Tells whether a file is one of settings.
    pub(super) fn is_setting(&self, found: &Metadata) -> bool {
        self.roots.is_setting(found)
    }

    pub(super) fn setting(&self) -> Failure {
        Failure::new(format!("`{}` sets up the project, and is not for tools to write", self.given))
    }

    /// Tells whether a path leads into what git keeps, also by links, and where some of it is not there yet.
    pub(super) fn is_of_git(&self) -> bool {
        let there = self.path.ancestors().find_map(|path| self.dir.canonicalize(path).ok());
        let mut steps = self.path.components().chain(there.iter().flat_map(|path| path.components()));
        steps.any(|step| step.as_os_str().eq_ignore_ascii_case(".git"))
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
        self.roots.show(self.root, path)
    }

    /// Returns the path as it was given.
    pub(super) fn given(&self) -> &str {
        &self.given
    }
}

/// Walks the `.` and `..` of a path, without a look at what is there.
fn walked(path: &Path) -> PathBuf {
    let mut walked = PathBuf::new();
    for step in path.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => {
                walked.pop();
            }
            step => walked.push(step),
        }
    }
    walked
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
