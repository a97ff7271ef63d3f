//! The agent loop, as a state machine without I/O.
//!
//! A [`Run`] says what to do next ([`Run::step`]): call the model, call tools, ask for approval, or stop. The driver
//! does it and feeds the result back. Methods that report an event are named after it ([`Run::model_replied`],
//! [`Run::call_finished`]…); methods that change the run are imperatives ([`Run::approve`], [`Run::cancel`]…). Nothing
//! else changes a run. It has no clock: times are milliseconds of a clock that is passed in, preferably wall-clock time,
//! so that a run can continue on another machine.
//!
//! - A run can be serialized between any two of these calls, and behaves the same after [`Run::load`].
//! - Every call the model makes gets exactly one result in the conversation, in the order of the calls, even after
//!   refusals, failures and cancellation. So a conversation can always be continued.
//! - A [`RunStart`] and the [`RunInput`]s received since reproduce the run, so it can be saved incrementally.
//! - An input that does not fit the state, such as the result of an unknown call, is an error and changes nothing.
//!
//! Whether a call is permitted is decided once, when the model asks for it, by a function passed to
//! [`Run::model_replied`]. The permission rules are not part of a run, but the decision is, so nobody is asked again
//! after a restart. The tool executor checks its own rules again when the call is made.

mod spec;
mod end;
mod call;
mod save;
mod history;
mod answer;
mod reply;
mod receive;
mod input;
mod child;
mod compact;
mod workflow;
mod redact;
mod response;

pub(crate) use answer::read_person_answer;
pub use answer::unfenced;
pub use call::{ApprovalRequest, PendingCall, Ruling, Step};
pub use child::ChildError;
pub(crate) use child::INPUT_ARGUMENTS;
pub use end::{FailureKind, RunError, RunFailure, RunOutcome, StartError};
pub use input::{CallDelay, CallTiming, RunInput, RunStart};
pub use response::{Invocation, InvocationResult, Response};
pub use save::RunLoadError;
pub use spec::{CallTarget, Callable, ClientAdditions, ClientTool, ContextPolicy, ContextSpec, Limits, RunSpec};
pub use workflow::PlannedCall;

use crate::message::attachment::UserInput;
use crate::message::conversation::{Conversation, Messages, Usage};
use crate::provider::price::{Bill, Cost};
use crate::types::signature::Signature;
use call::Slot;
use compact::ContextState;
use save::FormatVersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The maximum number of calls executed per reply. Calls beyond it get an error.
pub const MAX_CALLS_IN_REPLY: usize = 128;

/// A run of an agent: the conversation so far, and the next step.
///
/// ```
/// use patter_core::message::conversation::{ToolCall, ToolOutcome, Usage};
/// use patter_core::permission::Decision;
/// use patter_core::message::request::{FinishReason, Reply};
/// use patter_core::run::{Callable, RunOutcome, Ruling, Run, RunSpec, Step, CallTarget};
/// use patter_core::name::FullName;
///
/// let target = CallTarget::Tool { name: FullName::parse("sayHello").unwrap(), idempotent: true };
/// let tools = vec![Callable { name: "sayHello".into(), target }];
/// let spec = RunSpec { agent: "greeter".into(), tools, ..RunSpec::default() };
/// let mut run = Run::start(spec, Vec::new(), "I am Ada", 0).unwrap();
/// let allow = |_: &_| Ruling { decision: Decision::Allow, because: "the agent declares it".into() };
/// let usage = Usage::default();
/// let reply = |text: &str, calls| Reply { text: text.into(), calls, finish: FinishReason::Stop, usage, opaque: None, thought: String::new() };
///
/// assert!(matches!(run.step(), Step::CallModel { messages } if messages.len() == 1));
/// let call = ToolCall { id: "1".into(), tool: "sayHello".into(), arguments: r#"{"personName": "Ada"}"#.into() };
/// run.model_replied(reply("", vec![call]), 20, &allow).unwrap();
///
/// let Step::CallTools { calls } = run.step() else { unreachable!() };
/// assert_eq!(calls[0].arguments["personName"], "Ada");
/// run.call_started("1").unwrap();
/// let text = serde_json::to_string(&run).unwrap();
/// let mut run = Run::load(&text).unwrap();
/// run.call_finished("1", ToolOutcome::Value { value: "Hello, Ada!".into() }, 3, 25).unwrap();
///
/// assert!(matches!(run.step(), Step::CallModel { messages } if messages.len() == 3));
/// run.model_replied(reply("I greeted you.", vec![]), 40, &allow).unwrap();
/// assert!(matches!(run.step(), Step::Done(RunOutcome::Answer { text, .. }) if text == "I greeted you."));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    version: FormatVersion,
    spec: RunSpec,
    depth: u32,
    conversation: Conversation,
    /// The index of the run's first message in the conversation.
    begin: usize,
    state: State,
    usage: Usage,
    /// What the run cost, as far as that is known.
    #[serde(default, skip_serializing_if = "Bill::is_empty")]
    spent: Bill,
    /// The model that is called instead of the agent's, since that one is not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback: Option<String>,
    model_calls: u32,
    tool_calls: u64,
    answer_retries: u32,
    clock: Clock,
    #[serde(default, skip_serializing_if = "ContextState::is_default")]
    context: ContextState,
    /// Whether a workflow makes further calls, which have not been planned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    needs_plan: bool,
    /// The call of the same run whose conversation this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continues: Option<String>,
    /// The durations of finished calls in milliseconds, by call id.
    durations: BTreeMap<String, u64>,
}

