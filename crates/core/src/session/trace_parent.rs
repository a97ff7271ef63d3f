//! The ids of traces and spans, and references to spans as programs pass them on.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// A reference to a span of a trace, as the header `traceparent` of the W3C Trace Context recommendation has it.
///
/// ```
/// use patter_core::session::TraceParent;
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let parent: TraceParent = text.parse().unwrap();
/// assert!(parent.is_sampled);
/// assert_eq!(parent.to_string(), text);
/// assert!("00-00000000000000000000000000000000-00f067aa0ba902b7-01".parse::<TraceParent>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

/// An error parsing a [`TraceParent`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a `traceparent` such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`")]
pub struct TraceParentError;

impl FromStr for TraceParent {
    type Err = TraceParentError;

    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        let mut parts = text.trim().split('-');
        let mut next = || parts.next().ok_or(TraceParentError);
        let [version] = parse_hex(next()?)?;
        let trace_id: [u8; 16] = parse_hex(next()?)?;
        let span_id: [u8; 8] = parse_hex(next()?)?;
        let [flags] = parse_hex(next()?)?;
        // Later versions may have more parts.
        let has_more = parts.next().is_some();
        let is_valid = version != 0xff && (version > 0 || !has_more) && trace_id != [0; 16] && span_id != [0; 8];
        match is_valid {
            true => Ok(Self { trace_id: TraceId(trace_id), span_id: SpanId(span_id), is_sampled: flags & 1 == 1 }),
            false => Err(TraceParentError),
        }
    }
}

/// Parses lowercase hexadecimal digits.
fn parse_hex<const N: usize>(text: &str) -> Result<[u8; N], TraceParentError> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != N * 2 || !text.as_bytes().iter().all(is_digit) {
        return Err(TraceParentError);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| TraceParentError)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| TraceParentError)?;
    }
    Ok(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, span_id, is_sampled } = self;
        write!(f, "00-{trace_id}-{span_id}-{:02x}", u8::from(*is_sampled))
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
