//! The toolbox `json`: reading and changing parts of documents.

use crate::tool::{Failure, Tool};
use json_patch::{PatchOperation, patch as apply};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use serde_json_path::JsonPath;

/// How long a document may be as text, in bytes.
const LONGEST_TEXT: usize = 1024 * 1024;
/// How many values a document may have, given or made.
const MOST_VALUES: usize = 50_000;
/// How long a path may be, in bytes.
const LONGEST_PATH: usize = 500;
/// How often a path may nest. Each filter in a filter doubles the time that it takes to read the path.
const MOST_NESTING: [(char, usize); 2] = [('?', 4), ('(', 20)];
/// How many values a path may look at, by an estimate that is never too low.
const MOST_STEPS: f64 = 1e7;
/// How many operations a patch may have.
const MOST_OPERATIONS: usize = 1_000;

pub(super) fn tools() -> Vec<Tool> {
    vec![get::tool(), query::tool(), patch::tool()]
}

/// Returns the part of a JSON document that a JSON Pointer names
#[patter::tool(effect = "pure", blocking)]
fn get(
    /// The document, as a value or as JSON text
    document: Json,
    /// A JSON Pointer (RFC 6901) such as `/items/0/name`; empty for the whole document
    pointer: String,
) -> Result<Json, Failure> {
    let mut document = read(document)?.value;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(Failure::new(format!("a JSON Pointer begins with `/`: write `/{pointer}`")));
    }
    if let Some(part) = document.pointer_mut(&pointer) {
        return Ok(part.take());
    }
    // The longest part of the pointer that leads somewhere tells where it goes wrong.
    let known = pointer.match_indices('/').filter_map(|(at, _)| pointer.get(..at));
    let (known, found) = known.filter_map(|part| Some((part, document.pointer(part)?))).next_back().unzip();
    let what = match found {
        Some(Json::Object(entries)) => {
            let names: Vec<_> = entries.keys().take(20).map(|name| format!("`{name}`")).collect();
            format!(
                "which is an object with {}",
                if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
            )
        }
        Some(Json::Array(items)) => format!("which is an array of {} items, counted from 0", items.len()),
        _ => "which is neither an object nor an array".to_owned(),
    };
    let place = match known.unwrap_or_default() {
        "" => "the document".to_owned(),
        part => format!("`{part}`"),
    };
    Err(Failure::new(format!("`{pointer}` leads nowhere: it goes wrong after {place}, {what}")))
}

#[derive(Serialize, JsonSchema)]
struct Found {
    matches: Vec<Match>,
    /// Whether there are more matches than were asked for
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// Where it is, as a JSON Pointer
    pointer: String,
    value: Json,
}

/// Finds all parts of a JSON document that a JSONPath selects
#[patter::tool(effect = "pure", blocking)]
fn query(
    /// The document, as a value or as JSON text
    document: Json,
    /// A JSONPath (RFC 9535, without `match` and `search`) such as `$.items[?@.price < 10].name`
    path: String,
    /// How many matches to return at most
    #[default = 100]
    limit: usize,
) -> Result<Found, Failure> {
    let document = read(document)?;
    if path.len() > LONGEST_PATH {
        let message = format!("the path has {} bytes; at most {LONGEST_PATH} are allowed", path.len());
        return Err(Failure::new(message));
    }
    for (sign, most) in MOST_NESTING {
        let count = path.matches(sign).count();
        if count > most {
            return Err(Failure::new(format!("the path has {count} of `{sign}`; at most {most} are allowed")));
        }
    }
    let parsed = JsonPath::parse(&path).map_err(|error| {
        let at = path.chars().count().min(error.position());
        Failure::new(format!("the path is wrong at character {}: {}", at + 1, error.message()))
    })?;
    if steps(&path, &document) > MOST_STEPS {
        let message =
            "the path would look at too many values: use fewer of `..`, `*`, `,` and `?`, or a smaller document";
        return Err(Failure::new(message));
    }
    let found = parsed.query_located(&document.value);
    let more = found.len() > limit;
    let matches = found
        .iter()
        .take(limit)
        .map(|node| Match { pointer: node.location().to_json_pointer(), value: node.node().clone() });
    let matches: Vec<_> = matches.collect();
    if matches.iter().map(|part| count(&part.value)).sum::<usize>() > MOST_VALUES {
        return Err(Failure::new(format!("the matches have more than {MOST_VALUES} values; ask for fewer")));
    }
    Ok(Found { matches, more })
}

