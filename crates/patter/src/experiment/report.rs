//! What is recorded of an experiment: its plan, each run, and the report of all of it.

use super::gate::GateResult;
use super::plan::Blocks;
use patter_core::case::Judged;
use patter_core::message::conversation::{Message, Usage};
use patter_core::provider::price::Cost;
use patter_core::run::{Failure, Invocation, InvocationResult};
use patter_core::stats::Comparison;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// One run of one case under one arm.
///
/// ```
/// use patter::experiment::Trial;
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
    /// Which repeat of the case, counted from 0.
    pub repeat: u32,
    /// Its place in the plan, counted from 0.
    pub order: u64,
    /// When it began, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether there was an answer and all checks passed.
    pub passed: bool,
    /// What came of the checks, in their order.
    pub judged: Vec<Judged>,
    /// The last answer; empty if there is none.
    pub content: String,
    /// Why there is no answer, where there is none.
    pub failure: Option<Failure>,
    /// All that was said and called.
    pub conversation: Vec<Message>,
    /// The calls of tools, in order.
    pub tools: Vec<ToolUse>,
    /// How long it took, in milliseconds, without the checks.
    pub latency_ms: u64,
    /// What it took, in tokens.
    pub usage: Usage,
    /// What it cost, where that is known. Its JSON is a number of dollars.
    #[serde(with = "dollars")]
    pub cost: Option<Cost>,
    /// How often the model was called.
    pub model_calls: u32,
}

/// A call of a tool.
///
/// ```
/// use patter::experiment::ToolUse;
/// let json = r#"{"tool": "sayHello", "args": {}, "result": "Hello!", "error": null, "duration_ms": 3}"#;
/// assert_eq!(serde_json::from_str::<ToolUse>(json).unwrap().duration_ms, Some(3));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool, by the name that the agent has for it.
    pub tool: String,
    /// The arguments; as text where they are not JSON.
    pub args: Json,
    /// The result, where there is one.
    pub result: Option<Json>,
    /// Why there is none.
    pub error: Option<String>,
    /// How long it took; nothing for a call that was not made.
    pub duration_ms: Option<u64>,
}

/// What an arm is.
///
/// ```
/// use patter::experiment::ArmInfo;
/// let arm = ArmInfo { name: "a".to_owned(), what: "the file as it is".to_owned(), ..ArmInfo::default() };
/// assert!(arm.model.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArmInfo {
    /// Its name.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// The hash of the text of the agent.
    pub agent_hash: String,
    /// The hash of what its tools are bound to.
    pub bindings_hash: String,
    /// The model.
    pub model: String,
    /// The file of the agent.
    pub file: String,
    /// How the arm was given.
    pub what: String,
}

/// What a case is, without its checks.
///
/// ```
/// use patter::experiment::CaseInfo;
/// let json = r#"{"id": "greets", "turns": ["Hello!"], "tags": []}"#;
/// assert_eq!(serde_json::from_str::<CaseInfo>(json).unwrap().id, "greets");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CaseInfo {
    /// What it is called.
    pub id: String,
    /// What the person says.
    pub turns: Vec<String>,
    /// What it belongs to.
    pub tags: Vec<String>,
}

/// What kind of experiment it is.
///
/// ```
/// use patter::experiment::ReportKind;
/// assert_eq!(serde_json::to_string(&ReportKind::Ab).unwrap(), r#""ab""#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportKind {
    /// One arm, held to what is expected of it.
    Eval,
    /// Several arms, compared.
    Ab,
}

/// An agent that judges, as it was.
///
/// ```
/// use patter::experiment::JudgeInfo;
/// assert!(JudgeInfo::default().instruction.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JudgeInfo {
    /// How cases name it.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// The hash of the text of the agent.
    pub agent_hash: String,
    /// The model.
    pub model: String,
    /// What the model is told.
    pub instruction: String,
}

/// An experiment with all that came of it.
///
/// ```
/// use patter::experiment::{Report, ReportKind};
/// let report = Report::new("Greeting", ReportKind::Eval);
/// assert_eq!((report.title.as_str(), report.repeats), ("Greeting", 1));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What it is about, in a line.
    pub title: String,
    /// What kind of experiment it is.
    pub kind: ReportKind,
    /// The arms; the first is what the others are compared with.
    pub arms: Vec<ArmInfo>,
    /// The cases.
    pub cases: Vec<CaseInfo>,
    /// How often each case is run under each arm.
    pub repeats: u32,
    /// What the order of runs was drawn from.
    pub seed: u64,
    /// How the runs followed one another: by case, where the experiment could stop early.
    #[serde(default)]
    pub blocks: Blocks,
    /// The runs, in the order of the plan.
    pub trials: Vec<Trial>,
    /// How the arms compare, where there are several.
    pub comparison: Option<Comparison>,
    /// What was expected, and whether it is so.
    pub gates: Vec<GateResult>,
    /// The agents that judged.
    pub judges: Vec<JudgeInfo>,
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// When the last run ended.
    pub ended_ms: u64,
    /// The version of Patter.
    pub version: String,
}

impl Report {
    /// Returns a report of nothing yet.
    pub fn new(title: &str, kind: ReportKind) -> Self {
        Self {
            title: title.to_owned(),
            kind,
            arms: Vec::new(),
            cases: Vec::new(),
            repeats: 1,
            seed: 0,
            blocks: Blocks::Mixed,
            trials: Vec::new(),
            comparison: None,
            gates: Vec::new(),
            judges: Vec::new(),
            began_ms: 0,
            ended_ms: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Iterates over the runs of an arm, in the order of the plan.
    pub fn of_arm<'r>(&'r self, arm: &'r str) -> impl Iterator<Item = &'r Trial> {
        self.trials.iter().filter(move |trial| trial.arm == arm)
    }
}

impl Trial {
    /// Returns it without what takes much room: the conversation, and what tools were given and gave.
    #[must_use]
    pub fn brief(mut self) -> Self {
        self.conversation = Vec::new();
        for tool in &mut self.tools {
            (tool.args, tool.result) = (Json::Null, None);
        }
        self
    }

    /// Returns how many tokens it took.
    pub fn tokens(&self) -> u64 {
        self.usage.input_tokens.saturating_add(self.usage.output_tokens)
    }

    /// Returns why it did not pass: the failure, or the first check that failed.
    pub fn why_not(&self) -> Option<&str> {
        let failed = self.judged.iter().find(|judged| !judged.passed).map(|judged| judged.why.as_str());
        self.failure.as_ref().map(|failure| failure.message.as_str()).or(failed)
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
    use patter_core::provider::price::Cost;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(in crate::experiment) fn serialize<S: Serializer>(
        cost: &Option<Cost>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        cost.map(Cost::dollars).serialize(serializer)
    }

    pub(in crate::experiment) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Cost>, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.and_then(Cost::of_dollars))
    }
}
