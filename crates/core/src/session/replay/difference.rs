//! Differences between a recorded run and the same run with the current agents.

use crate::message::conversation::Message;
use crate::message::request::{RequestTemplate, Settings, TemplateTool};
use crate::run::{Ruling, RunOutcome};
use serde::Serialize;
use serde_json::Value as Json;
use std::fmt;

/// A difference between a recorded run and the same run with the current agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// The agent no longer exists.
    #[serde(rename = "agent_gone")]
    AgentMissing {
        /// The agent.
        agent: String,
    },
    /// The model changed.
    Model {
        /// The recorded model.
        then: String,
        /// The current model.
        now: String,
    },
    /// The instruction changed.
    Instruction {
        /// The recorded instruction.
        then: String,
        /// The current instruction.
        now: String,
    },
    /// The model may call a tool that it could not call before.
    ToolAdded {
        /// The name on the wire.
        tool: String,
    },
    /// The model can no longer call a tool.
    ToolRemoved {
        /// The name on the wire.
        tool: String,
    },
    /// A tool is presented to the model differently.
    ToolChanged {
        /// The recorded tool.
        then: TemplateTool,
        /// The current tool.
        now: TemplateTool,
    },
    /// The tools are the same, in a different order.
    ToolOrder {
        /// The recorded order.
        then: Vec<String>,
        /// The current order.
        now: Vec<String>,
    },
    /// A model setting changed.
    Setting {
        /// The name of the setting.
        name: String,
        /// The recorded value; `null` is the provider's default.
        then: Json,
        /// The current value.
        now: Json,
    },
    /// The schema of the answer changed.
    Returns {
        /// The recorded schema.
        then: Option<Json>,
        /// The current schema.
        now: Option<Json>,
    },
    /// The conversation differs.
    Conversation {
        /// The number of the first message that differs, starting at 1.
        number: usize,
        /// The recorded message.
        then: Option<Message>,
        /// The current message.
        now: Option<Message>,
    },
    /// The model calls a tool that the agent no longer has.
    #[serde(rename = "no_such_tool")]
    ToolMissing {
        /// The tool.
        tool: String,
    },
    /// The model called a tool that the agent did not have, but has now.
    NewTool {
        /// The tool.
        tool: String,
    },
    /// A call has a different target, which may return a different result.
    #[serde(rename = "served")]
    TargetChanged {
        /// The tool, under the agent's name for it.
        tool: String,
        /// The recorded target.
        then: String,
        /// The current target.
        now: String,
    },
    /// A step of a workflow is called differently, or only then, or only now.
    Step {
        /// The call.
        call_id: String,
        /// The recorded call.
        then: Option<String>,
        /// The current call.
        now: Option<String>,
    },
    /// The permission decision about a call changed.
    Ruling {
        /// The tool.
        tool: String,
        /// The recorded decision.
        then: Ruling,
        /// The current decision.
        now: Ruling,
    },
    /// The run ends where the recorded run continued.
    Ends {
        /// The current outcome.
        now: RunOutcome,
    },
    /// The run continues where the recorded run ended.
    Continues {
        /// The recorded outcome.
        then: RunOutcome,
    },
    /// The outcome of the run changed.
    Outcome {
        /// The recorded outcome.
        then: RunOutcome,
        /// The current outcome.
        now: RunOutcome,
    },
    /// The recorded inputs do not fit the current run.
    #[serde(rename = "impossible")]
    NotReplayable {
        /// Why not.
        message: String,
    },
}

/// Returns the differences between two frames of a model.
pub fn differences(then: &RequestTemplate, now: &RequestTemplate) -> Vec<Difference> {
    let mut found = Vec::new();
    if then.model != now.model {
        found.push(Difference::Model { then: then.model.clone(), now: now.model.clone() });
    }
    if then.instruction != now.instruction {
        found.push(Difference::Instruction { then: then.instruction.clone(), now: now.instruction.clone() });
    }
    compare_tools(&then.tools, &now.tools, &mut found);
    compare_settings(&then.settings, &now.settings, &mut found);
    if then.returns != now.returns {
        found.push(Difference::Returns { then: then.returns.clone(), now: now.returns.clone() });
    }
    found
}

