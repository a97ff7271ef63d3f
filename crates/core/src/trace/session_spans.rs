//! Derives spans from the log of a session.

use super::content::MessageContent;
use super::open_run::OpenRun;
use super::sampler::Sampler;
use super::seed::Seed;
use super::span::Span;
use super::turn::Turn;
use crate::message::conversation::{ToolOutcome, Usage};
use crate::message::request::RequestTemplate;
use crate::run::{Run, RunInput};
use crate::session::{Log, LogEntry, LogError, RunPath, TraceParent};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Derives the spans of a session from its log, entry by entry. A span is returned when it ends.
///
/// Each run that a user starts is a trace of its own, unless another program started it: then it is a part of that
/// program's trace.
#[derive(Debug, Clone)]
pub struct SessionSpans {
    session: Arc<str>,
    content: MessageContent,
    sampler: Sampler,
    /// The number of runs that a user started.
    runs: u64,
    /// What models were asked with, by agent.
    templates: HashMap<String, Arc<RequestTemplate>>,
    turn: Option<Turn>,
    open: BTreeMap<RunPath, OpenRun>,
}

/// Returns the spans of all that ended in a session, from its log. Traces that other programs did not sample are included.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::message::request::{FinishReason, Reply};
/// use patter_core::run::{CallTiming, Run, RunInput, RunSpec};
/// use patter_core::session::LogEntry;
/// use patter_core::trace::{MessageContent, session_spans};
///
/// let start = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 5).unwrap().to_start();
/// let started = LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start, traceparent: None };
/// let reply = Reply { text: "Hi!".into(), calls: vec![], finish: FinishReason::Stop, usage: Usage::default(), opaque: None, thought: String::new() };
/// let input = RunInput::ModelReplied { reply, rulings: vec![], timing: CallTiming::default(), at: 25 };
/// let entries = [started, LogEntry::InputReceived { run: vec![], input }];
/// let spans = session_spans("20261116-1", entries, MessageContent::Omitted).unwrap();
/// let names: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.end_ms - span.start_ms)).collect();
/// assert_eq!(names, [("chat", 20), ("invoke_agent hi", 20)]);
/// assert_eq!(spans[0].parent, Some(spans[1].span_id));
/// ```
pub fn session_spans(
    session: &str,
    entries: impl IntoIterator<Item = LogEntry>,
    content: MessageContent,
) -> Result<Vec<Span>, LogError> {
    let all = Sampler::parse("always_on", None).unwrap_or_default();
    let mut derived = SessionSpans::new(session).with_content(content).with_sampler(all);
    let mut spans = Vec::new();
    derived.replay(entries, |new| spans.extend(new))?;
    Ok(spans)
}

impl SessionSpans {
    /// Returns the spans of a session without entries.
    pub fn new(session: &str) -> Self {
        Self {
            session: session.into(),
            content: MessageContent::default(),
            sampler: Sampler::default(),
            runs: 0,
            templates: HashMap::new(),
            turn: None,
            open: BTreeMap::new(),
        }
    }

    /// Sets whether spans contain what was said.
    #[must_use]
    pub fn with_content(mut self, content: MessageContent) -> Self {
        self.content = content;
        self
    }

    /// Sets which traces are recorded. There are no spans of others.
    #[must_use]
    pub fn with_sampler(mut self, sampler: Sampler) -> Self {
        self.sampler = sampler;
        self
    }

    /// Sets the number of runs that a user started earlier, for a session that continues: see [`Log::run_count`].
    #[must_use]
    pub fn after_runs(mut self, runs: u64) -> Self {
        self.runs = runs;
        self
    }

    /// Reads the entries of a log, and passes on the spans that ended with each.
    pub fn replay(
        &mut self,
        entries: impl IntoIterator<Item = LogEntry>,
        mut receive: impl FnMut(Vec<Span>),
    ) -> Result<(), LogError> {
        let mut log = Log::default();
        for entry in entries {
            log.apply(entry.clone())?;
            let path = match &entry {
                LogEntry::RunStarted { run, .. }
                | LogEntry::RunRestored { run, .. }
                | LogEntry::InputReceived { run, .. } => run,
                LogEntry::Opened { .. }
                | LogEntry::Forked { .. }
                | LogEntry::Requested { .. }
                | LogEntry::ReplyStreamed { .. }
                | LogEntry::CallProgressed { .. }
                | LogEntry::Rewound { .. }
                | LogEntry::Redacted { .. } => continue,
            };
            let run = match path.is_empty() {
                true => log.open_run().or(log.last_run()),
                false => log.child_run(path),
            };
            if let Some(run) = run {
                receive(self.entry(&entry, run));
            }
        }
        Ok(())
    }

