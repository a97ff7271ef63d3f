//! Cases as patterns.

use super::check::Check;
use super::fields::{Field, Fields};
use super::lines::{said, wrong_id};
use super::option::Sort;
use super::{Case, Reading};
use crate::declare::Declares;
use crate::declare::head_span;
use crate::types::signature::json_of;
use crate::{rule, text::nearest};
use patter_gram::{
    Diagnostic, Dialect, Kind, LineIndex, Number, Pattern, PatternKind, Span, Syntax, Value, parse_bytes,
};
use serde_json::Value as Json;
use std::collections::HashMap;

/// A case without mistakes, and the patterns of its checks.
pub(crate) struct ReadCase<'t> {
    pub(crate) pattern: Pattern<'t>,
    pub(crate) id: String,
    pub(crate) turns: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) checks: Vec<(Check, Pattern<'t>)>,
}

pub(super) fn read(reading: &mut Reading<'_>, bytes: &[u8]) {
    let (tree, diagnostics) = parse_bytes(bytes, Dialect::Patter);
    let index = LineIndex::new(tree.source());
    let is_broken = diagnostics.iter().any(Diagnostic::is_error);
    for found in diagnostics.into_iter().filter(Diagnostic::is_error) {
        reading.found(index.line(found.span.start), vec![found]);
    }
    let mut ids = HashMap::new();
    for pattern in tree.patterns() {
        let (cases, found) = match Declares::of(pattern) {
            Some(Declares::Cases) => read_list(pattern, &mut ids),
            Some(Declares::Case) => (Vec::new(), vec![alone(pattern)]),
            _ => continue,
        };
        // What is broken may have all that seems to be missing.
        for found in found.into_iter().filter(|_| !is_broken) {
            reading.found(index.line(found.span.start), vec![found]);
        }
        for ReadCase { pattern, id, turns, tags, checks } in cases {
            let line = index.line(pattern.span().start);
            let checks = checks.into_iter().map(|(check, _)| check).collect();
            let place = reading.place(line);
            reading.case(line, Case { id, turns, tags, checks, place });
        }
    }
}

/// Reads a list of cases. The names of those that were read before are not free.
pub(crate) fn read_list<'t>(
    pattern: Pattern<'t>,
    ids: &mut HashMap<String, Span>,
) -> (Vec<ReadCase<'t>>, Vec<Diagnostic>) {
    let mut cases = Vec::new();
    let mut found = match fields(pattern, "a list of cases") {
        Ok(mut fields) => {
            fields.known(&[]);
            fields.found
        }
        Err(found) => found,
    };
    for element in pattern.elements() {
        if Declares::of(element) != Some(Declares::Case) {
            found.push(misplaced(element));
            continue;
        }
        let name = element.name().unwrap_or_default().into_owned();
        let span = element.identifier().map_or(element.span(), Syntax::span);
        if !name.is_empty() {
            if let Some(first) = ids.get(&name) {
                let message = format!("there are two cases `{name}`");
                let diagnostic = rule::DUPLICATE_CASE.at(span, message).with_related(*first, "the first one");
                found.push(diagnostic.with_hint("give one of the two another name"));
                continue;
            }
            ids.insert(name.clone(), span);
        }
        match case(element, name) {
            Ok(case) => cases.push(case),
            Err(wrong) => found.extend(wrong),
        }
    }
    (cases, found)
}

/// Reports a case that stands alone.
pub(crate) fn alone(pattern: Pattern<'_>) -> Diagnostic {
    let found = rule::MISPLACED.at(head_span(pattern), "a case stands in a list of cases");
    found.with_hint("write `[:Cases | [name:Case {…} | …]]` around it")
}

fn misplaced(element: Pattern<'_>) -> Diagnostic {
    let found = rule::MISPLACED.at(head_span(element), "the elements of a list of cases are cases");
    let is_near = element.labels().any(|label| nearest(&label, ["Case"]).is_some());
    found.with_hint(if is_near && element.kind() == PatternKind::Bracket {
        "did you mean the label `Case`?"
    } else {
        "write `[name:Case { input: \"…\" } | …]`"
    })
}

