//! Traces: what a session did, as OpenTelemetry spans.
//!
//! Spans are derived from the entries of a session's log, and their ids from the session and the position in it. So a run
//! that resumes continues its trace, and an old session can be exported with the ids that it had when it ran. Names and
//! attributes follow the OpenTelemetry conventions for generative AI. What was said is left out unless asked for.

mod span;
mod seed;
mod sampler;
mod content;
mod attributes;
mod turn;
mod open_run;
mod session_spans;
mod trial;
mod protobuf;
mod json;

pub use crate::session::{SpanId, TraceId, TraceParent, TraceParentError};
pub use content::MessageContent;
pub use json::to_json;
pub use protobuf::{ExportRequest, encode_span, rejected_spans};
pub use sampler::{Sampler, SamplerError};
pub use session_spans::{SessionSpans, session_spans};
pub use span::{Attribute, AttributeValue, Span, SpanEvent, SpanKind, SpanStatus};
pub use trial::{Evaluation, TrialTrace};

/// The conventions that names and attributes follow.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/1.42.0";
/// The name under which Patter exports spans.
pub const SCOPE: &str = "patter";