    /// Returns the spans that end with an entry. `run` is the run that the entry is about, after the entry was applied.
    pub fn entry(&mut self, entry: &LogEntry, run: &Run) -> Vec<Span> {
        let spans = match entry {
            LogEntry::RunStarted { run: path, frame, start, traceparent, .. } => {
                self.start(path, frame.as_ref(), run, start.at, *traceparent)
            }
            LogEntry::RunRestored { run: path, frame, .. } if !self.open.contains_key(path) => {
                self.start(path, frame.as_ref(), run, run.to_start().at, None)
            }
            LogEntry::InputReceived { run: path, input } => self.input(path, input, run),
            LogEntry::RunRestored { .. }
            | LogEntry::Opened { .. }
            | LogEntry::Forked { .. }
            | LogEntry::Requested { .. }
            | LogEntry::ReplyStreamed { .. }
            | LogEntry::CallProgressed { .. }
            | LogEntry::Rewound { .. }
            | LogEntry::Redacted { .. } => Vec::new(),
        };
        self.sampled(spans)
    }

    /// Returns the spans that end with a run, if the end is not an entry of the log because the log could not be saved.
    pub fn run_ended(&mut self, path: &[String], run: &Run, now: u64) -> Vec<Span> {
        if let Some(open) = self.open.get_mut(path) {
            open.now = now.max(open.now);
        }
        let spans = self.end_if_done(path, run);
        self.sampled(spans)
    }

    /// Returns the reference to the span of a call in progress, for the program that is called.
    pub fn call_parent(&self, path: &[String], call_id: &str) -> Option<TraceParent> {
        let turn = self.turn.as_ref()?;
        let Turn { trace_id, is_sampled, .. } = *turn;
        Some(TraceParent { trace_id, span_id: turn.call_span(path, call_id), is_sampled })
    }

    /// Returns the reference to the span of a model call in progress.
    pub fn model_parent(&self, path: &[String]) -> Option<TraceParent> {
        let turn = self.turn.as_ref()?;
        let Turn { trace_id, is_sampled, .. } = *turn;
        Some(TraceParent { trace_id, span_id: self.open.get(path)?.next_model_span(turn), is_sampled })
    }

    fn sampled(&self, spans: Vec<Span>) -> Vec<Span> {
        match &self.turn {
            Some(turn) if turn.is_sampled => spans,
            _ => Vec::new(),
        }
    }

    fn start(
        &mut self,
        path: &RunPath,
        template: Option<&Arc<RequestTemplate>>,
        run: &Run,
        start: u64,
        parent: Option<TraceParent>,
    ) -> Vec<Span> {
        let agent = &run.spec().agent;
        if let Some(template) = template {
            self.templates.insert(agent.clone(), Arc::clone(template));
        }
        if path.is_empty() {
            self.runs += 1;
            self.open.clear();
            let seed = Seed::new(["run", &self.session, &self.runs.to_string(), &start.to_string()]);
            let trace_id = parent.map_or_else(|| seed.trace_id(), |parent| parent.trace_id);
            self.turn = Some(Turn {
                session: Arc::clone(&self.session),
                content: self.content,
                seed,
                trace_id,
                parent: parent.map(|parent| parent.span_id),
                is_sampled: self.sampler.samples(trace_id, parent),
            });
        }
        let template = self.templates.get(agent).cloned();
        self.open.insert(path.clone(), OpenRun::new(path.clone(), template, run, start));
        // A run whose limits allow no model call ends right away.
        self.end_if_done(path, run)
    }

