//! Comparison of recorded runs with the current agents.
//!
//! The recorded replies and results are fed to runs of the current agents. At each model call, the current request is
//! compared with the recorded one; after each reply, so are the decisions about its calls. Beyond the first difference it
//! is unknown how the model would have replied.

mod difference;

pub use difference::{Difference, differences};

use crate::message::conversation::{Conversation, Message};
use crate::message::request::{Reply, RequestTemplate};
use crate::permission::Decision;
use crate::run::{CallTarget, PendingCall, PlannedCall, Ruling, Run, RunError, RunInput, RunSpec, RunStart};
use crate::session::{Log, LogEntry, LogError, RunPath};
use crate::workflow::render_instruction;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A source of the current agents.
pub trait CurrentAgents {
    /// Returns the current agent for a recorded run, by the path of the run and the name under which it was called: by the
    /// agent of the run above, or, for the top-level run, its recorded name. `None` if there is no such agent. Runs are
    /// looked up before those that they called.
    fn find(&self, run: &[String], name: &str) -> Option<CurrentAgent<'_>>;
}

/// The current version of an agent.
pub struct CurrentAgent<'c> {
    /// The frame of its model.
    pub frame: Arc<RequestTemplate>,
    /// The specification for its runs.
    pub spec: RunSpec,
    /// Rules on calls.
    pub decide: Box<dyn Fn(&PendingCall) -> Ruling + 'c>,
}

/// What to do after a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDifference {
    /// Stop, because it is unknown how the model would have replied.
    Stop,
    /// Continue with the recorded inputs as long as they fit, to find all differences.
    Continue,
}

/// The result of comparing recorded runs with the current agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReplayComparison {
    /// The number of top-level runs compared.
    pub turns: usize,
    /// Whether the recording ends before its last run does.
    #[serde(rename = "is_cut")]
    pub is_truncated: bool,
    /// The number of model calls without a difference.
    #[serde(rename = "same")]
    pub identical: usize,
    /// The model calls with differences.
    pub divergences: Vec<Divergence>,
}

/// A model call with differences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divergence {
    /// The model call.
    #[serde(rename = "place")]
    pub location: ModelCallLocation,
    /// What differs.
    pub differences: Vec<Difference>,
}

/// The location of a model call in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelCallLocation {
    /// The number of the top-level run, starting at 1.
    pub turn: usize,
    /// The chain of agents from the top-level one, under their recorded names.
    pub agents: Vec<String>,
    /// The number of the model call within the last agent's run, starting at 1.
    pub model_call: u32,
}

impl fmt::Display for ModelCallLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.agents.iter().map(|agent| format!("`{agent}`")).collect();
        write!(f, "turn {}, model call {} of {}", self.turn, self.model_call, agents.join(" → "))
    }
}

