//! Anthropic Messages.

use super::answer::enforceable_by_claude;
use super::attachment::{Part, cache_origin, parts};
use super::body::{Body, append, append_tool, append_values};
use super::effort::{claude_conflicts, enforces_answers, insert_claude};
use super::error::{WireError, error_details};
use super::framing::Streaming;
use super::history::{arguments_object, last_turn, opaque_data, wire_name};
use super::json::{insert_some, number, parse, text};
use super::reply::{ReplyBuilder, ReplyParser, object_arguments};
use crate::message::attachment::{Attachment, AttachmentContents, MediaKind};
use crate::message::conversation::{Message, Messages, Opaque, ToolCall, ToolOutcome};
use crate::message::request::{FinishReason, Request};
use crate::message::shared::append_part;
use crate::provider::{Server, Wire};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// The default limit on output tokens, because the provider requires one.
const MAX_TOKENS: u64 = 4096;

pub(super) fn encode(request: &Request<'_>, streaming: Streaming, server: &Server) -> Vec<u8> {
    let settings = request.settings;
    let mut body = Body::new();
    body.push("model", &request.model.id);
    let mut limits = Map::new();
    insert_claude(&mut limits, &request.model.id, settings, MAX_TOKENS);
    if let Some(format) = answer_format(request) {
        let options = limits.entry("output_config").or_insert_with(|| json!({}));
        insert_some_in(options, "format", format);
    }
    for (key, value) in &limits {
        body.push(key, value);
    }
    let conflicts = claude_conflicts(&request.model.id, settings);
    let is_sent = |name: &str| !conflicts.contains(&name);
    // The provider caches everything up to a hint, of which it accepts four. There is one after the tools, one after the
    // instruction, and one after the conversation if it is likely to continue.
    let hint = json!({ "type": "ephemeral" });
    let has_instruction = !request.instruction.trim().is_empty();
    let system = || json!([{ "type": "text", "text": request.instruction, "cache_control": hint }]);
    body.push_some("system", has_instruction.then(system));
    body.push_tools("tools", request.tools, |json, tool| {
        json.push(b'{');
        append_tool(json, tool, "input_schema", &tool.schema);
        if request.tools.last().is_some_and(|last| std::ptr::eq(last, tool)) {
            json.extend_from_slice(br#","cache_control":"#);
            append(json, &hint);
        }
        json.push(b'}');
    });
    let is_single = server.profile().parallel_calls == Some(false) && !request.tools.is_empty();
    let one_call = || json!({ "type": "auto", "disable_parallel_tool_use": true });
    body.push_some("tool_choice", is_single.then(one_call));
    body.push_list("messages", |json| append_messages(json, request, &server.origin(&request.model.id), &hint));
    body.push_some("temperature", settings.temperature.filter(|_| is_sent("temperature")));
    body.push_some("top_p", settings.top_p.filter(|_| is_sent("topP")));
    body.push_some("top_k", settings.top_k.filter(|_| is_sent("topK")));
    body.push_some("stop_sequences", (!settings.stop.is_empty()).then_some(&settings.stop));
    body.push_some("stream", (streaming == Streaming::On).then_some(true));
    body.finish()
}

/// Returns the format of a structured answer, if the provider can enforce it.
pub(super) fn answer_format(request: &Request<'_>) -> Option<Json> {
    let schema = request.returns.filter(|_| enforces_answers(&request.model.id)).and_then(enforceable_by_claude)?;
    Some(json!({ "type": "json_schema", "schema": schema }))
}

fn insert_some_in(object: &mut Json, key: &str, value: Json) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

/// Appends the messages of a request. All but the last one are the same in later requests.
fn append_messages(json: &mut Vec<u8>, request: &Request<'_>, origin: &str, hint: &Json) {
    let contents = request.contents;
    let sender = |message: &Message| {
        let turn = Turn::new(message, origin, AttachmentContents::NONE);
        (!turn.is_empty()).then_some(turn.role)
    };
    let stable = last_turn(request.messages, sender);
    let start = json.len();
    request.messages.encode(stable, Wire::Anthropic, &cache_origin(origin, contents), json, |json, part| {
        append_values(json, messages(part, origin, contents));
    });
    // Writing to the cache costs extra, so a single question is not cached.
    let is_likely_to_continue = !request.tools.is_empty() || json.len() > start;
    let mut rest = messages(request.messages.since(stable), origin, contents);
    if let Some(last) = rest.last_mut().filter(|_| is_likely_to_continue).and_then(last_block) {
        insert_some(last, "cache_control", Some(hint.clone()));
    }
    append_part(json, |json| append_values(json, rest));
}

/// Consecutive messages with the same role, which are sent as one.
struct Turn {
    role: &'static str,
    results: Vec<Json>,
    blocks: Vec<Json>,
}

impl Turn {
    fn new(message: &Message, origin: &str, contents: &AttachmentContents) -> Self {
        match message {
            Message::User { text, attachments } => {
                let blocks = attachment_blocks(attachments, contents).into_iter().chain(text_block(text)).collect();
                Turn { role: "user", results: Vec::new(), blocks }
            }
            Message::Compacted { summary, .. } => {
                Turn { role: "user", results: Vec::new(), blocks: text_block(summary) }
            }
            Message::Assistant { text, calls, opaque } => {
                let blocks = opaque_blocks(opaque.as_ref(), calls, origin)
                    .unwrap_or_else(|| text_block(text).into_iter().chain(calls.iter().map(tool_use)).collect());
                Turn { role: "assistant", results: Vec::new(), blocks }
            }
            Message::Tool { call_id, outcome, .. } => {
                let mut result =
                    json!({ "type": "tool_result", "tool_use_id": id(call_id), "content": result_content(outcome) });
                if let Some(result) = result.as_object_mut().filter(|_| !outcome.is_value()) {
                    insert_some(result, "is_error", Some(true));
                }
                Turn { role: "user", results: vec![result], blocks: Vec::new() }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.results.is_empty() && self.blocks.is_empty()
    }
}

fn messages(messages: Messages<'_>, origin: &str, contents: &AttachmentContents) -> Vec<Json> {
    let mut turns: Vec<Turn> = Vec::new();
    // The provider rejects empty messages.
    for turn in messages.map(|message| Turn::new(message, origin, contents)).filter(|turn| !turn.is_empty()) {
        match turns.last_mut().filter(|last| last.role == turn.role) {
            Some(last) => {
                last.results.extend(turn.results);
                last.blocks.extend(turn.blocks);
            }
            None => turns.push(turn),
        }
    }
    let message = |turn: Turn| {
        let content: Vec<Json> = turn.results.into_iter().chain(turn.blocks).collect();
        json!({ "role": turn.role, "content": content })
    };
    turns.into_iter().map(message).collect()
}

/// Returns the blocks of attachments. They precede the text, as the provider recommends.
fn attachment_blocks(attachments: &[Attachment], contents: &AttachmentContents) -> Vec<Json> {
    let source = |media_type: &str, data: String| json!({ "type": "base64", "media_type": media_type, "data": data });
    let block = |part| match part {
        Part::Image { media_type, data } => json!({ "type": "image", "source": source(media_type, data) }),
        Part::Document { name, media_type, data } => {
            json!({ "type": "document", "source": source(media_type, data), "title": name })
        }
        Part::Text(text) => json!({ "type": "text", "text": text }),
    };
    parts(attachments, contents).into_iter().map(block).collect()
}

/// Returns the content of a result: a text, and the images and documents after it.
fn result_content(outcome: &ToolOutcome) -> Json {
    let media = outcome.media();
    if media.is_empty() {
        return outcome.text().into();
    }
    let blocks = media.iter().map(|media| {
        let source = json!({ "type": "base64", "media_type": media.mime_type, "data": media.data });
        let kind = if media.kind == MediaKind::Document { "document" } else { "image" };
        json!({ "type": kind, "source": source })
    });
    text_block(&outcome.text()).into_iter().chain(blocks).collect()
}

/// Returns the last block of a message, unless it is from the model: reasoning cannot have a cache hint.
fn last_block(message: &mut Json) -> Option<&mut Map<String, Json>> {
    if text(message, "role") != "user" {
        return None;
    }
    message.get_mut("content")?.as_array_mut()?.last_mut()?.as_object_mut()
}

/// Returns a block of text, unless it is blank: the provider rejects those.
fn text_block(text: &str) -> Vec<Json> {
    if text.trim().is_empty() { Vec::new() } else { vec![json!({ "type": "text", "text": text })] }
}

fn tool_use(call: &ToolCall) -> Json {
    json!({
        "type": "tool_use",
        "id": id(&call.id),
        "name": wire_name(&call.tool),
        "input": arguments_object(&call.arguments),
    })
}

/// Replaces the characters in the id of a call that the provider rejects. Ids from other wires may contain them.
fn id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Returns the blocks of a reply as they were received, if they are known and contain the given calls.
fn opaque_blocks(opaque: Option<&Opaque>, calls: &[ToolCall], origin: &str) -> Option<Vec<Json>> {
    let blocks = opaque_data(opaque, Wire::Anthropic, origin)?.as_array()?;
    let ids = blocks.iter().filter(|block| text(block, "type") == "tool_use").map(|block| text(block, "id"));
    ids.eq(calls.iter().map(|call| call.id.as_str())).then(|| blocks.clone())
}

/// A parser for replies, which consist of blocks.
#[derive(Debug, Default)]
pub(super) struct AnthropicParser {
    blocks: BTreeMap<u64, Block>,
    usage: Map<String, Json>,
}

#[derive(Debug)]
struct Block {
    /// The block as received so far.
    json: Map<String, Json>,
    /// The index of the call in the reply.
    call: Option<usize>,
}

impl ReplyParser for AnthropicParser {
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        let reply: &Json = &parse(reply)?;
        if let Some(error) = WireError::from_reply(reply) {
            return Err(error);
        }
        let Some(blocks) = reply.get("content").and_then(Json::as_array) else {
            return Err(WireError::malformed("missing `content`"));
        };
        for (index, block) in (0..).zip(blocks) {
            self.start_block(index, block, builder);
            self.end_block(index, builder);
        }
        self.update_usage(reply, builder);
        let reason = text(reply, "stop_reason");
        builder.finish = (!reason.is_empty()).then(|| finish_reason(reason));
        Ok(())
    }

    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        let event: &Json = &parse(event)?;
        let index = event.get("index").and_then(Json::as_u64).unwrap_or_default();
        let field = |key: &str| event.get(key).unwrap_or(&Json::Null);
        match text(event, "type") {
            "message_start" => self.update_usage(field("message"), builder),
            "content_block_start" => self.start_block(index, field("content_block"), builder),
            "content_block_delta" => self.extend_block(index, field("delta"), builder),
            "content_block_stop" => self.end_block(index, builder),
            "message_delta" => {
                self.update_usage(event, builder);
                let reason = text(field("delta"), "stop_reason");
                if !reason.is_empty() {
                    // Nothing of the reply follows, and compatible servers may omit the last event.
                    builder.finish = Some(finish_reason(reason));
                    builder.is_complete = true;
                }
            }
            "message_stop" => builder.set_done(),
            "error" => {
                let (kind, message) = error_details(event).unwrap_or_default();
                return Err(WireError::Reply { kind, message });
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>, builder: &mut ReplyBuilder<'_>) -> Option<Json> {
        // Text and calls are part of the conversation already.
        let is_needed = |block: &Block| {
            let kind = block.json.get("type").and_then(Json::as_str);
            !matches!(kind, None | Some("text" | "tool_use"))
        };
        if !self.blocks.values().any(is_needed) {
            return None;
        }
        let complete = |mut block: Block| {
            if let Some(call) = block.call {
                insert_some(&mut block.json, "input", Some(arguments_object(builder.arguments(call))));
            }
            let is_blank = block.json.get("text").and_then(Json::as_str).is_some_and(|text| text.trim().is_empty());
            (!is_blank).then_some(Json::Object(block.json))
        };
        Some(self.blocks.into_values().filter_map(complete).collect())
    }
}

impl AnthropicParser {
    fn start_block(&mut self, index: u64, block: &Json, builder: &mut ReplyBuilder<'_>) {
        let mut call = None;
        match text(block, "type") {
            "text" => builder.push_text(text(block, "text")),
            "thinking" => builder.push_thought(text(block, "thinking")),
            "tool_use" => call = Some(builder.start_call(Some(text(block, "id")), text(block, "name"))),
            _ => {}
        }
        self.blocks.insert(index, Block { json: block.as_object().cloned().unwrap_or_default(), call });
    }

    fn extend_block(&mut self, index: u64, delta: &Json, builder: &mut ReplyBuilder<'_>) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        let key = match (text(delta, "type"), block.call) {
            ("input_json_delta", Some(call)) => return builder.push_arguments(call, text(delta, "partial_json")),
            ("text_delta", _) => "text",
            ("thinking_delta", _) => "thinking",
            ("signature_delta", _) => "signature",
            _ => return,
        };
        let piece = text(delta, key);
        match key {
            "text" => builder.push_text(piece),
            "thinking" => builder.push_thought(piece),
            _ => {}
        }
        match block.json.get_mut(key) {
            Some(Json::String(text)) => text.push_str(piece),
            _ => insert_some(&mut block.json, key, Some(piece)),
        }
    }

    fn end_block(&mut self, index: u64, builder: &mut ReplyBuilder<'_>) {
        // Arguments that are not streamed are part of the start of the block.
        if let Some(block) = self.blocks.get(&index)
            && let Some(call) = block.call
            && builder.arguments(call).is_empty()
        {
            builder.push_arguments(call, &object_arguments(block.json.get("input")));
        }
    }

    /// Updates the token counts. Each is a total for the whole reply, and not every event has all of them.
    fn update_usage(&mut self, json: &Json, builder: &mut ReplyBuilder<'_>) {
        let counts = json.get("usage").and_then(Json::as_object).into_iter().flatten();
        self.usage
            .extend(counts.filter(|(_, count)| !count.is_null()).map(|(key, count)| (key.clone(), count.clone())));
        let count = |key: &str| self.usage.get(key).and_then(Json::as_u64).unwrap_or_default();
        let cached = count("cache_read_input_tokens");
        let cache_write = count("cache_creation_input_tokens");
        builder.usage.input_tokens = count("input_tokens").saturating_add(cached).saturating_add(cache_write);
        builder.usage.cached_tokens = cached;
        builder.usage.cache_write_tokens = cache_write;
        builder.usage.output_tokens = count("output_tokens");
        let details = self.usage.get("output_tokens_details");
        builder.usage.reasoning_tokens = details.map_or(0, |details| number(details, "/thinking_tokens"));
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" | "tool_use" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::Refused,
        "content_filtered" | "guardrail_intervened" => FinishReason::Filtered,
        other => FinishReason::Other(other.to_owned()),
    }
}
