//! Spans as values.

use crate::session::{SpanId, TraceId, TraceParent};
use std::borrow::Cow;

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The trace.
    pub trace_id: TraceId,
    /// The id of the span.
    pub span_id: SpanId,
    /// The span that it is a part of.
    pub parent: Option<SpanId>,
    /// The name.
    pub name: String,
    /// The side of a request that it describes.
    pub kind: SpanKind,
    /// The start in milliseconds since 1970.
    pub start_ms: u64,
    /// The end in milliseconds since 1970.
    pub end_ms: u64,
    /// The attributes.
    pub attributes: Vec<Attribute>,
    /// What happened in between.
    pub events: Vec<SpanEvent>,
    /// Related spans.
    pub links: Vec<TraceParent>,
    /// Whether it failed.
    pub status: SpanStatus,
}

/// The side of a request that a span describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work within the program.
    Internal,
    /// A request that the program answers.
    Server,
    /// A request to another program.
    Client,
}

/// Whether the work of a span failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SpanStatus {
    /// It did not fail.
    #[default]
    Unset,
    /// It failed, with a message that may be empty.
    Error(String),
}

/// An event within a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    /// The name.
    pub name: &'static str,
    /// The time in milliseconds since 1970.
    pub at_ms: u64,
    /// The attributes.
    pub attributes: Vec<Attribute>,
}

/// A named value of a span, an event or a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The name.
    pub name: Cow<'static, str>,
    /// The value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

impl Attribute {
    /// Returns an attribute.
    ///
    /// ```
    /// use patter_core::trace::{Attribute, AttributeValue};
    /// assert_eq!(Attribute::new("service.name", "shop").value, AttributeValue::Text("shop".into()));
    /// ```
    pub fn new(name: impl Into<Cow<'static, str>>, value: impl Into<AttributeValue>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for AttributeValue {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
