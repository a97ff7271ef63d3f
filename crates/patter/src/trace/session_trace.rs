//! The trace of a session that is over.

use super::settings::{message_content, resource};
use patter_core::session::LogError;
use patter_core::trace::{Attribute, ExportRequest, Span, encode_span, session_spans, to_json};
use serde_json::Value as Json;

/// The spans of a stored session, as if it had been traced when it ran. Runs that have not ended are left out, except for
/// what ended in them.
///
/// ```
/// use patter::trace::SessionTrace;
/// let trace = SessionTrace::new("20261116-1", &[], |_| None).unwrap();
/// assert!(trace.spans.is_empty());
/// assert_eq!(trace.to_json()["resourceSpans"][0]["scopeSpans"][0]["scope"]["name"], "patter");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SessionTrace {
    /// The attributes of the program.
    pub resource: Vec<Attribute>,
    /// The spans, in the order in which they ended.
    pub spans: Vec<Span>,
}

impl SessionTrace {
    /// Derives the spans from the entries of a session's log. `variable` looks up the variables that describe the program,
    /// and whether spans contain what was said.
    pub fn new(session: &str, entries: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<Self, LogError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let mut warnings = Vec::new();
        let content = message_content(&set, &mut warnings);
        let mut parsed = Vec::with_capacity(entries.len());
        for (index, text) in entries.iter().enumerate() {
            let entry = serde_json::from_str(text);
            parsed.push(entry.map_err(|error| LogError { number: index + 1, message: error.to_string() })?);
        }
        Ok(Self { resource: resource(&set, &mut warnings), spans: session_spans(session, parsed, content)? })
    }

    /// Returns an OTLP request in protobuf.
    pub fn to_protobuf(&self) -> Vec<u8> {
        let spans: Vec<_> = self.spans.iter().map(encode_span).collect();
        ExportRequest::new(&self.resource, env!("CARGO_PKG_VERSION")).encode(spans.iter().map(Vec::as_slice))
    }

    /// Returns an OTLP request in JSON.
    pub fn to_json(&self) -> Json {
        to_json(&self.resource, env!("CARGO_PKG_VERSION"), &self.spans)
    }
}
