//! Cases as JSON Lines.

use super::check::Check;
use super::fields::CaseFields;
use super::{Case, CaseReader};
use crate::rule;
use patter_gram::{Diagnostic, Span};
use serde_json::error::Category;
use serde_json::{Map, Value as Json};

/// The properties of a case.
const KEYS: [&str; 4] = ["id", "input", "tags", "checks"];

pub(super) fn read(reader: &mut CaseReader<'_>, bytes: &[u8]) {
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(Json::Object(object)) => read_object(reader, number, object),
            Ok(_) => {
                let hint = r#"write `{"input": "Hello!", "checks": [{"contains": "Hello"}]}`"#;
                reader.problem(number, "a case must be a JSON object", Some(hint.to_owned()));
            }
            Err(error) => {
                // The parser sees a single line, so only the column is meaningful.
                let (message, hint) = match error.classify() {
                    Category::Eof => ("this line is not complete JSON".to_owned(), "write each case on one line"),
                    _ => (
                        format!("this line is not valid JSON, from column {}", error.column()),
                        r#"write each case as an object on one line: `{"input": "Hello!"}`"#,
                    ),
                };
                reader.problem(number, message, Some(hint.to_owned()));
            }
        }
    }
}

/// Reads a case from a JSON object. Its line is its default name.
pub(super) fn read_object(reader: &mut CaseReader<'_>, line: usize, object: Map<String, Json>) {
    let mut fields = CaseFields::from_object("a case", object);
    fields.reject_unknown(&KEYS);
    let id = read_id(&mut fields).unwrap_or_else(|| line.to_string());
    let (turns, tags) = read_input_and_tags(&mut fields);
    let checks = read_checks(&mut fields);
    let location = reader.location(line);
    match turns {
        Some(turns) if fields.problems.is_empty() => reader.add_case(line, Case { id, turns, tags, checks, location }),
        _ => reader.report(line, fields.problems),
    }
}

/// Reads the user messages and the tags.
pub(super) fn read_input_and_tags(fields: &mut CaseFields) -> (Option<Vec<String>>, Vec<String>) {
    let is_blank = |text: &Json| text.as_str().is_some_and(|text| text.trim().is_empty());
    let is_empty = fields.get("input").is_none_or(|input| match &input.value {
        Json::Array(turns) => turns.is_empty() || turns.iter().any(is_blank),
        text => is_blank(text),
    });
    let tags = fields.texts("tags").unwrap_or_default();
    if !is_empty {
        return (fields.texts("input"), tags);
    }
    if !fields.is_misspelt("input") {
        let (span, message) = match fields.get("input") {
            Some(input) => (input.span, "the input of this case is empty"),
            None => (fields.span, "this case has no input"),
        };
        fields.problems.push(rule::NO_INPUT.at(span, message).with_hint("add the user's message: `input: \"Hello!\"`"));
    }
    (None, tags)
}

fn read_id(fields: &mut CaseFields) -> Option<String> {
    let value = &fields.get("id")?.value;
    let id = match value {
        Json::Number(number) => number.to_string(),
        Json::String(text) => text.clone(),
        _ => String::new(),
    };
    if let Some(problem) = check_id(&id, Span::at(0)) {
        fields.problems.push(problem);
    }
    Some(id)
}

/// Reports an invalid name of a case. Names are used in tables and as names of tests.
pub(super) fn check_id(id: &str, span: Span) -> Option<Diagnostic> {
    const MAX_LENGTH: usize = 200;
    let is_wrong = id.trim().is_empty() || id.len() > MAX_LENGTH || id.chars().any(char::is_control);
    let message = format!("the name of a case must be a single line of at most {MAX_LENGTH} bytes");
    is_wrong.then(|| rule::WRONG_VALUE.at(span, message))
}

fn read_checks(fields: &mut CaseFields) -> Vec<Check> {
    let Some(value) = fields.json("checks") else { return Vec::new() };
    let Json::Array(items) = value else {
        let problem = rule::WRONG_VALUE.at(Span::at(0), "`checks` must be a list of checks");
        fields.problems.push(problem.with_hint(r#"write `"checks": [{"contains": "Hello"}]`"#));
        return Vec::new();
    };
    let mut checks = Vec::with_capacity(items.len());
    for item in &items {
        match Check::parse(item) {
            Ok(check) => checks.push(check),
            Err(problems) => fields.problems.extend(problems),
        }
    }
    checks
}