/// Compares recorded entries with the current agents.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::permission::Decision;
/// use patter_core::session::replay::{CurrentAgent, OnDifference, CurrentAgents, compare};
/// use patter_core::message::request::{FinishReason, RequestTemplate, Reply, Settings};
/// use patter_core::run::{CallTiming, Ruling, Run, RunSpec, RunInput};
/// use patter_core::session::LogEntry;
///
/// struct Project(&'static str);
/// fn frame(instruction: &str) -> RequestTemplate {
///     RequestTemplate {
///         model: "demo".into(),
///         instruction: instruction.into(),
///         tools: Vec::new(),
///         settings: Settings::default(),
///         returns: None,
///     }
/// }
/// impl CurrentAgents for Project {
///     fn find(&self, _: &[String], agent: &str) -> Option<CurrentAgent<'_>> {
///         let decide = Box::new(|_: &_| Ruling { decision: Decision::Allow, because: String::new() });
///         let spec = RunSpec { agent: agent.to_owned(), ..RunSpec::default() };
///         Some(CurrentAgent { frame: frame(self.0).into(), spec, decide })
///     }
/// }
///
/// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 0).unwrap();
/// let frame = Some(frame("Greet.").into());
/// let reply = Reply { text: "Hi!".into(), calls: vec![], finish: FinishReason::Stop, usage: Usage::default(), opaque: None, thought: String::new() };
/// let input = RunInput::ModelReplied { reply, rulings: vec![], timing: CallTiming::default(), at: 5 };
/// let entries = [
///     LogEntry::RunStarted { run: vec![], frame, bindings: String::new(), start: run.to_start(), traceparent: None },
///     LogEntry::InputReceived { run: vec![], input },
/// ];
/// let same = compare(entries.clone(), &Project("Greet."), OnDifference::Stop).unwrap();
/// assert_eq!((same.identical, same.divergences.len()), (1, 0));
/// let edited = compare(entries, &Project("Greet kindly."), OnDifference::Stop).unwrap();
/// assert_eq!(edited.divergences[0].location.to_string(), "turn 1, model call 1 of `hi`");
/// assert_eq!(edited.divergences[0].differences[0].to_string(), "the instruction changed");
/// ```
pub fn compare(
    entries: impl IntoIterator<Item = LogEntry>,
    agents: &dyn CurrentAgents,
    on_difference: OnDifference,
) -> Result<ReplayComparison, LogError> {
    let mut comparer = Comparer {
        agents,
        on_difference,
        log: Log::default(),
        replayed: HashMap::new(),
        found: ReplayComparison::default(),
    };
    let entries: Vec<_> = entries.into_iter().collect();
    if entries.iter().any(|entry| matches!(entry, LogEntry::Redacted { .. })) {
        return Err(comparer.log.error("the contents of the session were removed, so it cannot be compared"));
    }
    for entry in entries {
        comparer.compare_entry(entry)?;
        if on_difference == OnDifference::Stop && !comparer.found.divergences.is_empty() {
            return Ok(comparer.found);
        }
    }
    comparer.found.is_truncated = comparer.log.open_run().is_some();
    Ok(comparer.found)
}

struct Comparer<'c> {
    agents: &'c dyn CurrentAgents,
    on_difference: OnDifference,
    /// The recorded session.
    log: Log,
    /// The runs of the current agents, as long as they can be compared.
    replayed: HashMap<RunPath, ReplayedRun<'c>>,
    found: ReplayComparison,
}

struct ReplayedRun<'c> {
    agent: CurrentAgent<'c>,
    run: Run,
    agents: Vec<String>,
    /// Differences of the frame that have not been reported yet.
    pending: Vec<Difference>,
    /// Whether the frame is unchanged.
    is_same_frame: bool,
    /// The number of messages compared so far.
    compared: usize,
}

/// A call and the ruling on it.
struct RuledCall {
    id: String,
    tool: String,
    target: String,
    ruling: Ruling,
}

impl<'c> Comparer<'c> {
    fn compare_entry(&mut self, entry: LogEntry) -> Result<(), LogError> {
        match entry {
            LogEntry::RunStarted { run: path, frame, bindings, start, traceparent } => {
                let before = self.log.conversation().clone();
                let current = start.clone();
                self.log.apply(LogEntry::RunStarted { run: path.clone(), frame, bindings, start, traceparent })?;
                if path.is_empty() {
                    self.found.turns += 1;
                    self.replayed.clear();
                }
                self.start_run(&path, current, before);
                self.compare_outcomes(&path);
            }
            LogEntry::InputReceived { run: path, input } => {
                let then = self.recorded_run(&path).cloned();
                self.log.apply(LogEntry::InputReceived { run: path.clone(), input: input.clone() })?;
                if let Some(then) = then {
                    self.apply_input(&path, &then, input);
                    self.compare_outcomes(&path);
                }
            }
            other => {
                if let LogEntry::RunRestored { run, .. } = &other {
                    self.replayed.remove(run);
                }
                self.log.apply(other)?;
            }
        }
        Ok(())
    }

    /// Returns a recorded run.
    fn recorded_run(&self, path: &RunPath) -> Option<&Run> {
        if path.is_empty() { self.log.open_run().or(self.log.last_run()) } else { self.log.child_run(path) }
    }

