//! `listFolder`: what is in a folder.

use super::{Constant, Scene};
use crate::tool::Failure;
use cap_std::fs::{DirEntry, FileType};
use serde::Deserialize;
use serde_json::{Value as Json, json};

pub(super) const DEFINITION: Constant = (
    "listFolder",
    "Lists the files and folders in a folder, by name",
    "(path::Text {description: 'A folder in the project', default: '.'})==>\
     (::Object {fields: [\
       {name: 'entries', type: 'Array', elementType: 'Object', fields: [\
         {name: 'name', type: 'Text'}, \
         {name: 'kind', type: 'Text', enum: ['file', 'folder', 'link', 'other']}, \
         {name: 'bytes', type: 'Int', optional: true}]}, \
       {name: 'hasMore', type: 'Bool'}]})",
);

/// How many entries are given.
const MOST: usize = 1000;
/// How many entries are looked at, so that those given are the first by name.
const MOST_LOOKED_AT: usize = 100_000;

#[derive(Deserialize)]
pub(super) struct Arguments {
    #[serde(default = "here")]
    path: String,
}

pub(super) fn here() -> String {
    ".".to_owned()
}

pub(super) fn list(scene: &Scene, arguments: &Arguments) -> Result<Json, Failure> {
    let place = scene.roots.place(&arguments.path)?;
    let failed = |error| place.explain(&error);
    let metadata = place.dir.metadata(&place.path).map_err(failed)?;
    if !metadata.is_dir() {
        return Err(Failure::new(format!("`{}` is no folder", place.given())));
    }
    let mut found = place.dir.read_dir(&place.path).map_err(failed)?;
    let mut entries: Vec<DirEntry> = Vec::new();
    for entry in found.by_ref().take(MOST_LOOKED_AT) {
        if scene.given_up.is_cancelled() {
            break;
        }
        entries.push(entry.map_err(failed)?);
    }
    let has_more = entries.len() > MOST || found.next().is_some();
    entries.sort_by_key(DirEntry::file_name);
    entries.truncate(MOST);
    let shown = entries.iter().map(|entry| {
        let mut shown = json!({"name": entry.file_name().to_string_lossy(), "kind": kind(entry.file_type().ok())});
        if let (Json::Object(shown), Ok(metadata)) = (&mut shown, entry.metadata())
            && metadata.is_file()
        {
            shown.insert("bytes".to_owned(), metadata.len().into());
        }
        shown
    });
    Ok(json!({"entries": shown.collect::<Vec<_>>(), "hasMore": has_more}))
}

fn kind(kind: Option<FileType>) -> &'static str {
    match kind {
        Some(kind) if kind.is_file() => "file",
        Some(kind) if kind.is_dir() => "folder",
        Some(kind) if kind.is_symlink() => "link",
        _ => "other",
    }
}
