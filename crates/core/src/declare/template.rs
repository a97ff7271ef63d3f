//! Templates with placeholders, such as `https://api.example.com/{city}`.
//!
//! `{name}` is replaced with an argument and `${NAME}` with an environment variable; `{{` and `}}` are literal braces.

use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// A text with placeholders.
///
/// ```
/// use patter_core::declare::template::{Part, Template};
/// use serde_json::json;
/// let template = Template::parse("/v1/{city}?key=${KEY}&style={{x}}").unwrap();
/// assert_eq!(template.parameters().collect::<Vec<_>>(), ["city"]);
/// assert_eq!(template.variables().collect::<Vec<_>>(), ["KEY"]);
/// assert_eq!(template.parts().last(), Some(&Part::Text("&style={x}".to_owned())));
/// assert_eq!(Template::parse("{city").unwrap_err().to_string(), "`{` is not closed");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// An argument of the call.
    Parameter(String),
    /// An environment variable. Its value is a secret.
    Variable(String),
}

/// An error in a template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A placeholder is not closed.
    #[error("`{0}` is not closed")]
    Unclosed(&'static str),
    /// A closing brace does not close a placeholder.
    #[error("unmatched `}}`")]
    Unmatched,
    /// The name of a placeholder is invalid.
    #[error("`{0}` is not a valid placeholder name")]
    Name(String),
}

impl TemplateError {
    /// Returns a hint on how to fix the error.
    pub fn hint(&self) -> &'static str {
        match self {
            TemplateError::Unclosed(_) | TemplateError::Unmatched => "write `{{` and `}}` for literal braces",
            TemplateError::Name(_) => {
                "write `{{` and `}}` for literal braces; a placeholder is a parameter, as in `{city}`, or an environment \
                 variable, as in `${TOKEN}`"
            }
        }
    }
}

impl Template {
    /// Parses a template.
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
            let Some(inside) = from.strip_prefix('{') else { return Err(TemplateError::Unmatched) };
            let Some((name, after)) = inside.split_once('}') else {
                return Err(TemplateError::Unclosed(if is_variable { "${" } else { "{" }));
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

    /// Creates a template from its parts.
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

    /// Iterates over the names of the environment variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Text(_) | Part::Parameter(_) => None,
        })
    }

    /// Returns the text, if it has neither parameters nor variables.
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the parameter that makes up the whole template, if there is one: `{tags}` is the value itself, not its text.
    pub fn sole_parameter(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Parameter(name)] => Some(name),
            _ => None,
        }
    }
}

/// Formats the template in the form in which it is parsed.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Part::Parameter(name) => write!(f, "{{{name}}}"),
            Part::Variable(name) => write!(f, "${{{name}}}"),
        })
    }
}

/// Returns the text of an argument: strings unchanged, other values as JSON. Returns `None` if it is missing or null.
pub fn argument_text<'a>(arguments: &'a Map<String, Json>, name: &str) -> Option<Cow<'a, str>> {
    match arguments.get(name)? {
        Json::Null => None,
        Json::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}