fn compare_tools(then: &[TemplateTool], now: &[TemplateTool], found: &mut Vec<Difference>) {
    fn find<'t>(tools: &'t [TemplateTool], name: &str) -> Option<&'t TemplateTool> {
        tools.iter().find(|tool| tool.name == name)
    }
    let before = found.len();
    for tool in then {
        match find(now, &tool.name) {
            None => found.push(Difference::ToolRemoved { tool: tool.name.clone() }),
            Some(other) if other != tool => {
                found.push(Difference::ToolChanged { then: tool.clone(), now: other.clone() });
            }
            Some(_) => {}
        }
    }
    let added = now.iter().filter(|tool| find(then, &tool.name).is_none());
    found.extend(added.map(|tool| Difference::ToolAdded { tool: tool.name.clone() }));
    let names = |tools: &[TemplateTool]| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    if found.len() == before && names(then) != names(now) {
        found.push(Difference::ToolOrder { then: names(then), now: names(now) });
    }
}

fn compare_settings(then: &Settings, now: &Settings, found: &mut Vec<Difference>) {
    let fields = |settings: &Settings| match serde_json::to_value(settings) {
        Ok(Json::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let now = fields(now);
    for (name, then) in fields(then) {
        let now = now.get(&name).cloned().unwrap_or_default();
        if then != now {
            found.push(Difference::Setting { name, then, now });
        }
    }
}

/// Describes the difference in one line.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::AgentMissing { agent } => write!(f, "the agent `{agent}` no longer exists"),
            Difference::Model { then, now } => write!(f, "the model changed from `{then}` to `{now}`"),
            Difference::Instruction { .. } => write!(f, "the instruction changed"),
            Difference::ToolAdded { tool } => write!(f, "the tool `{tool}` was added"),
            Difference::ToolRemoved { tool } => write!(f, "the tool `{tool}` was removed"),
            Difference::ToolChanged { then, now } => {
                let parts = [
                    (then.description != now.description).then_some("description"),
                    (then.schema != now.schema).then_some("argument schema"),
                    (then.is_strict != now.is_strict).then_some("strict mode"),
                ];
                let parts: Vec<_> = parts.into_iter().flatten().collect();
                write!(f, "the tool `{}` changed: {}", now.name, parts.join(", "))
            }
            Difference::ToolOrder { .. } => write!(f, "the order of the tools changed"),
            Difference::Setting { name, then, now } => {
                write!(f, "`{name}` changed from {} to {}", describe_setting(then), describe_setting(now))
            }
            Difference::Returns { then: None, .. } => write!(f, "an answer schema was added"),
            Difference::Returns { now: None, .. } => write!(f, "the answer schema was removed"),
            Difference::Returns { .. } => write!(f, "the answer schema changed"),
            Difference::Conversation { number, .. } => write!(f, "message {number} of the conversation differs"),
            Difference::ToolMissing { tool } => write!(f, "the model calls `{tool}`, which the agent no longer has"),
            Difference::NewTool { tool } => write!(f, "the model calls `{tool}`, which the agent did not have"),
            Difference::TargetChanged { tool, then, now } => {
                write!(f, "the target of `{tool}` changed from `{then}` to `{now}`")
            }
            Difference::Step { call_id, then: Some(then), now: Some(now) } => {
                write!(f, "step `{call_id}` changed from {then} to {now}")
            }
            Difference::Step { call_id, now: Some(_), .. } => write!(f, "step `{call_id}` starts, and did not then"),
            Difference::Step { call_id, .. } => write!(f, "step `{call_id}` no longer starts"),
            Difference::Ruling { tool, then, now } => write!(
                f,
                "permission for `{tool}` changed from {} ({}) to {} ({})",
                then.decision.name(),
                then.because,
                now.decision.name(),
                now.because
            ),
            Difference::Ends { now } => write!(f, "the run now ends here: {}", describe_outcome(now)),
            Difference::Continues { then } => {
                write!(f, "the run now continues; it ended here: {}", describe_outcome(then))
            }
            Difference::Outcome { then, now } => {
                write!(f, "the run ends differently: {} (was: {})", describe_outcome(now), describe_outcome(then))
            }
            Difference::NotReplayable { message } => {
                write!(f, "the recording cannot be replayed beyond this point: {message}")
            }
        }
    }
}

fn describe_setting(value: &Json) -> String {
    match value {
        Json::Null => "the provider's default".to_owned(),
        value => value.to_string(),
    }
}

fn describe_outcome(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Answer { .. } => "answered".to_owned(),
        RunOutcome::Failed(failure) => failure.message.clone(),
        RunOutcome::Cancelled => "cancelled".to_owned(),
    }
}