fn case(pattern: Pattern<'_>, id: String) -> Result<ReadCase<'_>, Vec<Diagnostic>> {
    let mut fields = fields(pattern, "a case")?;
    name(pattern, &mut fields);
    fields.known(&["input", "tags"]);
    let (turns, tags) = said(&mut fields);
    let mut found = fields.found;
    let mut checks = Vec::new();
    for element in pattern.elements() {
        match check(element) {
            Ok(check) => checks.push((check, element)),
            Err(wrong) => found.extend(wrong),
        }
    }
    match turns {
        Some(turns) if found.is_empty() => Ok(ReadCase { pattern, id, turns, tags, checks }),
        _ => Err(found),
    }
}

/// Reports a case without a name, or with one among its properties.
fn name(pattern: Pattern<'_>, fields: &mut Fields) {
    let is_name = |field: &Field| matches!(field.key.as_str(), "name" | "id");
    let as_property = fields.fields.iter().find(|field| is_name(field)).map(|field| field.key_span);
    fields.fields.retain(|field| !is_name(field));
    let id = pattern.name().unwrap_or_default();
    fields.found.extend(match as_property {
        Some(span) => {
            let found = rule::NAME_PROPERTY.at(span, "the name of a case is not a property");
            Some(found.with_hint("write it before the label, as in `[greets:Case …`, and remove this"))
        }
        None if id.trim().is_empty() => {
            let found = rule::UNNAMED.at(head_span(pattern), "this case has no name");
            Some(found.with_hint("write the name before the label: `[name:Case …`"))
        }
        None => wrong_id(&id, head_span(pattern)),
    });
}

fn check(element: Pattern<'_>) -> Result<Check, Vec<Diagnostic>> {
    let labels: Vec<_> = element.labels().collect();
    let ([label], PatternKind::Node) = (labels.as_slice(), element.kind()) else {
        let found = rule::BAD_CHECK.at(element.span(), "a check is a node with one label");
        return Err(vec![found.with_hint("write `(:Contains { text: \"…\" })`")]);
    };
    let span = element.syntax().child(Kind::Label).map_or(element.span(), Syntax::span);
    let sort = Sort::of_label(label, span).map_err(|found| vec![found])?;
    let mut fields = fields(element, &format!("`{label}`"))?;
    sort.check(&mut fields).ok_or(fields.found)
}

/// Reads the properties of a pattern, all or none.
fn fields(pattern: Pattern<'_>, what: &str) -> Result<Fields, Vec<Diagnostic>> {
    let (mut fields, mut found) = (Vec::new(), Vec::new());
    for property in pattern.properties() {
        let Some(value) = property.value() else { continue };
        let key = property.key().into_owned();
        let key_span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
        match json(value) {
            Ok(json) => fields.push(Field { key, key_span, value: json, span: value.span() }),
            Err(wrong) => found.push(wrong),
        }
    }
    let span = if pattern.kind() == PatternKind::Bracket { head_span(pattern) } else { pattern.span() };
    if found.is_empty() { Ok(Fields { what: what.to_owned(), span, fields, found }) } else { Err(found) }
}

/// Reads a value as JSON: `null` and texts with the tag `json` for what they are, measurements as text, ranges as two ends.
fn json(syntax: Syntax<'_>) -> Result<Json, Diagnostic> {
    let wrong = || rule::WRONG_VALUE.at(syntax.span(), "this value has no JSON");
    match syntax.kind() {
        Kind::Tagged if syntax.child(Kind::Tag).is_some_and(|tag| tag.text() == "json") => {
            let text = syntax.read_text().unwrap_or_default();
            serde_json::from_str(&text)
                .map_err(|error| rule::BAD_EXPRESSION.at(syntax.span(), format!("this is no JSON: {error}")))
        }
        Kind::String | Kind::Fence | Kind::Tagged => syntax.read_text().map(Json::from).ok_or_else(wrong),
        Kind::Symbol if syntax.text() == "null" => Ok(Json::Null),
        Kind::Measurement => Ok(Json::from(syntax.text())),
        Kind::Array => syntax.children().map(json).collect(),
        Kind::Map => {
            let entries = syntax.properties().filter_map(|property| Some((property.key(), property.value()?)));
            let entries = entries.map(|(key, value)| Ok((key.into_owned(), json(value)?)));
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
        _ => Value::read(syntax).and_then(|value| json_of(&value)).ok_or_else(wrong),
    }
}
