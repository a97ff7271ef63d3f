//! Spans of the trials of an experiment.

use super::attributes::Attributes;
use super::content::MessageContent;
use super::sampler::Sampler;
use super::seed::Seed;
use super::span::{Span, SpanEvent, SpanKind, SpanStatus};
use crate::session::{SpanId, TraceParent};

/// A trial of an experiment as a trace: the runs of a case under an arm, and the results of its checks.
///
/// ```
/// use patter_core::trace::{MessageContent, Sampler, TrialTrace};
/// let first = TrialTrace::new("experiment-1", "a", "greets", 1, None, Sampler::default());
/// let second = TrialTrace::new("experiment-1", "b", "greets", 1, None, Sampler::default()).compared_with("a");
/// let span = second.span(5, 25, true, &[], MessageContent::Omitted).unwrap();
/// assert_eq!(span.name, "trial greets");
/// assert_eq!(span.links, [first.parent()]);
/// ```
#[derive(Debug, Clone)]
pub struct TrialTrace {
    experiment: String,
    arm: String,
    case: String,
    repeat: u32,
    outer: Option<SpanId>,
    own: TraceParent,
    links: Vec<TraceParent>,
    sampler: Sampler,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The check.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// Why, which may quote the answer.
    pub explanation: String,
}

impl TrialTrace {
    /// Returns the trace of a trial, which may be a part of the trace of another program.
    pub fn new(
        experiment: &str,
        arm: &str,
        case: &str,
        repeat: u32,
        outer: Option<TraceParent>,
        sampler: Sampler,
    ) -> Self {
        Self {
            experiment: experiment.to_owned(),
            arm: arm.to_owned(),
            case: case.to_owned(),
            repeat,
            outer: outer.map(|outer| outer.span_id),
            own: identify(experiment, arm, case, repeat, outer, sampler),
            links: Vec::new(),
            sampler,
        }
    }

    /// Links the trial with that of the same case under another arm.
    #[must_use]
    pub fn compared_with(mut self, arm: &str) -> Self {
        // Within the trace of another program, all trials are in one trace.
        let outer = self.outer.map(|span_id| TraceParent { span_id, ..self.own });
        self.links.push(identify(&self.experiment, arm, &self.case, self.repeat, outer, self.sampler));
        self
    }

    /// Returns the id of the conversation of the trial.
    pub fn conversation(&self) -> String {
        let Self { experiment, arm, case, repeat, .. } = self;
        format!("{experiment}/{arm}/{case}/{repeat}")
    }

    /// Returns the reference to the trial, as the parent of its runs.
    pub fn parent(&self) -> TraceParent {
        self.own
    }

    /// Returns the span of the trial when it ended, if the trace is recorded.
    pub fn span(
        &self,
        start_ms: u64,
        end_ms: u64,
        passed: bool,
        evaluations: &[Evaluation],
        content: MessageContent,
    ) -> Option<Span> {
        if !self.own.is_sampled {
            return None;
        }
        let attributes = Attributes::of_session(&self.conversation())
            .with("openinference.span.kind", "CHAIN")
            .with("patter.experiment.id", self.experiment.as_str())
            .with("patter.experiment.arm", self.arm.as_str())
            .with("patter.case.id", self.case.as_str())
            .with("patter.case.repeat", u64::from(self.repeat))
            .with("patter.case.passed", passed);
        let label = |passed| if passed { "pass" } else { "fail" };
        let event = |name: &str, passed: bool, explanation: Option<&str>| SpanEvent {
            name: "gen_ai.evaluation.result",
            at_ms: end_ms.max(start_ms),
            attributes: Attributes::default()
                .with("gen_ai.evaluation.name", name)
                .with("gen_ai.evaluation.score.value", f64::from(u8::from(passed)))
                .with("gen_ai.evaluation.score.label", label(passed))
                .with_if("gen_ai.evaluation.explanation", explanation)
                .with("patter.case.id", self.case.as_str())
                .with("patter.experiment.arm", self.arm.as_str())
                .0,
        };
        let explained = content == MessageContent::Included;
        let events = evaluations.iter().map(|evaluation| {
            let why = Some(evaluation.explanation.as_str()).filter(|why| explained && !why.is_empty());
            event(&evaluation.name, evaluation.passed, why)
        });
        Some(Span {
            trace_id: self.own.trace_id,
            span_id: self.own.span_id,
            parent: self.outer,
            name: format!("trial {}", self.case),
            kind: SpanKind::Internal,
            start_ms,
            end_ms: end_ms.max(start_ms),
            attributes: attributes.0,
            events: events.chain([event("pass", passed, None)]).collect(),
            links: self.links.clone(),
            status: SpanStatus::Unset,
        })
    }
}

fn identify(
    experiment: &str,
    arm: &str,
    case: &str,
    repeat: u32,
    outer: Option<TraceParent>,
    sampler: Sampler,
) -> TraceParent {
    let seed = Seed::new(["trial", experiment, arm, case, &repeat.to_string()]);
    let trace_id = outer.map_or_else(|| seed.trace_id(), |outer| outer.trace_id);
    TraceParent { trace_id, span_id: seed.span_id(), is_sampled: sampler.samples(trace_id, outer) }
}
