//! Messages of Anthropic.

use super::draft::{Draft, Reading, text, written};
use super::error::problem;
use super::history::{as_object, filled, own, put, stops, wire_name};
use super::stream::json;
use super::{Streaming, Wire, WireError};
use crate::message::conversation::{Message, Opaque, ToolCall};
use crate::message::request::{Finish, OfferedTool, Request};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// How many tokens a model may write where the settings do not say: the provider wants a number.
const MAX_TOKENS: u64 = 4096;

pub(super) fn encode(request: &Request<'_>, streaming: Streaming) -> Map<String, Json> {
    let settings = request.settings;
    let mut body = Map::new();
    put(&mut body, "model", Some(request.model.id.as_str()));
    put(&mut body, "max_tokens", Some(settings.max_tokens.unwrap_or(MAX_TOKENS)));
    // What stays the same from turn to turn is cached up to the hints: the tools, the instruction after them, and what was
    // said so far, if there is more to come. Four hints are the most.
    let hint = json!({ "type": "ephemeral" });
    let said = !request.instruction.trim().is_empty();
    let system = || json!([{ "type": "text", "text": request.instruction, "cache_control": hint }]);
    put(&mut body, "system", said.then(system));
    let mut tools: Vec<Json> = request.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut().and_then(Json::as_object_mut) {
        put(last, "cache_control", Some(hint.clone()));
    }
    put(&mut body, "tools", filled(tools));
    let mut messages = messages(request.messages);
    // To write to the cache costs more, so a question that stands alone is left out.
    let goes_on = !request.tools.is_empty() || messages.len() > 1;
    if let Some(last) = messages.last_mut().filter(|_| goes_on).and_then(last_block) {
        put(last, "cache_control", Some(hint));
    }
    put(&mut body, "messages", Some(messages));
    put(&mut body, "temperature", settings.temperature);
    put(&mut body, "top_p", settings.top_p);
    put(&mut body, "top_k", settings.top_k);
    put(&mut body, "stop_sequences", stops(&settings.stop));
    if let Some(effort) = settings.reasoning_effort.as_deref().filter(|effort| *effort != "none") {
        put(&mut body, "thinking", Some(json!({ "type": "adaptive" })));
        put(&mut body, "output_config", Some(json!({ "effort": effort })));
    }
    put(&mut body, "stream", (streaming == Streaming::On).then_some(true));
    body
}

fn tool(tool: &OfferedTool) -> Json {
    json!({ "name": tool.name.as_str(), "description": tool.description, "input_schema": *tool.schema })
}

/// A message on the wire: all that one side says until the other does.
struct Turn {
    role: &'static str,
    results: Vec<Json>,
    blocks: Vec<Json>,
}

fn messages(messages: &[Message]) -> Vec<Json> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        let turn = match message {
            Message::User { text } => Turn { role: "user", results: Vec::new(), blocks: text_block(text) },
            Message::Assistant { text, calls, opaque } => {
                let made = || text_block(text).into_iter().chain(calls.iter().map(tool_use)).collect();
                let blocks = kept(opaque.as_ref(), calls).unwrap_or_else(made);
                Turn { role: "assistant", results: Vec::new(), blocks }
            }
            Message::Tool { call_id, outcome, .. } => {
                let mut result =
                    json!({ "type": "tool_result", "tool_use_id": id(call_id), "content": outcome.text() });
                if let Some(result) = result.as_object_mut().filter(|_| !outcome.is_value()) {
                    put(result, "is_error", Some(true));
                }
                Turn { role: "user", results: vec![result], blocks: Vec::new() }
            }
        };
        match turns.last_mut().filter(|last| last.role == turn.role) {
            Some(last) => {
                last.results.extend(turn.results);
                last.blocks.extend(turn.blocks);
            }
            None => turns.push(turn),
        }
        // The provider refuses messages that say nothing.
        turns.pop_if(|turn| turn.results.is_empty() && turn.blocks.is_empty());
    }
    let said = |turn: Turn| {
        let content: Vec<Json> = turn.results.into_iter().chain(turn.blocks).collect();
        json!({ "role": turn.role, "content": content })
    };
    turns.into_iter().map(said).collect()
}

/// Returns the last block of a message that a person or a tool said: those of a model may be thoughts, which take no hint.
fn last_block(message: &mut Json) -> Option<&mut Map<String, Json>> {
    if text(message, "role") != "user" {
        return None;
    }
    message.get_mut("content")?.as_array_mut()?.last_mut()?.as_object_mut()
}

/// Returns a block of text. The provider refuses blank ones.
fn text_block(text: &str) -> Vec<Json> {
    if text.trim().is_empty() { Vec::new() } else { vec![json!({ "type": "text", "text": text })] }
}

fn tool_use(call: &ToolCall) -> Json {
    json!({
        "type": "tool_use",
        "id": id(&call.id),
        "name": wire_name(&call.tool),
        "input": as_object(&call.arguments),
    })
}

/// Returns the id of a call as the provider takes it: one that came over another wire may have more in it.
fn id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Returns the blocks of a reply as they came, if there is more in them than the message says.
fn kept(opaque: Option<&Opaque>, calls: &[ToolCall]) -> Option<Vec<Json>> {
    let blocks = own(opaque, Wire::Anthropic)?.as_array()?;
    let made = blocks.iter().filter(|block| text(block, "type") == "tool_use").map(|block| text(block, "id"));
    made.eq(calls.iter().map(|call| call.id.as_str())).then(|| blocks.clone())
}

