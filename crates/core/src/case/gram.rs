//! Cases in gram notation.

use super::check::Check;
use super::fields::{CaseField, CaseFields};
use super::lines::{check_id, read_input_and_tags};
use super::option::{CHECK_KINDS, CheckKind};
use super::{Case, CaseReader};
use crate::declare::DeclarationKind;
use crate::declare::head_span;
use crate::types::signature::value_to_json;
use crate::{rule, text::nearest};
use patter_gram::{
    Diagnostic, Dialect, Kind, LineIndex, Number, Pattern, PatternKind, Span, Syntax, Value, parse_bytes,
};
use serde_json::Value as Json;
use std::collections::HashMap;

/// A valid case, with the patterns of its checks.
pub(crate) struct ParsedCase<'t> {
    pub(crate) pattern: Pattern<'t>,
    pub(crate) id: String,
    pub(crate) turns: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) checks: Vec<(Check, Pattern<'t>)>,
}

pub(super) fn read(reader: &mut CaseReader<'_>, bytes: &[u8]) {
    let (tree, diagnostics) = parse_bytes(bytes, Dialect::Patter);
    let index = LineIndex::new(tree.source());
    let is_broken = diagnostics.iter().any(Diagnostic::is_error);
    for error in diagnostics.into_iter().filter(Diagnostic::is_error) {
        reader.report(index.line(error.span.start), vec![error]);
    }
    let mut ids = HashMap::new();
    for pattern in tree.patterns() {
        let (cases, problems) = match DeclarationKind::from_pattern(pattern) {
            Some(DeclarationKind::Cases) => read_cases(pattern, &mut ids),
            Some(DeclarationKind::Case) => (Vec::new(), vec![misplaced_case(pattern)]),
            _ => continue,
        };
        // After a syntax error, properties may seem to be missing that are not.
        for problem in problems.into_iter().filter(|_| !is_broken) {
            reader.report(index.line(problem.span.start), vec![problem]);
        }
        for ParsedCase { pattern, id, turns, tags, checks } in cases {
            let line = index.line(pattern.span().start);
            let checks = checks.into_iter().map(|(check, _)| check).collect();
            let location = reader.location(line);
            reader.add_case(line, Case { id, turns, tags, checks, location });
        }
    }
}

/// Reads a list of cases. `ids` holds the names of cases read before.
pub(crate) fn read_cases<'t>(
    pattern: Pattern<'t>,
    ids: &mut HashMap<String, Span>,
) -> (Vec<ParsedCase<'t>>, Vec<Diagnostic>) {
    let mut cases = Vec::new();
    let mut problems = match read_fields(pattern, "a list of cases") {
        Ok(mut fields) => {
            fields.reject_unknown(&[]);
            fields.problems
        }
        Err(problems) => problems,
    };
    for element in pattern.elements() {
        if DeclarationKind::from_pattern(element) != Some(DeclarationKind::Case) {
            problems.push(misplaced_element(element));
            continue;
        }
        let name = element.name().unwrap_or_default().into_owned();
        let span = element.identifier().map_or(element.span(), Syntax::span);
        if !name.is_empty() {
            if let Some(first) = ids.get(&name) {
                let message = format!("duplicate case `{name}`");
                let problem = rule::DUPLICATE_CASE.at(span, message).with_related(*first, "first defined here");
                problems.push(problem.with_hint("rename one of the two"));
                continue;
            }
            ids.insert(name.clone(), span);
        }
        match read_case(element, name) {
            Ok(case) => cases.push(case),
            Err(found) => problems.extend(found),
        }
    }
    (cases, problems)
}

/// Reports a case outside of a list of cases.
pub(crate) fn misplaced_case(pattern: Pattern<'_>) -> Diagnostic {
    let problem = rule::MISPLACED.at(head_span(pattern), "a case must be inside a list of cases");
    problem.with_hint("wrap it in `[:Cases | [name:Case {…} | …]]`")
}

fn misplaced_element(element: Pattern<'_>) -> Diagnostic {
    let problem = rule::MISPLACED.at(head_span(element), "a list of cases may only contain cases");
    let is_near = element.labels().any(|label| nearest(&label, ["Case"]).is_some());
    problem.with_hint(if is_near && element.kind() == PatternKind::Bracket {
        "did you mean the label `Case`?"
    } else {
        "write `[name:Case { input: \"…\" } | …]`"
    })
}

