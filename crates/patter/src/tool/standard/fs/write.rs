//! `writeFile`: creating, replacing and extending files.

use super::action::{ActionContext, ToolText};
use super::guard::is_secret_name;
use super::root::{ScopedPath, open_nonblocking};
use crate::tool::ToolFailure;
use cap_std::fs::{Dir, OpenOptions};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const DEFINITION: ToolText = ToolText {
    name: "writeFile",
    description: "Writes a text file. Missing folders are created",
    signature: "(path::Text {description: 'A path in the project'})\
     ==>(content::Text)\
     ==>(mode::Text {description: 'create fails if the file exists; overwrite replaces its content; append adds to it', \
         enum: ['create', 'overwrite', 'append'], default: 'create'})\
     ==>(::Object {fields: {path: 'Text', bytes: 'Int'}})",
};

/// The size limit of the content, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

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

pub(super) fn write(context: &ActionContext, arguments: &Arguments) -> Result<Json, ToolFailure> {
    let Arguments { path, content, mode } = arguments;
    let mode = *mode;
    if content.len() > MAX_BYTES {
        return Err(ToolFailure::new(format!(
            "the content has {} bytes; at most {MAX_BYTES} are allowed",
            content.len()
        )));
    }
    let place = context.roots.resolve(path)?;
    let failed = |error: &io::Error| place.explain(error);
    // Links are followed, so that they are not replaced by files.
    let target = match place.dir.canonicalize(&place.path) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => place.path.clone(),
        Err(error) => return Err(failed(&error)),
    };
    let Some(name) = target.file_name().filter(|_| !path.ends_with('/')) else {
        return Err(ToolFailure::new(format!("`{path}` is not a file path")));
    };
    place.check_target(&target)?;
    let folder = open_parent(&place, &target).map_err(|error| failed(&error))?;
    let name = Path::new(name);
    let found = folder.symlink_metadata(name);
    if let Ok(metadata) = &found {
        place.check_file(metadata)?;
    }
    match found {
        Err(_) if is_secret_name(name.as_os_str()) => return Err(place.secret_failure()),
        // The file that it would create may be a protected one.
        Ok(metadata) if metadata.is_symlink() => {
            return Err(ToolFailure::new(format!("`{path}` is a link to a file that does not exist")));
        }
        Ok(_) if mode == Mode::Create => {
            return Err(ToolFailure::new(format!(
                "`{path}` already exists; use the mode `overwrite` to replace it, or `append` to add to it"
            )));
        }
        Ok(metadata) if !metadata.is_file() => return Err(place.not_a_file(&metadata)),
        Ok(_) | Err(_) => {}
    }
    let written = match mode {
        Mode::Create => create(&folder, name, content.as_bytes()),
        Mode::Overwrite => replace(&folder, name, content.as_bytes()),
        Mode::Append => return append(&place, &folder, name, content),
    };
    written.map_err(|error| failed(&error))?;
    Ok(json!({"path": path, "bytes": content.len()}))
}

/// Opens the folder of a file, and creates it if it is missing.
fn open_parent(place: &ScopedPath<'_>, path: &Path) -> io::Result<Dir> {
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
    // A partial file would be mistaken for a complete one.
    file.write_all(content).inspect_err(|_| {
        folder.remove_file(name).ok();
    })
}

/// Replaces a file atomically: readers see the old content or the new.
fn replace(folder: &Dir, name: &Path, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{}.new", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let temporary = PathBuf::from(temporary);
    let written = (|| {
        let mut file = folder.open_with(&temporary, OpenOptions::new().write(true).create_new(true))?;
        if let Ok(metadata) = folder.symlink_metadata(name)
            && metadata.is_file()
        {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        folder.rename(&temporary, folder, name)
    })();
    written.inspect_err(|error| {
        if error.kind() != ErrorKind::AlreadyExists {
            folder.remove_file(&temporary).ok();
        }
    })
}

fn append(place: &ScopedPath<'_>, folder: &Dir, name: &Path, content: &str) -> Result<Json, ToolFailure> {
    let failed = |error: io::Error| place.explain(&error);
    let mut file = open_nonblocking(folder, name, OpenOptions::new().append(true).create(true)).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(place.not_a_file(&metadata));
    }
    // The name may have become that of another file since it was checked.
    place.check_file(&metadata)?;
    file.write_all(content.as_bytes()).map_err(failed)?;
    Ok(json!({"path": place.given(), "bytes": content.len()}))
}
