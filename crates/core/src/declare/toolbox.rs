//! Declarations of toolboxes and record types.

use super::agent::DuplicateElementError;
use super::{DeclarationKind, OwnedPattern, ToolSpec};
use crate::types::signature::{Record, Records, SignatureError};
use patter_gram::Pattern;

/// A namespace of tools.
///
/// ```
/// use patter_core::{declare::Toolbox, gram::parse};
/// let (tree, _) = parse("[text:Toolbox | [count:Command {description: 'Counts', run: ['wc']} | (a::Text)==>(::Int)]]");
/// let toolbox = Toolbox::cast(tree.patterns().next().unwrap()).unwrap();
/// assert_eq!(toolbox.name().as_deref(), Some("text"));
/// assert_eq!(toolbox.tools().count(), 1);
/// assert_eq!(toolbox.without("count").tools().count(), 0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Toolbox {
    pattern: OwnedPattern,
}

declaration!(Toolbox);

impl Toolbox {
    /// Views a pattern as a toolbox, if it has the right label.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        (DeclarationKind::from_pattern(pattern) == Some(DeclarationKind::Toolbox))
            .then(|| Self { pattern: OwnedPattern::new(pattern) })
    }

    /// Iterates over the tools, in order.
    pub fn tools(&self) -> impl Iterator<Item = ToolSpec> {
        let tools: Vec<_> = self.pattern().into_iter().flat_map(Pattern::elements).filter_map(ToolSpec::cast).collect();
        tools.into_iter()
    }

    /// Returns the toolbox with another tool. No tool may have its name already.
    pub fn with_tool(&self, tool: &ToolSpec) -> Result<Self, DuplicateElementError> {
        let name = tool.name().unwrap_or_default();
        if self.tools().any(|other| other.name() == tool.name()) {
            let owner = self.name().unwrap_or_default().into_owned();
            return Err(DuplicateElementError { owner, name: name.into_owned() });
        }
        Ok(Self { pattern: self.pattern.with_element(&tool.to_string()) })
    }

    /// Returns the toolbox without the tools with a name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self { pattern: self.pattern.without_element(name) }
    }
}

/// The declaration of a record type: a named object for signatures.
///
/// ```
/// use patter_core::{declare::RecordType, gram::parse, types::signature::Records};
/// let (tree, _) = parse("[Address:Object | (city::Text)] // where");
/// let address = RecordType::cast(tree.patterns().next().unwrap()).unwrap();
/// assert_eq!(address.record(&Records::default()).unwrap().fields.len(), 1);
/// let wider = address.with_field("(zip::Text {optional: true})");
/// assert_eq!(wider.tree().to_string(), "[Address:Object | (city::Text), (zip::Text {optional: true})] // where");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RecordType {
    pattern: OwnedPattern,
}

declaration!(RecordType);

impl RecordType {
    /// Views a pattern as a record type, if it has the right label.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        (DeclarationKind::from_pattern(pattern) == Some(DeclarationKind::Record))
            .then(|| Self { pattern: OwnedPattern::new(pattern) })
    }

    /// Reads the fields.
    pub fn record(&self, records: &Records) -> Result<Record, SignatureError> {
        match self.pattern() {
            Some(pattern) => Record::read(pattern, records),
            None => Err(SignatureError { diagnostics: Vec::new() }),
        }
    }

    /// Returns the record type with another field, which is given as a node.
    #[must_use]
    pub fn with_field(&self, field: &str) -> Self {
        Self { pattern: self.pattern.with_element(field) }
    }

    /// Returns the record type without the fields with a name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self { pattern: self.pattern.without_element(name) }
    }
}
