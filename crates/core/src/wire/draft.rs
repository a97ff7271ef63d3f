//! A reply while it is read.

use super::history::made_up_id;
use super::{Wire, WireError};
use crate::message::conversation::{Message, Opaque, ToolCall, Usage};
use crate::message::request::{Delta, Finish, Reply, Request};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;

/// What reads the replies of a wire, which are JSON.
pub(super) trait Reading: Debug + Send + Sync {
    /// Reads a reply that came whole.
    fn whole(&mut self, reply: &[u8], draft: &mut Draft) -> Result<(), WireError>;

    /// Reads a piece of a reply.
    fn event(&mut self, event: &[u8], draft: &mut Draft) -> Result<(), WireError>;

    /// Ends the reply, and returns what the provider wants to have back.
    fn close(self: Box<Self>, draft: &mut Draft) -> Option<Json>;
}

/// A reply while it is read: what came so far, as a whole and as pieces that nobody took yet.
#[derive(Debug)]
pub(super) struct Draft {
    /// The names that the agent has for the tools of the request, by their names on the wire.
    tools: HashMap<String, String>,
    ids: HashSet<String>,
    messages: usize,
    /// How many ids were made up.
    made_up: usize,
    text: String,
    calls: Vec<ToolCall>,
    deltas: Vec<Delta>,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Usage,
    /// Whether what came is a whole reply, though counts may follow.
    pub(super) is_complete: bool,
    /// Whether nothing follows that counts.
    pub(super) is_over: bool,
}

impl Draft {
    pub(super) fn new(request: &Request<'_>) -> Self {
        let named = request.tools.iter().map(|tool| (tool.name.as_str().to_owned(), tool.name.full_name()));
        let calls = request.messages.iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            Message::User { .. } | Message::Tool { .. } => &[],
        });
        Self {
            tools: named.collect(),
            ids: calls.map(|call| call.id.clone()).collect(),
            messages: request.messages.len(),
            made_up: 0,
            text: String::new(),
            calls: Vec::new(),
            deltas: Vec::new(),
            finish: None,
            usage: Usage::default(),
            is_complete: false,
            is_over: false,
        }
    }

    /// Takes it that the provider said that this is all.
    pub(super) fn end(&mut self) {
        self.is_complete = true;
        self.is_over = true;
    }

    /// Adds text.
    pub(super) fn text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.deltas.push(Delta::Text { text: piece.to_owned() });
        }
    }

    /// Adds a thought. It is shown, and not part of the reply.
    pub(super) fn thought(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.deltas.push(Delta::Thought { text: piece.to_owned() });
        }
    }

    /// Begins a call, and returns which one it is.
    pub(super) fn call(&mut self, id: Option<&str>, wire_name: &str) -> usize {
        let index = self.calls.len();
        let given = id.filter(|id| !id.is_empty() && !self.ids.contains(*id)).map(str::to_owned);
        let id = given.unwrap_or_else(|| {
            let mut counted = std::iter::repeat_with(|| {
                self.made_up += 1;
                made_up_id(self.messages, self.made_up - 1)
            });
            counted.find(|id| !self.ids.contains(id)).unwrap_or_default()
        });
        self.ids.insert(id.clone());
        let tool = self.tools.get(wire_name).cloned().unwrap_or_else(|| wire_name.to_owned());
        self.deltas.push(Delta::Call { index, id: id.clone(), tool: tool.clone() });
        self.calls.push(ToolCall { id, tool, arguments: String::new() });
        index
    }

    /// Adds arguments to a call.
    pub(super) fn arguments(&mut self, index: usize, piece: &str) {
        if let Some(call) = self.calls.get_mut(index).filter(|_| !piece.is_empty()) {
            call.arguments.push_str(piece);
            self.deltas.push(Delta::Arguments { index, text: piece.to_owned() });
        }
    }

    /// Adds what is missing of the arguments of a call, now that all of them are known.
    pub(super) fn all_arguments(&mut self, index: usize, whole: &str) {
        let Some(call) = self.calls.get(index) else { return };
        if let Some(missing) = whole.strip_prefix(call.arguments.as_str()) {
            self.arguments(index, missing);
        }
    }

    pub(super) fn arguments_of(&self, index: usize) -> &str {
        self.calls.get(index).map_or("", |call| call.arguments.as_str())
    }

    pub(super) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    pub(super) fn reply(self, wire: Wire, opaque: Option<Json>) -> Reply {
        Reply {
            text: self.text,
            calls: self.calls,
            finish: self.finish.unwrap_or(Finish::Stop),
            usage: self.usage,
            opaque: opaque.map(|data| Opaque { wire: wire.name().to_owned(), data }),
        }
    }
}

/// Returns a text inside of JSON, or nothing.
pub(super) fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// Returns the list inside of JSON, or an empty one.
pub(super) fn list<'j>(json: &'j Json, key: &str) -> &'j [Json] {
    json.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the number inside of JSON, or 0.
pub(super) fn number(json: &Json, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Json::as_u64).unwrap_or_default()
}

/// Returns the arguments of a call whose arguments are an object on the wire.
pub(super) fn written(arguments: Option<&Json>) -> String {
    match arguments {
        None | Some(Json::Null) => "{}".to_owned(),
        Some(Json::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
    }
}