/// What the run is waiting for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// A reply of the model.
    Model,
    /// The conversation to be compacted, before the model is called.
    Compact,
    /// Results for the calls of the last reply, in order. At least one is open.
    Tools(Vec<Slot>),
    /// Nothing: the run has ended.
    Done(RunOutcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Clock {
    start: u64,
    elapsed: u64,
}

impl Run {
    /// Starts a run with a user's input, continuing a conversation that may be empty. `now` is the current time in
    /// milliseconds.
    ///
    /// Calls without a result, left over from an interrupted run, are marked as cancelled.
    pub fn start(
        spec: RunSpec,
        conversation: impl Into<Conversation>,
        input: impl Into<UserInput>,
        now: u64,
    ) -> Result<Self, StartError> {
        let input = input.into();
        if input.is_empty() {
            return Err(StartError::EmptyInput);
        }
        if let Some(schema) = &spec.takes {
            answer::parse(&input.text, schema)
                .map_err(|message| StartError::Input { agent: spec.agent.clone(), message })?;
        }
        input.check_limits()?;
        if let Some(schema) = &spec.returns {
            Signature::from_schemas(&answer::no_arguments(), Some(schema)).map_err(StartError::Returns)?;
        }
        let mut conversation = history::close_calls(conversation.into())?;
        let begin = conversation.len();
        conversation.push(input.into());
        let mut run = Self {
            version: FormatVersion,
            spec,
            depth: 0,
            conversation,
            begin,
            state: State::Model,
            usage: Usage::default(),
            spent: Bill::default(),
            fallback: None,
            model_calls: 0,
            tool_calls: 0,
            answer_retries: 0,
            clock: Clock { start: now, elapsed: 0 },
            context: ContextState::default(),
            needs_plan: false,
            continues: None,
            durations: BTreeMap::new(),
        };
        if run.is_workflow() {
            run.state = State::Tools(Vec::new());
            run.follow_workflow();
        } else {
            run.call_model();
        }
        Ok(run)
    }

    /// Returns what to do next. Only the inputs of the run change the answer, not asking for it.
    ///
    /// While one call waits for approval, the others run: calls that have not started come first, then approvals, then
    /// the started calls that have no result yet, then those that the client makes.
    pub fn step(&self) -> Step<'_> {
        let slots = match &self.state {
            State::Model => return Step::CallModel { messages: &self.conversation },
            State::Compact => return Step::Compact,
            State::Done(outcome) => return Step::Done(outcome),
            State::Tools(_) if self.needs_plan => return Step::Plan,
            State::Tools(slots) => slots,
        };
        let calls: Vec<_> = slots.iter().filter_map(Slot::own_call).collect();
        if calls.iter().any(|call| !call.started) {
            return Step::CallTools { calls };
        }
        let approvals: Vec<_> = self.approval_requests().collect();
        if !approvals.is_empty() {
            return Step::AskApproval { calls: approvals };
        }
        match calls.is_empty() {
            true => Step::AwaitClient { calls: self.client_calls().collect() },
            false => Step::CallTools { calls },
        }
    }

    /// Iterates over the calls that wait for approval.
    pub fn approval_requests(&self) -> impl Iterator<Item = ApprovalRequest<'_>> {
        self.slots().iter().filter_map(Slot::approval_request)
    }

    /// Iterates over the calls that the client makes, or a person answers, and that have no result yet.
    pub fn client_calls(&self) -> impl Iterator<Item = &PendingCall> {
        self.slots().iter().filter_map(Slot::client_call)
    }

    /// Iterates over the calls that a person answers and has not answered.
    pub fn person_calls(&self) -> impl Iterator<Item = &PendingCall> {
        self.client_calls().filter(|call| call.target == CallTarget::Person)
    }

    /// Iterates over the calls that started and have no result yet. After loading a run, none of them is in progress.
    pub fn started_calls(&self) -> impl Iterator<Item = &PendingCall> {
        self.slots().iter().filter_map(Slot::own_call).filter(|call| call.started)
    }

    /// Iterates over the calls that can be made here and have not started.
    pub fn unstarted_calls(&self) -> impl Iterator<Item = &PendingCall> {
        self.slots().iter().filter_map(Slot::own_call).filter(|call| !call.started)
    }

    /// Iterates over the ids of the last reply's calls that have a result, while others are still open.
    pub fn finished_call_ids(&self) -> impl Iterator<Item = &str> {
        self.slots().iter().filter(|slot| slot.is_closed()).map(Slot::id)
    }

    /// Returns the agent's specification.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Returns the nesting depth: 0 for a run started by a user, 1 for an agent called by that run, and so on.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the whole conversation. While tools are being called, its last calls have no results yet.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the messages this run added to the conversation, starting with the user's input.
    pub fn new_messages(&self) -> Messages<'_> {
        self.conversation.since(self.begin)
    }

    /// Consumes the run and returns the whole conversation.
    pub fn into_conversation(self) -> Conversation {
        self.conversation
    }

    /// Returns how the run ended, if it did.
    pub fn outcome(&self) -> Option<&RunOutcome> {
        match &self.state {
            State::Done(outcome) => Some(outcome),
            State::Model | State::Compact | State::Tools(_) => None,
        }
    }

    /// Returns the tokens used so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns what the run cost so far, including the agents it called.
    pub fn spent(&self) -> Bill {
        self.spent
    }

    /// Returns the model that is called instead of the agent's, if that one was not available.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// Returns the number of model calls so far.
    pub fn model_calls(&self) -> u32 {
        self.model_calls
    }

    /// Returns the milliseconds between the start and the latest input.
    pub fn elapsed_ms(&self) -> u64 {
        self.clock.elapsed
    }

    /// Returns the milliseconds left until the deadline, if there is one.
    pub fn time_left(&self, now: u64) -> Option<u64> {
        let elapsed = self.clock.elapsed.max(now.saturating_sub(self.clock.start));
        self.spec.limits.deadline_ms.map(|deadline| deadline.saturating_sub(elapsed))
    }

    fn slots(&self) -> &[Slot] {
        match &self.state {
            State::Tools(slots) => slots,
            State::Model | State::Compact | State::Done(_) => &[],
        }
    }

    fn advance_clock(&mut self, now: u64) {
        // The wall clock may be set back; the run's time never goes backwards.
        self.clock.elapsed = self.clock.elapsed.max(now.saturating_sub(self.clock.start));
    }

    /// Moves on to the next model call, or ends the run if a limit has been reached.
    fn call_model(&mut self) {
        self.state = match self.limit_failure() {
            Some(failure) => State::Done(RunOutcome::Failed(failure)),
            None => self.model_state(),
        };
    }

    fn limit_failure(&self) -> Option<RunFailure> {
        let Limits { max_model_calls, max_tokens, max_cost, .. } = &self.spec.limits;
        // A workflow has no model of its own.
        if self.model_calls >= *max_model_calls && !self.is_workflow() {
            let message = format!("reached the limit of {max_model_calls} model calls without an answer");
            return Some(RunFailure { kind: FailureKind::ModelCalls, message });
        }
        let tokens = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        if let Some(limit) = max_tokens.filter(|limit| tokens >= *limit) {
            let message = format!("the run used {tokens} tokens without an answer (limit: {limit})");
            return Some(RunFailure { kind: FailureKind::Tokens, message });
        }
        let spent = self.spent.known();
        // A limit of nothing leaves models that cost nothing.
        if let Some(limit) = max_cost.filter(|limit| spent >= *limit && spent > Cost::FREE) {
            let message = format!("the run cost {spent} without an answer (limit: {limit})");
            return Some(RunFailure { kind: FailureKind::Cost, message });
        }
        self.deadline_failure()
    }

    fn deadline_failure(&self) -> Option<RunFailure> {
        let elapsed = self.clock.elapsed;
        let deadline = self.spec.limits.deadline_ms.filter(|deadline| elapsed >= *deadline)?;
        let message = format!("the run took {elapsed} ms without an answer (limit: {deadline} ms)");
        Some(RunFailure { kind: FailureKind::Deadline, message })
    }
}
