//! The variables that configure an exporter.

use patter::trace::{AttributeValue, MessageContent, TraceSettings};
use std::time::Duration;

fn read(variables: &[(&str, &str)]) -> Result<Option<TraceSettings>, String> {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    TraceSettings::from_variables(find)
        .map_err(|error| format!("{error}{}", error.hint.map_or_else(String::new, |hint| format!("; {hint}"))))
}

#[test]
fn nothing_is_exported_by_default() {
    for variables in [
        &[][..],
        &[("OTEL_SERVICE_NAME", "shop"), ("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"), ("OTEL_SDK_DISABLED", "true")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"), ("OTEL_TRACES_EXPORTER", "none")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
    ] {
        assert_eq!(read(variables), Ok(None), "{variables:?}");
    }
}

#[test]
fn address_is_found() {
    for (variables, expected) in [
        (&[("OTEL_TRACES_EXPORTER", "otlp")][..], "http://localhost:4318/v1/traces"),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1/")], "http://a:1/v1/traces"),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a/api/public/otel")], "https://a/api/public/otel/v1/traces"),
        (&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a:1/own")], "http://a:1/own"),
        (
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a/own"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b")],
            "http://a/own",
        ),
    ] {
        assert_eq!(read(variables).unwrap().unwrap().url.as_str(), expected, "{variables:?}");
    }
}

#[test]
fn settings_are_read() {
    let settings = read(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "700"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "900"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=a%2Cb, service.name=other"),
        ("OTEL_SERVICE_NAME", "shop"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY"),
        ("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("PATTER_TRACE_MODELS", "1"),
    ]);
    let settings = settings.unwrap().unwrap();
    assert_eq!(settings.timeout, Duration::from_millis(700));
    // A batch is no larger than the queue.
    assert_eq!((settings.max_queue, settings.max_batch), (100, 100));
    assert_eq!(settings.delay, Duration::from_millis(50));
    assert_eq!(settings.content, MessageContent::Included);
    assert!(settings.has_model_header && settings.parent.is_some() && settings.warnings.is_empty());
    let resource: Vec<_> = settings.resource.iter().map(|it| (&*it.name, &it.value)).take(2).collect();
    let text = |text: &str| AttributeValue::Text(text.to_owned());
    assert_eq!(resource, [("service.name", &text("shop")), ("deployment.environment", &text("a,b"))]);
}

#[test]
fn mistakes_are_explained() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
    let http = "use `http/protobuf`, which receivers usually offer on port 4318";
    for (variable, value, expected) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", format!("gRPC is not supported; {http}")),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", format!("the JSON form is not supported; {http}")),
        ("OTEL_TRACES_EXPORTER", "zipkin", "unknown exporter `zipkin`: use `otlp` or `none`".to_owned()),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "unknown compression `zstd`: use `gzip` or `none`".to_owned()),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "s3cret",
            "not a list of headers; write `name=value`, several separated by commas".to_owned(),
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "localhost:4318",
            "not an http or https URL; write an address such as `http://localhost:4318`".to_owned(),
        ),
    ] {
        assert_eq!(read(&[endpoint, (variable, value)]), Err(format!("`{variable}`: {expected}")));
    }
    // What is not decisive is a warning.
    let settings = read(&[
        endpoint,
        ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ("TRACEPARENT", "nonsense"),
        ("OTEL_RESOURCE_ATTRIBUTES", "nonsense"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "event_only"),
    ]);
    assert_eq!(
        settings.unwrap().unwrap().warnings,
        [
            "`OTEL_BSP_SCHEDULE_DELAY` is not a whole number; using 5000",
            "`OTEL_TRACES_SAMPLER`: `2` is not a number from 0 to 1; recording all traces",
            "`TRACEPARENT` is ignored: not a `traceparent` such as \
             `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`",
            "`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `event_only`, which adds nothing to spans; use \
             `span_only`",
            "`OTEL_RESOURCE_ATTRIBUTES`: `nonsense` is not an attribute such as `name=value`",
        ]
    );
}
