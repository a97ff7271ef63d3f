//! What a command may do: Landlock restricts which files it reads and writes, seccomp which system calls it makes.
//!
//! A thread gives up rights, and a command that it starts inherits what is left.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod folder;
mod support;

#[cfg(target_os = "linux")]
pub(super) use folder::PrivateFolder;
pub use support::SandboxSupport;

use patter_core::declare::sandbox::{Sandbox, SandboxLevel};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a command may do. By default, whatever the user may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    rules: Option<Rules>,
}

/// The rules of a sandbox. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Rules {
    network: bool,
    /// Folders and files that may be changed.
    writable: Vec<PathBuf>,
    /// Whether permissions, owners and times of files may be changed. The kernel cannot restrict that to folders.
    metadata: bool,
    /// Folders and files that may be read although they are in a home folder. Those that are missing are ignored.
    readable: Vec<PathBuf>,
    /// Home folders, and the file with the variables of the project.
    hidden: Vec<PathBuf>,
}

/// The places that the rules of a sandbox refer to.
pub(crate) struct Places<'p> {
    /// The root of the project, to which the folders of a sandbox are relative.
    pub(crate) root: &'p Path,
    /// The working folder.
    pub(crate) folder: &'p Path,
    /// The program, if it is a path.
    pub(crate) program: Option<&'p Path>,
    /// The value of `PATH`.
    pub(crate) search_path: Option<String>,
    /// The home folder of the user.
    pub(crate) home: Option<PathBuf>,
}

impl Confinement {
    /// Returns what a sandbox allows.
    pub(crate) fn new(sandbox: &Sandbox, places: &Places<'_>) -> Self {
        let is_workspace = match sandbox.level {
            SandboxLevel::None => return Self::default(),
            SandboxLevel::ReadOnly => false,
            SandboxLevel::Workspace => true,
        };
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let resolve = |folder: &String| match (folder.strip_prefix("~/"), &places.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => absolute(&places.root.join(folder)),
        };
        let mut writable: Vec<_> = sandbox.writable.iter().map(resolve).collect();
        if is_workspace {
            writable.push(absolute(places.root));
        }
        let mut readable: Vec<_> = sandbox.readable.iter().map(resolve).collect();
        readable.push(absolute(places.root));
        readable.push(absolute(places.folder));
        readable.extend(places.program.map(absolute));
        let searched = places.search_path.iter().flat_map(std::env::split_paths);
        readable.extend(searched.filter(|folder| folder.is_absolute()));
        let variables = absolute(&places.root.join(".env"));
        let hidden = places.home.clone().into_iter().chain(["/home".into(), "/root".into(), variables]).collect();
        Self {
            rules: Some(Rules { network: sandbox.network, metadata: !writable.is_empty(), writable, readable, hidden }),
        }
    }

    /// Allows to change a folder.
    #[cfg(target_os = "linux")]
    pub(super) fn add_writable(&mut self, folder: &Path) {
        if let Some(rules) = &mut self.rules {
            rules.writable.push(folder.to_owned());
        }
    }

    /// Returns whether a command can be started as any other process.
    pub(super) fn is_open(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.rules.is_none() && !capabilities::can_inspect_others();
        #[cfg(not(target_os = "linux"))]
        true
    }
}

/// Gives up whatever a command may not do, as far as the system can enforce it, in this thread and in the processes that
/// it starts. An error means that the thread must not start the command.
#[cfg(target_os = "linux")]
pub(super) fn confine_thread(confinement: &Confinement) -> Result<(), String> {
    let Some(rules) = &confinement.rules else {
        // In a container that forbids it, the command keeps what everything else in the container has too.
        let _ = capabilities::stop_inspecting();
        return Ok(());
    };
    let failed = |error: String| format!("cannot apply the sandbox: {error}");
    let support = SandboxSupport::detect();
    if support.landlock_version() > 0 {
        files::restrict(rules).map_err(failed)?;
    }
    rustix::thread::set_no_new_privs(true).map_err(|error| failed(error.to_string()))?;
    capabilities::confine().map_err(|error| failed(error.to_string()))?;
    if support.has_seccomp() {
        calls::restrict(rules).map_err(failed)?;
    }
    Ok(())
}

/// Does nothing: this system has no means to confine a command.
#[cfg(not(target_os = "linux"))]
pub(super) fn confine_thread(_: &Confinement) -> Result<(), String> {
    Ok(())
}
