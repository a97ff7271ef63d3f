//! Declarations of tools.

use super::OwnedPattern;
use crate::rule;
use crate::types::definition::{Definition, DefinitionError};
use crate::types::schema::input_schema;
use crate::types::signature::{Records, Signature, SignatureError};
use patter_gram::{Diagnostic, Pattern, PatternKind, Span, parse, quote, quote_name};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use thiserror::Error;

/// The declaration of a tool: its name, description and signature.
///
/// ```
/// use patter_core::declare::ToolSpec;
/// let spec = ToolSpec::new("sayHello", "Returns a greeting", "(name::Text)==>(::Text)").unwrap();
/// assert_eq!(spec.name().as_deref(), Some("sayHello"));
/// assert_eq!(spec.to_string(), "[sayHello:Tool { description: \"Returns a greeting\" } | (name::Text)==>(::Text)]");
/// assert_eq!(spec.with_description("Greets").description().as_deref(), Some("Greets"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pattern: OwnedPattern,
}

/// An error when declaring a tool.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ToolSpecError {
    /// The name is empty.
    #[error("a tool needs a name")]
    Unnamed,
    /// The description is empty.
    #[error("the tool `{0}` needs a description")]
    Undescribed(String),
    /// The signature is invalid.
    #[error("tool `{name}`: {error}")]
    Signature {
        /// The name of the tool.
        name: String,
        /// The error in the signature.
        error: SignatureError,
    },
    /// The JSON form is incomplete.
    #[error("the JSON form of a tool must have the strings `name`, `description` and `typeSignature`")]
    Json,
}

declaration!(ToolSpec);

impl ToolSpec {
    /// DeclarationKind a tool from its parts.
    pub fn new(name: &str, description: &str, signature: &str) -> Result<Self, ToolSpecError> {
        if name.trim().is_empty() {
            return Err(ToolSpecError::Unnamed);
        }
        if description.trim().is_empty() {
            return Err(ToolSpecError::Undescribed(name.to_owned()));
        }
        let failed = |error| ToolSpecError::Signature { name: name.to_owned(), error };
        Signature::parse(signature).map_err(failed)?;
        let text =
            format!("[{}:Tool {{ description: {} }} | {}]", quote_name(name), quote(description), signature.trim());
        let (tree, _) = parse(&text);
        match tree.patterns().next() {
            Some(pattern) => Ok(Self { pattern: OwnedPattern::new(pattern) }),
            None => Err(ToolSpecError::Unnamed),
        }
    }

    /// Views a pattern as the declaration of a tool, if it has the right label.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        let is_tool = pattern.kind() == PatternKind::Bracket
            && pattern
                .labels()
                .any(|label| matches!(label.as_ref(), "Tool" | "ToolSpecification" | "Http" | "Command"));
        is_tool.then(|| Self { pattern: OwnedPattern::new(pattern) })
    }

    /// Reads the signature.
    pub fn signature(&self, records: &Records) -> Result<Signature, SignatureError> {
        match self.signature_pattern() {
            Some(path) => Signature::read(path, records),
            None => Err(SignatureError { diagnostics: vec![no_signature(self.span())] }),
        }
    }

    /// Returns the pattern of the signature.
    pub fn signature_pattern(&self) -> Option<Pattern<'_>> {
        self.pattern()?.elements().next()
    }

    /// Returns whether only a tool that matches exactly may implement the declaration.
    pub fn is_exact(&self) -> bool {
        let exact = self.pattern().and_then(|pattern| pattern.get("exact"));
        exact.and_then(patter_gram::Value::read) == Some(patter_gram::Value::Boolean(true))
    }

    /// Returns the schema of the arguments.
    pub fn schema(&self, records: &Records) -> Result<Json, SignatureError> {
        Ok(input_schema(&self.signature(records)?, records))
    }

    /// Returns the definition of the tool.
    pub fn definition(&self, records: &Arc<Records>) -> Result<Definition, DefinitionError> {
        let name = self.name().filter(|name| !name.is_empty()).ok_or(DefinitionError::Unnamed)?.into_owned();
        let Some(description) = self.description().filter(|text| !text.trim().is_empty()) else {
            return Err(DefinitionError::Undescribed(name));
        };
        match self.signature(records) {
            Ok(signature) => {
                Ok(Definition { name, description: description.into_owned(), signature, records: Arc::clone(records) })
            }
            Err(error) => Err(DefinitionError::Signature { name, error }),
        }
    }

    /// Returns the tool with a different signature.
    pub fn with_signature(&self, signature: &str) -> Result<Self, SignatureError> {
        Signature::parse(signature)?;
        Ok(Self {
            pattern: self.pattern.edit(|edit, pattern| match pattern.elements().next() {
                Some(old) => {
                    edit.replace(old, signature.trim());
                }
                None => {
                    edit.push_element(pattern, signature.trim());
                }
            }),
        })
    }

    /// Returns the JSON form. The schema is derived from `typeSignature` and is only informative.
    ///
    /// ```
    /// use patter_core::{declare::ToolSpec, types::signature::Records};
    /// let spec = ToolSpec::new("sayHello", "Greets", "(name::Text)==>(::String)").unwrap();
    /// let json = spec.to_json(&Records::default()).unwrap();
    /// assert_eq!(json["typeSignature"], "(name::Text)==>(::String)");
    /// assert_eq!(json["schema"]["required"][0], "name");
    /// assert_eq!(ToolSpec::from_json(&json).unwrap(), spec);
    /// ```
    pub fn to_json(&self, records: &Records) -> Result<Json, SignatureError> {
        let schema = self.schema(records)?;
        let signature = self.signature_pattern().map_or("", |path| path.syntax().text());
        Ok(json!({
            "name": self.name(),
            "description": self.description(),
            "typeSignature": signature,
            "schema": schema,
        }))
    }

    /// DeclarationKind a tool from its JSON form.
    pub fn from_json(json: &Json) -> Result<Self, ToolSpecError> {
        let text = |key: &str| json.get(key).and_then(Json::as_str).ok_or(ToolSpecError::Json);
        Self::new(text("name")?, text("description")?, text("typeSignature")?)
    }
}

/// Returns the diagnostic for a tool without a signature.
pub(crate) fn no_signature(span: Span) -> Diagnostic {
    rule::NO_SIGNATURE
        .at(span, "this tool has no signature")
        .with_hint("add the signature after a bar: `| (name::Text)==>(::Text)`")
}
