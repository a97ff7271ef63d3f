//! Errors and warnings about a text.

use crate::Span;
use std::borrow::Cow;
use std::fmt;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The text is well-formed, but probably not what was intended.
    Warning,
    /// The text is not well-formed.
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

/// An error or warning about a piece of text: what is wrong, where, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code of the rule, such as `G012`.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The text that is wrong.
    pub span: Span,
    /// What is wrong, in lowercase and without a full stop.
    pub message: Cow<'static, str>,
    /// Other spans that explain the problem ("opened here").
    pub related: Vec<RelatedSpan>,
    /// How to fix it.
    pub hint: Option<Cow<'static, str>>,
}

/// A span that helps to explain a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedSpan {
    /// The span.
    pub span: Span,
    /// How it relates to the problem.
    pub message: Cow<'static, str>,
}

impl Diagnostic {
    /// Creates an error without related spans or a hint.
    pub fn error(code: &'static str, span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, severity: Severity::Error, span, message: message.into(), related: Vec::new(), hint: None }
    }

    /// Creates a warning without related spans or a hint.
    pub fn warning(code: &'static str, span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Adds a hint.
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a related span.
    pub fn with_related(mut self, span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        self.related.push(RelatedSpan { span, message: message.into() });
        self
    }

    /// Returns whether this is an error, not a warning.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
