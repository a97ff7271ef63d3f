//! The specification of an agent, as a run needs it.

pub use crate::message::context::ContextPolicy;

use crate::name::FullName;
use crate::provider::price::Cost;
use crate::workflow::Plan;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;

/// The parts of an agent that a run depends on.
///
/// ```
/// use patter_core::run::{Limits, RunSpec};
/// let spec = RunSpec { agent: "greeter".into(), ..RunSpec::default() };
/// assert_eq!(spec.limits.max_model_calls, 10);
/// assert_eq!(serde_json::from_str::<RunSpec>(r#"{"agent": "greeter"}"#).unwrap(), spec);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunSpec {
    /// The name of the agent.
    pub agent: String,
    /// The hash of the agent's text, to detect that it changed while a run was suspended.
    #[serde(default)]
    pub hash: String,
    /// The tools and agents it may call, in declared order.
    #[serde(default)]
    pub tools: Vec<Callable>,
    /// The limits of the run.
    #[serde(default)]
    pub limits: Limits,
    /// The JSON Schema of the answer, if answers are structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Json>,
    /// The JSON Schema of the input, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Arc<Json>>,
    /// The plan of a workflow, which makes the calls instead of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Arc<Plan>>,
    /// What happens when the conversation outgrows the window of the model.
    #[serde(default, skip_serializing_if = "ContextSpec::is_default")]
    pub context: ContextSpec,
    /// What the client that started the run adds to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientAdditions>,
}

/// How long a conversation may become, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextSpec {
    /// What happens.
    pub policy: ContextPolicy,
    /// The tokens that fit in the window of the model, if that is known.
    pub window: Option<u64>,
    /// About how many tokens the instruction and the tools have.
    pub overhead: u64,
    /// The tokens that are left for the reply.
    pub reserve: u64,
}

impl ContextSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a client adds to an agent for one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientAdditions {
    /// Tools that the client executes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// Text that follows the instruction of the agent. It never replaces it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
}

/// A tool that a client executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    /// The name, as providers accept it.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The schema of the arguments.
    pub schema: Json,
}

/// A tool or agent that an agent may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callable {
    /// The name under which the agent calls it.
    pub name: String,
    /// What executes the call.
    pub target: CallTarget,
}

/// What executes a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallTarget {
    /// A tool of the library.
    Tool {
        /// The full name of the tool.
        #[serde(with = "full_name")]
        name: FullName,
        /// Whether a call may be repeated if the outcome of the first attempt is unknown.
        idempotent: bool,
    },
    /// Another agent.
    Agent {
        /// The name of the agent.
        name: String,
    },
    /// The client that started the run: it has tools of its own, and reports their results.
    Client,
    /// A person, who answers a question.
    Person,
}

impl CallTarget {
    /// Returns whether the result comes from outside: nothing here makes the call.
    pub fn is_outside(&self) -> bool {
        matches!(self, CallTarget::Client | CallTarget::Person)
    }
}

/// The limits of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The maximum number of model calls.
    pub max_model_calls: u32,
    /// The maximum number of calls the model may request.
    pub max_tool_calls: Option<u64>,
    /// The number of input and output tokens after which the model is not called again.
    pub max_tokens: Option<u64>,
    /// The cost after which the model is not called again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Cost>,
    /// The maximum duration of the run in milliseconds, including time spent waiting for approval.
    pub deadline_ms: Option<u64>,
    /// The maximum nesting depth of agents called from here: 0 if this one may not call any.
    pub max_depth: u32,
    /// The maximum number of retries after an answer that does not match the schema.
    pub max_answer_retries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_model_calls: 10,
            max_tool_calls: None,
            max_tokens: None,
            max_cost: None,
            deadline_ms: None,
            max_depth: 4,
            max_answer_retries: 2,
        }
    }
}

impl RunSpec {
    pub(super) fn target(&self, tool: &str) -> Option<&CallTarget> {
        self.tools.iter().find(|callable| callable.name == tool).map(|callable| &callable.target)
    }
}

mod full_name {
    use crate::name::FullName;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(name: &FullName, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FullName, D::Error> {
        FullName::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
