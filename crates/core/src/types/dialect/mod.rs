//! Schemas in the subset of JSON Schema that each provider supports.
//!
//! [`adapt`] rewrites a schema for a provider. It changes as little as possible and reports each change, with whether
//! the meaning was preserved, weakened, or cannot be expressed at all. Constraints that are lost on the way are still
//! enforced when a call arrives, because arguments are always checked against the signature. Defaults, which some providers
//! reject, become a part of the description.

mod root;
mod openai;
mod gemini;

use crate::types::keyword::{collect_references, escape_token, is_annotation, pointer};
use serde_json::{Map, Value as Json};
use std::collections::HashSet;
use std::fmt;

/// A subset of JSON Schema that a provider supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaDialect {
    /// OpenAI tools with `strict`. The root is an object; every object is closed and all its properties are required,
    /// so optional properties become nullable: `null` means omitted. Beyond the documentation this assumes that every
    /// schema has a type, and that only definitions may appear next to a `$ref`.
    OpenAiStrict,
    /// Anthropic's `input_schema`. The root is an object without combinations; everything is allowed inside.
    Anthropic,
    /// Gemini's `parametersJsonSchema`. This assumes what is documented for response schemas: only the keywords `type`,
    /// `format`, `title`, `description`, `enum` of strings and numbers, `items`, `prefixItems`, `minItems`, `maxItems`,
    /// `minimum`, `maximum`, `anyOf`, `oneOf` (treated as `anyOf`), `properties`, `additionalProperties`, `required`,
    /// `$defs` and `$ref`, nothing next to a `$ref`, and no recursion through required properties.
    Gemini,
}

/// A schema rewritten for a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptedSchema {
    /// The schema. It is a valid JSON Schema 2020-12 if the original is.
    pub schema: Json,
    /// The changes, including those that could not be made without losing meaning.
    pub changes: Vec<SchemaChange>,
}

/// A difference between a schema and its adaptation.
///
/// ```
/// use patter_core::types::dialect::{SchemaDialect, adapt};
/// let adapted = adapt(&serde_json::json!({ "type": "object", "allOf": [{}, {}] }), SchemaDialect::Anthropic);
/// assert_eq!(
///     adapted.changes[0].to_string(),
///     "`/allOf`: removed; the provider does not support combinations at the root"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaChange {
    /// The location, as a JSON pointer into the original schema.
    pub pointer: String,
    /// How much of the meaning was preserved.
    pub fidelity: Fidelity,
    /// A description for people.
    pub text: String,
}

/// How much of the meaning of a schema a change preserves, from all to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fidelity {
    /// The meaning is expressed in a different way.
    Preserved,
    /// A constraint is lost: more values are allowed.
    Weakened,
    /// The provider rejects the schema, or its meaning differs.
    Inexpressible,
}

impl fmt::Display for SchemaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.text),
            pointer => write!(f, "`{pointer}`: {}", self.text),
        }
    }
}

impl AdaptedSchema {
    /// Returns the worst fidelity of all changes, or `None` if nothing was changed.
    ///
    /// ```
    /// use patter_core::types::dialect::{Fidelity, SchemaDialect, adapt};
    /// use serde_json::json;
    /// let schema = json!({ "type": "object", "properties": { "x": { "type": "string", "format": "uri" } } });
    /// assert_eq!(adapt(&schema, SchemaDialect::Anthropic).fidelity(), None);
    /// assert_eq!(adapt(&schema, SchemaDialect::OpenAiStrict).fidelity(), Some(Fidelity::Weakened));
    /// ```
    pub fn fidelity(&self) -> Option<Fidelity> {
        self.changes.iter().map(|change| change.fidelity).max()
    }
}

/// Rewrites a schema for a provider.
///
/// ```
/// use patter_core::types::dialect::{SchemaDialect, adapt};
/// use serde_json::json;
/// let schema = json!({
///     "type": "object",
///     "properties": { "name": { "type": "string" }, "age": { "type": "integer", "default": 18 } },
///     "required": ["name"]
/// });
/// let adapted = adapt(&schema, SchemaDialect::OpenAiStrict);
/// assert_eq!(
///     adapted.schema.to_string(),
///     r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":["integer","null"],"description":"Default: 18"}},"required":["name","age"],"additionalProperties":false}"#
/// );
/// assert_eq!(adapted.changes[1].to_string(), "`/properties/age`: made required; null means omitted");
/// ```
pub fn adapt(schema: &Json, dialect: SchemaDialect) -> AdaptedSchema {
    let mut report = Report::default();
    let root = root::object_root(schema, &mut report);
    let schema = match dialect {
        SchemaDialect::OpenAiStrict => openai::adapt(&root, &mut report),
        SchemaDialect::Anthropic => Json::Object(root),
        SchemaDialect::Gemini => gemini::adapt(&root, &mut report),
    };
    report_dangling_references(&schema, &mut report);
    AdaptedSchema { schema, changes: report.changes }
}

/// Reports references to parts that the adapted schema does not have, or has moved.
fn report_dangling_references(schema: &Json, report: &mut Report) {
    let definitions = ["$defs", "definitions"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_object());
    let mut found = Vec::new();
    collect_references(schema, &mut found);
    definitions.flat_map(|named| named.values()).for_each(|definition| collect_references(definition, &mut found));
    let mut seen = HashSet::new();
    for reference in found.into_iter().filter(|reference| seen.insert(*reference)) {
        if pointer(reference).and_then(|target| schema.pointer(&target)).is_none() {
            let text = format!("the target of the reference `{reference}` is missing from the adapted schema");
            report.note(String::new(), Fidelity::Inexpressible, text);
        }
    }
}

/// The changes made so far.
#[derive(Default)]
struct Report {
    changes: Vec<SchemaChange>,
}

impl Report {
    fn note(&mut self, pointer: String, fidelity: Fidelity, text: impl Into<String>) {
        self.changes.push(SchemaChange { pointer, fidelity, text: text.into() });
    }

    /// Moves the default of a schema into its description, so that the model still knows it.
    fn describe_default(&mut self, at: &str, schema: &Map<String, Json>, out: &mut Map<String, Json>) {
        let Some(default) = schema.get("default") else { return };
        if default.is_null() {
            return self.removed(at, "default");
        }
        let description = out.get("description").and_then(Json::as_str).unwrap_or_default().trim_end();
        let description = match description {
            "" => format!("Default: {default}"),
            text if text.ends_with(['.', '!', '?']) => format!("{text} Default: {default}."),
            text => format!("{text} (default: {default})"),
        };
        out.insert("description".to_owned(), description.into());
        self.note(format!("{at}/default"), Fidelity::Preserved, "moved to the description");
    }

    /// Records that a keyword was removed.
    fn removed(&mut self, at: &str, keyword: &str) {
        let fidelity = if is_annotation(keyword) { Fidelity::Preserved } else { Fidelity::Weakened };
        let text = match fidelity {
            Fidelity::Preserved => "removed; it constrains nothing",
            _ => "removed; the provider does not support it",
        };
        self.note(format!("{at}/{}", escape_token(keyword)), fidelity, text);
    }
}
