//! The toolbox `json`: reading and changing documents.

use crate::tool::{Tool, ToolFailure};
use json_patch::{PatchOperation, patch as apply};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use serde_json_path::JsonPath;

/// The size limit of a document as text, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The number of values that a document or result may have.
const MAX_VALUES: usize = 50_000;
/// The size limit of a path, in bytes.
const MAX_PATH_BYTES: usize = 500;
/// The number of times that a path may contain a character. Each nested filter doubles the time to parse the path.
const MAX_OCCURRENCES: [(char, usize); 2] = [('?', 4), ('(', 20)];
/// The number of values that a path may visit, by an estimate that is never too low.
const MAX_VISITS: f64 = 1e7;
/// The number of operations that a patch may have.
const MAX_OPERATIONS: usize = 1_000;

pub(super) fn tools() -> Vec<Tool> {
    vec![get::tool(), query::tool(), patch::tool()]
}

/// Returns the part of a JSON document at a JSON Pointer
#[patter::tool(effect = "pure", blocking)]
fn get(
    /// The document, as a value or as JSON text
    document: Json,
    /// A JSON Pointer (RFC 6901) such as `/items/0/name`; empty for the whole document
    pointer: String,
) -> Result<Json, ToolFailure> {
    let mut document = parse(document)?.value;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(ToolFailure::new(format!("a JSON Pointer starts with `/`: use `/{pointer}`")));
    }
    if let Some(part) = document.pointer_mut(&pointer) {
        return Ok(part.take());
    }
    // The longest existing prefix of the pointer helps to find the error.
    let prefixes = pointer.match_indices('/').filter_map(|(at, _)| pointer.get(..at));
    let (prefix, value) = prefixes.filter_map(|part| Some((part, document.pointer(part)?))).next_back().unzip();
    let description = match value {
        Some(Json::Object(entries)) if entries.is_empty() => "an empty object".to_owned(),
        Some(Json::Object(entries)) => {
            let names: Vec<_> = entries.keys().take(20).map(|name| format!("`{name}`")).collect();
            format!("an object with {}", names.join(", "))
        }
        Some(Json::Array(items)) => format!("an array of {} items, with indices from 0", items.len()),
        _ => "neither an object nor an array".to_owned(),
    };
    let place = match prefix.unwrap_or_default() {
        "" => "the document".to_owned(),
        prefix => format!("`{prefix}`"),
    };
    Err(ToolFailure::new(format!("`{pointer}` does not exist: {place} is {description}")))
}

#[derive(Serialize, JsonSchema)]
struct QueryResult {
    matches: Vec<Match>,
    /// Whether there are more matches
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// The JSON Pointer of the value
    pointer: String,
    value: Json,
}

/// Finds the parts of a JSON document that a JSONPath selects
#[patter::tool(effect = "pure", blocking)]
fn query(
    /// The document, as a value or as JSON text
    document: Json,
    /// A JSONPath (RFC 9535, without `match` and `search`) such as `$.items[?@.price < 10].name`
    path: String,
    /// The maximum number of matches to return
    #[default = 100]
    limit: usize,
) -> Result<QueryResult, ToolFailure> {
    let document = parse(document)?;
    if path.len() > MAX_PATH_BYTES {
        let message = format!("the path has {} bytes; at most {MAX_PATH_BYTES} are allowed", path.len());
        return Err(ToolFailure::new(message));
    }
    for (sign, max) in MAX_OCCURRENCES {
        let count = path.matches(sign).count();
        if count > max {
            return Err(ToolFailure::new(format!(
                "the path contains `{sign}` {count} times; at most {max} are allowed"
            )));
        }
    }
    let parsed = JsonPath::parse(&path).map_err(|error| {
        let at = path.chars().count().min(error.position());
        ToolFailure::new(format!("invalid path at character {}: {}", at + 1, error.message()))
    })?;
    if estimate_visits(&path, &document) > MAX_VISITS {
        let message = "the path would visit too many values: use fewer `..`, `*`, `,` and `?`, or a smaller document";
        return Err(ToolFailure::new(message));
    }
    let found = parsed.query_located(&document.value);
    let more = found.len() > limit;
    let matches = found
        .iter()
        .take(limit)
        .map(|node| Match { pointer: node.location().to_json_pointer(), value: node.node().clone() });
    let matches: Vec<_> = matches.collect();
    if matches.iter().map(|part| count(&part.value)).sum::<usize>() > MAX_VALUES {
        return Err(ToolFailure::new(format!("the matches have more than {MAX_VALUES} values; request fewer")));
    }
    Ok(QueryResult { matches, more })
}

