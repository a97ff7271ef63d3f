//! Spans in the JSON form of OTLP.

use super::protobuf::{STATUS_ERROR, kind_number, nanoseconds};
use super::span::{Attribute, AttributeValue, Span, SpanStatus};
use super::{SCHEMA_URL, SCOPE};
use serde_json::{Map, Value as Json, json};

/// Returns an `ExportTraceServiceRequest` with the spans of a program. `version` is that of Patter.
///
/// ```
/// use patter_core::trace::{Attribute, to_json};
/// let json = to_json(&[Attribute::new("service.name", "shop")], "1.0.0", &[]);
/// assert_eq!(json["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "shop");
/// ```
pub fn to_json(resource: &[Attribute], version: &str, spans: &[Span]) -> Json {
    let spans: Vec<_> = spans.iter().map(span_json).collect();
    let scope = json!({"name": SCOPE, "version": version});
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes_json(resource)},
        "scopeSpans": [{"scope": scope, "spans": spans, "schemaUrl": SCHEMA_URL}],
    }]})
}

fn span_json(span: &Span) -> Json {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Json| fields.insert(name.to_owned(), value);
    add("traceId", span.trace_id.to_string().into());
    add("spanId", span.span_id.to_string().into());
    if let Some(parent) = &span.parent {
        add("parentSpanId", parent.to_string().into());
    }
    add("name", span.name.as_str().into());
    add("kind", kind_number(span.kind).into());
    add("startTimeUnixNano", time_json(span.start_ms));
    add("endTimeUnixNano", time_json(span.end_ms));
    add("attributes", attributes_json(&span.attributes));
    if !span.events.is_empty() {
        let events = span.events.iter().map(|event| {
            let attributes = attributes_json(&event.attributes);
            json!({"timeUnixNano": time_json(event.at_ms), "name": event.name, "attributes": attributes})
        });
        add("events", events.collect());
    }
    if !span.links.is_empty() {
        let links = span.links.iter();
        let links = links.map(|link| json!({"traceId": link.trace_id.to_string(), "spanId": link.span_id.to_string()}));
        add("links", links.collect());
    }
    if let SpanStatus::Error(message) = &span.status {
        add("status", json!({"message": message, "code": STATUS_ERROR}));
    }
    Json::Object(fields)
}

/// Returns a time as the decimal text that the JSON form has for 64-bit numbers.
fn time_json(ms: u64) -> Json {
    nanoseconds(ms).to_string().into()
}

fn attributes_json(attributes: &[Attribute]) -> Json {
    attributes.iter().map(|attribute| json!({"key": attribute.name, "value": value_json(&attribute.value)})).collect()
}

fn value_json(value: &AttributeValue) -> Json {
    match value {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        AttributeValue::Bool(value) => json!({"boolValue": value}),
        AttributeValue::Int(number) => json!({"intValue": number.to_string()}),
        AttributeValue::Float(number) => json!({"doubleValue": number}),
        AttributeValue::Texts(texts) => {
            let values: Vec<_> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}
