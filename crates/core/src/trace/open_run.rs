//! A run whose span has not ended, and the spans that end within it.

use super::attributes::{Attributes, failure_type, finish_reason, model_name, outcome_error};
use super::content;
use super::span::{Attribute, Span, SpanEvent, SpanKind, SpanStatus};
use super::turn::Turn;
use crate::message::conversation::{Message, ToolCall, ToolOutcome, Usage};
use crate::message::request::{Reply, RequestTemplate};
use crate::run::{CallTarget, CallTiming, FailureKind, Run, RunFailure, RunOutcome, Step};
use crate::session::{RunPath, SpanId};
use indexmap::IndexMap;
use std::sync::Arc;

/// A run that has not ended.
#[derive(Debug, Clone)]
pub(super) struct OpenRun {
    path: RunPath,
    agent: String,
    /// The version of the agent.
    hash: String,
    is_workflow: bool,
    template: Option<Arc<RequestTemplate>>,
    start: u64,
    /// The time of the last input.
    pub(super) now: u64,
    /// The call of the model that is in progress.
    model_call: Option<ModelCall>,
    /// The number of model calls that ended.
    model_calls: u32,
    calls: IndexMap<String, OpenCall>,
    /// How many messages of the conversation were searched for calls and results.
    seen_messages: usize,
    usage: Usage,
    events: Vec<SpanEvent>,
}

#[derive(Debug, Clone)]
struct ModelCall {
    start: u64,
    /// How many messages of the conversation the model receives.
    messages: usize,
}

/// A call that has no result.
#[derive(Debug, Clone)]
struct OpenCall {
    call: ToolCall,
    /// When the model requested it.
    requested: u64,
    started: Option<u64>,
    /// Whether it starts again when the run resumes. What clients and other agents do continues.
    restarts: bool,
    /// Why it needs approval, as long as nobody answered.
    awaits_approval: Option<String>,
    /// What was decided about it, and how long that took.
    approval: Option<(&'static str, u64)>,
}

impl OpenRun {
    pub(super) fn new(path: RunPath, template: Option<Arc<RequestTemplate>>, run: &Run, start: u64) -> Self {
        let mut open = Self {
            path,
            agent: run.spec().agent.clone(),
            hash: run.spec().hash.clone(),
            is_workflow: run.is_workflow(),
            template,
            start,
            now: start,
            model_call: None,
            model_calls: run.model_calls(),
            calls: IndexMap::new(),
            seen_messages: run.conversation().len(),
            usage: Usage::default(),
            events: Vec::new(),
        };
        if let Some(model) = run.fallback() {
            open.set_model(model);
        }
        open.next(run);
        open
    }

    /// Notes that another model is called from now on. The span of the call includes the attempts with the first one.
    pub(super) fn fell_back(&mut self, from: &str, to: &str, because: &str) {
        self.set_model(to);
        self.events.push(SpanEvent {
            name: "patter.fallback",
            at_ms: self.now,
            attributes: Attributes::default()
                .with("patter.fallback.from", from)
                .with("patter.fallback.to", to)
                .with("patter.fallback.reason", because)
                .0,
        });
    }

    /// Notes that the conversation was compacted, and what that took.
    pub(super) fn compacted(&mut self, usage: Usage) {
        self.usage += usage;
        self.events.push(SpanEvent {
            name: "patter.compaction",
            at_ms: self.now,
            attributes: Attributes::default()
                .with("patter.compaction.input_tokens", usage.input_tokens)
                .with("patter.compaction.output_tokens", usage.output_tokens)
                .0,
        });
    }

    fn set_model(&mut self, model: &str) {
        if let Some(template) = &mut self.template {
            Arc::make_mut(template).model = model.to_owned();
        }
    }

    /// Ends the call of the model with a reply.
    pub(super) fn replied(&mut self, turn: &Turn, run: &Run, reply: &Reply, timing: &CallTiming) -> Vec<Span> {
        let finish = finish_reason(reply);
        self.usage += reply.usage;
        let mut spans = self.end_model_call(turn, run, timing, |attributes| {
            let output = turn.includes_content().then(|| content::reply(reply, &finish));
            attributes
                .with("gen_ai.response.finish_reasons", vec![finish.clone()])
                .with_usage(reply.usage)
                .with_if("gen_ai.output.messages", output)
        });
        let new = run.conversation().since(self.seen_messages);
        self.requested(run, new.flat_map(Message::calls));
        spans.extend(self.settle(turn, run));
        spans
    }

