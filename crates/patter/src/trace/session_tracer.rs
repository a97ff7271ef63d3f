//! The spans of one session, on their way to the exporter.

use super::tracer::{CallTrace, Tracer};
use crate::drive::now_ms;
use patter_core::run::Run;
use patter_core::session::LogEntry;
use patter_core::trace::{Evaluation, SessionSpans, TraceParent, TrialTrace};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Turns what happens in a session into spans, and exports them. Cheap to clone.
///
/// A session has one run at a time that a user started; the runs of agents that it calls are a part of it.
#[derive(Clone)]
pub struct SessionTracer {
    tracer: Tracer,
    state: Arc<Mutex<State>>,
}

struct State {
    spans: SessionSpans,
    /// The span that the next run is a part of.
    parent: Option<TraceParent>,
}

impl SessionTracer {
    pub(super) fn new(tracer: Tracer, id: &str, runs: u64) -> Self {
        let spans = SessionSpans::new(id).with_content(tracer.content()).with_sampler(tracer.sampler());
        let parent = tracer.settings().parent;
        let state = State { spans: spans.after_runs(runs), parent };
        Self { tracer, state: Arc::new(Mutex::new(state)) }
    }

    /// Returns the tracer that spans are exported with.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Sets the span of another program that the next runs are a part of: that of the request which starts them.
    pub fn set_parent(&self, parent: Option<TraceParent>) {
        self.state().parent = parent;
    }

    /// Reads the log of a session that has an unfinished run, so that the run continues its trace. Exports nothing: what
    /// ended before was exported then. A log that cannot be read is left out.
    pub fn restore<T: AsRef<str>>(&self, entries: impl IntoIterator<Item = T>) {
        let entries = entries.into_iter().map_while(|text| serde_json::from_str(text.as_ref()).ok());
        let mut state = self.state();
        let mut spans = state.spans.clone().after_runs(0);
        if spans.replay(entries, drop).is_ok() {
            state.spans = spans;
        }
    }

    /// Exports the spans that end with an entry of the log. `run` is the run that the entry is about, after it received
    /// what the entry says.
    pub fn record(&self, entry: &LogEntry, run: &Run) {
        let spans = self.state().spans.entry(entry, run);
        self.tracer.send(&spans);
    }

    /// Exports the spans that end with a run whose end could not be saved.
    pub(crate) fn run_ended(&self, path: &[String], run: &Run) {
        let spans = self.state().spans.run_ended(path, run, now_ms());
        self.tracer.send(&spans);
    }

    /// Returns the span that a run which starts now is a part of.
    pub(crate) fn parent(&self) -> Option<TraceParent> {
        self.state().parent
    }

    /// Returns the span of a call, for the tool.
    pub(crate) fn call(&self, path: &[String], call_id: &str) -> Option<CallTrace> {
        self.state().spans.call_parent(path, call_id).map(CallTrace)
    }

    /// Returns the span of the model call in progress, if it is to be passed on.
    pub(crate) fn model_parent(&self, path: &[String]) -> Option<TraceParent> {
        match self.tracer.settings().has_model_header {
            true => self.state().spans.model_parent(path),
            false => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The spans of one trial of an experiment.
pub(crate) struct TrialTracer {
    tracer: Tracer,
    trial: TrialTrace,
}

impl TrialTracer {
    /// Returns the tracer of a trial, and of its runs. `baseline` is the arm that others are compared with.
    pub(crate) fn new(
        tracer: &Tracer,
        experiment: &str,
        arm: &str,
        case: &str,
        repeat: u32,
        baseline: Option<&str>,
    ) -> Self {
        let settings = tracer.settings();
        let trial = TrialTrace::new(experiment, arm, case, repeat, settings.parent, settings.sampler);
        let trial = match baseline.filter(|baseline| *baseline != arm) {
            Some(baseline) => trial.compared_with(baseline),
            None => trial,
        };
        Self { tracer: tracer.clone(), trial }
    }

    /// Returns the tracer of the runs of the trial, or of those of a judge.
    pub(crate) fn session(&self, part: Option<&str>) -> SessionTracer {
        let id = match part {
            None => self.trial.conversation(),
            Some(part) => format!("{}/{part}", self.trial.conversation()),
        };
        let session = self.tracer.session(&id, 0);
        session.set_parent(Some(self.trial.parent()));
        session
    }

    /// Exports the span of the trial, when it ended.
    pub(crate) fn finish(&self, start_ms: u64, passed: bool, evaluations: &[Evaluation]) {
        let span = self.trial.span(start_ms, now_ms(), passed, evaluations, self.tracer.content());
        self.tracer.send(span.as_slice());
    }
}
