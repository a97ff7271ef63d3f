//! Machine-readable reports.

use crate::error::CommandError;
use crate::file::{Input, unreadable};
use crate::inspect::UsedOverrides;
use patter::gram::{Diagnostic, LineIndex, Severity, Span};
use patter::project::{Finding, LoadedProject, Project};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Returns the findings as one JSON document.
pub(super) fn json(
    loaded: &LoadedProject,
    findings: &[Finding],
    problems: &[CommandError],
    overrides: &UsedOverrides,
) -> String {
    let indexes = indexes(&loaded.project, findings);
    let errors = findings.iter().filter(|finding| finding.diagnostic.is_error()).count();
    let found: Vec<_> = findings.iter().map(|finding| finding_json(&loaded.project, &indexes, finding)).collect();
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
pub(super) fn sarif(loaded: &LoadedProject, findings: &[Finding], problems: &[CommandError]) -> String {
    let project = &loaded.project;
    let indexes = indexes(project, findings);
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
    let results: Vec<_> = findings.iter().map(|finding| result(project, &indexes, &codes, finding)).collect();
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

fn result(project: &Project, indexes: &BTreeMap<usize, LineIndex<'_>>, codes: &[&str], finding: &Finding) -> Json {
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
    if !related.is_empty() {
        let places: Vec<_> = related
            .iter()
            .enumerate()
            .map(|(id, related)| {
                json!({ "id": id, "physicalLocation": location(related.span), "message": { "text": related.message } })
            })
            .collect();
        if let Json::Object(result) = &mut result {
            result.insert("relatedLocations".into(), places.into());
        }
    }
    result
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

fn finding_json(project: &Project, indexes: &BTreeMap<usize, LineIndex<'_>>, finding: &Finding) -> Json {
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
    json!({
        "code": code,
        "level": level(*severity),
        "message": message,
        "hint": hint,
        "file": project.files().get(finding.file).map(|file| &file.path),
        "span": place(*span),
        "related": related,
    })
}

fn places(indexes: &BTreeMap<usize, LineIndex<'_>>, file: usize, span: Span) -> ((usize, usize), (usize, usize)) {
    match indexes.get(&file) {
        Some(index) => (index.line_column(span.start), index.line_column(span.end)),
        None => ((1, 1), (1, 1)),
    }
}

/// Indexes the lines of each file with findings once.
fn indexes<'p>(project: &'p Project, findings: &[Finding]) -> BTreeMap<usize, LineIndex<'p>> {
    let mut indexes = BTreeMap::new();
    for finding in findings {
        if let Some(file) = project.files().get(finding.file) {
            indexes.entry(finding.file).or_insert_with(|| LineIndex::new(file.tree.source()));
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
