//! The result of one run of a case.

use crate::case::CheckResult;
use crate::message::conversation::{Conversation, Usage};
use crate::provider::price::Cost;
use crate::run::{FailureKind, Invocation, InvocationResult, RunFailure};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// One run of one case under one arm.
///
/// ```
/// use patter_core::experiment::Trial;
/// let trial = Trial { arm: "a".to_owned(), case: "greets".to_owned(), passed: true, ..Trial::default() };
/// let json = serde_json::to_string(&trial).unwrap();
/// assert_eq!(serde_json::from_str::<Trial>(&json).unwrap(), trial);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// The name of the arm.
    pub arm: String,
    /// The id of the case.
    pub case: String,
    /// The repeat of the case, counted from 0.
    pub repeat: u32,
    /// The position in the plan, counted from 0.
    pub order: u64,
    /// When the run started, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether there was an answer and all checks passed.
    pub passed: bool,
    /// The results of the checks, in order.
    pub judged: Vec<CheckResult>,
    /// The last answer; empty if there is none.
    pub content: String,
    /// Why there is no answer, if there is none.
    pub failure: Option<RunFailure>,
    /// The whole conversation.
    pub conversation: Conversation,
    /// The tool calls, in order.
    pub tools: Vec<ToolUse>,
    /// How long the run took in milliseconds, without the checks.
    pub latency_ms: u64,
    /// The tokens used.
    pub usage: Usage,
    /// The cost, if known. Its JSON is a number of dollars.
    #[serde(with = "dollars")]
    pub cost: Option<Cost>,
    /// The number of model calls.
    pub model_calls: u32,
}

/// What a trial says about its arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrialOutcome {
    /// There was an answer, and all checks passed.
    Passed,
    /// A check failed, or the agent did not answer within its limits.
    NotPassed,
    /// A model, a judge or a program could not be used. That says nothing about the quality of the answer.
    Error,
}

/// A tool call.
///
/// ```
/// use patter_core::experiment::ToolUse;
/// let json = r#"{"tool": "sayHello", "args": {}, "result": "Hello!", "error": null, "duration_ms": 3}"#;
/// assert_eq!(serde_json::from_str::<ToolUse>(json).unwrap().duration_ms, Some(3));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The name by which the agent calls the tool.
    pub tool: String,
    /// The arguments; a string if they are not valid JSON.
    pub args: Json,
    /// The result, if the call succeeded.
    pub result: Option<Json>,
    /// The error, if the call failed.
    pub error: Option<String>,
    /// How long the call took; `None` if it was not made.
    pub duration_ms: Option<u64>,
}

impl Trial {
    /// Drops the large parts: the conversation, and the arguments and results of tools.
    #[must_use]
    pub fn without_details(mut self) -> Self {
        self.conversation = Conversation::default();
        for tool in &mut self.tools {
            tool.args = Json::Null;
            tool.result = None;
        }
        self
    }

    /// Returns what the trial says about its arm.
    ///
    /// ```
    /// use patter_core::experiment::{Trial, TrialOutcome};
    /// use patter_core::run::{FailureKind, RunFailure};
    /// let failed = |kind| {
    ///     let failure = RunFailure { kind, message: String::new() };
    ///     Trial { failure: Some(failure), ..Trial::default() }.outcome()
    /// };
    /// assert_eq!(failed(FailureKind::Deadline), TrialOutcome::NotPassed);
    /// assert_eq!(failed(FailureKind::Model), TrialOutcome::Error);
    /// ```
    pub fn outcome(&self) -> TrialOutcome {
        match &self.failure {
            Some(failure) if is_infrastructure(failure.kind) => TrialOutcome::Error,
            Some(_) => TrialOutcome::NotPassed,
            None if self.passed => TrialOutcome::Passed,
            // One failed check decides, whatever the others would have said.
            None if self.judged.iter().any(|judged| judged.error)
                && self.judged.iter().all(|judged| judged.passed || judged.error) =>
            {
                TrialOutcome::Error
            }
            None => TrialOutcome::NotPassed,
        }
    }

    /// Returns the error of the infrastructure, if that is the outcome.
    pub fn error(&self) -> Option<&str> {
        if self.outcome() == TrialOutcome::Error { self.failure_reason() } else { None }
    }

    /// Returns the number of tokens used.
    pub fn tokens(&self) -> u64 {
        self.usage.input_tokens.saturating_add(self.usage.output_tokens)
    }

    /// Returns why the trial did not pass: the failure of the run, or the reason of the first failed check.
    pub fn failure_reason(&self) -> Option<&str> {
        let failed_check = self.judged.iter().find(|judged| !judged.passed).map(|judged| judged.why.as_str());
        self.failure.as_ref().map(|failure| failure.message.as_str()).or(failed_check)
    }
}

/// Returns whether a run failed because of something other than the agent. Its limits are part of the agent.
const fn is_infrastructure(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Configuration | FailureKind::Model | FailureKind::Store => true,
        FailureKind::Answer
        | FailureKind::ModelCalls
        | FailureKind::ToolCalls
        | FailureKind::Tokens
        | FailureKind::Cost
        | FailureKind::Deadline
        | FailureKind::Step => false,
    }
}

impl From<Invocation> for ToolUse {
    fn from(invocation: Invocation) -> Self {
        let Invocation { tool_name, args, result, duration_ms } = invocation;
        let (result, error) = match result {
            InvocationResult::Success(value) => (Some(value), None),
            InvocationResult::Error(message) => (None, Some(message)),
        };
        Self { tool: tool_name, args, result, error, duration_ms }
    }
}

/// Costs as numbers of dollars.
pub(super) mod dollars {
    use crate::provider::price::Cost;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde requires this signature")]
    pub(in crate::experiment) fn serialize<S: Serializer>(
        cost: &Option<Cost>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        cost.map(Cost::dollars).serialize(serializer)
    }

    pub(in crate::experiment) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Cost>, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.and_then(Cost::from_dollars))
    }
}
