//! A turn, which is a trace.

use super::content::MessageContent;
use super::seed::Seed;
use super::span::{Span, SpanKind, SpanStatus};
use crate::session::{SpanId, TraceId};
use std::sync::Arc;

/// What the spans of a turn have in common.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) session: Arc<str>,
    pub(super) content: MessageContent,
    pub(super) seed: Seed,
    pub(super) trace_id: TraceId,
    pub(super) parent: Option<SpanId>,
    pub(super) is_sampled: bool,
}

impl Turn {
    /// Returns the id of the span of a run.
    pub(super) fn run_span(&self, path: &[String]) -> SpanId {
        self.part("run", path, "").span_id()
    }

    /// Returns the id of the span of a call.
    pub(super) fn call_span(&self, path: &[String], call_id: &str) -> SpanId {
        self.part("call", path, call_id).span_id()
    }

    pub(super) fn part(&self, kind: &str, path: &[String], name: &str) -> Seed {
        // The kind and the number of names come first, so that no two parts have the same list.
        let depth = path.len().to_string();
        let names = [kind, depth.as_str()].into_iter().chain(path.iter().map(String::as_str)).chain([name]);
        self.seed.join(names)
    }

    pub(super) fn span(&self, seed: Seed, name: String, start: u64, end: u64) -> Span {
        Span {
            trace_id: self.trace_id,
            span_id: seed.span_id(),
            parent: None,
            name,
            kind: SpanKind::Internal,
            start_ms: start,
            // The wall clock may be set back.
            end_ms: end.max(start),
            attributes: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            status: SpanStatus::Unset,
        }
    }

    pub(super) fn includes_content(&self) -> bool {
        self.content == MessageContent::Included
    }
}
