//! Calls of tools, as editors show them.

use super::prompt::{code_span, fenced};
use crate::compile::CompiledAgent;
use crate::declare::Effect;
use crate::message::attachment::MediaKind;
use crate::message::conversation::ToolOutcome;
use crate::message::media::{Media, without_data};
use crate::run::CallTarget;
use crate::serve::read::set;
use crate::session::RunPath;
use crate::text::truncate;
use serde_json::{Value as Json, json};

/// How many characters of the arguments a title has.
const MAX_TITLE_CHARS: usize = 100;

/// The kind of a tool, for the icon that an editor shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    /// It reads from this machine.
    Read,
    /// It changes something on this machine.
    Edit,
    /// It runs a command.
    Execute,
    /// It asks another agent.
    Think,
    /// It reads from the network.
    Fetch,
    /// Anything else.
    #[default]
    Other,
}

/// Returns the kind of a tool, given the name of an agent and its name for the tool.
pub type ToolKinds<'k> = &'k (dyn Fn(&str, &str) -> ToolKind + Send + Sync);

impl ToolKind {
    /// Returns the kind of a tool of an agent.
    pub fn of(agent: &CompiledAgent, tool: &str) -> Self {
        let callable = agent.spec().tools.iter().find(|callable| callable.name == tool);
        let name = match callable.map(|callable| &callable.target) {
            Some(CallTarget::Tool { name, .. }) => name,
            Some(CallTarget::Agent { .. }) => return Self::Think,
            Some(CallTarget::Client | CallTarget::Person) | None => return Self::Other,
        };
        let Some(tool) = agent.bindings().tools.iter().find(|tool| tool.name == name.as_str()) else {
            return Self::Other;
        };
        match (tool.kind.as_str(), Effect::parse(&tool.effect)) {
            ("command", _) => Self::Execute,
            (_, Some(Effect::Reads)) => Self::Read,
            (_, Some(Effect::Network)) => Self::Fetch,
            ("native", Some(Effect::Writes)) => Self::Edit,
            (_, Some(Effect::Pure | Effect::Writes) | None) => Self::Other,
        }
    }

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }
}

/// A call of a tool.
pub(super) struct Call<'c> {
    pub(super) run: &'c RunPath,
    pub(super) id: &'c str,
    pub(super) agent: &'c str,
    pub(super) tool: &'c str,
    pub(super) arguments: &'c Json,
}

impl Call<'_> {
    /// Returns the call as it is shown first.
    pub(super) fn to_json(&self, kind: ToolKind, status: &str) -> Json {
        // Editors show titles as Markdown.
        let arguments = code_span(&truncate(&self.arguments.to_string(), MAX_TITLE_CHARS));
        let caller = if self.run.is_empty() { String::new() } else { format!("{}: ", self.agent) };
        json!({
            "toolCallId": tool_call_id(self.run, self.id),
            "title": format!("{caller}{} {arguments}", self.tool),
            "name": self.tool,
            "kind": kind.name(),
            "status": status,
            "rawInput": self.arguments,
        })
    }
}

/// Returns the id of a call. Calls of called agents have the path that leads to them.
pub(super) fn tool_call_id(run: &RunPath, call_id: &str) -> String {
    run.iter().map(String::as_str).chain([call_id]).collect::<Vec<_>>().join("/")
}

/// Returns text as the content of a call.
pub(super) fn text_content(text: &str) -> Json {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// Returns JSON as the content of a call.
pub(super) fn json_content(value: &Json) -> Json {
    text_content(&fenced(&format!("{value:#}")))
}

/// Returns the status and the content of a call that ended, and what it returned.
pub(super) fn ended(id: &str, outcome: &ToolOutcome) -> Json {
    let status = if outcome.is_value() { "completed" } else { "failed" };
    let image = |media: &Media<'_>| json!({"type": "content", "content": media.to_json()});
    // Editors show images, but not documents.
    let is_image = |media: &&Media<'_>| media.kind == MediaKind::Image;
    let mut content: Vec<_> = outcome.media().iter().filter(is_image).map(image).collect();
    let mut update = json!({"toolCallId": id, "status": status});
    match outcome {
        ToolOutcome::Value { value } => {
            if content.is_empty() {
                content.push(text_content(&outcome.text()));
            }
            set(&mut update, "rawOutput", without_data(value, None).into_owned());
        }
        ToolOutcome::Error { .. } | ToolOutcome::Denied { .. } | ToolOutcome::Cancelled => {
            content.push(text_content(&outcome.text()));
        }
    }
    set(&mut update, "content", Json::Array(content));
    update
}
