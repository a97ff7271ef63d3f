//! Files in another notation than gram.

use crate::declare::DeclarationKind;
use crate::declare::project::File;
use crate::rule;
use patter_gram::{Diagnostic, Span};
use serde_json::{Deserializer, Value as Json};

/// Returns the diagnostics of the parser, or only one if the file is written in another notation: some of it is valid gram
/// that declares nothing, and the errors in the rest would be misleading.
pub(super) fn diagnostics(file: &File) -> Vec<Diagnostic> {
    match other_notation(file) {
        Some(found) => vec![found],
        None => file.diagnostics.clone(),
    }
}

fn other_notation(file: &File) -> Option<Diagnostic> {
    if file.tree.patterns().any(|pattern| DeclarationKind::from_pattern(pattern).is_some()) {
        return None;
    }
    let source = file.tree.source();
    let name = match source.trim_start().chars().next()? {
        '{' | '[' if is_json(source) => "JSON",
        _ if file.diagnostics.iter().any(Diagnostic::is_error) && is_yaml(source) => "YAML",
        _ => return None,
    };
    let start = source.len() - source.trim_start().len();
    let first_line = source.trim_start().lines().next().unwrap_or_default().trim_end();
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let span = Span { start: offset(start), end: offset(start + first_line.len()) };
    let found = rule::OTHER_NOTATION.at(span, format!("this file declares nothing; it looks like {name}"));
    Some(found.with_hint(
        "agents are written in gram, as in `[name:Agent {instruction: \"…\", model: \"…\"}]`; \
         cases may be in .jsonl and .csv files",
    ))
}

/// Returns whether a text is a JSON document with keys, or several of them.
fn is_json(source: &str) -> bool {
    let has_keys = |value: &Json| match value {
        Json::Object(fields) => !fields.is_empty(),
        Json::Array(items) => items.iter().any(Json::is_object),
        _ => false,
    };
    let mut documents = Deserializer::from_str(source).into_iter::<Json>().peekable();
    documents.peek().is_some() && documents.all(|document| document.is_ok_and(|document| has_keys(&document)))
}

/// Returns whether each line of a text is one of YAML, and the first is a key.
fn is_yaml(source: &str) -> bool {
    let is_key = |line: &str| {
        line.split_once(':').is_some_and(|(key, rest)| {
            let is_name = key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\''));
            is_name && !key.is_empty() && (rest.is_empty() || rest.starts_with(char::is_whitespace))
        })
    };
    let is_comment = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#') || *line == "---";
    let mut lines = source.lines().map(str::trim_end).filter(|line| !is_comment(line)).peekable();
    let Some(first) = lines.peek().copied() else { return false };
    let mut rest = lines.clone().skip(1).peekable();
    // A single line with a colon may be anything.
    is_key(first) && rest.peek().is_some() && rest.all(|line| line.starts_with([' ', '\t', '-']) || is_key(line))
}
