//! Machine-readable reports.

use crate::error::CommandError;
use crate::file::{Input, unreadable};
use crate::inspect::UsedOverrides;
use patter::gram::{Diagnostic, LineIndex, Severity, Span};
use patter::project::{Finding, LoadedProject, Project};
use patter::query::{PathPart, Violation};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;

/// Returns the findings as one JSON document.
pub(super) fn json(
    loaded: &LoadedProject,
    findings: &[Finding],
    violations: &[Violation],
    problems: &[CommandError],
    overrides: &UsedOverrides,
) -> String {
    let indexes = indexes(&loaded.project, findings, violations);
    let paths = Paths::new(violations);
    let errors = findings.iter().filter(|finding| finding.diagnostic.is_error()).count();
    let found: Vec<_> =
        findings.iter().map(|finding| finding_json(&loaded.project, &indexes, &paths, finding)).collect();
    let file_json = |(path, cause): &(PathBuf, io::Error)| {
        let mut error = unreadable(&Input::Path(path.clone()), cause).to_json();
        if let Json::Object(error) = &mut error {
            error.insert("file".to_owned(), path.display().to_string().into());
        }
        error
    };
    let unreadable: Vec<_> = loaded.unreadable.iter().map(file_json).collect();
    let errors_json: Vec<_> = problems.iter().map(CommandError::to_json).collect();
    let mut document = json!({
        "version": 1,
        "findings": found,
        "unreadable": unreadable,
        "problems": errors_json,
        "summary": { "files": loaded.selected.len(), "errors": errors + problems.len(), "warnings": findings.len() - errors },
    });
    overrides.add_to(&mut document);
    format!("{document:#}\n")
}

/// Returns the findings as SARIF 2.1.0.
pub(super) fn sarif(
    loaded: &LoadedProject,
    findings: &[Finding],
    violations: &[Violation],
    problems: &[CommandError],
) -> String {
    let project = &loaded.project;
    let indexes = indexes(project, findings, violations);
    let paths = Paths::new(violations);
    let mut rules: BTreeMap<&str, String> = BTreeMap::new();
    for finding in findings {
        let code = finding.diagnostic.code;
        rules
            .entry(code)
            .or_insert_with(|| patter::rule::rule(code).map_or_else(String::new, |rule| rule.title.to_owned()));
    }
    let codes: Vec<_> = rules.keys().copied().collect();
    let rules: Vec<_> =
        rules.iter().map(|(code, title)| json!({ "id": code, "shortDescription": { "text": title } })).collect();
    let results: Vec<_> = findings.iter().map(|finding| result(project, &indexes, &codes, &paths, finding)).collect();
    let file_error = |(path, cause): &(PathBuf, io::Error)| unreadable(&Input::Path(path.clone()), cause);
    let unreadable: Vec<_> = loaded.unreadable.iter().map(file_error).collect();
    let notification = |problem: &CommandError| {
        let text = with_hint(problem.message(), problem.hint());
        json!({ "level": "error", "message": { "text": text } })
    };
    let notifications: Vec<_> = unreadable.iter().chain(problems).map(notification).collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": { "name": "patter", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules }
            },
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": notifications.is_empty(), "toolExecutionNotifications": notifications }],
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn result(
    project: &Project,
    indexes: &BTreeMap<usize, LineIndex<'_>>,
    codes: &[&str],
    paths: &Paths<'_>,
    finding: &Finding,
) -> Json {
    let Diagnostic { code, severity, span, message, related, hint } = &finding.diagnostic;
    let text = with_hint(message, hint.as_deref());
    let location = |span: Span| physical(project, indexes, finding.file, span);
    let mut result = json!({
        "ruleId": code,
        "ruleIndex": codes.iter().position(|other| other == code),
        "level": level(*severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": location(*span) }],
    });
    let path = paths.of(finding);
    let steps = path.iter().filter_map(|part| Some((part.place?, part.text.as_str())));
    let mut places: Vec<_> =
        steps.map(|(place, text)| (physical(project, indexes, place.file, place.span), text)).collect();
    // The path of a violation says more than what is related in the same file.
    if path.is_empty() {
        places.extend(related.iter().map(|related| (location(related.span), related.message.as_ref())));
    }
    let places: Vec<_> = places
        .into_iter()
        .enumerate()
        .map(|(id, (place, text))| json!({ "id": id, "physicalLocation": place, "message": { "text": text } }))
        .collect();
    if let (Json::Object(result), false) = (&mut result, places.is_empty()) {
        result.insert("relatedLocations".into(), places.into());
    }
    result
}

/// The paths that break policies, by what is unique about their findings. The hint says the path in words.
struct Paths<'v>(HashMap<(usize, &'v str, Option<&'v str>), &'v [PathPart]>);

