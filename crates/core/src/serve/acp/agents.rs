//! What the agent can do, and the agents to choose from.

use super::request::AGENT_OPTION;
use crate::serve::read::set;
use serde_json::{Value as Json, json};

/// Returns the result of `initialize`. Clients that know only other versions disconnect.
///
/// ```
/// use patter_core::serve::acp::initialize_result;
/// assert_eq!(initialize_result("1.0.0")["protocolVersion"], 1);
/// ```
pub fn initialize_result(version: &str) -> Json {
    json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": false, "sse": false},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
        },
        "authMethods": [],
        "agentInfo": {"name": "patter", "title": "Patter", "version": version},
    })
}

/// The agents that people choose from, and the one that answers.
///
/// They are both modes and an option of a session: older clients know modes only, newer ones prefer options.
///
/// ```
/// use patter_core::serve::acp::{AgentChoice, AgentMode};
/// let mode = |name: &str| AgentMode { name: name.into(), description: None };
/// let choice = AgentChoice { current: "a".into(), agents: vec![mode("a"), mode("b")] };
/// assert_eq!(choice.state()["modes"]["currentModeId"], "a");
/// assert_eq!(AgentChoice { current: "a".into(), agents: vec![mode("a")] }.state(), serde_json::json!({}));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    /// The name of the agent that answers.
    pub current: String,
    /// The agents.
    pub agents: Vec<AgentMode>,
}

/// An agent to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMode {
    /// The name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
}

impl AgentChoice {
    /// Returns the state of a session that was opened: nothing if there is nothing to choose.
    pub fn state(&self) -> Json {
        if self.agents.len() < 2 {
            return json!({});
        }
        let mode = |agent: &AgentMode| described(json!({"id": agent.name, "name": agent.name}), agent);
        let modes: Vec<_> = self.agents.iter().map(mode).collect();
        json!({
            "modes": {"currentModeId": self.current, "availableModes": modes},
            "configOptions": self.options(),
        })
    }

    /// Returns the options of a session.
    pub fn options(&self) -> Json {
        let value = |agent: &AgentMode| described(json!({"value": agent.name, "name": agent.name}), agent);
        let values: Vec<_> = self.agents.iter().map(value).collect();
        json!([{
            "id": AGENT_OPTION,
            "name": "Agent",
            "description": "The agent that answers",
            "category": "mode",
            "type": "select",
            "currentValue": self.current,
            "options": values,
        }])
    }
}

fn described(mut value: Json, agent: &AgentMode) -> Json {
    if let Some(description) = &agent.description {
        set(&mut value, "description", description.as_str());
    }
    value
}
