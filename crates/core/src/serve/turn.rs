//! How a turn ended, as clients see it.

use super::{ApiError, ApiErrorKind};
use crate::message::conversation::Usage;
use crate::message::request::FinishReason;
use crate::run::{CallTarget, FailureKind, Run, RunFailure, RunOutcome, read_person_answer};
use crate::session::{Log, RunPath, WaitingCall, WaitingFor};
use crate::types::definition::hash;
use serde::Serialize;
use serde_json::Value as Json;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// The outcome.
    pub outcome: TurnOutcome,
    /// The tokens used by all model calls of the turn, with those of called agents.
    pub usage: Usage,
}

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnOutcome {
    /// The agent answered.
    Answered {
        /// The text.
        text: String,
        /// The value of a structured answer.
        value: Option<Json>,
        /// Why the model stopped.
        finish: FinishReason,
    },
    /// The run failed.
    Failed(RunFailure),
    /// The run was cancelled.
    Cancelled,
    /// The run waits for somebody.
    Waiting(Vec<Waiting>),
}

/// A call that waits for somebody.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waiting {
    /// The calls of agents that lead to the run.
    #[serde(skip_serializing_if = "RunPath::is_empty")]
    pub run: RunPath,
    /// The call.
    pub call_id: String,
    /// The agent that made it.
    pub agent: String,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The arguments.
    pub arguments: Json,
    /// Why the call needs approval; `None` if the client executes the tool, or a person answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What a person is asked, if it is a step of a workflow that a person performs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The JSON Schema of the answer to that question, unless it is a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<Json>,
    /// The hash of tool and arguments. An approval has to name it, so that it is about exactly this call.
    pub hash: String,
}

impl TurnEnd {
    /// Returns how the last turn of a session ended. `run` is the run as the driver returned it.
    pub fn new(run: &Run, log: &Log) -> Self {
        let outcome = match run.outcome() {
            Some(RunOutcome::Answer { text, value, finish }) => {
                TurnOutcome::Answered { text: text.clone(), value: value.clone(), finish: finish.clone() }
            }
            Some(RunOutcome::Failed(failure)) => TurnOutcome::Failed(failure.clone()),
            Some(RunOutcome::Cancelled) => TurnOutcome::Cancelled,
            None => TurnOutcome::Waiting(Waiting::all(log)),
        };
        Self { outcome, usage: run.usage() }
    }

    /// Counts only the tokens used since the run had used so many.
    #[must_use]
    pub fn since(mut self, usage: Usage) -> Self {
        self.usage = self.usage.since(usage);
        self
    }

    /// Returns the error of a turn that failed or was cancelled.
    pub fn error(&self) -> Option<ApiError> {
        match &self.outcome {
            TurnOutcome::Failed(failure) => {
                let kind = match failure.kind {
                    FailureKind::Model | FailureKind::Answer => ApiErrorKind::Model,
                    FailureKind::Store => ApiErrorKind::Unavailable,
                    FailureKind::Configuration => ApiErrorKind::Server,
                    FailureKind::ModelCalls
                    | FailureKind::ToolCalls
                    | FailureKind::Tokens
                    | FailureKind::Cost
                    | FailureKind::Deadline
                    | FailureKind::Step => ApiErrorKind::Run,
                };
                Some(ApiError::new(kind, failure.message.clone()))
            }
            TurnOutcome::Cancelled => Some(ApiError::new(ApiErrorKind::Run, "the run was cancelled")),
            TurnOutcome::Answered { .. } | TurnOutcome::Waiting(_) => None,
        }
    }

    /// Iterates over the calls that wait for the client.
    pub fn client_calls(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting().iter().filter(|call| call.because.is_none())
    }

    /// Iterates over the calls that wait for approval.
    pub fn approvals(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting().iter().filter(|call| call.because.is_some())
    }

    /// Iterates over the calls that people decide about or answer.
    pub fn calls_for_people(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting().iter().filter(|call| call.is_for_people())
    }

    fn waiting(&self) -> &[Waiting] {
        match &self.outcome {
            TurnOutcome::Waiting(calls) => calls,
            TurnOutcome::Answered { .. } | TurnOutcome::Failed(_) | TurnOutcome::Cancelled => &[],
        }
    }
}

impl Waiting {
    /// Returns all calls of a log that wait.
    pub fn all(log: &Log) -> Vec<Self> {
        log.waiting_calls().iter().map(Self::new).collect()
    }

    /// Returns a call of a log that waits.
    fn new(waiting: &WaitingCall<'_>) -> Self {
        let because = match waiting.waiting_for {
            WaitingFor::Approval(because) => Some(because.to_owned()),
            WaitingFor::Client => None,
        };
        let call = waiting.call;
        let question = call.arguments.get("question").and_then(Json::as_str);
        let question = question.filter(|_| call.target == CallTarget::Person).map(str::to_owned);
        Self {
            run: waiting.run.clone(),
            call_id: call.id.clone(),
            agent: waiting.agent.to_owned(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            because,
            question,
            returns: waiting.returns.cloned(),
            hash: hash(format!("{}\0{}", call.tool, call.arguments).as_bytes()),
        }
    }

    /// Returns whether a person decides about it or answers it, and not the client that made the request.
    pub fn is_for_people(&self) -> bool {
        self.because.is_some() || self.question.is_some()
    }

    /// Checks the answer to the question, or describes what is wrong with it.
    pub fn check_answer(&self, answer: &Json) -> Result<(), String> {
        read_person_answer(answer, self.returns.as_ref()).map(drop)
    }

    /// Returns one line that says what waits, for clients that only show text.
    pub fn line(&self) -> String {
        match &self.question {
            Some(question) => format!("waiting for an answer to `{}`: {question}", self.tool),
            None => format!("waiting for approval of `{}` with {}", self.tool, self.arguments),
        }
    }
}
