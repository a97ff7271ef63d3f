//! Values that placeholders stand for.

use crate::declare::template::{Part, Template};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

/// Something that has values by name.
pub trait Fields {
    /// Returns the value with a name.
    fn get(&self, name: &str) -> Option<&Json>;
}

impl Fields for Map<String, Json> {
    fn get(&self, name: &str) -> Option<&Json> {
        Map::get(self, name)
    }
}

/// Fills in the placeholders of a text: `{name}`, or `{name.field}`. Returns an error, for people to read, if a value is
/// missing.
///
/// ```
/// use patter_core::workflow::render;
/// let values = serde_json::json!({"customer": {"name": "Ada", "orders": [7]}});
/// let values = values.as_object().unwrap();
/// assert_eq!(render("Hello, {customer.name}: {customer.orders}", values).unwrap(), "Hello, Ada: [7]");
/// assert_eq!(render("{customer.age}", values).unwrap_err(), "`customer.age` has no value");
/// ```
pub fn render(text: &str, values: &dyn Fields) -> Result<String, String> {
    let template = Template::parse(text).map_err(|error| error.to_string())?;
    let mut rendered = String::new();
    for part in template.parts() {
        match part {
            Part::Text(text) => rendered.push_str(text),
            Part::Parameter(path) => rendered.push_str(&text_of(find(path, values)?)),
            Part::Variable(name) => return Err(format!("`${{{name}}}` is not available here")),
        }
    }
    Ok(rendered)
}

/// Fills in the placeholders of an instruction for an input: `{field}` is a field of it, and `{takes}` the input itself.
/// Returns `None` if a value is missing.
pub fn render_instruction(instruction: &str, input: &str) -> Option<String> {
    let value = serde_json::from_str(input).unwrap_or_else(|_| Json::from(input));
    let mut values = Map::new();
    values.insert("takes".to_owned(), value.clone());
    if let Json::Object(fields) = value {
        values.extend(fields);
    }
    render(instruction, &values).ok()
}

/// Fills in the placeholders of a text. A text that is only a placeholder is its value.
pub(super) fn render_value(text: &str, values: &dyn Fields) -> Result<Json, String> {
    let template = Template::parse(text).map_err(|error| error.to_string())?;
    match template.sole_parameter() {
        Some(path) => find(path, values).cloned(),
        None => render(text, values).map(Json::from),
    }
}

/// Returns the value of a placeholder.
fn find<'v>(path: &str, values: &'v dyn Fields) -> Result<&'v Json, String> {
    let mut names = path.split('.');
    let first = names.next().and_then(|name| values.get(name));
    let found = first.and_then(|first| names.try_fold(first, |value, name| value.get(name)));
    found.filter(|value| !value.is_null()).ok_or_else(|| format!("`{path}` has no value"))
}

/// Returns a value as text: texts as they are, other values as JSON.
pub(super) fn text_of(value: &Json) -> Cow<'_, str> {
    match value {
        Json::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}
