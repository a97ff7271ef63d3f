//! Calls of an open run that wait for somebody: for an approval, or for a result of the client.

use super::{Log, LogEntry, RunPath};
use crate::message::conversation::ToolOutcome;
use crate::run::{CallTarget, PendingCall, Run, RunError, RunInput, Step, read_person_answer};
use serde_json::Value as Json;

/// A call that waits for somebody.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingCall<'l> {
    /// The path of the run that made the call.
    pub run: RunPath,
    /// The agent of that run.
    pub agent: &'l str,
    /// The call.
    pub call: &'l PendingCall,
    /// What it waits for.
    pub waiting_for: WaitingFor<'l>,
    /// The JSON Schema of the answer, if it is a question to a person that is not answered with a text.
    pub returns: Option<&'l Json>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor<'l> {
    /// An approval, for this reason.
    Approval(&'l str),
    /// The result of a tool that the client executes.
    Client,
}

impl WaitingCall<'_> {
    /// Checks a result. What a person answers must have the type that the step declares.
    pub fn check(&self, outcome: &ToolOutcome) -> Result<(), RunError> {
        let (CallTarget::Person, ToolOutcome::Value { value }) = (&self.call.target, outcome) else { return Ok(()) };
        let wrong = |message| RunError::WrongAnswer { id: self.call.id.clone(), message };
        read_person_answer(value, self.returns).map(drop).map_err(wrong)
    }
}

impl Log {
    /// Returns the calls of the open run that wait for somebody, with those of the agents that it called.
    ///
    /// ```
    /// use patter_core::message::conversation::{ToolCall, Usage};
    /// use patter_core::message::request::{FinishReason, Reply};
    /// use patter_core::run::{CallTarget, CallTiming, Callable, Run, RunInput, RunSpec};
    /// use patter_core::session::{Log, LogEntry, WaitingFor};
    ///
    /// let tools = vec![Callable { name: "pickColor".into(), target: CallTarget::Client }];
    /// let run = Run::start(RunSpec { tools, ..RunSpec::default() }, Vec::new(), "Paint!", 0).unwrap();
    /// let mut log = Log::default();
    /// let start = run.to_start();
    /// log.apply(LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start, traceparent: None }).unwrap();
    /// let calls = vec![ToolCall { id: "1".into(), tool: "pickColor".into(), arguments: "{}".into() }];
    /// let usage = Usage::default();
    /// let reply = Reply { text: String::new(), calls, finish: FinishReason::Stop, usage, opaque: None, thought: String::new() };
    /// let rulings = vec![patter_core::run::Ruling {
    ///     decision: patter_core::permission::Decision::Allow,
    ///     because: String::new(),
    /// }];
    /// let input = RunInput::ModelReplied { reply, rulings, timing: CallTiming::default(), at: 1 };
    /// log.apply(LogEntry::InputReceived { run: vec![], input }).unwrap();
    /// assert_eq!(log.waiting_calls()[0].waiting_for, WaitingFor::Client);
    /// assert!(log.is_waiting());
    /// ```
    pub fn waiting_calls(&self) -> Vec<WaitingCall<'_>> {
        let mut calls = Vec::new();
        if let Some(run) = self.open_run() {
            self.collect_waiting(&RunPath::new(), run, &mut calls);
        }
        calls
    }

    /// Returns whether the open run can do nothing until somebody approves a call or reports a result.
    pub fn is_waiting(&self) -> bool {
        self.open_run().is_some_and(|run| self.is_run_waiting(&RunPath::new(), run))
    }

    /// Returns the number of segments of all runs. A run is one segment, and another one for each time that it continued after
    /// it had waited for somebody.
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// Returns whether the last segment ended because the run waits for somebody, and the run has not continued since.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Counts the segment that an entry starts, if it starts one.
    pub(super) fn count_segment(&mut self, entry: &LogEntry) {
        match entry {
            LogEntry::RunStarted { run, .. } if run.is_empty() => {
                self.segments += 1;
                self.is_suspended = false;
            }
            LogEntry::InputReceived { run, input: RunInput::Cancelled { .. } } if run.is_empty() => {
                self.is_suspended = false;
            }
            // Answers do not continue a run: that happens once it resumes.
            LogEntry::InputReceived {
                input:
                    RunInput::CallApproved { .. }
                    | RunInput::CallRefused { .. }
                    | RunInput::CallFinished { .. }
                    | RunInput::Charged { .. }
                    | RunInput::LimitsChanged { .. }
                    | RunInput::ClockTicked { .. },
                ..
            } => {}
            LogEntry::InputReceived { .. } | LogEntry::RunStarted { .. } if self.is_suspended => {
                self.segments += 1;
                self.is_suspended = false;
            }
            _ => {}
        }
    }

    fn collect_waiting<'l>(&'l self, path: &RunPath, run: &'l Run, calls: &mut Vec<WaitingCall<'l>>) {
        let agent = run.spec().agent.as_str();
        let waiting = |call, waiting_for| WaitingCall {
            run: path.clone(),
            agent,
            call,
            waiting_for,
            returns: run.answer_schema(call),
        };
        calls.extend(run.approval_requests().map(|asked| waiting(asked.call, WaitingFor::Approval(asked.because))));
        calls.extend(run.client_calls().map(|call| waiting(call, WaitingFor::Client)));
        for (path, child) in self.open_children(path, run) {
            self.collect_waiting(&path, child, calls);
        }
    }

    fn is_run_waiting(&self, path: &RunPath, run: &Run) -> bool {
        // A workflow makes further calls, or ends.
        if run.step() == Step::Plan {
            return false;
        }
        let is_asking = run.approval_requests().next().is_some() || run.client_calls().next().is_some();
        let mut started = run.started_calls();
        let waits = |call: &PendingCall| {
            let is_agent = matches!(call.target, CallTarget::Agent { .. });
            let path: RunPath = path.iter().chain([&call.id]).cloned().collect();
            is_agent && self.child_run(&path).is_some_and(|child| self.is_run_waiting(&path, child))
        };
        let has_started = run.started_calls().next().is_some();
        (is_asking || has_started) && run.unstarted_calls().next().is_none() && started.all(waits)
    }

    /// Iterates over the unfinished runs of agents that a run called.
    fn open_children<'l>(&'l self, path: &RunPath, run: &'l Run) -> impl Iterator<Item = (RunPath, &'l Run)> {
        run.started_calls().filter_map(|call| {
            let path: RunPath = path.iter().chain([&call.id]).cloned().collect();
            let child = self.child_run(&path).filter(|child| child.outcome().is_none())?;
            Some((path, child))
        })
    }
}