fn read_case(pattern: Pattern<'_>, id: String) -> Result<ParsedCase<'_>, Vec<Diagnostic>> {
    let mut fields = read_fields(pattern, "a case")?;
    check_name(pattern, &mut fields);
    reject_checks(&mut fields);
    fields.reject_unknown(&["input", "tags"]);
    let (turns, tags) = read_input_and_tags(&mut fields);
    let mut problems = fields.problems;
    let mut checks = Vec::new();
    for element in pattern.elements() {
        match read_check(element) {
            Ok(check) => checks.push((check, element)),
            Err(found) => problems.extend(found),
        }
    }
    match turns {
        Some(turns) if problems.is_empty() => Ok(ParsedCase { pattern, id, turns, tags, checks }),
        _ => Err(problems),
    }
}

/// Reports checks that are written as properties, as in JSON.
fn reject_checks(fields: &mut CaseFields) {
    let kind_of = |field: &CaseField| CHECK_KINDS.iter().find(|kind| kind.key == field.key);
    for (field, kind) in fields.fields.iter().filter_map(|field| Some((field, kind_of(field)?))) {
        let problem = rule::UNKNOWN_PROPERTY.at(field.key_span, format!("a case has no property `{}`", field.key));
        let hint =
            format!("checks are elements: `[name:Case {{ input: \"…\" }} | (:{} {{ {}: … }})]`", kind.label, kind.main);
        fields.problems.push(problem.with_hint(hint));
    }
    fields.fields.retain(|field| kind_of(field).is_none());
}

/// Reports a case without a name, or with a name among its properties.
fn check_name(pattern: Pattern<'_>, fields: &mut CaseFields) {
    let is_name = |field: &CaseField| matches!(field.key.as_str(), "name" | "id");
    let as_property = fields.fields.iter().find(|field| is_name(field)).map(|field| field.key_span);
    fields.fields.retain(|field| !is_name(field));
    let id = pattern.name().unwrap_or_default();
    fields.problems.extend(match as_property {
        Some(span) => {
            let problem = rule::NAME_PROPERTY.at(span, "the name of a case is not a property");
            Some(problem.with_hint("write it before the label, as in `[greets:Case …`, and remove this property"))
        }
        None if id.trim().is_empty() => {
            let problem = rule::MISSING_NAME.at(head_span(pattern), "this case has no name");
            Some(problem.with_hint("write the name before the label: `[name:Case …`"))
        }
        None => check_id(&id, head_span(pattern)),
    });
}

fn read_check(element: Pattern<'_>) -> Result<Check, Vec<Diagnostic>> {
    let labels: Vec<_> = element.labels().collect();
    let ([label], PatternKind::Node) = (labels.as_slice(), element.kind()) else {
        let problem = rule::BAD_CHECK.at(element.span(), "a check is a node with one label");
        return Err(vec![problem.with_hint("write `(:Contains { text: \"…\" })`")]);
    };
    let span = element.syntax().child(Kind::Label).map_or(element.span(), Syntax::span);
    let kind = CheckKind::from_label(label, span).map_err(|problem| vec![problem])?;
    let mut fields = read_fields(element, &format!("`{label}`"))?;
    kind.read_check(&mut fields).ok_or(fields.problems)
}

/// Reads the properties of a pattern, or returns the problems in them.
fn read_fields(pattern: Pattern<'_>, owner: &str) -> Result<CaseFields, Vec<Diagnostic>> {
    let mut fields = Vec::new();
    let mut problems = Vec::new();
    for property in pattern.properties() {
        let Some(value) = property.value() else { continue };
        let key = property.key().into_owned();
        let key_span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
        match read_json(value) {
            Ok(json) => fields.push(CaseField { key, key_span, value: json, span: value.span() }),
            Err(problem) => problems.push(problem),
        }
    }
    let span = if pattern.kind() == PatternKind::Bracket { head_span(pattern) } else { pattern.span() };
    if problems.is_empty() {
        Ok(CaseFields { owner: owner.to_owned(), span, fields, problems, short: None })
    } else {
        Err(problems)
    }
}

/// Converts a value to JSON. Texts tagged `json` are parsed, measurements become texts, and ranges become lists of two.
fn read_json(syntax: Syntax<'_>) -> Result<Json, Diagnostic> {
    let wrong = || rule::WRONG_VALUE.at(syntax.span(), "this value cannot be converted to JSON");
    match syntax.kind() {
        Kind::Tagged if syntax.child(Kind::Tag).is_some_and(|tag| tag.text() == "json") => {
            let text = syntax.read_text().unwrap_or_default();
            serde_json::from_str(&text)
                .map_err(|error| rule::BAD_EXPRESSION.at(syntax.span(), format!("invalid JSON: {error}")))
        }
        Kind::String | Kind::Fence | Kind::Tagged => syntax.read_text().map(Json::from).ok_or_else(wrong),
        Kind::Symbol if syntax.text() == "null" => Ok(Json::Null),
        Kind::Measurement => Ok(Json::from(syntax.text())),
        Kind::Array => syntax.children().map(read_json).collect(),
        Kind::Map => {
            let entries = syntax.properties().filter_map(|property| Some((property.key(), property.value()?)));
            let entries = entries.map(|(key, value)| Ok((key.into_owned(), read_json(value)?)));
            entries.collect::<Result<_, _>>().map(Json::Object)
        }
        Kind::Range => {
            let Some(Value::Range { lower, upper }) = Value::read(syntax) else { return Err(wrong()) };
            let end = |end: Option<Number>| match end {
                None => Some(Json::Null),
                Some(Number::Integer(end)) => end.to_i64().map(Json::from),
                Some(_) => None,
            };
            Ok(Json::Array(vec![end(lower).ok_or_else(wrong)?, end(upper).ok_or_else(wrong)?]))
        }
        _ => Value::read(syntax).and_then(|value| value_to_json(&value)).ok_or_else(wrong),
    }
}
