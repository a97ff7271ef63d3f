//! `searchFiles`: search by name and by content.

use super::action::{ActionContext, ToolText};
use super::list::current_folder;
use super::root::{ScopedPath, open_entry, open_nonblocking};
use crate::tool::{Access, ToolFailure};
use cap_std::fs::{Dir, DirEntry, OpenOptions};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

pub(super) const DEFINITION: ToolText = ToolText {
    name: "searchFiles",
    description: "Finds files by name, and lines by a regular expression. Files that .gitignore excludes are skipped",
    signature: "(path::Text {description: 'A folder in the project', default: '.'})\
     ==>(names::Text {description: 'A glob for file names, such as *.rs or src/**/*.rs', default: '*'})\
     ==>(regex::Text {description: 'The regular expression that a line must match; by default, files are found by name only', optional: true})\
     ==>(limit::Int {description: 'The maximum number of matches', range: 1..1000, default: 100})==>\
     (::Object {fields: [\
       {name: 'matches', type: 'Array', elementType: 'Object', fields: [\
         {name: 'path', type: 'Text'}, \
         {name: 'line', type: 'Int', optional: true}, \
         {name: 'text', type: 'Text', optional: true}]}, \
       {name: 'hasMore', type: 'Bool'}]})",
};

/// The depth to which folders are searched.
const MAX_DEPTH: usize = 64;
/// The number of files and folders that are visited.
const MAX_ENTRIES: usize = 200_000;
/// The size up to which a file is searched, in bytes.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// The number of bytes that are read in total.
const MAX_TOTAL_BYTES: u64 = 256 * 1024 * 1024;
/// The number of characters that are returned of a line.
const MAX_LINE_CHARS: usize = 300;
/// The size limit of a compiled regular expression, in bytes.
const MAX_REGEX_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
pub(super) struct Arguments {
    #[serde(default = "current_folder")]
    path: String,
    #[serde(default = "all")]
    names: String,
    regex: Option<String>,
    #[serde(default = "hundred")]
    limit: usize,
}

fn all() -> String {
    "*".to_owned()
}

fn hundred() -> usize {
    100
}

pub(super) fn search(context: &ActionContext, arguments: &Arguments) -> Result<Json, ToolFailure> {
    let place = context.roots.resolve(&arguments.path)?;
    let failed = |error| place.explain(&error);
    if !place.dir.metadata(&place.path).map_err(failed)?.is_dir() {
        return Err(ToolFailure::new(format!("`{}` is not a folder", place.given())));
    }
    let folder = place.dir.open_dir(&place.path).map_err(failed)?;
    if !context.permits_opened(&folder, Access::Named) {
        return Err(place.excluded_failure());
    }
    let invalid_glob = |error| ToolFailure::new(format!("invalid glob `{}`: {error}", arguments.names));
    let mut names = OverrideBuilder::new("");
    let names = names.add(&arguments.names).and_then(|names| names.build()).map_err(invalid_glob)?;
    let invalid_regex = |error| ToolFailure::new(format!("invalid regular expression: {error}"));
    let regex = arguments.regex.as_deref().map(|regex| RegexBuilder::new(regex).size_limit(MAX_REGEX_BYTES).build());
    let start = without_current(&place.path);
    let mut search = Search {
        context,
        place: &place,
        start: &start,
        names,
        regex: regex.transpose().map_err(invalid_regex)?,
        limit: arguments.limit,
        ignores: ignores_above(&place),
        matches: Vec::new(),
        visited: 0,
        bytes_read: 0,
        has_more: false,
    };
    search.folder(&folder, &start, 0);
    context.report_excluded();
    Ok(json!({"matches": search.matches, "hasMore": search.has_more}))
}

struct Search<'s> {
    context: &'s ActionContext,
    place: &'s ScopedPath<'s>,
    /// The searched folder, relative to the root.
    start: &'s Path,
    names: Override,
    regex: Option<Regex>,
    limit: usize,
    /// The `.gitignore` files of the folders above, the outermost first.
    ignores: Vec<Gitignore>,
    matches: Vec<Json>,
    visited: usize,
    bytes_read: u64,
    has_more: bool,
}

