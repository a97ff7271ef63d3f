"""Decodes an OTLP request from stdin with the official classes, and prints it as JSON with ids in hexadecimal."""

import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

request = ExportTraceServiceRequest.FromString(sys.stdin.buffer.read())
document = MessageToDict(request, use_integers_for_enums=True)
for resource, decoded in zip(request.resource_spans, document["resourceSpans"]):
    for scope, decoded_scope in zip(resource.scope_spans, decoded["scopeSpans"]):
        for span, decoded_span in zip(scope.spans, decoded_scope["spans"]):
            del decoded_span["flags"]
            decoded_span["traceId"] = span.trace_id.hex()
            decoded_span["spanId"] = span.span_id.hex()
            if span.parent_span_id:
                decoded_span["parentSpanId"] = span.parent_span_id.hex()
json.dump(document, sys.stdout)
