//! Traces: what sessions did, exported as OpenTelemetry spans.
//!
//! The spans are derived from the log of a session by [`patter_core::trace`]. A [`Tracer`] sends them to a receiver over
//! OTLP/HTTP, from one task in the background: a run never waits for it, and spans that cannot be sent are counted and
//! dropped.
//!
//! ```
//! use patter::live::LiveProject;
//! use patter::session::Session;
//! use patter::tool::CancellationToken;
//! use patter::trace::Tracer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("hello.gram");
//! # std::fs::write(&path, "[hi:Agent {instruction: 'Greet with `sayHello`.', model: 'demo'} | sayHello]").unwrap();
//! let project = LiveProject::open(&path).read().await.unwrap();
//! // Nothing is exported unless `OTEL_EXPORTER_OTLP_ENDPOINT` is set.
//! let tracer = Tracer::from_variables(|name| std::env::var(name).ok()).unwrap();
//! let mut session = Session::new(project.into()).with_tracer(tracer.clone());
//! session.say("Hello! My name is Alice.", &CancellationToken::new()).await.unwrap();
//! if let Some(tracer) = tracer {
//!     let report = tracer.flush().await;
//!     assert_eq!(report.dropped, 0);
//! }
//! # }
//! ```

mod settings;
mod queue;
mod worker;
mod tracer;
mod session_tracer;
mod session_trace;

pub use patter_core::trace::*;
pub use queue::ExportReport;
pub use session_trace::SessionTrace;
pub use session_tracer::SessionTracer;
pub(crate) use session_tracer::TrialTracer;
pub use settings::{Compression, TraceSettings, TraceSettingsError};
pub use tracer::Tracer;
pub(crate) use tracer::{CallTrace, current_model_parent, with_model_parent};

/// The header that refers to a span.
pub(crate) const TRACEPARENT: &str = "traceparent";