    fn start_run(&mut self, path: &RunPath, start: RunStart, before: Conversation) {
        let agent = start.spec.agent.clone();
        let parent = path.split_last().map(|(call, above)| (call, self.replayed.get(above)));
        let mut agents = match &parent {
            // The calling run can no longer be compared.
            Some((_, None)) => return,
            Some((_, Some(parent))) => parent.agents.clone(),
            None => Vec::new(),
        };
        agents.push(agent.clone());
        let current_agents: &'c dyn CurrentAgents = self.agents;
        let called = path.split_last().and_then(|(call, above)| {
            let caller = self.recorded_run(&above.to_vec())?;
            Some(caller.find_open_call(call).ok()?.tool.clone())
        });
        let Some(current) = current_agents.find(path, called.as_ref().unwrap_or(&agent)) else {
            return self.report(agents, 1, vec![Difference::AgentMissing { agent }]);
        };
        let mut current = current;
        if current.spec.takes.is_some()
            && let Some(instruction) = render_instruction(&current.frame.instruction, &start.input)
        {
            Arc::make_mut(&mut current.frame).instruction = instruction;
        }
        let mut spec = current.spec.clone();
        let RunStart { spec: recorded, depth, input, attachments, continues, at } = start;
        let restart = |spec| RunStart {
            spec,
            depth,
            input: input.clone(),
            attachments: attachments.clone(),
            continues: continues.clone(),
            at,
        };
        // The run of an agent that took over a conversation starts with that.
        let history = self.recorded_run(path).filter(|_| !path.is_empty()).map(|run| {
            let before = run.conversation().len() - run.new_messages().len();
            Conversation::from(run.conversation().range(0..before).cloned().collect::<Vec<_>>())
        });
        let started = match parent {
            // The text is unchanged, but limits may have been set outside of it.
            _ if spec.hash == recorded.hash => {
                spec.limits = recorded.limits;
                spec.context = recorded.context;
                Run::from_start(restart(spec), history.unwrap_or(before)).map_err(|error| error.to_string())
            }
            Some((call, Some(parent))) => match (parent.run.start_child(call, spec.clone(), at), self.on_difference) {
                (Ok(run), _) => Ok(run),
                // The call is already finished here, or was not made.
                (Err(_), OnDifference::Continue) => {
                    Run::from_start(restart(spec), history.unwrap_or_default()).map_err(|error| error.to_string())
                }
                (Err(error), OnDifference::Stop) => Err(error.to_string()),
            },
            _ => Run::from_start(restart(spec), before).map_err(|error| error.to_string()),
        };
        match started {
            Ok(run) => {
                let frame = self.log.frame(&agent);
                let pending = frame.map(|frame| differences(frame, &current.frame)).unwrap_or_default();
                let is_same_frame = pending.is_empty();
                let replayed = ReplayedRun { agent: current, run, agents, pending, is_same_frame, compared: 0 };
                self.replayed.insert(path.clone(), replayed);
            }
            Err(message) => self.report(agents, 1, vec![Difference::NotReplayable { message }]),
        }
    }

