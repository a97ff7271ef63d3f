//! `searchFiles`: files by name and by content.

use super::list::here;
use super::root::{Place, open_without_waiting};
use super::{Constant, Scene};
use crate::tool::Failure;
use cap_std::fs::{Dir, DirEntry, OpenOptions};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

pub(super) const DEFINITION: Constant = (
    "searchFiles",
    "Finds files by their names, and lines in them by a regular expression. What .gitignore names is left out",
    "(path::Text {description: 'A folder in the project', default: '.'})\
     ==>(names::Text {description: 'A glob for the names in it, such as *.rs or src/**/*.rs', default: '*'})\
     ==>(regex::Text {description: 'What a line must match; without it, files are found by name alone', optional: true})\
     ==>(limit::Int {description: 'How many to find', range: 1..1000, default: 100})==>\
     (::Object {fields: [\
       {name: 'matches', type: 'Array', elementType: 'Object', fields: [\
         {name: 'path', type: 'Text'}, \
         {name: 'line', type: 'Int', optional: true}, \
         {name: 'text', type: 'Text', optional: true}]}, \
       {name: 'hasMore', type: 'Bool'}]})",
);

/// How deep folders are searched.
const DEEPEST: usize = 64;
/// How many files and folders are looked at.
const MOST_LOOKED_AT: usize = 200_000;
/// How large a file is searched.
const LARGEST: u64 = 8 * 1024 * 1024;
/// How much is read in all.
const MOST_READ: u64 = 256 * 1024 * 1024;
/// How much of a line is given, in characters.
const LONGEST_LINE: usize = 300;
/// How large a regular expression may be once it is compiled.
const LARGEST_REGEX: usize = 1024 * 1024;

#[derive(Deserialize)]
pub(super) struct Arguments {
    #[serde(default = "here")]
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

pub(super) fn search(scene: &Scene, arguments: &Arguments) -> Result<Json, Failure> {
    let place = scene.roots.place(&arguments.path)?;
    let failed = |error| place.explain(&error);
    if !place.dir.metadata(&place.path).map_err(failed)?.is_dir() {
        return Err(Failure::new(format!("`{}` is no folder", place.given())));
    }
    let folder = place.dir.open_dir(&place.path).map_err(failed)?;
    let no_glob = |error| Failure::new(format!("`{}` is no glob: {error}", arguments.names));
    let mut names = OverrideBuilder::new("");
    let names = names.add(&arguments.names).and_then(|names| names.build()).map_err(no_glob)?;
    let no_regex = |error| Failure::new(format!("`regex` is no regular expression: {error}"));
    let regex = arguments.regex.as_deref().map(|regex| RegexBuilder::new(regex).size_limit(LARGEST_REGEX).build());
    let start = normal(&place.path);
    let mut search = Search {
        scene,
        place: &place,
        start: &start,
        names,
        regex: regex.transpose().map_err(no_regex)?,
        limit: arguments.limit,
        ignored: ignored_above(&place),
        matches: Vec::new(),
        looked_at: 0,
        read: 0,
        has_more: false,
    };
    search.folder(&folder, &start, 0);
    Ok(json!({"matches": search.matches, "hasMore": search.has_more}))
}

struct Search<'s> {
    scene: &'s Scene,
    place: &'s Place<'s>,
    /// The folder that is searched, from the root on.
    start: &'s Path,
    names: Override,
    regex: Option<Regex>,
    limit: usize,
    /// What the folders on the way here name to be ignored, the outermost first.
    ignored: Vec<Gitignore>,
    matches: Vec<Json>,
    looked_at: usize,
    read: u64,
    has_more: bool,
}

impl Search<'_> {
    fn is_over(&mut self) -> bool {
        let is_over = self.matches.len() > self.limit || self.looked_at >= MOST_LOOKED_AT || self.read >= MOST_READ;
        self.matches.truncate(self.limit);
        self.has_more |= is_over;
        self.has_more || self.scene.given_up.is_cancelled()
    }

    /// Searches a folder, and those in it. Links are not followed.
    fn folder(&mut self, dir: &Dir, path: &Path, depth: usize) {
        let Ok(found) = dir.entries() else { return };
        let left = MOST_LOOKED_AT.saturating_sub(self.looked_at);
        let mut entries: Vec<DirEntry> = found.take(left).flatten().collect();
        self.looked_at += entries.len();
        entries.sort_by_key(DirEntry::file_name);
        self.ignored.push(ignored_in(dir, path));
        for entry in entries {
            if self.is_over() {
                break;
            }
            let path = path.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if self.is_ignored(&path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() && depth < DEEPEST {
                if let Ok(inner) = entry.open_dir() {
                    self.folder(&inner, &path, depth + 1);
                }
            } else if kind.is_file() && self.is_named(&path) {
                self.file(&entry, &path);
            }
        }
        self.is_over();
        self.ignored.pop();
    }

    fn is_named(&self, path: &Path) -> bool {
        self.names.matched(path.strip_prefix(self.start).unwrap_or(path), false).is_whitelist()
    }

    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        if path.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        // The innermost one that says something about it decides.
        let said = self.ignored.iter().rev().map(|ignored| ignored.matched(path, is_folder));
        said.into_iter().find(|said| !said.is_none()).is_some_and(|said| said.is_ignore())
    }

    fn file(&mut self, entry: &DirEntry, path: &Path) {
        let shown = self.place.show(path);
        let Some(regex) = &self.regex else {
            self.matches.push(json!({ "path": shown }));
            return;
        };
        let Some(bytes) = text_of(entry) else { return };
        self.read += bytes.len() as u64;
        let lines = bytes.split(|byte| *byte == b'\n').enumerate();
        for (index, line) in lines.filter(|(_, line)| regex.is_match(line)) {
            let text = String::from_utf8_lossy(line);
            let cut: String = text.trim_end().chars().take(LONGEST_LINE).collect();
            self.matches.push(json!({"path": shown, "line": index + 1, "text": cut}));
            if self.matches.len() > self.limit {
                break;
            }
        }
    }
}

/// Reads a file, if it is a text that is not too large.
fn text_of(entry: &DirEntry) -> Option<Vec<u8>> {
    let mut options = OpenOptions::new();
    let file = super::root::open_entry(entry, options.read(true)).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    let is_text = bytes.len() as u64 <= LARGEST && !bytes.iter().take(8192).any(|byte| *byte == 0);
    is_text.then_some(bytes)
}

/// Reads what a folder names to be ignored.
fn ignored_in(dir: &Dir, path: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    let mut options = OpenOptions::new();
    if let Ok(file) = open_without_waiting(dir, Path::new(".gitignore"), options.read(true))
        && file.metadata().is_ok_and(|metadata| metadata.is_file())
    {
        let mut text = String::new();
        if file.take(LARGEST).read_to_string(&mut text).is_ok() {
            for line in text.lines() {
                // A line that is no glob ignores nothing.
                builder.add_line(None, line).ok();
            }
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Reads what the folders above name to be ignored, from the root on.
fn ignored_above(place: &Place<'_>) -> Vec<Gitignore> {
    let path = normal(&place.path);
    let mut above: Vec<_> = path.ancestors().skip(1).collect();
    above.reverse();
    let folders = above.into_iter().map(|folder| match folder.as_os_str().is_empty() {
        true => (place.dir.try_clone(), folder),
        false => (place.dir.open_dir(folder), folder),
    });
    folders.filter_map(|(dir, folder)| Some(ignored_in(&dir.ok()?, folder))).collect()
}

/// Returns a path without `.`, as matches are shown.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, Component::CurDir)).collect()
}
