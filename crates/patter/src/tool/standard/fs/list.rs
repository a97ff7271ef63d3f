//! `listFolder`: the content of a folder.

use super::action::{ActionContext, ToolText};
use crate::tool::{Access, ToolFailure};
use cap_std::fs::{DirEntry, FileType};
use serde::Deserialize;
use serde_json::{Value as Json, json};

pub(super) const DEFINITION: ToolText = ToolText {
    name: "listFolder",
    description: "Lists the files and folders in a folder, sorted by name",
    signature: "(path::Text {description: 'A folder in the project', default: '.'})==>\
     (::Object {fields: [\
       {name: 'entries', type: 'Array', elementType: 'Object', fields: [\
         {name: 'name', type: 'Text'}, \
         {name: 'kind', type: 'Text', enum: ['file', 'folder', 'link', 'other']}, \
         {name: 'bytes', type: 'Int', optional: true}]}, \
       {name: 'hasMore', type: 'Bool'}]})",
};

/// The number of entries that are returned.
const MAX_ENTRIES: usize = 1000;
/// The number of entries that are read, so that the first ones by name are returned.
const MAX_READ: usize = 100_000;

#[derive(Deserialize)]
pub(super) struct Arguments {
    #[serde(default = "current_folder")]
    path: String,
}

pub(super) fn current_folder() -> String {
    ".".to_owned()
}

pub(super) fn list(context: &ActionContext, arguments: &Arguments) -> Result<Json, ToolFailure> {
    let place = context.roots.resolve(&arguments.path)?;
    let failed = |error| place.explain(&error);
    let metadata = place.dir.metadata(&place.path).map_err(failed)?;
    if !metadata.is_dir() {
        return Err(ToolFailure::new(format!("`{}` is not a folder", place.given())));
    }
    let folder = place.dir.open_dir(&place.path).map_err(failed)?;
    if !context.permits_opened(&folder, Access::Named) {
        return Err(place.excluded_failure());
    }
    let path = context.ruled_path(&folder);
    let mut found = folder.entries().map_err(failed)?;
    let mut entries: Vec<DirEntry> = Vec::new();
    for entry in found.by_ref().take(MAX_READ) {
        if context.cancellation.is_cancelled() {
            break;
        }
        let entry = entry.map_err(failed)?;
        if !context.excludes(path.as_deref(), entry.file_name()) {
            entries.push(entry);
        }
    }
    context.report_excluded();
    let has_more = entries.len() > MAX_ENTRIES || found.next().is_some();
    entries.sort_by_key(DirEntry::file_name);
    entries.truncate(MAX_ENTRIES);
    let entries = entries.iter().map(|entry| {
        let mut described = json!({"name": entry.file_name().to_string_lossy(), "kind": kind(entry.file_type().ok())});
        if let (Json::Object(described), Ok(metadata)) = (&mut described, entry.metadata())
            && metadata.is_file()
        {
            described.insert("bytes".to_owned(), metadata.len().into());
        }
        described
    });
    Ok(json!({"entries": entries.collect::<Vec<_>>(), "hasMore": has_more}))
}

fn kind(kind: Option<FileType>) -> &'static str {
    match kind {
        Some(kind) if kind.is_file() => "file",
        Some(kind) if kind.is_dir() => "folder",
        Some(kind) if kind.is_symlink() => "link",
        _ => "other",
    }
}
