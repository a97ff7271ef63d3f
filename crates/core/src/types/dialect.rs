//! Schemas as the providers of models take them.
//!
//! Each provider takes a subset of JSON Schema. [`view`] rewrites a schema for one of them, changes no more than it
//! must, and reports each change: whether the meaning was kept, weakened, or cannot be expressed at all. What a view
//! no longer says is still checked when a call arrives, as arguments are always checked against the signature.

mod gemini;
mod openai;
mod root;

use crate::types::keyword::{escaped, is_silent, pointer, references};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::fmt;

/// Which subset of JSON Schema a schema is rewritten for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaView {
    /// Tools of OpenAI with `strict`. The root is an object; every object is closed and has all of its properties
    /// required, so what may be left out becomes nullable: `null` stands for leaving it out. Assumed beside what is
    /// documented: a schema names its type, and nothing but definitions stands beside a `$ref`.
    OpenAiStrict,
    /// `input_schema` of Anthropic. The root is an object and no choice; inside everything passes.
    Anthropic,
    /// `parametersJsonSchema` of Gemini. Assumed is what is documented for schemas of answers: only the keywords
    /// `type`, `format`, `title`, `description`, `enum` of texts and numbers, `items`, `prefixItems`, `minItems`,
    /// `maxItems`, `minimum`, `maximum`, `anyOf`, `oneOf` (read as `anyOf`), `properties`, `additionalProperties`,
    /// `required`, `$defs` and `$ref`, nothing beside a `$ref`, and no circle of references through required
    /// properties.
    Gemini,
}

/// A schema as a provider takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Viewed {
    /// The schema, a valid JSON Schema 2020-12 if it came from one.
    pub schema: Json,
    /// What was changed, and what cannot be said.
    pub changes: Vec<Change>,
}

/// A difference between a schema and its view.
///
/// ```
/// use patter_core::types::dialect::{SchemaView, view};
/// let viewed = view(&serde_json::json!({ "type": "object", "allOf": [{}, {}] }), SchemaView::Anthropic);
/// assert_eq!(viewed.changes[0].to_string(), "`/allOf`: left out, the provider takes no choice at the root");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, as a JSON pointer into the schema as it came.
    pub pointer: String,
    /// What it does to the meaning.
    pub effect: Effect,
    /// What happened, for people.
    pub text: String,
}

/// What a change does to the meaning of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It is said in another way.
    Kept,
    /// The view says less: it allows more values.
    Weakened,
    /// The provider cannot take it, or the view does not mean the same.
    Inexpressible,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.text),
            pointer => write!(f, "`{pointer}`: {}", self.text),
        }
    }
}

impl Viewed {
    /// Returns the gravest effect of all changes, or `None` where nothing was changed.
    ///
    /// ```
    /// use patter_core::types::dialect::{Effect, SchemaView, view};
    /// use serde_json::json;
    /// let schema = json!({ "type": "object", "properties": { "x": { "type": "string", "format": "uri" } } });
    /// assert_eq!(view(&schema, SchemaView::Anthropic).effect(), None);
    /// assert_eq!(view(&schema, SchemaView::OpenAiStrict).effect(), Some(Effect::Weakened));
    /// ```
    pub fn effect(&self) -> Option<Effect> {
        self.changes.iter().map(|change| change.effect).max()
    }
}

/// Rewrites a schema for a provider.
///
/// ```
/// use patter_core::types::dialect::{SchemaView, view};
/// use serde_json::json;
/// let schema = json!({
///     "type": "object",
///     "properties": { "name": { "type": "string" }, "age": { "type": "integer", "default": 18 } },
///     "required": ["name"]
/// });
/// let viewed = view(&schema, SchemaView::OpenAiStrict);
/// assert_eq!(
///     viewed.schema.to_string(),
///     r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":["integer","null"]}},"required":["name","age"],"additionalProperties":false}"#
/// );
/// assert_eq!(viewed.changes[1].to_string(), "`/properties/age`: must be given, null stands for leaving it out");
/// ```
pub fn view(schema: &Json, view: SchemaView) -> Viewed {
    let mut report = Report::default();
    let root = root::object(schema, &mut report);
    let schema = match view {
        SchemaView::OpenAiStrict => openai::strict(&root, &mut report),
        SchemaView::Anthropic => Json::Object(root),
        SchemaView::Gemini => gemini::view(&root, &mut report),
    };
    dangling(&schema, &mut report);
    Viewed { schema, changes: report.changes }
}

/// Reports references to what the view does not have, or not in that place.
fn dangling(schema: &Json, report: &mut Report) {
    let definitions = ["$defs", "definitions"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_object());
    let mut found = Vec::new();
    references(schema, &mut found);
    definitions.flat_map(|named| named.values()).for_each(|definition| references(definition, &mut found));
    let mut seen = HashSet::new();
    for reference in found.into_iter().filter(|reference| seen.insert(*reference)) {
        if pointer(reference).and_then(|target| schema.pointer(&target)).is_none() {
            let text = format!("the view does not have what `{reference}` refers to");
            report.note(String::new(), Effect::Inexpressible, text);
        }
    }
}

/// Collects changes.
#[derive(Default)]
struct Report {
    changes: Vec<Change>,
}

impl Report {
    fn note(&mut self, pointer: String, effect: Effect, text: impl Into<String>) {
        self.changes.push(Change { pointer, effect, text: text.into() });
    }

    /// Notes that a keyword is left out.
    fn drop(&mut self, at: &str, keyword: &str) {
        let effect = if is_silent(keyword) { Effect::Kept } else { Effect::Weakened };
        let text = match effect {
            Effect::Kept => "left out, as it restricts nothing",
            _ => "left out, the provider does not take it",
        };
        self.note(format!("{at}/{}", escaped(keyword)), effect, text);
    }
}