    /// Notes calls that the model or the workflow requests.
    pub(super) fn requested<'c>(&mut self, run: &Run, calls: impl Iterator<Item = &'c ToolCall>) {
        for call in calls {
            let request = run.approval_requests().find(|request| request.call.id == call.id);
            let target = run.spec().tools.iter().find(|callable| callable.name == call.tool);
            let open = OpenCall {
                call: call.clone(),
                requested: self.now,
                // The client does not report when it starts.
                started: run.client_calls().any(|other| other.id == call.id).then_some(self.now),
                restarts: target.is_some_and(|callable| matches!(callable.target, CallTarget::Tool { .. })),
                awaits_approval: request.map(|request| request.because.to_owned()),
                approval: None,
            };
            self.calls.insert(call.id.clone(), open);
        }
    }

    /// Ends the call of the model with a failure.
    pub(super) fn failed(&mut self, turn: &Turn, run: &Run, failure: &RunFailure, timing: &CallTiming) -> Vec<Span> {
        let mut spans =
            self.end_model_call(turn, run, timing, |attributes| attributes.with("error.type", failure_type(failure)));
        spans.iter_mut().for_each(|span| span.status = SpanStatus::Error(failure.message.clone()));
        spans
    }

    pub(super) fn call_started(&mut self, call_id: &str, at: Option<u64>) {
        if let Some(call) = self.calls.get_mut(call_id) {
            call.started = at;
        }
    }

    /// Ends the wait for an approval.
    pub(super) fn answered(&mut self, turn: &Turn, call_id: &str, decision: &'static str) -> Option<Span> {
        let end = self.now;
        let call = self.calls.get_mut(call_id)?;
        let because = call.awaits_approval.take()?;
        call.approval = Some((decision, end.saturating_sub(call.requested)));
        let seed = turn.part("approval", &self.path, call_id);
        let name = format!("await_approval {}", call.call.tool);
        Some(Span {
            parent: Some(turn.run_span(&self.path)),
            attributes: Attributes::of_session(&turn.session)
                .with("openinference.span.kind", "CHAIN")
                .with("gen_ai.tool.name", call.call.tool.as_str())
                .with("gen_ai.tool.call.id", call_id)
                .with("patter.approval.reason", because)
                .with("patter.approval.decision", decision)
                .0,
            ..turn.span(seed, name, call.requested, end)
        })
    }

    /// Ends a call.
    pub(super) fn call_finished(
        &mut self,
        turn: &Turn,
        call_id: &str,
        outcome: &ToolOutcome,
        duration_ms: u64,
        usage: Usage,
    ) -> Option<Span> {
        let end = self.now;
        let call = self.calls.shift_remove(call_id)?;
        self.usage += usage;
        let start = call.started.unwrap_or(end.saturating_sub(duration_ms));
        Some(self.call_span(turn, &call, outcome, start, end))
    }

    /// Marks that the run resumed. What was in progress starts again.
    pub(super) fn resumed(&mut self) {
        self.events.push(SpanEvent { name: "patter.run.resumed", at_ms: self.now, attributes: Vec::new() });
        if let Some(model_call) = &mut self.model_call {
            model_call.start = self.now;
        }
        self.calls.values_mut().filter(|call| call.restarts).for_each(|call| call.started = None);
    }

    /// Ends the calls that have results without having been made: refused, cancelled, or of unknown tools.
    pub(super) fn settle(&mut self, turn: &Turn, run: &Run) -> Vec<Span> {
        let mut spans = Vec::new();
        for message in run.conversation().since(self.seen_messages) {
            let Message::Tool { call_id, outcome, .. } = message else { continue };
            if let Some(call) = self.calls.get(call_id) {
                // Only what was still open when the run ended is cancelled.
                let end = if matches!(outcome, ToolOutcome::Cancelled) { self.now } else { call.requested };
                spans.extend(self.end_call(turn, call_id, outcome, end));
            }
        }
        self.seen_messages = run.conversation().len();
        spans
    }

