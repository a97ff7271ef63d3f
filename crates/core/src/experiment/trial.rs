//! The result of one run of a case.

use crate::case::CheckResult;
use crate::message::conversation::{Message, Usage};
use crate::provider::price::Cost;
use crate::run::{Invocation, InvocationResult, RunFailure};
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
    pub conversation: Vec<Message>,
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
        self.conversation = Vec::new();
        for tool in &mut self.tools {
            tool.args = Json::Null;
            tool.result = None;
        }
        self
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
