//! `writeFile`: a new file, other content, or more of it.

use super::root::{Place, SECRETS, SETTINGS, open_without_waiting};
use super::{Constant, Scene};
use crate::tool::Failure;
use cap_std::fs::{Dir, OpenOptions};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const DEFINITION: Constant = (
    "writeFile",
    "Writes a text file. Folders on the way are made",
    "(path::Text {description: 'A path in the project'})\
     ==>(content::Text)\
     ==>(mode::Text {description: 'create fails if the file is there; overwrite replaces all of it; append adds to it', \
         enum: ['create', 'overwrite', 'append'], default: 'create'})\
     ==>(::Object {fields: {path: 'Text', bytes: 'Int'}})",
);

/// How much is written at once.
const MOST: usize = 16 * 1024 * 1024;

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Create,
    Overwrite,
    Append,
}

pub(super) fn write(scene: &Scene, arguments: &Arguments) -> Result<Json, Failure> {
    let Arguments { path, content, mode } = arguments;
    let mode = *mode;
    if content.len() > MOST {
        return Err(Failure::new(format!("the content has {} bytes; {MOST} can be written at once", content.len())));
    }
    let place = scene.roots.place(path)?;
    let failed = |error: &io::Error| place.explain(error);
    // A link is followed, so that it stays one.
    let target = match place.dir.canonicalize(&place.path) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => place.path.clone(),
        Err(error) => return Err(failed(&error)),
    };
    let Some(name) = target.file_name().filter(|_| !path.ends_with('/')) else {
        return Err(Failure::new(format!("`{path}` names no file")));
    };
    let is_setting = SETTINGS.iter().any(|setting| name.eq_ignore_ascii_case(setting));
    if is_setting || place.is_of_git() {
        return Err(place.setting());
    }
    let folder = parent(&place, &target).map_err(|error| failed(&error))?;
    let name = Path::new(name);
    match folder.symlink_metadata(name) {
        Ok(metadata) if place.is_secret(&metadata) => return Err(place.secret()),
        Ok(metadata) if place.is_setting(&metadata) => return Err(place.setting()),
        Err(_) if name.as_os_str().eq_ignore_ascii_case(SECRETS) => return Err(place.secret()),
        Ok(_) if mode == Mode::Create => {
            return Err(Failure::new(format!(
                "`{path}` is there already; the mode `overwrite` replaces it, `append` adds to it"
            )));
        }
        Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() => return Err(place.no_file(&metadata)),
        Ok(_) | Err(_) => {}
    }
    let written = match mode {
        Mode::Create => create(&folder, name, content.as_bytes()),
        Mode::Overwrite => replace(&folder, name, content.as_bytes()),
        Mode::Append => append(&folder, name, content.as_bytes()),
    };
    written.map_err(|error| failed(&error))?;
    Ok(json!({"path": path, "bytes": content.len()}))
}

/// Opens the folder of a file, and makes it where it is not there.
fn parent(place: &Place<'_>, path: &Path) -> io::Result<Dir> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => {
            place.dir.create_dir_all(parent)?;
            place.dir.open_dir(parent)
        }
        None => place.dir.try_clone(),
    }
}

fn create(folder: &Dir, name: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = folder.open_with(name, OpenOptions::new().write(true).create_new(true))?;
    // Half a file would be taken for a whole one.
    file.write_all(content).inspect_err(|_| {
        folder.remove_file(name).ok();
    })
}

/// Puts a file in the place of another in one step: whoever reads sees the old content or the new.
fn replace(folder: &Dir, name: &Path, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}-{}.new", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let beside = PathBuf::from(beside);
    let written = (|| {
        let mut file = folder.open_with(&beside, OpenOptions::new().write(true).create_new(true))?;
        if let Ok(metadata) = folder.symlink_metadata(name)
            && metadata.is_file()
        {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        folder.rename(&beside, folder, name)
    })();
    written.inspect_err(|error| {
        if error.kind() != ErrorKind::AlreadyExists {
            folder.remove_file(&beside).ok();
        }
    })
}

fn append(folder: &Dir, name: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = open_without_waiting(folder, name, OpenOptions::new().append(true).create(true))?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::Unsupported, "not a regular file"));
    }
    file.write_all(content)
}
