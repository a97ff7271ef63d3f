//! What differs between what a model was asked, and what it would be asked now.

use crate::message::conversation::Message;
use crate::message::request::{Frame, FramedTool, Settings};
use crate::run::{Ruling, RunOutcome};
use serde::Serialize;
use serde_json::Value as Json;
use std::fmt;

/// One way in which a run would have gone otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// There is no such agent any more.
    AgentGone {
        /// The agent.
        agent: String,
    },
    /// Another model is asked.
    Model {
        /// The one then.
        then: String,
        /// The one now.
        now: String,
    },
    /// The model is told something else.
    Instruction {
        /// What it was told.
        then: String,
        /// What it is told now.
        now: String,
    },
    /// The model may call a tool that it could not.
    ToolAdded {
        /// Its name on the wire.
        tool: String,
    },
    /// The model may not call a tool that it could.
    ToolRemoved {
        /// Its name on the wire.
        tool: String,
    },
    /// A tool is shown to the model in another way.
    ToolChanged {
        /// How it was.
        then: FramedTool,
        /// How it is.
        now: FramedTool,
    },
    /// The tools are the same, in another order.
    ToolOrder {
        /// How they were.
        then: Vec<String>,
        /// How they are.
        now: Vec<String>,
    },
    /// The model is to work in another way.
    Setting {
        /// The setting.
        name: String,
        /// What it was, `null` if it was left to the provider.
        then: Json,
        /// What it is.
        now: Json,
    },
    /// The answer has another form.
    Returns {
        /// The schema then.
        then: Option<Json>,
        /// The schema now.
        now: Option<Json>,
    },
    /// The conversation is another.
    Conversation {
        /// Which message is the first that differs, counted from 1.
        number: usize,
        /// It, then.
        then: Option<Message>,
        /// It, now.
        now: Option<Message>,
    },
    /// The model calls a tool that the agent has no more.
    NoSuchTool {
        /// The tool.
        tool: String,
    },
    /// The model called a tool that the agent had not, and has now.
    NewTool {
        /// The tool.
        tool: String,
    },
    /// A call is served by something else, which may have another result.
    Served {
        /// The tool, by the name that the agent has for it.
        tool: String,
        /// What served it.
        then: String,
        /// What serves it.
        now: String,
    },
    /// Something else is decided about a call.
    Ruling {
        /// The tool.
        tool: String,
        /// What was decided.
        then: Ruling,
        /// What is decided.
        now: Ruling,
    },
    /// The run is over where it went on.
    Ends {
        /// How.
        now: RunOutcome,
    },
    /// The run goes on where it was over.
    GoesOn {
        /// How it was.
        then: RunOutcome,
    },
    /// The run ends in another way.
    Outcome {
        /// How it ended.
        then: RunOutcome,
        /// How it ends.
        now: RunOutcome,
    },
    /// What happened cannot happen to the run as it is now.
    Impossible {
        /// Why not.
        message: String,
    },
}

/// Returns how what a model is given differs.
pub fn differences(then: &Frame, now: &Frame) -> Vec<Difference> {
    let mut found = Vec::new();
    if then.model != now.model {
        found.push(Difference::Model { then: then.model.clone(), now: now.model.clone() });
    }
    if then.instruction != now.instruction {
        found.push(Difference::Instruction { then: then.instruction.clone(), now: now.instruction.clone() });
    }
    tools(&then.tools, &now.tools, &mut found);
    settings(&then.settings, &now.settings, &mut found);
    if then.returns != now.returns {
        found.push(Difference::Returns { then: then.returns.clone(), now: now.returns.clone() });
    }
    found
}

