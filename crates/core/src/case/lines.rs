//! Cases as JSON, a case in each line.

use super::check::Check;
use super::fields::Fields;
use super::{Case, Reading};
use crate::rule;
use patter_gram::{Diagnostic, Span};
use serde_json::{Map, Value as Json};

/// The keys of a case.
const KEYS: [&str; 4] = ["id", "input", "tags", "checks"];

pub(super) fn read(reading: &mut Reading<'_>, bytes: &[u8]) {
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(Json::Object(object)) => object_case(reading, number, object),
            Ok(_) => {
                let hint = r#"write `{"input": "Hello!", "checks": [{"contains": "Hello"}]}`"#;
                reading.problem(number, "a case is a JSON object", Some(hint.to_owned()));
            }
            Err(error) => {
                let message = error.to_string();
                // Of a single line, only the column says something.
                let what = message.split(" at line ").next().unwrap_or_default();
                let message = format!("this line is no JSON: {what} at column {}", error.column());
                reading.problem(number, message, Some("write each case in one line".to_owned()));
            }
        }
    }
}

/// Takes a case that is a JSON object; its line is its name where it has none.
pub(super) fn object_case(reading: &mut Reading<'_>, line: usize, object: Map<String, Json>) {
    let mut fields = Fields::of_object("a case", object);
    fields.known(&KEYS);
    let id = id(&mut fields).unwrap_or_else(|| line.to_string());
    let (turns, tags) = said(&mut fields);
    let checks = checks(&mut fields);
    let place = reading.place(line);
    match turns {
        Some(turns) if fields.found.is_empty() => reading.case(line, Case { id, turns, tags, checks, place }),
        _ => reading.found(line, fields.found),
    }
}

/// Reads what a person says, and the tags.
pub(super) fn said(fields: &mut Fields) -> (Option<Vec<String>>, Vec<String>) {
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
        fields.found.push(rule::NO_INPUT.at(span, message).with_hint("say what a person says: `input: \"Hello!\"`"));
    }
    (None, tags)
}

fn id(fields: &mut Fields) -> Option<String> {
    let value = &fields.get("id")?.value;
    let id = match value {
        Json::Number(number) => number.to_string(),
        Json::String(text) => text.clone(),
        _ => String::new(),
    };
    if let Some(found) = wrong_id(&id, Span::at(0)) {
        fields.found.push(found);
    }
    Some(id)
}

/// Tells what is wrong with the name of a case: it stands in tables and in the names of tests.
pub(super) fn wrong_id(id: &str, span: Span) -> Option<Diagnostic> {
    const LONGEST: usize = 200;
    let is_wrong = id.trim().is_empty() || id.len() > LONGEST || id.chars().any(char::is_control);
    let message = format!("the name of a case is a text in one line, of at most {LONGEST} bytes");
    is_wrong.then(|| rule::WRONG_VALUE.at(span, message))
}

fn checks(fields: &mut Fields) -> Vec<Check> {
    let Some(value) = fields.json("checks") else { return Vec::new() };
    let Json::Array(items) = value else {
        let found = rule::WRONG_VALUE.at(Span::at(0), "`checks` takes a list of checks");
        fields.found.push(found.with_hint(r#"write `"checks": [{"contains": "Hello"}]`"#));
        return Vec::new();
    };
    let mut checks = Vec::with_capacity(items.len());
    for item in &items {
        match Check::parse(item) {
            Ok(check) => checks.push(check),
            Err(found) => fields.found.extend(found),
        }
    }
    checks
}