    fn end_call(&mut self, turn: &Turn, call_id: &str, outcome: &ToolOutcome, end: u64) -> Vec<Span> {
        let mut spans: Vec<_> = self.answered(turn, call_id, "cancelled").into_iter().collect();
        if let Some(call) = self.calls.shift_remove(call_id) {
            spans.push(self.call_span(turn, &call, outcome, call.started.unwrap_or(end), end));
        }
        spans
    }

    /// Notes that the model is called, if that is the next step.
    pub(super) fn next(&mut self, run: &Run) {
        if let (Step::CallModel { messages }, None) = (run.step(), &self.model_call) {
            self.model_call = Some(ModelCall { start: self.now, messages: messages.len() });
        }
    }

    /// Ends the run, and what was in progress in it.
    pub(super) fn end(mut self, turn: &Turn, run: &Run, outcome: &RunOutcome) -> Vec<Span> {
        let mut spans = self.cancel_open(
            turn,
            match outcome {
                RunOutcome::Failed(RunFailure { kind: FailureKind::Deadline, .. }) => "deadline",
                RunOutcome::Failed(_) | RunOutcome::Cancelled | RunOutcome::Answer { .. } => "cancelled",
            },
        );
        let texts = turn.includes_content().then(|| {
            let input = content::messages(run.new_messages().take(1).collect::<Vec<_>>().into_iter());
            let output = match outcome {
                RunOutcome::Answer { text, finish, .. } => Some(content::answer(text, finish.name())),
                RunOutcome::Failed(_) | RunOutcome::Cancelled => None,
            };
            (input, output)
        });
        let (input, output) = texts.map_or((None, None), |(input, output)| (Some(input), output));
        let (error, message) = match outcome {
            RunOutcome::Answer { .. } => (None, String::new()),
            // It quotes the answer.
            RunOutcome::Failed(failure) if failure.kind == FailureKind::Answer && !turn.includes_content() => {
                (Some(failure_type(failure)), String::new())
            }
            RunOutcome::Failed(failure) => (Some(failure_type(failure)), failure.message.clone()),
            RunOutcome::Cancelled => (Some("cancelled"), String::new()),
        };
        let mut span = self.run_span(turn, error, message);
        let attributes = std::mem::take(&mut span.attributes);
        span.attributes = Attributes(attributes)
            .with_total_usage(run.usage())
            .with_if("gen_ai.input.messages", input)
            .with_if("gen_ai.output.messages", output)
            .0;
        spans.push(span);
        spans
    }

    /// Ends a run that was dropped because the run that called it ended.
    pub(super) fn cancelled(mut self, turn: &Turn, now: u64) -> Vec<Span> {
        self.now = now;
        let mut spans = self.cancel_open(turn, "cancelled");
        let usage = self.usage;
        let mut span = self.run_span(turn, Some("cancelled"), String::new());
        span.attributes = Attributes(std::mem::take(&mut span.attributes)).with_total_usage(usage).0;
        spans.push(span);
        spans
    }

    fn cancel_open(&mut self, turn: &Turn, error: &'static str) -> Vec<Span> {
        let mut spans = Vec::new();
        for call_id in self.calls.keys().cloned().collect::<Vec<_>>() {
            spans.extend(self.end_call(turn, &call_id, &ToolOutcome::Cancelled, self.now));
        }
        if let Some(call) = self.model_call.take() {
            let mut span = self.model_span(turn, &call, Attributes::default());
            span.attributes.push(Attribute::new("error.type", error));
            span.status = SpanStatus::Error(String::new());
            spans.push(span);
        }
        spans
    }

    fn run_span(&mut self, turn: &Turn, error: Option<&'static str>, message: String) -> Span {
        let parent = match self.path.split_last() {
            None => turn.parent,
            Some((call_id, path)) => Some(turn.call_span(path, call_id)),
        };
        let operation = if self.is_workflow { "invoke_workflow" } else { "invoke_agent" };
        let name = format!("{operation} {}", self.agent);
        let version = self.hash.get(..12).map(str::to_owned);
        Span {
            parent,
            attributes: Attributes::of_session(&turn.session)
                .with("gen_ai.operation.name", operation)
                .with(if self.is_workflow { "gen_ai.workflow.name" } else { "gen_ai.agent.name" }, self.agent.as_str())
                .with_if("gen_ai.agent.version", version)
                .with_model(self.template.as_deref())
                .with_if("error.type", error)
                .0,
            events: std::mem::take(&mut self.events),
            status: error.map_or(SpanStatus::Unset, |_| SpanStatus::Error(message)),
            ..turn.span(turn.part("run", &self.path, ""), name, self.start, self.now)
        }
    }