impl<'v> Paths<'v> {
    fn new(violations: &'v [Violation]) -> Self {
        let path = |violation: &'v Violation| (Self::key(&violation.finding), violation.path.as_slice());
        Self(violations.iter().map(path).collect())
    }

    fn key(finding: &Finding) -> (usize, &str, Option<&str>) {
        (finding.file, &finding.diagnostic.message, finding.diagnostic.hint.as_deref())
    }

    /// Returns the path that breaks a policy, if the finding is about one.
    fn of(&self, finding: &Finding) -> &'v [PathPart] {
        self.0.get(&Self::key(finding)).copied().unwrap_or_default()
    }
}

/// SARIF has no place for a hint, so it follows the message.
fn with_hint(message: &str, hint: Option<&str>) -> String {
    hint.map_or_else(|| message.to_owned(), |hint| format!("{message}. {hint}"))
}

fn physical(project: &Project, indexes: &BTreeMap<usize, LineIndex<'_>>, file: usize, span: Span) -> Json {
    let path = project.files().get(file).map_or("", |file| file.path.as_str());
    let (start, end) = places(indexes, file, span);
    json!({
        "artifactLocation": { "uri": uri(path) },
        "region": { "startLine": start.0, "startColumn": start.1, "endLine": end.0, "endColumn": end.1 },
    })
}

fn finding_json(
    project: &Project,
    indexes: &BTreeMap<usize, LineIndex<'_>>,
    paths: &Paths<'_>,
    finding: &Finding,
) -> Json {
    let Diagnostic { code, severity, span, message, related, hint } = &finding.diagnostic;
    let place = |span: Span| {
        let (start, end) = places(indexes, finding.file, span);
        json!({
            "start": { "line": start.0, "column": start.1, "offset": span.start },
            "end": { "line": end.0, "column": end.1, "offset": span.end },
        })
    };
    let related: Vec<_> =
        related.iter().map(|related| json!({ "message": related.message, "span": place(related.span) })).collect();
    let mut document = json!({
        "code": code,
        "level": level(*severity),
        "message": message,
        "hint": hint,
        "file": project.files().get(finding.file).map(|file| &file.path),
        "span": place(*span),
        "related": related,
    });
    let path = paths.of(finding);
    if let (Json::Object(document), false) = (&mut document, path.is_empty()) {
        let part = |part: &PathPart| {
            let place = part.place.map(|place| project.location(place.file, place.span));
            json!({ "text": part.text, "place": place.or(part.source.clone()) })
        };
        document.insert("path".into(), path.iter().map(part).collect());
    }
    document
}

fn places(indexes: &BTreeMap<usize, LineIndex<'_>>, file: usize, span: Span) -> ((usize, usize), (usize, usize)) {
    match indexes.get(&file) {
        Some(index) => (index.line_column(span.start), index.line_column(span.end)),
        None => ((1, 1), (1, 1)),
    }
}

/// Indexes the lines of each file with findings once.
fn indexes<'p>(project: &'p Project, findings: &[Finding], violations: &[Violation]) -> BTreeMap<usize, LineIndex<'p>> {
    let mut indexes = BTreeMap::new();
    let steps = violations.iter().flat_map(|violation| &violation.path).filter_map(|part| Some(part.place?.file));
    for index in findings.iter().map(|finding| finding.file).chain(steps) {
        if let Some(file) = project.files().get(index) {
            indexes.entry(index).or_insert_with(|| LineIndex::new(file.tree.source()));
        }
    }
    indexes
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Returns a path as a relative URI.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