impl Search<'_> {
    /// Returns whether a limit is reached, or the call is cancelled.
    fn is_done(&mut self) -> bool {
        let is_limited =
            self.matches.len() > self.limit || self.visited >= MAX_ENTRIES || self.bytes_read >= MAX_TOTAL_BYTES;
        self.matches.truncate(self.limit);
        self.has_more |= is_limited;
        self.has_more || self.context.cancellation.is_cancelled()
    }

    /// Searches a folder recursively. Links are not followed.
    fn folder(&mut self, dir: &Dir, path: &Path, depth: usize) {
        let ruled_path = self.context.ruled_path(dir);
        let Ok(found) = dir.entries() else { return };
        let left = MAX_ENTRIES.saturating_sub(self.visited);
        let mut entries: Vec<DirEntry> = found.take(left).flatten().collect();
        self.visited += entries.len();
        entries.sort_by_key(DirEntry::file_name);
        self.ignores.push(read_gitignore(dir, path));
        for entry in entries {
            if self.is_done() {
                break;
            }
            let path = path.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if self.is_ignored(&path, kind.is_dir()) || self.context.excludes(ruled_path.as_deref(), entry.file_name())
            {
                continue;
            }
            if kind.is_dir() && depth < MAX_DEPTH {
                if let Ok(inner) = entry.open_dir()
                    && self.context.permits_opened(&inner, Access::Within)
                {
                    self.folder(&inner, &path, depth + 1);
                }
            } else if kind.is_file() && self.is_named(&path) {
                self.file(&entry, &path);
            }
        }
        self.is_done();
        self.ignores.pop();
    }

    fn is_named(&self, path: &Path) -> bool {
        self.names.matched(path.strip_prefix(self.start).unwrap_or(path), false).is_whitelist()
    }

    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        if path.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        // The innermost file with a matching line decides.
        let matches = self.ignores.iter().rev().map(|ignores| ignores.matched(path, is_folder));
        matches.into_iter().find(|found| !found.is_none()).is_some_and(|found| found.is_ignore())
    }

    fn file(&mut self, entry: &DirEntry, path: &Path) {
        let shown = self.place.show(path);
        let Some(regex) = &self.regex else {
            self.matches.push(json!({ "path": shown }));
            return;
        };
        let Some(bytes) = read_text(self.context, self.place, entry) else { return };
        self.bytes_read += bytes.len() as u64;
        let lines = bytes.split(|byte| *byte == b'\n').enumerate();
        for (index, line) in lines.filter(|(_, line)| regex.is_match(line)) {
            let text = String::from_utf8_lossy(line);
            let text: String = text.trim_end().chars().take(MAX_LINE_CHARS).collect();
            self.matches.push(json!({"path": shown, "line": index + 1, "text": text}));
            if self.matches.len() > self.limit {
                break;
            }
        }
    }
}

/// Reads a file, unless it is too large, binary, secret or excluded by rules.
fn read_text(context: &ActionContext, place: &ScopedPath<'_>, entry: &DirEntry) -> Option<Vec<u8>> {
    let mut options = OpenOptions::new();
    let file = open_entry(entry, options.read(true)).ok()?;
    let metadata = file.metadata().ok()?;
    // The entry may have been replaced by a link since it was listed.
    if !metadata.is_file() || place.is_secret(&metadata) || !context.permits_opened(&file, Access::Within) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let is_text = bytes.len() as u64 <= MAX_FILE_BYTES && !bytes.iter().take(8192).any(|byte| *byte == 0);
    is_text.then_some(bytes)
}

/// Reads the `.gitignore` of a folder.
fn read_gitignore(dir: &Dir, path: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    let mut options = OpenOptions::new();
    if let Ok(file) = open_nonblocking(dir, Path::new(".gitignore"), options.read(true))
        && file.metadata().is_ok_and(|metadata| metadata.is_file())
    {
        let mut text = String::new();
        if file.take(MAX_FILE_BYTES).read_to_string(&mut text).is_ok() {
            for line in text.lines() {
                // Invalid lines ignore nothing.
                builder.add_line(None, line).ok();
            }
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Reads the `.gitignore` files of the folders above, starting with the root.
fn ignores_above(place: &ScopedPath<'_>) -> Vec<Gitignore> {
    let path = without_current(&place.path);
    let mut above: Vec<_> = path.ancestors().skip(1).collect();
    above.reverse();
    let folders = above.into_iter().map(|folder| match folder.as_os_str().is_empty() {
        true => (place.dir.try_clone(), folder),
        false => (place.dir.open_dir(folder), folder),
    });
    folders.filter_map(|(dir, folder)| Some(read_gitignore(&dir.ok()?, folder))).collect()
}

/// Returns a path without `.` components.
fn without_current(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, Component::CurDir)).collect()
}