    fn input(&mut self, path: &RunPath, input: &RunInput, run: &Run) -> Vec<Span> {
        let Some(turn) = self.turn.clone() else { return Vec::new() };
        let Some(open) = self.open.get_mut(path) else { return Vec::new() };
        // The wall clock may be set back, and some inputs of old logs have no time.
        open.now = time(input).unwrap_or(open.now).max(open.now);
        let mut spans = match input {
            RunInput::ModelReplied { reply, timing, .. } => open.replied(&turn, run, reply, timing),
            RunInput::ModelFailed { failure, timing, .. } => open.failed(&turn, run, failure, timing),
            RunInput::StepsPlanned { calls, .. } => {
                open.requested(run, calls.iter().map(|planned| &planned.call));
                Vec::new()
            }
            RunInput::CallStarted { call_id, at } => {
                open.call_started(call_id, *at);
                Vec::new()
            }
            RunInput::CallApproved { call_id, .. } => open.answered(&turn, call_id, "approved").into_iter().collect(),
            RunInput::CallRefused { call_id, reason, .. } => {
                let waited = open.answered(&turn, call_id, "refused");
                let outcome = ToolOutcome::Denied { message: reason.clone() };
                let call = open.call_finished(&turn, call_id, &outcome, 0, Usage::default());
                waited.into_iter().chain(call).collect()
            }
            RunInput::CallFinished { call_id, outcome, duration_ms, usage, .. } => {
                open.call_finished(&turn, call_id, outcome, *duration_ms, *usage).into_iter().collect()
            }
            RunInput::Resumed { .. } => {
                open.resumed();
                Vec::new()
            }
            RunInput::FellBack { from, to, because, .. } => {
                open.fell_back(from, to, because);
                Vec::new()
            }
            RunInput::Compacted { usage, .. } => {
                open.compacted(*usage);
                Vec::new()
            }
            RunInput::ReplyInterrupted { .. }
            | RunInput::Charged { .. }
            | RunInput::LimitReached { .. }
            | RunInput::ContextExceeded { .. }
            | RunInput::Cancelled { .. }
            | RunInput::ClockTicked { .. }
            | RunInput::LimitsChanged { .. } => Vec::new(),
        };
        spans.extend(open.settle(&turn, run));
        open.next(run);
        if let RunInput::CallFinished { call_id, .. } = input {
            let now = open.now;
            let mut child = path.clone();
            child.push(call_id.clone());
            spans.splice(0..0, self.cancel_within(&turn, &child, now));
        }
        spans.extend(self.end_if_done(path, run));
        spans
    }

    /// Ends a run that has an outcome, and all runs within it.
    fn end_if_done(&mut self, path: &[String], run: &Run) -> Vec<Span> {
        let (Some(turn), Some(outcome)) = (self.turn.clone(), run.outcome()) else { return Vec::new() };
        let Some(open) = self.open.remove(path) else { return Vec::new() };
        let mut spans = self.cancel_within(&turn, path, open.now);
        spans.extend(open.end(&turn, run, outcome));
        spans
    }

    /// Ends the runs at a path and below it. They were dropped, so nothing else ends them.
    fn cancel_within(&mut self, turn: &Turn, path: &[String], now: u64) -> Vec<Span> {
        let within: Vec<_> = self.open.keys().filter(|open| open.starts_with(path)).cloned().collect();
        // The innermost come last in this order, and end first.
        let within = within.iter().rev().filter_map(|path| self.open.remove(path)).collect::<Vec<_>>();
        within.into_iter().flat_map(|open| open.cancelled(turn, now)).collect()
    }
}

/// Returns the time of an input, if it has one.
fn time(input: &RunInput) -> Option<u64> {
    match input {
        RunInput::ModelReplied { at, .. }
        | RunInput::StepsPlanned { at, .. }
        | RunInput::ModelFailed { at, .. }
        | RunInput::CallFinished { at, .. }
        | RunInput::CallRefused { at, .. }
        | RunInput::FellBack { at, .. }
        | RunInput::LimitReached { at, .. }
        | RunInput::ContextExceeded { at, .. }
        | RunInput::Compacted { at, .. }
        | RunInput::Cancelled { at }
        | RunInput::ClockTicked { at }
        | RunInput::Resumed { at } => Some(*at),
        RunInput::CallStarted { at, .. } | RunInput::CallApproved { at, .. } => *at,
        RunInput::ReplyInterrupted { .. } | RunInput::Charged { .. } | RunInput::LimitsChanged { .. } => None,
    }
}
