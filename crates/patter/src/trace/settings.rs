//! The settings of an exporter, from the variables that all OpenTelemetry programs read.

use crate::http::Url;
use crate::http::header::{HeaderMap, HeaderName, HeaderValue};
use patter_core::trace::{Attribute, MessageContent, Sampler, SamplerError, TraceParent};
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// The receiver that is used if exporting is requested without naming one.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

/// Where spans are sent, and which.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct TraceSettings {
    /// The URL that spans are posted to.
    pub url: Url,
    /// The headers of requests, which may be secret.
    pub headers: HeaderMap,
    /// The time limit of a request.
    pub timeout: Duration,
    /// How requests are compressed.
    pub compression: Compression,
    /// The attributes of the program.
    pub resource: Vec<Attribute>,
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// Whether spans contain what was said.
    pub content: MessageContent,
    /// The span of another program that runs are a part of.
    pub parent: Option<TraceParent>,
    /// Whether requests to models have a `traceparent` header.
    pub has_model_header: bool,
    /// The maximum number of spans that wait to be sent.
    pub max_queue: usize,
    /// The maximum number of spans in a request.
    pub max_batch: usize,
    /// How long spans wait for others to be sent with.
    pub delay: Duration,
    /// A file with certificates to trust in addition to those that browsers trust.
    pub certificates: Option<String>,
    /// What is wrong with settings that are ignored.
    pub warnings: Vec<String>,
}

/// How requests are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// They are not.
    #[default]
    None,
    /// With gzip.
    Gzip,
}

/// An error in the settings of an exporter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{variable}`: {message}")]
pub struct TraceSettingsError {
    /// The variable.
    pub variable: String,
    /// What is wrong with its value. The value itself is not shown where it may be secret.
    pub message: String,
    /// How to fix it.
    pub hint: Option<&'static str>,
}

impl TraceSettingsError {
    fn new(variable: &str, message: impl Into<String>) -> Self {
        Self { variable: variable.to_owned(), message: message.into(), hint: None }
    }
}

impl TraceSettings {
    /// Reads the settings from variables. Returns `None` if nothing is to be exported: by default, unless a receiver is
    /// named.
    ///
    /// The variables must come from the user, never from the files of a project: they name the address that data is sent to.
    ///
    /// ```
    /// use patter::trace::TraceSettings;
    /// let set = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://localhost:6006".to_owned());
    /// let settings = TraceSettings::from_variables(set).unwrap().unwrap();
    /// assert_eq!(settings.url.as_str(), "http://localhost:6006/v1/traces");
    /// assert!(TraceSettings::from_variables(|_| None).unwrap().is_none());
    /// ```
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, TraceSettingsError> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let otlp = |name: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
            let general = format!("OTEL_EXPORTER_OTLP_{name}");
            set(&own).map(|value| (own, value)).or_else(|| set(&general).map(|value| (general, value)))
        };
        let mut warnings = Vec::new();
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let exporter = set("OTEL_TRACES_EXPORTER");
        match exporter.as_deref() {
            Some("none") => return Ok(None),
            Some("otlp") | None => {}
            Some(other) => {
                let message = format!("unknown exporter `{other}`: use `otlp` or `none`");
                return Err(TraceSettingsError::new("OTEL_TRACES_EXPORTER", message));
            }
        }
        let Some(url) = endpoint(&set, exporter.is_some())? else { return Ok(None) };
        if let Some((name, protocol)) = otlp("PROTOCOL") {
            check_protocol(&name, &protocol)?;
        }
        let headers = match otlp("HEADERS") {
            Some((name, value)) => parse_headers(&name, &value)?,
            None => HeaderMap::new(),
        };
        let compression = match otlp("COMPRESSION") {
            Some((_, value)) if value == "gzip" => Compression::Gzip,
            Some((name, value)) if value != "none" => {
                return Err(TraceSettingsError::new(
                    &name,
                    format!("unknown compression `{value}`: use `gzip` or `none`"),
                ));
            }
            _ => Compression::None,
        };
        let mut number = |name: &str, default: u64| match set(name).map(|value| value.parse()) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(_)) => {
                warnings.push(format!("`{name}` is not a whole number; using {default}"));
                default
            }
        };
        let max_queue = number("OTEL_BSP_MAX_QUEUE_SIZE", 2048).clamp(1, 1 << 20);
        let max_batch = number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512).clamp(1, max_queue);
        let delay = number("OTEL_BSP_SCHEDULE_DELAY", 5000);
        let limit = otlp("TIMEOUT").map_or_else(|| "OTEL_BSP_EXPORT_TIMEOUT".to_owned(), |(name, _)| name);
        let timeout = number(&limit, 10_000).max(1);
        let sampler = sampler(&set).unwrap_or_else(|error| {
            warnings.push(format!("`OTEL_TRACES_SAMPLER`: {error}; recording all traces"));
            Sampler::default()
        });
        let parent = set("TRACEPARENT").and_then(|text| {
            text.parse().inspect_err(|error| warnings.push(format!("`TRACEPARENT` is ignored: {error}"))).ok()
        });
        let content = message_content(&set, &mut warnings);
        Ok(Some(Self {
            url,
            headers,
            timeout: Duration::from_millis(timeout),
            compression,
            resource: resource(&set, &mut warnings),
            sampler,
            content,
            parent,
            has_model_header: set("PATTER_TRACE_MODELS").is_some_and(|value| matches!(value.as_str(), "1" | "true")),
            max_queue: usize::try_from(max_queue).unwrap_or(usize::MAX),
            max_batch: usize::try_from(max_batch).unwrap_or(usize::MAX),
            delay: Duration::from_millis(delay),
            certificates: otlp("CERTIFICATE").map(|(_, file)| file),
            warnings,
        }))
    }
}