    fn apply_input(&mut self, path: &RunPath, then: &Run, input: RunInput) {
        let Some(replayed) = self.replayed.get_mut(path) else { return };
        let mut found = std::mem::take(&mut replayed.pending);
        let model_call = then.model_calls() + 1;
        let result = match input {
            RunInput::ModelReplied { reply, rulings, at, .. } => {
                if self.on_difference == OnDifference::Continue {
                    replayed.catch_up(then.conversation(), at);
                }
                found.extend(replayed.compare_conversation(then.conversation()));
                let then_calls = recorded_calls(then, &reply, rulings, at);
                let overrides: &[_] = if self.on_difference == OnDifference::Continue { &then_calls } else { &[] };
                let (now_calls, result) = replayed.apply_reply(reply, at, overrides);
                found.extend(compare_calls(&then_calls, &now_calls, then.spec(), replayed.run.spec()));
                if found.is_empty() && replayed.is_same_frame {
                    self.found.identical += 1;
                }
                result
            }
            RunInput::StepsPlanned { calls, rulings, at } => {
                found.extend(replayed.compare_steps(&calls, at));
                replayed.run.apply(RunInput::StepsPlanned { calls, rulings, at }).map_err(|error| error.to_string())
            }
            input => {
                // A changed frame matters only once the model is called.
                if !matches!(input, RunInput::ModelFailed { .. }) {
                    replayed.pending = std::mem::take(&mut found);
                }
                match (replayed.run.apply(input), self.on_difference) {
                    // A call to a missing tool already has a result, which the model reads next.
                    (
                        Err(RunError::CallFinished { .. } | RunError::NoApprovalPending { .. }),
                        OnDifference::Continue,
                    )
                    | (Ok(()), _) => Ok(()),
                    (Err(error), _) => Err(error.to_string()),
                }
            }
        };
        let agents = replayed.agents.clone();
        if let Err(message) = result {
            self.replayed.remove(path);
            found.push(Difference::NotReplayable { message });
        }
        if !found.is_empty() {
            self.report(agents, model_call, found);
        }
    }

    /// Compares whether and how a run has ended.
    fn compare_outcomes(&mut self, path: &RunPath) {
        let Some((then, replayed)) = self.recorded_run(path).zip(self.replayed.get(path)) else { return };
        let difference = match (then.outcome(), replayed.run.outcome()) {
            (None, Some(now)) => Difference::Ends { now: now.clone() },
            (Some(then), None) => Difference::Continues { then: then.clone() },
            (Some(then), Some(now)) if then != now => Difference::Outcome { then: then.clone(), now: now.clone() },
            (Some(_), Some(_)) | (None, None) => return,
        };
        let agents = replayed.agents.clone();
        let model_call = then.model_calls().max(1);
        // Nothing beyond this point can be compared.
        self.replayed.remove(path);
        self.report(agents, model_call, vec![difference]);
    }

    fn report(&mut self, agents: Vec<String>, model_call: u32, differences: Vec<Difference>) {
        let location = ModelCallLocation { turn: self.found.turns, agents, model_call };
        match self.found.divergences.last_mut() {
            Some(last) if last.location == location => last.differences.extend(differences),
            _ => self.found.divergences.push(Divergence { location, differences }),
        }
    }
}

/// Returns the calls of a recorded reply with the rulings on them.
fn recorded_calls(then: &Run, reply: &Reply, rulings: Vec<Ruling>, at: u64) -> Vec<RuledCall> {
    let rulings = RefCell::new(rulings.into_iter());
    let calls = RefCell::new(Vec::new());
    let missing = || Ruling { decision: Decision::Deny, because: String::new() };
    let decide = |call: &PendingCall| {
        let ruling = rulings.borrow_mut().next().unwrap_or_else(missing);
        calls.borrow_mut().push(RuledCall::new(call, &ruling));
        ruling
    };
    // The log accepted the same reply, so this cannot fail.
    let _ = then.clone().model_replied(reply.clone(), at, &decide);
    calls.into_inner()
}

