//! The loop of an agent, as a state machine without I/O.
//!
//! A [`Run`] says what to do next ([`Run::step`]): call the model, call tools, ask someone, or nothing more. Whoever
//! drives it does that, and tells what came of it: [`Run::reply`], [`Run::finished`], [`Run::approved`]… Nothing else
//! changes a run, and it has no clock: times are milliseconds of a clock that is passed in, best that of the wall, so
//! that a run can go on elsewhere.
//!
//! - A run serializes between any two of these, and behaves the same when it is loaded again ([`Run::load`]).
//! - Each call that the model makes gets exactly one result in the conversation, in the order of the calls, whatever
//!   happens: results in any order, refusals, failures, cancellation. So a conversation can always be continued.
//! - Its [`Beginning`] and what it was [`RunInput`] since make the same run again, so that it can be kept a little at a time.
//! - What is told and cannot be, such as the result of a call that nobody made, is an error and changes nothing.
//!
//! Whether a call is permitted is decided once, when the model asks for it, by a function that is passed to
//! [`Run::reply`]: permissions are no part of a run, but the decision is, so that a person who was asked is not asked
//! again after a restart. The executor of tools decides again by its own rules when the call is made.

mod answer;
mod call;
mod child;
mod end;
mod history;
mod receive;
mod reply;
mod response;
mod save;
mod spec;
mod input;

pub use call::{PendingCall, Question, Ruling, Step};
pub use child::ChildError;
pub use end::{Failure, FailureKind, RunError, RunOutcome, StartError};
pub use input::{Beginning, RunInput};
pub use response::{Invocation, InvocationResult, Response};
pub use save::LoadError;
pub use spec::{Callable, Limits, RunSpec, Target};

use crate::message::conversation::{Message, Usage};
use crate::types::signature::Signature;
use call::Slot;
use save::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many calls of one reply are made. Those after them get an error.
pub const MAX_CALLS_IN_REPLY: usize = 128;

/// A run of an agent: what was said and done so far, and what is next.
///
/// ```
/// use patter_core::message::conversation::{ToolOutcome as Result, ToolCall, Usage};
/// use patter_core::permission::Decision;
/// use patter_core::message::request::{Finish, Reply};
/// use patter_core::run::{Callable, RunOutcome, Ruling, Run, RunSpec, Step, Target};
/// use patter_core::name::FullName;
///
/// let target = Target::Tool { name: FullName::parse("sayHello").unwrap(), idempotent: true };
/// let tools = vec![Callable { name: "sayHello".into(), target }];
/// let spec = RunSpec { agent: "greeter".into(), tools, ..RunSpec::default() };
/// let mut run = Run::start(spec, Vec::new(), "I am Ada", 0).unwrap();
/// let allow = |_: &_| Ruling { decision: Decision::Allow, because: "it is declared".into() };
/// let (finish, usage) = (Finish::Stop, Usage::default());
/// let says = |text: &str, calls| Reply { text: text.into(), calls, finish: finish.clone(), usage, opaque: None };
///
/// assert!(matches!(run.step(), Step::CallModel { messages: [_] }));
/// let call = ToolCall { id: "1".into(), tool: "sayHello".into(), arguments: r#"{"personName": "Ada"}"#.into() };
/// run.reply(says("", vec![call]), 20, &allow).unwrap();
///
/// let Step::CallTools { calls } = run.step() else { unreachable!() };
/// assert_eq!(calls[0].arguments["personName"], "Ada");
/// run.started("1").unwrap();
/// let text = serde_json::to_string(&run).unwrap();
/// let mut run = Run::load(&text).unwrap();
/// run.finished("1", Result::Value { value: "Hello, Ada!".into() }, 3, 25).unwrap();
///
/// assert!(matches!(run.step(), Step::CallModel { messages: [_, _, _] }));
/// run.reply(says("I greeted you.", vec![]), 40, &allow).unwrap();
/// assert!(matches!(run.step(), Step::Done(RunOutcome::Answer { text, .. }) if text == "I greeted you."));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    version: Version,
    spec: RunSpec,
    depth: u32,
    conversation: Vec<Message>,
    /// Where in the conversation this run begins.
    begin: usize,
    state: State,
    usage: Usage,
    model_calls: u32,
    tool_calls: u64,
    answer_retries: u32,
    clock: Clock,
    /// How long calls took, by their ids.
    durations: BTreeMap<String, u64>,
}