/// Returns whether spans contain what was said.
pub(super) fn message_content(set: &impl Fn(&str) -> Option<String>, warnings: &mut Vec<String>) -> MessageContent {
    let variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    match set(variable).unwrap_or_default().to_ascii_lowercase().as_str() {
        "true" | "span_only" | "span_and_event" => MessageContent::Included,
        "" | "false" | "no_content" => MessageContent::Omitted,
        other => {
            warnings.push(format!("`{variable}` is `{other}`, which adds nothing to spans; use `span_only`"));
            MessageContent::Omitted
        }
    }
}

/// Returns the URL to post spans to, if one is set or exporting is requested.
fn endpoint(set: &impl Fn(&str) -> Option<String>, is_requested: bool) -> Result<Option<Url>, TraceSettingsError> {
    let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let general = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let default = || is_requested.then(|| DEFAULT_ENDPOINT.to_owned());
    // The own variable is used as it is; the general one is for all signals.
    let (variable, text) = match (set(own), set(general).or_else(default)) {
        (Some(url), _) => (own, url),
        (None, Some(base)) => (general, format!("{}/v1/traces", base.trim_end_matches('/'))),
        (None, None) => return Ok(None),
    };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let invalid = || TraceSettingsError {
        hint: Some("write an address such as `http://localhost:4318`"),
        ..TraceSettingsError::new(variable, "not an http or https URL")
    };
    url.map(Some).ok_or_else(invalid)
}

fn check_protocol(variable: &str, protocol: &str) -> Result<(), TraceSettingsError> {
    let message = match protocol {
        "http/protobuf" => return Ok(()),
        "grpc" => "gRPC is not supported".to_owned(),
        "http/json" => "the JSON form is not supported".to_owned(),
        other => format!("unknown protocol `{other}`"),
    };
    let hint = "use `http/protobuf`, which receivers usually offer on port 4318";
    Err(TraceSettingsError { hint: Some(hint), ..TraceSettingsError::new(variable, message) })
}

fn sampler(set: &impl Fn(&str) -> Option<String>) -> Result<Sampler, SamplerError> {
    match set("OTEL_TRACES_SAMPLER") {
        Some(name) => Sampler::parse(&name, set("OTEL_TRACES_SAMPLER_ARG").as_deref()),
        None => Ok(Sampler::default()),
    }
}

/// Parses headers: `name=value,name=value`, where values are percent-encoded. Errors do not show values.
fn parse_headers(variable: &str, text: &str) -> Result<HeaderMap, TraceSettingsError> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let malformed = || TraceSettingsError {
            hint: Some("write `name=value`, several separated by commas"),
            ..TraceSettingsError::new(variable, "not a list of headers")
        };
        let (name, value) = pair.split_once('=').ok_or_else(malformed)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| malformed())?;
        let mut value = HeaderValue::try_from(percent_decode(value.trim())).map_err(|_| malformed())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the attributes of the program. Those of `OTEL_RESOURCE_ATTRIBUTES` come after ours, without the name of the
/// service if that is set on its own.
pub(super) fn resource(set: &impl Fn(&str) -> Option<String>, warnings: &mut Vec<String>) -> Vec<Attribute> {
    let variable = "OTEL_RESOURCE_ATTRIBUTES";
    let text = set(variable).unwrap_or_default();
    let mut attributes = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some((name, value)) => {
                let value = String::from_utf8_lossy(&percent_decode(value.trim())).into_owned();
                attributes.push(Attribute::new(name.trim().to_owned(), value));
            }
            None => warnings.push(format!("`{variable}`: `{pair}` is not an attribute such as `name=value`")),
        }
    }
    let named = attributes.iter().position(|attribute| attribute.name == "service.name");
    match (set("OTEL_SERVICE_NAME"), named) {
        (Some(name), Some(position)) => {
            attributes.remove(position);
            attributes.insert(0, Attribute::new("service.name", name));
        }
        (Some(name), None) => attributes.insert(0, Attribute::new("service.name", name)),
        (None, Some(_)) => {}
        (None, None) => attributes.insert(0, Attribute::new("service.name", "patter")),
    }
    attributes.extend([
        Attribute::new("telemetry.sdk.name", "patter"),
        Attribute::new("telemetry.sdk.language", "rust"),
        Attribute::new("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ]);
    attributes
}

/// Decodes `%20` and the like. Whatever is malformed stays as it is.
fn percent_decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    decoded
}

/// Shows neither the path of the URL nor the headers, which may be secret.
impl fmt::Debug for TraceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.url.origin().ascii_serialization();
        f.debug_struct("TraceSettings").field("origin", &origin).finish_non_exhaustive()
    }
}
