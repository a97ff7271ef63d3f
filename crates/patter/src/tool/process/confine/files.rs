//! Landlock: files, sockets of TCP, and other processes.

use super::Rules;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use std::fs;
use std::path::{Path, PathBuf};

/// The version of Landlock whose features are used, as far as the kernel has them.
const VERSION: ABI = ABI::V9;
/// Devices that cannot do any harm.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Returns the version of Landlock that the kernel has, 0 if none. Call it in a thread that does nothing else: it gives up
/// rights.
pub(super) fn detect_version() -> u32 {
    let restricted = || -> Result<RestrictionStatus, RulesetError> {
        let handled = AccessFs::from_all(VERSION);
        let ruleset = Ruleset::default().handle_access(handled)?.create()?;
        ruleset.restrict_self()
    };
    match restricted().map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, .. }) => effective_abi as u32,
        Ok(LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) | Err(_) => 0,
    }
}

/// Restricts this thread.
pub(super) fn restrict(rules: &Rules) -> Result<(), String> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(VERSION)))
        .map_err(|error| error.to_string())?;
    if !rules.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(VERSION)).map_err(|error| error.to_string())?;
    }
    let mut builder = RuleBuilder { ruleset: ruleset.create().map_err(|error| error.to_string())? };
    let mut closed: Vec<_> = rules.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    // A home folder that contains everything cannot be hidden.
    closed.retain(|folder| folder != Path::new("/"));
    let closed_files: Vec<_> = closed.iter().filter(|path| !path.is_dir()).cloned().collect();
    closed.push("/dev".into());
    builder.add_tree(Path::new("/"), &closed)?;
    builder.add(Path::new("/dev"), AccessFs::ReadDir.into())?;
    for device in DEVICES {
        builder.add(Path::new(device), make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate}))?;
    }
    for path in rules.readable.iter().filter_map(|path| path.canonicalize().ok()) {
        builder.add_tree(&path, &closed_files)?;
    }
    // Devices would give access to everything.
    let devices = make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev});
    for path in &rules.writable {
        if !path.exists() {
            return Err(format!("the writable folder `{}` does not exist", path.display()));
        }
        builder.add(path, AccessFs::from_all(VERSION) & !devices)?;
    }
    builder.ruleset.restrict_self().map_err(|error| error.to_string())?;
    Ok(())
}

struct RuleBuilder {
    ruleset: RulesetCreated,
}

impl RuleBuilder {
    /// Allows access below a path, if it exists.
    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), String> {
        let Ok(descriptor) = PathFd::new(path) else { return Ok(()) };
        let is_folder = path.is_dir();
        let access = if is_folder { access } else { access & AccessFs::from_file(VERSION) };
        let rule = PathBeneath::new(descriptor, access);
        (&mut self.ruleset).add_rule(rule).map_err(|error| format!("`{}`: {error}", path.display()))?;
        Ok(())
    }

    /// Allows to read a folder except what is below closed paths. Folders above a closed folder cannot be listed, because
    /// a rule applies to everything below.
    fn add_tree(&mut self, folder: &Path, closed: &[PathBuf]) -> Result<(), String> {
        if closed.iter().any(|path| folder.starts_with(path)) {
            return Ok(());
        }
        if !closed.iter().any(|path| path.starts_with(folder)) {
            return self.add(folder, AccessFs::from_read(VERSION));
        }
        if closed.iter().all(|path| !path.starts_with(folder) || path.is_file()) {
            self.add(folder, AccessFs::ReadDir.into())?;
        }
        let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
        for entry in entries.flatten() {
            // A link may lead to a closed path; what it leads to is added where it is.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.add_tree(&entry.path(), closed)?;
            }
        }
        Ok(())
    }
}