fn tools(then: &[FramedTool], now: &[FramedTool], found: &mut Vec<Difference>) {
    fn named<'t>(tools: &'t [FramedTool], name: &str) -> Option<&'t FramedTool> {
        tools.iter().find(|tool| tool.name == name)
    }
    let before = found.len();
    for tool in then {
        match named(now, &tool.name) {
            None => found.push(Difference::ToolRemoved { tool: tool.name.clone() }),
            Some(other) if other != tool => {
                found.push(Difference::ToolChanged { then: tool.clone(), now: other.clone() });
            }
            Some(_) => {}
        }
    }
    let added = now.iter().filter(|tool| named(then, &tool.name).is_none());
    found.extend(added.map(|tool| Difference::ToolAdded { tool: tool.name.clone() }));
    let names = |tools: &[FramedTool]| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    if found.len() == before && names(then) != names(now) {
        found.push(Difference::ToolOrder { then: names(then), now: names(now) });
    }
}

fn settings(then: &Settings, now: &Settings, found: &mut Vec<Difference>) {
    let fields = |settings: &Settings| match serde_json::to_value(settings) {
        Ok(Json::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (then, now) = (fields(then), fields(now));
    for (name, was) in then {
        let is = now.get(&name).cloned().unwrap_or_default();
        if was != is {
            found.push(Difference::Setting { name, then: was, now: is });
        }
    }
}

/// Says what differs, in one line.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::AgentGone { agent } => write!(f, "there is no agent `{agent}`"),
            Difference::Model { then, now } => write!(f, "the model is `{now}`, and was `{then}`"),
            Difference::Instruction { .. } => write!(f, "the instruction is another"),
            Difference::ToolAdded { tool } => write!(f, "the tool `{tool}` is offered, and was not"),
            Difference::ToolRemoved { tool } => write!(f, "the tool `{tool}` is not offered, and was"),
            Difference::ToolChanged { then, now } => {
                let parts = [
                    (then.description != now.description).then_some("its description"),
                    (then.schema != now.schema).then_some("the schema of its arguments"),
                    (then.is_strict != now.is_strict).then_some("whether the provider holds the model to its schema"),
                ];
                let parts: Vec<_> = parts.into_iter().flatten().collect();
                write!(f, "the tool `{}` is shown in another way: {}", now.name, parts.join(", "))
            }
            Difference::ToolOrder { .. } => write!(f, "the tools stand in another order"),
            Difference::Setting { name, then, now } => write!(f, "`{name}` is {}, and was {}", said(now), said(then)),
            Difference::Returns { then: None, .. } => write!(f, "the answer has a form, and had none"),
            Difference::Returns { now: None, .. } => write!(f, "the answer has no form, and had one"),
            Difference::Returns { .. } => write!(f, "the answer has another form"),
            Difference::Conversation { number, .. } => write!(f, "message {number} of the conversation is another"),
            Difference::NoSuchTool { tool } => write!(f, "the model calls `{tool}`, which the agent has no more"),
            Difference::NewTool { tool } => write!(f, "the model calls `{tool}`, which the agent had not"),
            Difference::Served { tool, then, now } => {
                write!(f, "the call of `{tool}` is served by `{now}`, and was by `{then}`")
            }
            Difference::Ruling { tool, then, now } => {
                let (is, was) = (now.decision.name(), then.decision.name());
                write!(
                    f,
                    "the call of `{tool}` is decided otherwise: {is} ({}), and was {was} ({})",
                    now.because, then.because
                )
            }
            Difference::Ends { now } => write!(f, "the run ends here: {}", ended(now)),
            Difference::GoesOn { then } => write!(f, "the run goes on, and ended here: {}", ended(then)),
            Difference::Outcome { then, now } => {
                write!(f, "the run ends otherwise: {}, and was: {}", ended(now), ended(then))
            }
            Difference::Impossible { message } => write!(f, "what was recorded cannot go on from here: {message}"),
        }
    }
}

fn said(setting: &Json) -> String {
    match setting {
        Json::Null => "left to the provider".to_owned(),
        value => value.to_string(),
    }
}

fn ended(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Answer { .. } => "with an answer".to_owned(),
        RunOutcome::Failed(failure) => failure.message.clone(),
        RunOutcome::Cancelled => "it was stopped".to_owned(),
    }
}
