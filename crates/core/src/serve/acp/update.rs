//! Events of a run as updates of a session.

use super::tool::{Call, ToolKinds, ended, json_content, text_content, tool_call_id};
use crate::event::{RunEvent, RunEventKind};
use crate::message::conversation::ToolOutcome;
use crate::serve::Waiting;
use crate::serve::read::set;
use serde_json::{Value as Json, json};
use std::collections::HashSet;

/// Turns events of runs into updates of a session.
///
/// The texts of called agents are not shown, because they are not addressed to the user; their calls are.
///
/// ```
/// use patter_core::event::{RunEvent, RunEventKind};
/// use patter_core::serve::acp::{ToolKind, UpdateStream};
/// use serde_json::json;
///
/// let mut updates = UpdateStream::default();
/// let mut update = |kind| updates.event(&RunEvent::new("clerk", &vec![], kind), &|_, _| ToolKind::Edit);
/// let text = update(RunEventKind::Text { text: "Hello".into() }).unwrap();
/// assert_eq!(text["sessionUpdate"], "agent_message_chunk");
/// let arguments = json!({"euros": 5});
/// let call = update(RunEventKind::ToolStarted { call_id: "1".into(), tool: "pay".into(), arguments }).unwrap();
/// assert_eq!((&call["kind"], &call["status"]), (&json!("edit"), &json!("in_progress")));
/// assert_eq!(call["title"], "pay `{\"euros\":5}`");
/// ```
#[derive(Debug, Clone, Default)]
pub struct UpdateStream {
    has_notices: bool,
    /// The number of the segment of the session, and of the model call in its run: the id of a message.
    segment: u32,
    model_call: u32,
    /// The calls that the client knows.
    known: HashSet<String>,
}

impl UpdateStream {
    /// Also sends notices, which only clients that show them get.
    #[must_use]
    pub fn with_notices(mut self, has_notices: bool) -> Self {
        self.has_notices = has_notices;
        self
    }

    /// Starts a segment of the session: see [`Log::segments`](crate::session::Log::segments).
    pub fn start_segment(&mut self, number: u32) {
        self.segment = number;
        self.model_call = 0;
    }

    /// Starts a message that came from elsewhere.
    pub(super) fn start_message(&mut self, number: usize) {
        self.model_call = u32::try_from(number).unwrap_or(u32::MAX);
    }

    /// Returns the update for what the user said.
    pub fn user_message(&self, text: &str) -> Json {
        chunk("user_message_chunk", text, &self.message_id())
    }

    /// Returns the update for an event, if it has one.
    pub fn event(&mut self, event: &RunEvent, kinds: ToolKinds<'_>) -> Option<Json> {
        let is_outermost = event.run.is_empty();
        match &event.kind {
            RunEventKind::ModelCalled { number } if is_outermost => {
                self.model_call = *number;
                None
            }
            RunEventKind::Text { text } if is_outermost => self.agent_text("agent_message_chunk", text),
            RunEventKind::Thought { text } if is_outermost => self.agent_text("agent_thought_chunk", text),
            RunEventKind::Waiting { because, .. } if self.has_notices => Some(notice("info", because)),
            RunEventKind::FellBack { from, to, because } if self.has_notices => {
                Some(notice("warning", &format!("`{from}` is not available: {because}; asking `{to}` instead")))
            }
            RunEventKind::Compacted { left_out, .. } if is_outermost && self.has_notices => {
                Some(notice("info", &format!("the conversation is too long: {left_out} messages are no longer sent")))
            }
            RunEventKind::Incomplete { message, .. } if is_outermost && self.has_notices => {
                Some(notice("warning", message))
            }
            RunEventKind::ToolStarted { call_id, tool, arguments } => {
                let call = Call { run: &event.run, id: call_id, agent: &event.agent, tool, arguments };
                Some(self.call(&call, kinds, "in_progress"))
            }
            RunEventKind::ToolProgress { call_id, message, .. } if !message.is_empty() => {
                let id = tool_call_id(&event.run, call_id);
                let update = json!({"toolCallId": id, "content": [text_content(message)]});
                Some(tagged("tool_call_update", update))
            }
            RunEventKind::ToolFinished { call_id, tool, outcome, unstarted, .. } => {
                let id = tool_call_id(&event.run, call_id);
                let mut update = ended(&id, outcome);
                if self.known.contains(&id) {
                    return Some(tagged("tool_call_update", update));
                }
                // A call that ended without starting was not announced.
                let text = unstarted.as_deref().unwrap_or_default();
                let arguments = serde_json::from_str(text).unwrap_or_else(|_| text.into());
                let call = Call { run: &event.run, id: call_id, agent: &event.agent, tool, arguments: &arguments };
                let status = update.get("status").and_then(Json::as_str).unwrap_or_default().to_owned();
                let mut shown = self.call(&call, kinds, &status);
                for name in ["content", "rawOutput"] {
                    if let Some(value) = update.get_mut(name) {
                        set(&mut shown, name, value.take());
                    }
                }
                Some(shown)
            }
            _ => None,
        }
    }