/// What is next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The model is called.
    Model,
    /// The calls of the last reply, in order, of which at least one is open.
    Tools(Vec<Slot>),
    /// Nothing.
    Done(RunOutcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Clock {
    start: u64,
    elapsed: u64,
}

impl Run {
    /// Starts a run with what a person says, in a conversation that may be empty. The time is that of the clock, in
    /// milliseconds.
    ///
    /// Calls that have no result, as the conversation was taken from a run that never ended, are held to be cancelled.
    pub fn start(spec: RunSpec, conversation: Vec<Message>, input: &str, now: u64) -> Result<Self, StartError> {
        if input.trim().is_empty() {
            return Err(StartError::EmptyInput);
        }
        if let Some(schema) = &spec.returns {
            Signature::from_schemas(&answer::no_arguments(), Some(schema)).map_err(StartError::Returns)?;
        }
        let mut conversation = history::closed(conversation)?;
        let begin = conversation.len();
        conversation.push(Message::user(input));
        let mut run = Self {
            version: Version,
            spec,
            depth: 0,
            conversation,
            begin,
            state: State::Model,
            usage: Usage::default(),
            model_calls: 0,
            tool_calls: 0,
            answer_retries: 0,
            clock: Clock { start: now, elapsed: 0 },
            durations: BTreeMap::new(),
        };
        run.call_model();
        Ok(run)
    }

    /// Returns what to do next. Asking changes nothing, and what is told decides what the next answer is.
    ///
    /// While a call waits for an approval the others run: calls that nobody started come first, then what is to be
    /// asked, then the calls that were started and have no result yet.
    pub fn step(&self) -> Step<'_> {
        let slots = match &self.state {
            State::Model => return Step::CallModel { messages: &self.conversation },
            State::Done(outcome) => return Step::Done(outcome),
            State::Tools(slots) => slots,
        };
        let calls: Vec<_> = slots.iter().filter_map(Slot::open).collect();
        let questions: Vec<_> = slots.iter().filter_map(Slot::question).collect();
        if questions.is_empty() || calls.iter().any(|call| !call.started) {
            Step::CallTools { calls }
        } else {
            Step::AskApproval { calls: questions }
        }
    }

    /// Iterates over the calls that began and have no result. In a run that was just loaded none of them is under way.
    pub fn under_way(&self) -> impl Iterator<Item = &PendingCall> {
        self.slots().iter().filter_map(Slot::open).filter(|call| call.started)
    }

    /// Iterates over the calls of the last reply that have their results, while others have not.
    pub fn closed_calls(&self) -> impl Iterator<Item = &str> {
        self.slots().iter().filter(|slot| slot.is_closed()).map(Slot::id)
    }

    /// Returns what the run knows of its agent.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Returns how many agents called one another until this one: 0 for the run of a person.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the whole conversation. Its last calls have no results yet while tools are called.
    pub fn conversation(&self) -> &[Message] {
        &self.conversation
    }

    /// Returns what this run added to the conversation, beginning with what the person said.
    pub fn added(&self) -> &[Message] {
        self.conversation.get(self.begin..).unwrap_or_default()
    }

    /// Returns the whole conversation, and ends with the run.
    pub fn into_conversation(self) -> Vec<Message> {
        self.conversation
    }

    /// Returns how it ended, if it did.
    pub fn outcome(&self) -> Option<&RunOutcome> {
        match &self.state {
            State::Done(outcome) => Some(outcome),
            State::Model | State::Tools(_) => None,
        }
    }

    /// Returns what it cost so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns how often the model was called.
    pub fn model_calls(&self) -> u32 {
        self.model_calls
    }

    /// Returns the milliseconds from the start to the last that was told.
    pub fn elapsed_ms(&self) -> u64 {
        self.clock.elapsed
    }

    /// Returns the milliseconds that are left at a time, if there is a deadline.
    pub fn time_left(&self, now: u64) -> Option<u64> {
        let elapsed = self.clock.elapsed.max(now.saturating_sub(self.clock.start));
        self.spec.limits.deadline_ms.map(|deadline| deadline.saturating_sub(elapsed))
    }

    fn slots(&self) -> &[Slot] {
        match &self.state {
            State::Tools(slots) => slots,
            State::Model | State::Done(_) => &[],
        }
    }

    fn at(&mut self, now: u64) {
        // A clock of the wall may be set back; time never runs backwards here.
        self.clock.elapsed = self.clock.elapsed.max(now.saturating_sub(self.clock.start));
    }

    /// Goes on to the next call of the model, or ends where a limit forbids it.
    fn call_model(&mut self) {
        self.state = match self.limit() {
            Some(failure) => State::Done(RunOutcome::Failed(failure)),
            None => State::Model,
        };
    }

    fn limit(&self) -> Option<Failure> {
        let Limits { max_model_calls, max_tokens, .. } = &self.spec.limits;
        if self.model_calls >= *max_model_calls {
            let message = format!("the limit of {max_model_calls} model calls is reached, and there is no answer");
            return Some(Failure { kind: FailureKind::ModelCalls, message });
        }
        let tokens = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        if let Some(most) = max_tokens.filter(|most| tokens >= *most) {
            let message = format!("the run used {tokens} tokens without an answer, and {most} are allowed");
            return Some(Failure { kind: FailureKind::Tokens, message });
        }
        self.late()
    }

    fn late(&self) -> Option<Failure> {
        let elapsed = self.clock.elapsed;
        let deadline = self.spec.limits.deadline_ms.filter(|deadline| elapsed >= *deadline)?;
        let message = format!("the run took {elapsed} ms without an answer, and {deadline} ms are allowed");
        Some(Failure { kind: FailureKind::Deadline, message })
    }
}
