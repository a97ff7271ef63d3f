//! Spans in the protobuf form of OTLP, the OpenTelemetry protocol.
//!
//! The messages are those of `opentelemetry/proto/collector/trace/v1/trace_service.proto`. Only what spans of this module
//! have is written; fields with default values are left out, as protobuf prescribes.

use super::span::{Attribute, AttributeValue, Span, SpanEvent, SpanKind, SpanStatus};
use super::{SCHEMA_URL, SCOPE};
use crate::session::TraceParent;

/// The flag of a trace that is recorded.
const SAMPLED: u32 = 1;

/// The parts of an `ExportTraceServiceRequest` that are the same in all requests of a program.
///
/// ```
/// use patter_core::trace::{Attribute, ExportRequest};
/// let request = ExportRequest::new(&[Attribute::new("service.name", "shop")], "1.0.0");
/// assert!(request.encode([]).len() > 40);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRequest {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl ExportRequest {
    /// Returns requests with the attributes of a program, and the version of Patter.
    pub fn new(resource: &[Attribute], version: &str) -> Self {
        let mut attributes = Writer::default();
        resource.iter().for_each(|attribute| attributes.message(1, |writer| writer.attribute(attribute)));
        let mut scope = Writer::default();
        scope.text(1, SCOPE);
        scope.text(2, version);
        Self { resource: attributes.0, scope: scope.0 }
    }

    /// Returns a request with spans, each of which is the result of [`encode_span`].
    pub fn encode<'s>(&self, spans: impl IntoIterator<Item = &'s [u8]>) -> Vec<u8> {
        let mut scope_spans = Writer::default();
        scope_spans.bytes(1, &self.scope);
        spans.into_iter().for_each(|span| scope_spans.bytes(2, span));
        scope_spans.text(3, SCHEMA_URL);
        let mut resource_spans = Writer::default();
        resource_spans.bytes(1, &self.resource);
        resource_spans.bytes(2, &scope_spans.0);
        let mut request = Writer::default();
        request.bytes(1, &resource_spans.0);
        request.0
    }
}

/// Encodes a span as the message `Span`.
pub fn encode_span(span: &Span) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.bytes(1, &span.trace_id.0);
    writer.bytes(2, &span.span_id.0);
    if let Some(parent) = &span.parent {
        writer.bytes(4, &parent.0);
    }
    writer.text(5, &span.name);
    writer.varint(6, kind_number(span.kind));
    writer.fixed64(7, nanoseconds(span.start_ms));
    writer.fixed64(8, nanoseconds(span.end_ms));
    span.attributes.iter().for_each(|attribute| writer.message(9, |writer| writer.attribute(attribute)));
    span.events.iter().for_each(|event| writer.message(11, |writer| writer.event(event)));
    span.links.iter().for_each(|link| writer.message(13, |writer| writer.link(link)));
    if let SpanStatus::Error(message) = &span.status {
        writer.message(15, |writer| {
            writer.text(2, message);
            writer.varint(3, STATUS_ERROR);
        });
    }
    writer.fixed32(16, SAMPLED);
    writer.0
}

/// Returns how many spans a receiver rejected, and why, from the body of its response. A body that is not an
/// `ExportTraceServiceResponse` rejects nothing.
pub fn rejected_spans(response: &[u8]) -> (u64, String) {
    let mut rejected = 0;
    let mut message = String::new();
    for (field, value) in Fields(response) {
        if let (1, Field::Bytes(partial)) = (field, value) {
            for (field, value) in Fields(partial) {
                match (field, value) {
                    // A negative number makes no sense.
                    (1, Field::Varint(number)) => rejected = if number > i64::MAX as u64 { 0 } else { number },
                    (2, Field::Bytes(text)) => message = String::from_utf8_lossy(text).into_owned(),
                    _ => {}
                }
            }
        }
    }
    (rejected, message)
}

/// The number of the status `ERROR`.
pub(super) const STATUS_ERROR: u64 = 2;

/// Returns the number of a kind.
pub(super) const fn kind_number(kind: SpanKind) -> u64 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    }
}

pub(super) const fn nanoseconds(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

/// Writes fields of a message.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.number(field << 3 | wire_type);
    }

    fn varint(&mut self, field: u64, number: u64) {
        self.key(field, 0);
        self.number(number);
    }

    fn fixed64(&mut self, field: u64, number: u64) {
        self.key(field, 1);
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, 2);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn fixed32(&mut self, field: u64, number: u32) {
        self.key(field, 5);
        self.0.extend(number.to_le_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Writer)) {
        let mut inner = Writer::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn attribute(&mut self, attribute: &Attribute) {
        self.text(1, &attribute.name);
        self.message(2, |writer| writer.value(&attribute.value));
    }

    /// Writes an `AnyValue`. Its fields are alternatives, so default values are written too.
    fn value(&mut self, value: &AttributeValue) {
        match value {
            AttributeValue::Text(text) => self.bytes(1, text.as_bytes()),
            AttributeValue::Bool(value) => self.varint(2, u64::from(*value)),
            AttributeValue::Int(number) => self.varint(3, number.cast_unsigned()),
            AttributeValue::Float(number) => self.fixed64(4, number.to_bits()),
            AttributeValue::Texts(texts) => self.message(5, |array| {
                texts.iter().for_each(|text| array.message(1, |writer| writer.bytes(1, text.as_bytes())));
            }),
        }
    }

    fn event(&mut self, event: &SpanEvent) {
        self.fixed64(1, nanoseconds(event.at_ms));
        self.text(2, event.name);
        event.attributes.iter().for_each(|attribute| self.message(3, |writer| writer.attribute(attribute)));
    }

    fn link(&mut self, link: &TraceParent) {
        self.bytes(1, &link.trace_id.0);
        self.bytes(2, &link.span_id.0);
        self.fixed32(6, u32::from(link.is_sampled));
    }
}

/// A field of a message that is read.
enum Field<'b> {
    Varint(u64),
    Bytes(&'b [u8]),
    Other,
}

/// Reads the fields of a message, up to the first that is malformed.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = (u64, Field<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.number()?;
        let size = match key & 7 {
            0 => return Some((key >> 3, Field::Varint(self.number()?))),
            1 => 8,
            2 => usize::try_from(self.number()?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some((key >> 3, if key & 7 == 2 { Field::Bytes(bytes) } else { Field::Other }))
    }
}
