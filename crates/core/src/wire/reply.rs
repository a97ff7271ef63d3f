//! Building a reply while it is parsed.

use super::error::WireError;
use super::history::generate_id;
use crate::message::conversation::{Message, Opaque, ToolCall, Usage};
use crate::message::request::{Delta, FinishReason, Reply, Request};
use crate::provider::{Server, Wire};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;

/// A parser for the replies of a wire, which are JSON.
pub(super) trait ReplyParser: Debug + Send + Sync {
    /// Parses a whole reply.
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder) -> Result<(), WireError>;

    /// Parses an event of a streamed reply.
    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder) -> Result<(), WireError>;

    /// Ends the reply, and returns the data that the provider wants back.
    fn finish(self: Box<Self>, builder: &mut ReplyBuilder) -> Option<Json>;
}

/// A reply under construction: everything received so far, and the deltas that were not taken yet.
#[derive(Debug)]
pub(super) struct ReplyBuilder {
    /// The full names of the tools of the request, by wire name.
    tools: HashMap<String, String>,
    ids: HashSet<String>,
    message_count: usize,
    generated_ids: usize,
    /// Where opaque data comes from.
    origin: String,
    text: String,
    calls: Vec<ToolCall>,
    deltas: Vec<Delta>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Usage,
    /// Whether the reply is complete, though token counts may follow.
    pub(super) is_complete: bool,
    /// Whether everything that follows can be ignored.
    pub(super) is_done: bool,
}

impl ReplyBuilder {
    pub(super) fn new(request: &Request<'_>, server: &Server) -> Self {
        let tools = request.tools.iter().map(|tool| (tool.name.as_str().to_owned(), tool.name.full_name()));
        let calls = request.messages.iter().flat_map(Message::calls);
        Self {
            tools: tools.collect(),
            ids: calls.map(|call| call.id.clone()).collect(),
            message_count: request.messages.len(),
            generated_ids: 0,
            origin: server.origin(&request.model.id),
            text: String::new(),
            calls: Vec::new(),
            deltas: Vec::new(),
            finish: None,
            usage: Usage::default(),
            is_complete: false,
            is_done: false,
        }
    }

    /// Marks the reply as complete, with nothing to follow.
    pub(super) fn set_done(&mut self) {
        self.is_complete = true;
        self.is_done = true;
    }

    /// Returns whether neither text nor a call was received yet.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }

    /// Appends text.
    pub(super) fn push_text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.deltas.push(Delta::Text { text: piece.to_owned() });
        }
    }

    /// Appends reasoning, which is shown but not part of the reply.
    pub(super) fn push_thought(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.deltas.push(Delta::Thought { text: piece.to_owned() });
        }
    }

    /// Starts a call and returns its index.
    pub(super) fn start_call(&mut self, id: Option<&str>, wire_name: &str) -> usize {
        let index = self.calls.len();
        let unique = id.filter(|id| !id.is_empty() && !self.ids.contains(*id)).map(str::to_owned);
        let id = unique.unwrap_or_else(|| self.generate_id());
        self.ids.insert(id.clone());
        let tool = self.tools.get(wire_name).cloned().unwrap_or_else(|| wire_name.to_owned());
        self.deltas.push(Delta::Call { index, id: id.clone(), tool: tool.clone() });
        self.calls.push(ToolCall { id, tool, arguments: String::new() });
        index
    }

    fn generate_id(&mut self) -> String {
        loop {
            let id = generate_id(self.message_count, self.generated_ids);
            self.generated_ids += 1;
            if !self.ids.contains(&id) {
                return id;
            }
        }
    }

    /// Appends to the arguments of a call.
    pub(super) fn push_arguments(&mut self, index: usize, piece: &str) {
        if let Some(call) = self.calls.get_mut(index).filter(|_| !piece.is_empty()) {
            call.arguments.push_str(piece);
            self.deltas.push(Delta::Arguments { index, text: piece.to_owned() });
        }
    }

    /// Appends what is missing of the arguments of a call, given all of them.
    pub(super) fn complete_arguments(&mut self, index: usize, arguments: &str) {
        if let Some(missing) = arguments.strip_prefix(self.arguments(index)) {
            self.push_arguments(index, missing);
        }
    }

    /// Returns the arguments of a call so far.
    pub(super) fn arguments(&self, index: usize) -> &str {
        self.calls.get(index).map_or("", |call| call.arguments.as_str())
    }

    pub(super) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    pub(super) fn build(self, wire: Wire, opaque: Option<Json>) -> Reply {
        Reply {
            text: self.text,
            calls: self.calls,
            finish: self.finish.unwrap_or(FinishReason::Stop),
            usage: self.usage,
            opaque: opaque.map(|data| Opaque { wire: wire.name().to_owned(), origin: self.origin, data }),
        }
    }
}

/// Returns the arguments of a call as text, for wires that send them as an object.
pub(super) fn object_arguments(arguments: Option<&Json>) -> String {
    match arguments {
        None | Some(Json::Null) => "{}".to_owned(),
        Some(Json::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
    }
}
