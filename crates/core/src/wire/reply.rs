//! Building a reply while it is parsed.

use super::error::WireError;
use super::history::generate_id;
use crate::message::conversation::{Conversation, Opaque, ToolCall, Usage};
use crate::message::request::{Delta, FinishReason, OfferedTool, Reply, Request};
use crate::provider::{Server, Wire};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// A parser for the replies of a wire, which are JSON.
pub(super) trait ReplyParser: Debug + Send + Sync {
    /// Parses a whole reply.
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError>;

    /// Parses an event of a streamed reply.
    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError>;

    /// Ends the reply, and returns the data that the provider wants back.
    fn finish(self: Box<Self>, builder: &mut ReplyBuilder<'_>) -> Option<Json>;
}

/// A reply under construction: everything received so far, and the deltas that were not taken yet.
#[derive(Debug)]
pub(super) struct ReplyBuilder<'r> {
    tools: &'r [OfferedTool],
    conversation: &'r Conversation,
    /// The ids of the calls of this reply.
    ids: BTreeSet<String>,
    generated_ids: usize,
    /// Where opaque data comes from.
    origin: String,
    text: String,
    thought: String,
    calls: Vec<ToolCall>,
    /// The deltas, if somebody takes them.
    deltas: Option<Vec<Delta>>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Usage,
    /// Whether the reply is complete, though token counts may follow.
    pub(super) is_complete: bool,
    /// Whether everything that follows can be ignored.
    pub(super) is_done: bool,
}

impl<'r> ReplyBuilder<'r> {
    pub(super) fn new(request: &Request<'r>, server: &Server) -> Self {
        Self {
            tools: request.tools,
            conversation: request.messages,
            ids: BTreeSet::new(),
            generated_ids: 0,
            origin: server.origin(&request.model.id),
            text: String::new(),
            thought: String::new(),
            calls: Vec::new(),
            deltas: None,
            finish: None,
            usage: Usage::default(),
            is_complete: false,
            is_done: false,
        }
    }

    /// Collects deltas.
    #[must_use]
    pub(super) fn with_deltas(self) -> Self {
        Self { deltas: Some(Vec::new()), ..self }
    }

    fn push_delta(&mut self, delta: impl FnOnce(&[ToolCall]) -> Delta) {
        if let Some(deltas) = &mut self.deltas {
            deltas.push(delta(&self.calls));
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
            self.push_delta(|_| Delta::Text { text: piece.to_owned() });
        }
    }

    /// Appends reasoning, which is shown but not part of the answer.
    pub(super) fn push_thought(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.thought.push_str(piece);
            self.push_delta(|_| Delta::Thought { text: piece.to_owned() });
        }
    }

    /// Starts a call and returns its index.
    pub(super) fn start_call(&mut self, id: Option<&str>, wire_name: &str) -> usize {
        let index = self.calls.len();
        let unique = id.filter(|id| !id.is_empty() && !self.is_used(id)).map(str::to_owned);
        let id = unique.unwrap_or_else(|| self.generate_id());
        self.ids.insert(id.clone());
        let offered = self.tools.iter().find(|tool| tool.name.as_str() == wire_name);
        let tool = offered.map_or_else(|| wire_name.to_owned(), |tool| tool.name.full_name());
        self.calls.push(ToolCall { id, tool, arguments: String::new() });
        self.push_delta(|calls| {
            let (id, tool) = calls.last().map(|call| (call.id.clone(), call.tool.clone())).unwrap_or_default();
            Delta::Call { index, id, tool }
        });
        index
    }

    fn generate_id(&mut self) -> String {
        loop {
            let id = generate_id(self.conversation.len(), self.generated_ids);
            self.generated_ids += 1;
            if !self.is_used(&id) {
                return id;
            }
        }
    }

    fn is_used(&self, id: &str) -> bool {
        self.ids.contains(id) || self.conversation.has_call(id)
    }

    /// Appends to the arguments of a call.
    pub(super) fn push_arguments(&mut self, index: usize, piece: &str) {
        if let Some(call) = self.calls.get_mut(index).filter(|_| !piece.is_empty()) {
            call.arguments.push_str(piece);
            self.push_delta(|_| Delta::Arguments { index, text: piece.to_owned() });
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
        self.deltas.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn build(self, wire: Wire, opaque: Option<Json>) -> Reply {
        Reply {
            text: self.text,
            calls: self.calls,
            finish: self.finish.unwrap_or(FinishReason::Stop),
            usage: self.usage,
            opaque: opaque.map(|data| Opaque { wire: wire.name().to_owned(), origin: self.origin, data }),
            thought: self.thought,
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
