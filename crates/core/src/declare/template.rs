//! Texts with holes: `https://api.example.com/{city}`.
//!
//! `{name}` stands for an argument, `${NAME}` for a variable of the environment; `{{` and `}}` stand for the braces.

use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// A text with holes.
///
/// ```
/// use patter_core::declare::template::{Part, Template};
/// use serde_json::json;
/// let template = Template::parse("/v1/{city}?key=${KEY}&style={{x}}").unwrap();
/// assert_eq!(template.parameters().collect::<Vec<_>>(), ["city"]);
/// assert_eq!(template.variables().collect::<Vec<_>>(), ["KEY"]);
/// assert_eq!(template.parts().last(), Some(&Part::Text("&style={x}".to_owned())));
/// assert_eq!(Template::parse("{city").unwrap_err().to_string(), "`{` has no `}`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text that stands for itself.
    Text(String),
    /// An argument of the call.
    Parameter(String),
    /// A variable of the environment. What it holds is a secret.
    Variable(String),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A hole does not end.
    #[error("`{0}` has no `}}`")]
    Open(&'static str),
    /// A hole does not begin.
    #[error("`}}` has no `{{` before it")]
    Close,
    /// A hole names nothing.
    #[error("`{0}` is not a name")]
    Name(String),
}

impl TemplateError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            TemplateError::Open(_) | TemplateError::Close => "write `{{` and `}}` for braces that stand for themselves",
            TemplateError::Name(_) => {
                "write the name of a parameter, as in `{city}`, or of a variable, as in `${TOKEN}`"
            }
        }
    }
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                literal.push_str(before);
                literal.push_str(from.get(..1).unwrap_or_default());
                rest = after;
                continue;
            }
            let is_variable = before.ends_with('$');
            let Some(inside) = from.strip_prefix('{') else { return Err(TemplateError::Close) };
            let Some((name, after)) = inside.split_once('}') else {
                return Err(TemplateError::Open(if is_variable { "${" } else { "{" }));
            };
            if name.is_empty() || name.contains(|c: char| c == '{' || c.is_whitespace() || c.is_control()) {
                return Err(TemplateError::Name(name.to_owned()));
            }
            literal.push_str(before.strip_suffix('$').filter(|_| is_variable).unwrap_or(before));
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            let name = name.to_owned();
            parts.push(if is_variable { Part::Variable(name) } else { Part::Parameter(name) });
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { parts })
    }

    /// Puts parts together.
    pub fn from_parts(parts: impl IntoIterator<Item = Part>) -> Self {
        Self { parts: parts.into_iter().collect() }
    }

    /// Returns the parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Iterates over the names of the parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Parameter(name) => Some(name.as_str()),
            Part::Text(_) | Part::Variable(_) => None,
        })
    }

    /// Iterates over the names of the variables of the environment, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Text(_) | Part::Parameter(_) => None,
        })
    }

    /// Returns the parameter that is all of the template, if it is one: `{tags}` is the value itself, not text of it.
    pub fn whole_parameter(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Parameter(name)] => Some(name),
            _ => None,
        }
    }
}

/// Writes the template as it is read.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Part::Parameter(name) => write!(f, "{{{name}}}"),
            Part::Variable(name) => write!(f, "${{{name}}}"),
        })
    }
}

/// Writes an argument as text: text as it is, other values as JSON. What is not there, or null, is nothing.
pub fn argument_text<'a>(arguments: &'a Map<String, Json>, name: &str) -> Option<Cow<'a, str>> {
    match arguments.get(name)? {
        Json::Null => None,
        Json::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}