    /// Returns the update for a call that waits for approval.
    pub fn waiting(&mut self, call: &Waiting, kinds: ToolKinds<'_>) -> Json {
        let mut update = self.call(&waiting_call(call), kinds, "pending");
        set(&mut update, "content", waiting_content(call));
        update
    }

    /// Returns the question of a workflow as a message of the agent: the next prompt answers it. `problem` says what was wrong
    /// with the answer before.
    pub fn question(&self, question: &str, problem: Option<&str>) -> Json {
        let text = match problem {
            Some(problem) => format!("The answer was not accepted: {problem}\n\n{question}"),
            None => question.to_owned(),
        };
        chunk("agent_message_chunk", &text, &self.message_id())
    }

    /// Returns the update for a call that waited, and is not made. The run has no event for it when it continues.
    pub fn unmade(&self, call: &Waiting, outcome: &ToolOutcome) -> Json {
        let id = tool_call_id(&call.run, &call.call_id);
        tagged("tool_call_update", ended(&id, outcome))
    }

    fn agent_text(&self, name: &str, text: &str) -> Option<Json> {
        (!text.is_empty()).then(|| chunk(name, text, &self.message_id()))
    }

    fn message_id(&self) -> String {
        format!("{}.{}", self.segment, self.model_call)
    }

    /// Announces a call, or says what is new about it.
    fn call(&mut self, call: &Call<'_>, kinds: ToolKinds<'_>, status: &str) -> Json {
        let id = tool_call_id(call.run, call.id);
        if self.known.contains(&id) {
            return tagged("tool_call_update", json!({"toolCallId": id, "status": status}));
        }
        self.known.insert(id);
        tagged("tool_call", call.to_json(kinds(call.agent, call.tool), status))
    }
}

/// Returns the call that a permission is requested for, with everything that the user decides about.
pub(super) fn permission_call(call: &Waiting, kinds: ToolKinds<'_>) -> Json {
    let mut shown = waiting_call(call).to_json(kinds(&call.agent, &call.tool), "pending");
    set(&mut shown, "content", waiting_content(call));
    shown
}

fn waiting_call(call: &Waiting) -> Call<'_> {
    let Waiting { run, call_id, agent, tool, arguments, .. } = call;
    Call { run, id: call_id, agent, tool, arguments }
}

fn waiting_content(call: &Waiting) -> Json {
    let because = call.because.as_deref().map(text_content);
    because.into_iter().chain([json_content(&call.arguments)]).collect()
}

/// Returns the update that shows something to the user that is not part of the session.
pub fn notice(severity: &str, title: &str) -> Json {
    tagged("notice", json!({"severity": severity, "title": title}))
}

/// Returns the update for the agent of a session, as its mode.
pub fn mode_update(agent: &str) -> Json {
    tagged("current_mode_update", json!({"currentModeId": agent}))
}

/// Returns the update for the options of a session.
pub fn option_update(options: &Json) -> Json {
    tagged("config_option_update", json!({"configOptions": options}))
}

/// Returns the update for the metadata of a session.
pub fn session_info(title: &str, updated_at: &str) -> Json {
    tagged("session_info_update", json!({"title": title, "updatedAt": updated_at}))
}

fn chunk(name: &str, text: &str, message_id: &str) -> Json {
    tagged(name, json!({"content": {"type": "text", "text": text}, "messageId": message_id}))
}

fn tagged(name: &str, update: Json) -> Json {
    let mut tagged = json!({"sessionUpdate": name});
    if let (Some(members), Json::Object(update)) = (tagged.as_object_mut(), update) {
        members.extend(update);
    }
    tagged
}
