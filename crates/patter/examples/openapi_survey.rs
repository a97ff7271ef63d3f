//! Imports every OpenAPI document in some folders, checks the toolboxes, and counts what is missing.
//!
//! ```text
//! cargo run -p patter --example openapi_survey -- [--warnings] [--list] FOLDER…
//! ```
//!
//! Documents are JSON or YAML, of any supported version. Those without an absolute server address are imported with
//! `--server`, as a user would, and counted separately. The text of each toolbox is checked as `patter check` does.
//! `--warnings` also counts warnings about operations that are imported; `--list` names the documents with problems.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a survey")]

use patter::check::{Options, check};
use patter::openapi::{ImportOptions, OpenApiError, Warning, import, read};
use patter::project::Project;
use serde_json::Value as Json;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The address for documents without one.
const SERVER: &str = "https://api.example.com";
/// The size of the stack of a worker, as that of the main thread.
const STACK: usize = 8 * 1024 * 1024;
/// How many of the slowest documents are listed.
const SLOWEST: usize = 5;

#[derive(Default)]
struct Survey {
    documents: usize,
    imported: usize,
    with_server: usize,
    operations: usize,
    tools: usize,
    /// The documents whose toolboxes have no findings.
    clean: usize,
    /// How long reading, importing and checking each document took.
    times: Vec<(Duration, String)>,
    /// How often each problem occurs, with one of the documents.
    problems: BTreeMap<(&'static str, String), (usize, String)>,
    is_listed: bool,
    counts_warnings: bool,
}

impl Survey {
    fn add(&mut self, kind: &'static str, problem: &str, document: &str, times: usize) {
        if self.is_listed {
            println!("{kind}\t{document}\t{problem}");
        }
        let entry = self.problems.entry((kind, general(problem))).or_insert((0, document.to_owned()));
        entry.0 += times;
    }

    fn merge(&mut self, other: Survey) {
        self.documents += other.documents;
        self.imported += other.imported;
        self.with_server += other.with_server;
        self.operations += other.operations;
        self.tools += other.tools;
        self.clean += other.clean;
        self.times.extend(other.times);
        for (problem, (times, document)) in other.problems {
            self.problems.entry(problem).or_insert((0, document)).0 += times;
        }
    }

    fn visit(&mut self, path: &Path) {
        // Most documents are called `openapi.yaml`, in a folder that says of what.
        let document_name = path.display().to_string();
        let start = Instant::now();
        self.survey(path, &document_name);
        self.times.push((start.elapsed(), document_name));
    }

    fn survey(&mut self, path: &Path, document_name: &str) {
        self.documents += 1;
        let document = match std::fs::read(path).map_err(|error| error.to_string()) {
            Ok(bytes) => read(&bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        let document = match document {
            Ok(document) => document,
            Err(error) => return self.add("unreadable", &error, document_name, 1),
        };
        let operations = count_operations(&document);
        self.operations += operations;
        let mut options = ImportOptions::default();
        let mut result = import(&document, &options);
        if let Err(OpenApiError::NoServer | OpenApiError::RelativeServer(_) | OpenApiError::UnresolvedServer(_)) =
            &result
        {
            self.with_server += 1;
            options.server = Some(SERVER.to_owned());
            result = import(&document, &options);
        }
        match result {
            Err(error) => {
                self.add("not imported", &error.to_string(), document_name, 1);
                if let OpenApiError::NoTools { warnings } = &error {
                    self.add_warnings(warnings, document_name);
                } else {
                    self.add("skipped", &error.to_string(), document_name, operations);
                }
            }
            Ok(imported) => {
                self.imported += 1;
                self.tools += imported.tools;
                self.add_warnings(&imported.warnings, document_name);
                let project = Project::read([("toolbox.gram", imported.text.as_str())]);
                let findings = check(&project, &Options::default());
                self.clean += usize::from(findings.is_empty());
                for finding in findings {
                    let diagnostic = &finding.diagnostic;
                    self.add("finding", &format!("{} {}", diagnostic.code, diagnostic.message), document_name, 1);
                }
            }
        }
    }

    fn add_warnings(&mut self, warnings: &[Warning], document: &str) {
        for warning in warnings {
            match warning.message.strip_prefix("skipped: ") {
                Some(reason) => self.add("skipped", reason, document, 1),
                None if self.counts_warnings => self.add("warning", &warning.message, document, 1),
                None => {}
            }
        }
    }
}

/// Counts the operations of a document.
fn count_operations(document: &Json) -> usize {
    let methods = ["get", "head", "post", "put", "patch", "delete", "options", "trace"];
    let paths = document.get("paths").and_then(Json::as_object).into_iter().flatten();
    let items = paths.filter(|(path, _)| !path.starts_with("x-")).filter_map(|(_, item)| item.as_object());
    items.map(|item| methods.iter().filter(|method| item.get(**method).is_some_and(Json::is_object)).count()).sum()
}

/// Replaces the names in a message, so that equal problems are counted together.
fn general(message: &str) -> String {
    let parts = message.split('`').enumerate();
    let line: String = parts.map(|(index, part)| if index % 2 == 1 { "`…`" } else { part }).collect();
    line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

fn files(folder: &Path, found: &mut VecDeque<PathBuf>) {
    if folder.is_file() {
        return found.push_back(folder.to_owned());
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return eprintln!("cannot read {}", folder.display()) };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_document = path.extension().is_some_and(|extension| extension == "yaml" || extension == "json");
        if path.is_dir() {
            files(&path, found);
        } else if is_document {
            found.push_back(path);
        }
    }
}

fn main() {
    let mut open = VecDeque::new();
    let mut is_listed = false;
    let mut counts_warnings = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--list" => is_listed = true,
            "--warnings" => counts_warnings = true,
            folder => files(Path::new(folder), &mut open),
        }
    }
    let open = Arc::new(Mutex::new(open));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let workers: Vec<_> = (0..threads)
        .filter_map(|_| {
            let open = Arc::clone(&open);
            let work = move || {
                let mut survey = Survey { is_listed, counts_warnings, ..Survey::default() };
                while let Some(path) = open.lock().ok().and_then(|mut open| open.pop_front()) {
                    survey.visit(&path);
                }
                survey
            };
            std::thread::Builder::new().stack_size(STACK).spawn(work).ok()
        })
        .collect();
    let mut survey = Survey::default();
    workers.into_iter().filter_map(|worker| worker.join().ok()).for_each(|part| survey.merge(part));
    println!("documents   {:>7}", survey.documents);
    println!("imported    {:>7}, {} of them with --server", survey.imported, survey.with_server);
    println!("clean       {:>7}", survey.clean);
    println!("operations  {:>7}", survey.operations);
    println!("tools       {:>7}", survey.tools);
    let total: Duration = survey.times.iter().map(|(time, _)| time).sum();
    println!("time        {total:>7.1?}");
    survey.times.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    for (time, document) in survey.times.iter().take(SLOWEST) {
        println!("{time:>9.1?}  {document}");
    }
    let mut problems: Vec<_> = survey.problems.into_iter().collect();
    problems.sort_by_key(|((kind, _), (times, _))| (*kind, std::cmp::Reverse(*times)));
    for ((kind, problem), (times, document)) in problems {
        println!("{times:>7}  {kind}: {problem}  ({document})");
    }
}