impl ReplayedRun<'_> {
    /// Returns the first difference among the messages that have not been compared yet.
    fn compare_conversation(&mut self, then: &Conversation) -> Option<Difference> {
        let now = self.run.conversation();
        let end = then.len().max(now.len());
        let index = (self.compared..end).find(|index| then.get(*index) != now.get(*index));
        self.compared = end;
        let index = index?;
        Some(Difference::Conversation {
            number: index + 1,
            then: then.get(index).cloned(),
            now: now.get(index).cloned(),
        })
    }

    /// Returns the steps of a workflow that are now called differently, or not at all.
    fn compare_steps(&self, then: &[PlannedCall], at: u64) -> Vec<Difference> {
        let now = self.run.planned_calls(at);
        let text = |call: &PlannedCall| format!("{}({})", call.call.tool, call.call.arguments);
        let mut found = Vec::new();
        for recorded in then {
            let current = now.iter().find(|current| current.call.id == recorded.call.id);
            if current.is_none_or(|current| current.call != recorded.call) {
                let call_id = recorded.call.id.clone();
                found.push(Difference::Step { call_id, then: Some(text(recorded)), now: current.map(text) });
            }
        }
        let is_new = |current: &&PlannedCall| !then.iter().any(|recorded| recorded.call.id == current.call.id);
        found.extend(now.iter().filter(is_new).map(|current| Difference::Step {
            call_id: current.call.id.clone(),
            then: None,
            now: Some(text(current)),
        }));
        found
    }

    /// Supplies recorded results that had no input of their own, such as errors of calls to unknown tools, if the run is
    /// waiting for them. Differences in results it is not waiting for have already been reported.
    fn catch_up(&mut self, then: &Conversation, at: u64) {
        let is_result = |message: &&Message| matches!(message, Message::Tool { .. });
        let first_result = then.len() - then.iter().rev().take_while(is_result).count();
        for message in then.since(first_result) {
            if let Message::Tool { call_id, outcome, .. } = message {
                let _ = self.run.approve(call_id);
                let _ = self.run.call_finished(call_id, outcome.clone(), 0, at);
            }
        }
    }

    /// Applies a reply and returns the current rulings on its calls. Rulings in `overrides` take effect instead of the
    /// current ones, so that the recorded inputs keep fitting.
    fn apply_reply(&mut self, reply: Reply, at: u64, overrides: &[RuledCall]) -> (Vec<RuledCall>, Result<(), String>) {
        let calls = RefCell::new(Vec::new());
        let decide = |call: &PendingCall| {
            let ruling = (self.agent.decide)(call);
            calls.borrow_mut().push(RuledCall::new(call, &ruling));
            overrides.iter().find(|recorded| recorded.id == call.id).map_or(ruling, |recorded| recorded.ruling.clone())
        };
        let result = self.run.model_replied(reply, at, &decide).map_err(|error| error.to_string());
        (calls.into_inner(), result)
    }
}

fn compare_calls(
    then_calls: &[RuledCall],
    now_calls: &[RuledCall],
    then_spec: &RunSpec,
    now_spec: &RunSpec,
) -> Vec<Difference> {
    fn has_tool(spec: &RunSpec, tool: &str) -> bool {
        spec.tools.iter().any(|callable| callable.name == tool)
    }
    fn find<'d>(calls: &'d [RuledCall], id: &str) -> Option<&'d RuledCall> {
        calls.iter().find(|call| call.id == id)
    }
    let mut found = Vec::new();
    for then in then_calls {
        let Some(now) = find(now_calls, &then.id) else {
            // Calls beyond a limit end the run, which is reported separately.
            if !has_tool(now_spec, &then.tool) {
                found.push(Difference::ToolMissing { tool: then.tool.clone() });
            }
            continue;
        };
        let tool = || then.tool.clone();
        if then.target != now.target {
            found.push(Difference::TargetChanged { tool: tool(), then: then.target.clone(), now: now.target.clone() });
        }
        // The model reads why a call was denied, so a different reason matters too.
        let is_changed = then.ruling.decision != now.ruling.decision
            || (now.ruling.decision == Decision::Deny && then.ruling.because != now.ruling.because);
        if is_changed {
            found.push(Difference::Ruling { tool: tool(), then: then.ruling.clone(), now: now.ruling.clone() });
        }
    }
    let new = now_calls.iter().filter(|now| find(then_calls, &now.id).is_none() && !has_tool(then_spec, &now.tool));
    found.extend(new.map(|now| Difference::NewTool { tool: now.tool.clone() }));
    found
}

impl RuledCall {
    fn new(call: &PendingCall, ruling: &Ruling) -> Self {
        let target = match &call.target {
            CallTarget::Tool { name, .. } => name.to_string(),
            CallTarget::Agent { name } => name.clone(),
            CallTarget::Client => "the client".to_owned(),
            CallTarget::Person => "a person".to_owned(),
        };
        Self { id: call.id.clone(), tool: call.tool.clone(), target, ruling: ruling.clone() }
    }
}