/// Reads replies: blocks, whole or in pieces.
#[derive(Debug, Default)]
pub(super) struct Anthropic {
    blocks: BTreeMap<u64, Block>,
    usage: Map<String, Json>,
}

#[derive(Debug)]
struct Block {
    /// The block, with all that came by now.
    json: Map<String, Json>,
    call: Option<usize>,
}

impl Reading for Anthropic {
    fn whole(&mut self, reply: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        let reply = &json(reply)?;
        if let Some(error) = WireError::inside(reply) {
            return Err(error);
        }
        let Some(blocks) = reply.get("content").and_then(Json::as_array) else {
            return Err(WireError::malformed("it has no `content`"));
        };
        for (index, block) in (0..).zip(blocks) {
            self.begin(index, block, draft);
            self.end(index, draft);
        }
        self.spent(reply, draft);
        draft.finish = reply.get("stop_reason").and_then(Json::as_str).map(finish);
        Ok(())
    }

    fn event(&mut self, event: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        let event = &json(event)?;
        let index = event.get("index").and_then(Json::as_u64).unwrap_or_default();
        match text(event, "type") {
            "message_start" => self.spent(event.get("message").unwrap_or(&Json::Null), draft),
            "content_block_start" => self.begin(index, event.get("content_block").unwrap_or(&Json::Null), draft),
            "content_block_delta" => self.more(index, event.get("delta").unwrap_or(&Json::Null), draft),
            "content_block_stop" => self.end(index, draft),
            "message_delta" => {
                self.spent(event, draft);
                if let Some(reason) = event.pointer("/delta/stop_reason").and_then(Json::as_str) {
                    draft.finish = Some(finish(reason));
                }
            }
            "message_stop" => draft.end(),
            "error" => {
                let (kind, message) = problem(event).unwrap_or_default();
                return Err(WireError::Stream { kind, message });
            }
            _ => {}
        }
        Ok(())
    }

    fn close(self: Box<Self>, draft: &mut Draft) -> Option<Json> {
        let is_more = |block: &Block| {
            let kind = block.json.get("type").and_then(Json::as_str);
            !matches!(kind, None | Some("text" | "tool_use"))
        };
        if !self.blocks.values().any(is_more) {
            return None;
        }
        let whole = |mut block: Block| {
            if let Some(call) = block.call {
                put(&mut block.json, "input", Some(as_object(draft.arguments_of(call))));
            }
            let is_blank = block.json.get("text").and_then(Json::as_str).is_some_and(|text| text.trim().is_empty());
            (!is_blank).then_some(Json::Object(block.json))
        };
        Some(self.blocks.into_values().filter_map(whole).collect())
    }
}

impl Anthropic {
    fn begin(&mut self, index: u64, block: &Json, draft: &mut Draft) {
        let mut call = None;
        match text(block, "type") {
            "text" => draft.text(text(block, "text")),
            "thinking" => draft.thought(text(block, "thinking")),
            "tool_use" => call = Some(draft.call(Some(text(block, "id")), text(block, "name"))),
            _ => {}
        }
        self.blocks.insert(index, Block { json: block.as_object().cloned().unwrap_or_default(), call });
    }

    fn more(&mut self, index: u64, delta: &Json, draft: &mut Draft) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        let key = match (text(delta, "type"), block.call) {
            ("input_json_delta", Some(call)) => return draft.arguments(call, text(delta, "partial_json")),
            ("text_delta", _) => "text",
            ("thinking_delta", _) => "thinking",
            ("signature_delta", _) => "signature",
            _ => return,
        };
        let piece = text(delta, key);
        match key {
            "text" => draft.text(piece),
            "thinking" => draft.thought(piece),
            _ => {}
        }
        match block.json.get_mut(key) {
            Some(Json::String(so_far)) => so_far.push_str(piece),
            _ => put(&mut block.json, key, Some(piece)),
        }
    }

    fn end(&mut self, index: u64, draft: &mut Draft) {
        // A call without pieces of arguments has all of them at its start.
        if let Some(block) = self.blocks.get(&index)
            && let Some(call) = block.call
            && draft.arguments_of(call).is_empty()
        {
            draft.arguments(call, &written(block.json.get("input")));
        }
    }

    /// Counts tokens. Each count that comes stands for the whole reply, and not all come each time.
    fn spent(&mut self, json: &Json, draft: &mut Draft) {
        let counts = json.get("usage").and_then(Json::as_object).into_iter().flatten();
        self.usage
            .extend(counts.filter(|(_, count)| !count.is_null()).map(|(key, count)| (key.clone(), count.clone())));
        let count = |key: &str| self.usage.get(key).and_then(Json::as_u64).unwrap_or_default();
        let cached = count("cache_read_input_tokens");
        let written = count("cache_creation_input_tokens");
        draft.usage.input_tokens = count("input_tokens").saturating_add(cached).saturating_add(written);
        draft.usage.cached_tokens = cached;
        draft.usage.cache_write_tokens = written;
        draft.usage.output_tokens = count("output_tokens");
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" | "tool_use" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Refused,
        other => Finish::Other(other.to_owned()),
    }
}
