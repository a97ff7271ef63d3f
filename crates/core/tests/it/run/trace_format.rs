//! Spans as protobuf, read back by a decoder that knows nothing but the wire format.

use super::trace::everything;
use patter_core::trace::{
    Attribute, AttributeValue, ExportRequest, MessageContent, Span, SpanEvent, SpanId, SpanKind, SpanStatus, TraceId,
    TraceParent, encode_span, rejected_spans, to_json,
};
use proptest::prelude::*;

/// A field of a message.
#[derive(Debug, Clone, PartialEq)]
enum Field {
    Varint(u64),
    Fixed64(u64),
    Bytes(Vec<u8>),
    Fixed32(u32),
}

fn decode(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in 0.. {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << (7 * shift);
            if byte < 0x80 {
                break;
            }
        }
        number
    }
    fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut bytes)),
            1 => Field::Fixed64(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let count = varint(&mut bytes) as usize;
                Field::Bytes(take(&mut bytes, count).to_vec())
            }
            5 => Field::Fixed32(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap())),
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn messages(fields: &[(u64, Field)], number: u64) -> Vec<Vec<(u64, Field)>> {
    bytes_of(fields, number).iter().map(|bytes| decode(bytes)).collect()
}

fn bytes_of(fields: &[(u64, Field)], number: u64) -> Vec<Vec<u8>> {
    let found = fields.iter().filter(|(field, _)| *field == number);
    let found = found.map(|(_, field)| match field {
        Field::Bytes(bytes) => bytes.clone(),
        other => panic!("{other:?}"),
    });
    found.collect()
}

fn text(fields: &[(u64, Field)], number: u64) -> String {
    bytes_of(fields, number).pop().map_or_else(String::new, |bytes| String::from_utf8(bytes).unwrap())
}

fn fixed(fields: &[(u64, Field)], number: u64) -> u64 {
    match fields.iter().find(|(field, _)| *field == number) {
        Some((_, Field::Fixed64(time))) => *time,
        other => panic!("{other:?}"),
    }
}

fn attributes(fields: &[(u64, Field)], number: u64) -> Vec<Attribute> {
    let pairs = messages(fields, number).into_iter();
    let pairs = pairs.map(|pair| {
        let value = messages(&pair, 2).pop().unwrap();
        let value = match &value[..] {
            [(1, Field::Bytes(bytes))] => AttributeValue::Text(String::from_utf8(bytes.clone()).unwrap()),
            [(2, Field::Varint(number))] => AttributeValue::Bool(*number == 1),
            [(3, Field::Varint(number))] => AttributeValue::Int(number.cast_signed()),
            [(4, Field::Fixed64(bits))] => AttributeValue::Float(f64::from_bits(*bits)),
            [(5, Field::Bytes(array))] => {
                AttributeValue::Texts(messages(&decode(array), 1).iter().map(|item| text(item, 1)).collect())
            }
            other => panic!("{other:?}"),
        };
        Attribute::new(text(&pair, 1), value)
    });
    pairs.collect()
}

/// Compares an encoded span with the original.
fn check_span(fields: &[(u64, Field)], span: &Span) {
    assert_eq!(bytes_of(fields, 1), [span.trace_id.0.to_vec()]);
    assert_eq!(bytes_of(fields, 2), [span.span_id.0.to_vec()]);
    assert_eq!(bytes_of(fields, 4), span.parent.iter().map(|id| id.0.to_vec()).collect::<Vec<_>>());
    assert_eq!(text(fields, 5), span.name);
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    };
    assert!(fields.contains(&(6, Field::Varint(kind))));
    assert_eq!((fixed(fields, 7), fixed(fields, 8)), (span.start_ms * 1_000_000, span.end_ms * 1_000_000));
    assert_eq!(attributes(fields, 9), span.attributes);
    let events = messages(fields, 11);
    assert_eq!(events.len(), span.events.len());
    for (found, event) in events.iter().zip(&span.events) {
        assert_eq!((fixed(found, 1), text(found, 2)), (event.at_ms * 1_000_000, event.name.to_owned()));
        assert_eq!(attributes(found, 3), event.attributes);
    }
    let links = messages(fields, 13);
    assert_eq!(links.len(), span.links.len());
    for (found, link) in links.iter().zip(&span.links) {
        assert_eq!(bytes_of(found, 1), [link.trace_id.0.to_vec()]);
        assert_eq!(bytes_of(found, 2), [link.span_id.0.to_vec()]);
    }
    match (&span.status, &messages(fields, 15)[..]) {
        (SpanStatus::Unset, []) => {}
        (SpanStatus::Error(message), [status]) => {
            assert_eq!(text(status, 2), *message);
            assert!(status.contains(&(3, Field::Varint(2))));
        }
        other => panic!("{other:?}"),
    }
    assert!(fields.contains(&(16, Field::Fixed32(1))));
}

