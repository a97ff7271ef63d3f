//! OpenAI Responses.

use super::attachment::{Part, cache_origin, data_url, parts};
use super::body::{Body, append, append_tool, append_values};
use super::chat::{count_output, strict_answer, strict_tools};
use super::effort::{effort, is_openai_reasoning_model};
use super::error::{WireError, error_details};
use super::framing::Streaming;
use super::history::{arguments_text, opaque_data, text_without_media, wire_name};
use super::json::{list, number, parse, text};
use super::reply::{ReplyBuilder, ReplyParser};
use crate::message::attachment::{Attachment, AttachmentContents, MediaKind};
use crate::message::conversation::{Message, Opaque, ToolCall, ToolOutcome, Usage};
use crate::message::media::Media;
use crate::message::request::{FinishReason, OfferedTool, Request};
use crate::provider::{Provider, Server, Wire};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The name of a document in a result, which has none.
const DOCUMENT: &str = "document.pdf";

pub(super) fn encode(request: &Request<'_>, streaming: Streaming, server: &Server) -> Vec<u8> {
    let settings = request.settings;
    let effort = effort(settings);
    let origin = server.origin(&request.model.id);
    let may_be_strict = strict_tools(request, server);
    let mut body = Body::new();
    body.push("model", &request.model.id);
    let instruction = request.instruction;
    body.push_some("instructions", (!instruction.trim().is_empty()).then_some(instruction));
    let messages = request.messages;
    body.push_list("input", |json| {
        let contents = request.contents;
        messages.encode(messages.len(), Wire::Responses, &cache_origin(&origin, contents), json, |json, part| {
            append_values(json, part.flat_map(|message| items(message, &origin, contents)));
        });
    });
    body.push_tools("tools", request.tools, |json, tool| append_function(json, tool, may_be_strict));
    let has_tools = !request.tools.is_empty();
    body.push_some("parallel_tool_calls", server.profile().parallel_calls.filter(|_| has_tools));
    body.push_some(
        "text",
        request.returns.map(|schema| {
            let strict = strict_answer(schema, server);
            let is_strict = strict.is_some();
            let schema = strict.as_ref().unwrap_or(schema);
            json!({ "format": { "type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict } })
        }),
    );
    body.push_some("temperature", settings.temperature);
    body.push_some("top_p", settings.top_p);
    body.push_some("max_output_tokens", settings.max_tokens);
    body.push_some("reasoning", effort.map(|effort| json!({ "effort": effort })));
    body.push("store", &false);
    // Because nothing is stored, reasoning must come with the reply and be sent back. Models that do not reason reject
    // the option.
    let reasons = effort.is_some() || is_openai_reasoning_model(&request.model.id);
    body.push_some("include", reasons.then_some(["reasoning.encrypted_content"]));
    body.push_some("stream", (streaming == Streaming::On).then_some(true));
    body.finish()
}

fn append_function(json: &mut Vec<u8>, tool: &OfferedTool, may_be_strict: bool) {
    let strict = tool.strict_schema.as_ref().filter(|_| may_be_strict);
    json.extend_from_slice(br#"{"type":"function","#);
    append_tool(json, tool, "parameters", strict.unwrap_or(&tool.schema));
    json.extend_from_slice(br#","strict":"#);
    append(json, &strict.is_some());
    json.push(b'}');
}

fn items(message: &Message, origin: &str, contents: &AttachmentContents) -> Vec<Json> {
    match message {
        Message::User { text, attachments } if !attachments.is_empty() => {
            let text = (!text.trim().is_empty()).then(|| json!({ "type": "input_text", "text": text }));
            let content = attachment_parts(attachments, contents).into_iter().chain(text);
            vec![json!({ "role": "user", "content": content.collect::<Vec<_>>() })]
        }
        Message::User { text, .. } | Message::Compacted { summary: text, .. } => {
            vec![json!({ "role": "user", "content": text })]
        }
        Message::Assistant { text, calls, opaque } => {
            opaque_items(opaque.as_ref(), calls, origin).unwrap_or_else(|| {
                // Compatible servers do not all accept a text as the content of the model's messages.
                let content = || json!([{ "type": "output_text", "text": text }]);
                let message =
                    (!text.is_empty()).then(|| json!({ "type": "message", "role": "assistant", "content": content() }));
                message.into_iter().chain(calls.iter().map(function_call)).collect()
            })
        }
        Message::Tool { call_id, outcome, .. } => {
            let output = result_output(outcome, origin);
            vec![json!({ "type": "function_call_output", "call_id": call_id, "output": output })]
        }
    }
}

fn attachment_parts(attachments: &[Attachment], contents: &AttachmentContents) -> Vec<Json> {
    let part = |part| match part {
        Part::Image { media_type, data } => {
            json!({ "type": "input_image", "image_url": data_url(media_type, &data) })
        }
        Part::Document { name, media_type, data } => {
            json!({ "type": "input_file", "filename": name, "file_data": data_url(media_type, &data) })
        }
        Part::Text(text) => json!({ "type": "input_text", "text": text }),
    };
    parts(attachments, contents).into_iter().map(part).collect()
}

/// Returns the output of a call: a text, and the images and documents after it. Servers that only resemble OpenAI's accept
/// texts.
fn result_output(outcome: &ToolOutcome, origin: &str) -> Json {
    let media = outcome.media();
    if media.is_empty() || origin != Provider::OPENAI.name() {
        return text_without_media(outcome).into();
    }
    let part = |media: &Media<'_>| match media.kind {
        MediaKind::Document => {
            json!({ "type": "input_file", "filename": DOCUMENT, "file_data": media.data_url() })
        }
        MediaKind::Image | MediaKind::Text => json!({ "type": "input_image", "image_url": media.data_url() }),
    };
    std::iter::once(json!({ "type": "input_text", "text": outcome.text() })).chain(media.iter().map(part)).collect()
}

/// Returns the items of a reply as they were received, if they are known and contain the given calls.
fn opaque_items(opaque: Option<&Opaque>, calls: &[ToolCall], origin: &str) -> Option<Vec<Json>> {
    let items = opaque_data(opaque, Wire::Responses, origin)?.as_array()?;
    let ids = items.iter().filter(|item| text(item, "type") == "function_call").map(|item| text(item, "call_id"));
    ids.eq(calls.iter().map(|call| call.id.as_str())).then(|| items.clone())
}

fn function_call(call: &ToolCall) -> Json {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": wire_name(&call.tool),
        "arguments": arguments_text(call),
    })
}

/// A parser for replies, which consist of items.
#[derive(Debug, Default)]
pub(super) struct ResponsesParser {
    /// The complete items by index.
    items: BTreeMap<u64, Json>,
    /// The indices of calls in the reply, by the index of their item.
    calls: HashMap<u64, usize>,
    /// The indices of items whose text was streamed.
    streamed: HashSet<u64>,
    is_refused: bool,
}

impl ReplyParser for ResponsesParser {
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        let reply: &Json = &parse(reply)?;
        if let Some(error) = WireError::from_reply(reply) {
            return Err(error);
        }
        if !reply.get("output").is_some_and(Json::is_array) {
            return Err(WireError::malformed("missing `output`"));
        }
        self.end_reply(reply, builder)
    }

    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        let event: &Json = &parse(event)?;
        let index = number(event, "/output_index");
        let delta = text(event, "delta");
        match text(event, "type") {
            "response.output_item.added" => self.start_item(index, event.get("item").unwrap_or(&Json::Null), builder),
            "response.output_text.delta" => {
                self.streamed.insert(index);
                builder.push_text(delta);
            }
            "response.refusal.delta" => {
                self.streamed.insert(index);
                self.is_refused = true;
                builder.push_text(delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.streamed.insert(index);
                builder.push_thought(delta);
            }
            "response.function_call_arguments.delta" => {
                if let Some(call) = self.calls.get(&index) {
                    builder.push_arguments(*call, delta);
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(call) = self.calls.get(&index) {
                    builder.complete_arguments(*call, text(event, "arguments"));
                }
            }
            "response.output_item.done" => self.end_item(index, event.get("item").unwrap_or(&Json::Null), builder),
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.end_reply(event.get("response").unwrap_or(&Json::Null), builder);
            }
            "error" => return Err(reported_error(event)),
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>, builder: &mut ReplyBuilder<'_>) -> Option<Json> {
        if self.is_refused {
            builder.finish = Some(FinishReason::Refused);
        }
        // Reasoning without its content is not stored anywhere, so it cannot be referred to.
        let is_lost = |item: &Json| text(item, "type") == "reasoning" && text(item, "encrypted_content").is_empty();
        let items: Vec<Json> = self.items.into_values().filter(|item| !is_lost(item)).collect();
        // Messages and calls are part of the conversation already.
        let is_needed = items.iter().any(|item| !matches!(text(item, "type"), "message" | "function_call"));
        is_needed.then_some(Json::Array(items))
    }
}

impl ResponsesParser {
    fn start_item(&mut self, index: u64, item: &Json, builder: &mut ReplyBuilder<'_>) {
        if text(item, "type") == "function_call" && !self.calls.contains_key(&index) {
            self.calls.insert(index, builder.start_call(Some(text(item, "call_id")), text(item, "name")));
        }
    }

    fn end_item(&mut self, index: u64, item: &Json, builder: &mut ReplyBuilder<'_>) {
        self.start_item(index, item, builder);
        if let Some(call) = self.calls.get(&index) {
            builder.complete_arguments(*call, text(item, "arguments"));
        }
        if text(item, "type") == "message" && !self.streamed.contains(&index) {
            for part in list(item, "content") {
                builder.push_text(text(part, "text"));
                let refusal = text(part, "refusal");
                self.is_refused |= !refusal.is_empty();
                builder.push_text(refusal);
            }
        }
        if text(item, "type") == "reasoning" && !self.streamed.contains(&index) {
            for part in list(item, "summary").iter().chain(list(item, "content")) {
                builder.push_thought(text(part, "text"));
            }
        }
        self.items.insert(index, item.clone());
    }

    fn end_reply(&mut self, reply: &Json, builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        if self.items.is_empty() {
            for (index, item) in (0..).zip(list(reply, "output")) {
                self.end_item(index, item, builder);
            }
        }
        if let Some(usage) = reply.get("usage").filter(|usage| usage.is_object()) {
            let counts = Usage {
                input_tokens: number(usage, "/input_tokens"),
                cached_tokens: number(usage, "/input_tokens_details/cached_tokens"),
                cache_write_tokens: number(usage, "/input_tokens_details/cache_write_tokens"),
                output_tokens: number(usage, "/output_tokens"),
                reasoning_tokens: number(usage, "/output_tokens_details/reasoning_tokens"),
            };
            builder.usage = count_output(counts, number(usage, "/total_tokens"));
        }
        let reason = reply.pointer("/incomplete_details/reason").and_then(Json::as_str);
        builder.finish = Some(match (text(reply, "status"), reason) {
            ("failed", _) => return Err(reported_error(reply)),
            ("incomplete", Some("max_output_tokens")) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::Filtered,
            ("incomplete", Some(other)) => FinishReason::Other(other.to_owned()),
            ("completed" | "", _) => FinishReason::Stop,
            (other, _) => FinishReason::Other(other.to_owned()),
        });
        builder.set_done();
        Ok(())
    }
}

/// Returns the error that the provider reported. Events contain the error itself, so their type is not its kind.
fn reported_error(json: &Json) -> WireError {
    let (kind, message) = error_details(json).unwrap_or_default();
    WireError::Reply { kind: kind.filter(|kind| !matches!(kind.as_str(), "error" | "failed")), message }
}
