//! What a run knows of its agent.

use crate::name::FullName;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What a run knows of its agent.
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
    /// The hash of its text, to see that it changed while a run lay still.
    #[serde(default)]
    pub hash: String,
    /// What it may call, in declared order.
    #[serde(default)]
    pub tools: Vec<Callable>,
    /// How far the run may go.
    #[serde(default)]
    pub limits: Limits,
    /// The JSON Schema of the answer, where it has a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Json>,
}

/// Something that an agent may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callable {
    /// The name by which the agent calls it.
    pub name: String,
    /// What serves it.
    pub target: Target,
}

/// What serves a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// A tool of the library.
    Tool {
        /// Its full name.
        #[serde(with = "full_name")]
        name: FullName,
        /// Whether a call may be made again when it is not known how the first ended.
        idempotent: bool,
    },
    /// Another agent.
    Agent {
        /// Its name.
        name: String,
    },
}

/// How far a run may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// How often the model may be called.
    pub max_model_calls: u32,
    /// How many calls the model may ask for.
    pub max_tool_calls: Option<u64>,
    /// How many tokens may be read and written before the model is called again.
    pub max_tokens: Option<u64>,
    /// How many milliseconds the run may take, those in which it waits for someone included.
    pub deadline_ms: Option<u64>,
    /// How deep agents may call one another from here on: 0 if this one may call none.
    pub max_depth: u32,
    /// How often the model may try again where its answer has not the form that it must have.
    pub max_answer_retries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_model_calls: 10,
            max_tool_calls: None,
            max_tokens: None,
            deadline_ms: None,
            max_depth: 4,
            max_answer_retries: 2,
        }
    }
}

impl RunSpec {
    pub(super) fn target(&self, tool: &str) -> Option<&Target> {
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
