//! Packages from PyPI that tests need.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the Python of an environment with packages that are installed once, according to `tests/NAME/requirements.txt`.
///
/// If they cannot be installed, the test is skipped, or fails if `CI` is set.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    match install(name) {
        Ok(python) => Some(python),
        Err(error) if std::env::var_os("CI").is_some() => panic!("cannot install the packages of `{name}`: {error}"),
        Err(error) => {
            eprintln!("skipped: cannot install the packages of `{name}`: {error}");
            None
        }
    }
}

fn install(name: &str) -> Result<PathBuf, String> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).join("requirements.txt");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pypi").join(name);
    fs::create_dir_all(&folder).unwrap();
    // Other threads and processes wait here. The lock is released with the file.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = fs::read(&requirements).unwrap();
    let marker = folder.join("installed.txt");
    let python = folder.join("venv/bin/python");
    if fs::read(&marker).is_ok_and(|done| done == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=1", "--timeout=60"]);
    run(pip.arg("--requirement").arg(&requirements))?;
    fs::write(marker, wanted).unwrap();
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
