//! Packages from PyPI that tests need.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the interpreter of an environment with packages that are installed once, according to the requirements in
/// `tests/NAME`, whose files are checked against their hashes.
///
/// If they cannot be installed, the test is skipped, or fails if `CI` is set.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    match install(name) {
        Ok(folder) => Some(folder.join("bin").join("python")),
        Err(error) if std::env::var_os("CI").is_some() => panic!("cannot install the packages of `{name}`: {error}"),
        Err(error) => {
            eprintln!("skipped: cannot install the packages of `{name}`: {error}");
            None
        }
    }
}

fn install(name: &str) -> Result<PathBuf, String> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).join("requirements.txt");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python").join(name);
    fs::create_dir_all(&folder).unwrap();
    // Other threads and processes wait here. The lock is released with the file.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = fs::read(&requirements).unwrap();
    let marker = folder.join("installed.txt");
    let environment = folder.join("environment");
    if fs::read(&marker).is_ok_and(|done| done == wanted) {
        return Ok(environment);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let mut pip = Command::new(environment.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=1", "--timeout=60"]);
    // The requirements are complete, and a package may be needed without what it depends on.
    run(pip.args(["--only-binary=:all:", "--no-deps", "--require-hashes", "-r"]).arg(&requirements))?;
    fs::write(marker, wanted).unwrap();
    Ok(environment)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