    fn end_model_call(
        &mut self,
        turn: &Turn,
        run: &Run,
        timing: &CallTiming,
        describe: impl FnOnce(Attributes) -> Attributes,
    ) -> Vec<Span> {
        let Some(call) = self.model_call.take() else { return Vec::new() };
        let mut attributes = Attributes::default()
            .with_if("gen_ai.response.time_to_first_chunk", timing.first_piece_ms.map(|ms| ms as f64 / 1000.0));
        if let (true, Some(template)) = (turn.includes_content(), &self.template) {
            attributes = attributes
                .with("gen_ai.system_instructions", content::instruction(&template.instruction))
                .with("gen_ai.input.messages", content::messages(run.conversation().range(0..call.messages)));
            if !template.tools.is_empty() {
                attributes = attributes.with("gen_ai.tool.definitions", content::tool_definitions(template));
            }
        }
        let mut span = self.model_span(turn, &call, describe(attributes));
        span.events = timing
            .delays
            .iter()
            .map(|delay| SpanEvent {
                name: "patter.delay",
                at_ms: delay.at,
                attributes: Attributes::default()
                    .with("patter.delay.seconds", delay.seconds)
                    .with("patter.delay.reason", delay.because.as_str())
                    .0,
            })
            .collect();
        vec![span]
    }

    /// Returns the id of the span of the model call that is in progress.
    pub(super) fn next_model_span(&self, turn: &Turn) -> SpanId {
        turn.part("model", &self.path, &self.model_calls.saturating_add(1).to_string()).span_id()
    }

    fn model_span(&mut self, turn: &Turn, call: &ModelCall, details: Attributes) -> Span {
        self.model_calls = self.model_calls.saturating_add(1);
        let template = self.template.as_deref();
        let name = template.map_or_else(|| "chat".to_owned(), |it| format!("chat {}", model_name(&it.model)));
        let seed = turn.part("model", &self.path, &self.model_calls.to_string());
        let mut attributes = Attributes::of_session(&turn.session)
            .with("gen_ai.operation.name", "chat")
            .with("gen_ai.agent.name", self.agent.as_str())
            .with_model(template)
            .with_settings(template);
        attributes.0.extend(details.0);
        Span {
            parent: Some(turn.run_span(&self.path)),
            kind: SpanKind::Client,
            attributes: attributes.0,
            ..turn.span(seed, name, call.start, self.now)
        }
    }

    fn call_span(&self, turn: &Turn, call: &OpenCall, outcome: &ToolOutcome, start: u64, end: u64) -> Span {
        let ToolCall { id, tool, arguments } = &call.call;
        let seed = turn.part("call", &self.path, id);
        let error = outcome_error(outcome);
        let content = turn.includes_content();
        let description = self.template.as_ref().and_then(|template| {
            let mut tools = template.tools.iter();
            tools.find(|offered| offered.name == *tool).map(|offered| offered.description.clone())
        });
        let attributes = Attributes::of_session(&turn.session)
            .with("gen_ai.operation.name", "execute_tool")
            .with("gen_ai.tool.name", tool.as_str())
            .with("gen_ai.tool.type", "function")
            .with_if("gen_ai.tool.description", description)
            .with("gen_ai.tool.call.id", id.as_str())
            .with("gen_ai.agent.name", self.agent.as_str())
            .with_if("error.type", error)
            .with_if("patter.approval.decision", call.approval.map(|(decision, _)| decision))
            .with_if("patter.approval.wait_seconds", call.approval.map(|(_, waited)| waited as f64 / 1000.0))
            .with_if("gen_ai.tool.call.arguments", content.then(|| content::arguments(arguments)))
            .with_if("gen_ai.tool.call.result", content.then(|| content::outcome(outcome)));
        let message = if content { content::outcome(outcome) } else { String::new() };
        Span {
            parent: Some(turn.run_span(&self.path)),
            attributes: attributes.0,
            status: error.map_or(SpanStatus::Unset, |_| SpanStatus::Error(message)),
            ..turn.span(seed, format!("execute_tool {tool}"), start, end)
        }
    }
}
