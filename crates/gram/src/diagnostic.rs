//! What can be wrong with a text, said so that it can be mended.

use crate::Span;
use std::borrow::Cow;
use std::fmt;

/// How grave a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The text is well-formed, but likely not what was meant.
    Warning,
    /// The text cannot be read as written.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// A finding about a piece of text: what is wrong, where, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code of the rule, such as `G012`.
    pub code: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// The text that is wrong.
    pub span: Span,
    /// What is wrong, in lowercase and without a full stop.
    pub message: Cow<'static, str>,
    /// Other places that explain it ("opened here").
    pub related: Vec<RelatedSpan>,
    /// What to do about it.
    pub hint: Option<Cow<'static, str>>,
}

/// A second place that helps to understand a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedSpan {
    /// The place.
    pub span: Span,
    /// What happened there.
    pub message: Cow<'static, str>,
}

impl Diagnostic {
    /// Makes an error without related places and without a hint.
    pub fn error(code: &'static str, span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, severity: Severity::Error, span, message: message.into(), related: Vec::new(), hint: None }
    }

    /// Makes a warning without related places and without a hint.
    pub fn warning(code: &'static str, span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Adds a hint.
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a related place.
    pub fn with_related(mut self, span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        self.related.push(RelatedSpan { span, message: message.into() });
        self
    }

    /// Tells whether this is an error, not a warning.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