/// Applies a JSON Patch to a JSON document, and returns the changed document
#[patter::tool(effect = "pure", blocking)]
fn patch(
    /// The document, as a value or as JSON text
    document: Json,
    /// A JSON Patch (RFC 6902), such as `[{"op": "replace", "path": "/name", "value": "Ada"}]`
    operations: Vec<Json>,
) -> Result<Json, ToolFailure> {
    if operations.len() > MAX_OPERATIONS {
        let message = format!("the patch has {} operations; at most {MAX_OPERATIONS} are allowed", operations.len());
        return Err(ToolFailure::new(message));
    }
    let mut document = parse(document)?.value;
    for (position, operation) in operations.into_iter().enumerate() {
        let failed =
            |reason: String| ToolFailure::new(format!("operation {} of the patch failed: {reason}", position + 1));
        let operation: PatchOperation = serde_json::from_value(operation).map_err(|error| failed(error.to_string()))?;
        let path = operation.path().to_string();
        apply(&mut document, std::slice::from_ref(&operation))
            .map_err(|error| failed(format!("{} at `{path}`", error.kind)))?;
        let grows = matches!(operation, PatchOperation::Copy(_) | PatchOperation::Add(_));
        if grows && count(&document) > MAX_VALUES {
            return Err(failed(format!("the document would have more than {MAX_VALUES} values")));
        }
    }
    Ok(document)
}

struct Document {
    value: Json,
    values: usize,
}

/// Returns the document, which text contains as JSON.
fn parse(document: Json) -> Result<Document, ToolFailure> {
    let value = match document {
        Json::String(text) if text.len() > MAX_TEXT_BYTES => {
            let message = format!("the document has {} bytes; at most {MAX_TEXT_BYTES} are allowed", text.len());
            return Err(ToolFailure::new(message));
        }
        Json::String(text) => serde_json::from_str(&text)
            .map_err(|error| ToolFailure::new(format!("the document is not valid JSON: {error}")))?,
        value => value,
    };
    match count(&value) {
        values if values <= MAX_VALUES => Ok(Document { value, values }),
        values => Err(ToolFailure::new(format!("the document has {values} values; at most {MAX_VALUES} are allowed"))),
    }
}

/// Counts the values in a value, including itself.
fn count(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Json::Object(entries) => 1 + entries.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or_default(),
        _ => 1,
    }
}

/// Returns an upper bound of the number of values that a path visits.
///
/// The first `..` visits each value once, another one visits it as many times as it is deep. Each `,` may repeat a
/// selector. A filter visits each value once, and its own paths start again at each value.
fn estimate_visits(path: &str, document: &Document) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let (values, depth) = (document.values as f64, depth(&document.value) as f64);
    let mut visits = values;
    let mut descents = 0;
    // For each open bracket: whether it is a filter, and its number of selectors.
    let mut open: Vec<(bool, f64)> = Vec::new();
    let mut signs = path.chars().peekable();
    while let Some(sign) = signs.next() {
        let is_nested = open.iter().any(|(is_filter, _)| *is_filter);
        match sign {
            '\'' | '"' => skip_quoted(sign, &mut signs),
            '[' => open.push((false, 1.0)),
            ']' => visits *= open.pop().map_or(1.0, |(_, listed)| listed),
            ',' => open.iter_mut().last().into_iter().for_each(|(_, listed)| *listed += 1.0),
            '.' if signs.next_if_eq(&'.').is_some() => {
                visits *= if is_nested { values } else { 1.0 };
                visits *= if descents > 0 { depth } else { 1.0 };
                descents += 1;
            }
            '*' if is_nested => visits *= values,
            '?' => {
                visits *= if is_nested { values } else { 1.0 };
                open.iter_mut().last().into_iter().for_each(|(is_filter, _)| *is_filter = true);
            }
            _ => {}
        }
    }
    visits
}

/// Skips the rest of a quoted text.
fn skip_quoted(quote: char, signs: &mut impl Iterator<Item = char>) {
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => drop(signs.next()),
            _ if sign == quote => return,
            _ => {}
        }
    }
}