fn any_attributes() -> impl Strategy<Value = Vec<Attribute>> {
    let value = prop_oneof![
        ".{0,200}".prop_map(AttributeValue::Text),
        prop::collection::vec(".{0,5}", 0..4).prop_map(AttributeValue::Texts),
        any::<i64>().prop_map(AttributeValue::Int),
        any::<f64>().prop_filter("NaN differs from itself", |number| !number.is_nan()).prop_map(AttributeValue::Float),
        any::<bool>().prop_map(AttributeValue::Bool),
    ];
    prop::collection::vec(("[a-z.]{1,9}", value).prop_map(|(name, value)| Attribute::new(name, value)), 0..6)
}

fn any_span() -> impl Strategy<Value = Span> {
    let ids = (any::<[u8; 16]>(), any::<[u8; 8]>(), any::<Option<[u8; 8]>>());
    let times = (0..1u64 << 43, 0..1u64 << 43);
    let kind = prop_oneof![Just(SpanKind::Internal), Just(SpanKind::Server), Just(SpanKind::Client)];
    let status = prop_oneof![Just(SpanStatus::Unset), ".{0,9}".prop_map(SpanStatus::Error)];
    let event = (0..1u64 << 43, any_attributes());
    let event = event.prop_map(|(at_ms, attributes)| SpanEvent { name: "patter.delay", at_ms, attributes });
    let events = prop::collection::vec(event, 0..3);
    let link = (any::<[u8; 16]>(), any::<[u8; 8]>(), any::<bool>());
    let link = link.prop_map(|(trace_id, span_id, is_sampled)| TraceParent {
        trace_id: TraceId(trace_id),
        span_id: SpanId(span_id),
        is_sampled,
    });
    let rest = (".{0,20}", kind, status, any_attributes(), events, prop::collection::vec(link, 0..3));
    (ids, times, rest).prop_map(|((trace_id, span_id, parent), (start_ms, end_ms), rest)| {
        let (name, kind, status, attributes, events, links) = rest;
        Span {
            trace_id: TraceId(trace_id),
            span_id: SpanId(span_id),
            parent: parent.map(SpanId),
            name,
            kind,
            start_ms,
            end_ms,
            attributes,
            events,
            links,
            status,
        }
    })
}

proptest! {
    #[test]
    fn every_span_survives_encoding(span in any_span()) {
        check_span(&decode(&encode_span(&span)), &span);
    }

    #[test]
    fn responses_of_receivers_are_read_whatever_they_contain(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        rejected_spans(&bytes);
    }
}

#[test]
fn request_has_the_spans_of_a_session() {
    let spans = everything().spans(MessageContent::Included);
    let resource = [Attribute::new("service.name", "shop")];
    let encoded: Vec<_> = spans.iter().map(encode_span).collect();
    let request = ExportRequest::new(&resource, "1.2.3").encode(encoded.iter().map(Vec::as_slice));
    let resource_spans = &messages(&decode(&request), 1)[0];
    assert_eq!(attributes(&messages(resource_spans, 1)[0], 1), resource);
    let scope_spans = &messages(resource_spans, 2)[0];
    let scope = &messages(scope_spans, 1)[0];
    assert_eq!((text(scope, 1), text(scope, 2)), ("patter".to_owned(), "1.2.3".to_owned()));
    assert_eq!(text(scope_spans, 3), "https://opentelemetry.io/schemas/gen-ai/1.42.0");
    let found = messages(scope_spans, 2);
    assert_eq!(found.len(), spans.len());
    for (found, span) in found.iter().zip(&spans) {
        check_span(found, span);
    }
    // The JSON form says the same.
    let json = to_json(&resource, "1.2.3", &spans);
    let found = json["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    for (found, span) in found.iter().zip(&spans) {
        assert_eq!(found["spanId"], span.span_id.to_string());
        assert_eq!(found["name"], span.name);
        assert_eq!(found["endTimeUnixNano"], (span.end_ms * 1_000_000).to_string());
        assert_eq!(found["attributes"].as_array().unwrap().len(), span.attributes.len());
    }
}

#[test]
fn rejected_spans_are_counted() {
    let response = [0x0a, 6, 0x08, 3, 0x12, 2, b'n', b'o'];
    assert_eq!(rejected_spans(&response), (3, "no".to_owned()));
    assert_eq!(rejected_spans(&[]), (0, String::new()));
    assert_eq!(rejected_spans(b"<html>"), (0, String::new()));
}