/// Changes a JSON document by a JSON Patch, and returns the changed document
#[patter::tool(effect = "pure", blocking)]
fn patch(
    /// The document, as a value or as JSON text
    document: Json,
    /// A JSON Patch (RFC 6902), such as `[{"op": "replace", "path": "/name", "value": "Ada"}]`
    operations: Vec<Json>,
) -> Result<Json, Failure> {
    if operations.len() > MOST_OPERATIONS {
        let message = format!("the patch has {} operations; at most {MOST_OPERATIONS} are allowed", operations.len());
        return Err(Failure::new(message));
    }
    let mut document = read(document)?.value;
    for (position, operation) in operations.into_iter().enumerate() {
        let failed = |reason: String| Failure::new(format!("operation {} of the patch failed: {reason}", position + 1));
        let operation: PatchOperation = serde_json::from_value(operation).map_err(|error| failed(error.to_string()))?;
        let path = operation.path().to_string();
        apply(&mut document, std::slice::from_ref(&operation))
            .map_err(|error| failed(format!("{} at `{path}`", error.kind)))?;
        let grows = matches!(operation, PatchOperation::Copy(_) | PatchOperation::Add(_));
        if grows && count(&document) > MOST_VALUES {
            return Err(failed(format!("the document would have more than {MOST_VALUES} values")));
        }
    }
    Ok(document)
}

struct Document {
    value: Json,
    values: usize,
}

/// Returns the document: text is JSON that is still to be read.
fn read(document: Json) -> Result<Document, Failure> {
    let value = match document {
        Json::String(text) if text.len() > LONGEST_TEXT => {
            let message = format!("the document has {} bytes; at most {LONGEST_TEXT} are allowed", text.len());
            return Err(Failure::new(message));
        }
        Json::String(text) => serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("the document is text that is not JSON: {error}")))?,
        value => value,
    };
    match count(&value) {
        values if values <= MOST_VALUES => Ok(Document { value, values }),
        values => Err(Failure::new(format!("the document has {values} values; at most {MOST_VALUES} are allowed"))),
    }
}

/// Counts the values in a value, itself among them.
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

/// Returns how many values a path looks at, at most.
///
/// The first `..` meets each value once, a further one meets it as often as it is deep. Each `,` may say the same once
/// more. A filter looks at each value once; what it looks for in turn, it looks for at each value anew.
fn steps(path: &str, document: &Document) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let (values, depth) = (document.values as f64, depth(&document.value) as f64);
    let mut steps = values;
    let mut descents = 0;
    // Whether each open bracket is a filter, and how many things it lists.
    let mut open: Vec<(bool, f64)> = Vec::new();
    let mut signs = path.chars().peekable();
    while let Some(sign) = signs.next() {
        let is_nested = open.iter().any(|(is_filter, _)| *is_filter);
        match sign {
            '\'' | '"' => skip_text(sign, &mut signs),
            '[' => open.push((false, 1.0)),
            ']' => steps *= open.pop().map_or(1.0, |(_, listed)| listed),
            ',' => open.iter_mut().last().into_iter().for_each(|(_, listed)| *listed += 1.0),
            '.' if signs.next_if_eq(&'.').is_some() => {
                steps *= if is_nested { values } else { 1.0 };
                steps *= if descents > 0 { depth } else { 1.0 };
                descents += 1;
            }
            '*' if is_nested => steps *= values,
            '?' => {
                steps *= if is_nested { values } else { 1.0 };
                open.iter_mut().last().into_iter().for_each(|(is_filter, _)| *is_filter = true);
            }
            _ => {}
        }
    }
    steps
}

/// Passes over the rest of a text in quotes.
fn skip_text(quote: char, signs: &mut impl Iterator<Item = char>) {
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => drop(signs.next()),
            _ if sign == quote => return,
            _ => {}
        }
    }
}
