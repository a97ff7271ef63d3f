//! Packages from npm that tests need.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of packages that are installed once, according to the lock file in `tests/NAME`.
///
/// If they cannot be installed, the test is skipped, or fails if `CI` is set.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    installed_from(Path::new(env!("CARGO_MANIFEST_DIR")), name)
}

/// Does the same for the tests of another crate.
pub(crate) fn installed_from(crate_folder: &Path, name: &str) -> Option<PathBuf> {
    match install(&crate_folder.join("tests").join(name), name) {
        Ok(folder) => Some(folder.join("node_modules")),
        Err(error) if std::env::var_os("CI").is_some() => panic!("cannot install the packages of `{name}`: {error}"),
        Err(error) => {
            eprintln!("skipped: cannot install the packages of `{name}`: {error}");
            None
        }
    }
}

fn install(files: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm").join(name);
    fs::create_dir_all(&folder).unwrap();
    // Other threads and processes wait here. The lock is released with the file.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = fs::read(files.join("package-lock.json")).unwrap();
    let marker = folder.join("installed.json");
    if fs::read(&marker).is_ok_and(|done| done == wanted) {
        return Ok(folder);
    }
    for name in ["package.json", "package-lock.json"] {
        fs::copy(files.join(name), folder.join(name)).unwrap();
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000"]);
    let output = npm.current_dir(&folder).output().map_err(|error| format!("cannot run npm: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    fs::write(marker, wanted).unwrap();
    Ok(folder)
}
