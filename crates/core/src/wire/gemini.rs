//! Gemini `generateContent`.

use super::attachment::{Part, cache_origin, parts};
use super::body::{Body, append_items, append_tool, append_values};
use super::effort::{gemini_thinking, is_before_gemini_3};
use super::error::WireError;
use super::framing::Streaming;
use super::history::{
    arguments_object, last_turn, opaque_data, path_segment, provider_id, value_without_media, wire_name,
};
use super::json::{insert_some, list, non_empty, number, parse, text};
use super::reply::{ReplyBuilder, ReplyParser, object_arguments};
use crate::message::attachment::{Attachment, AttachmentContents};
use crate::message::conversation::{Message, Messages, Opaque, ToolCall, ToolOutcome, Usage};
use crate::message::media::{Media, without_data};
use crate::message::request::{FinishReason, Request, Settings};
use crate::message::shared::append_part;
use crate::provider::{Server, Wire};
use serde_json::{Map, Value as Json, json};

/// The documented signature for calls that were not made by this provider.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn path(model_id: &str, streaming: Streaming) -> String {
    let id = model_id.strip_prefix("models/").unwrap_or(model_id);
    format!("/v1beta/models/{}{}", path_segment(id), method(streaming))
}

/// Returns the end of a path, which follows the model.
pub(super) const fn method(streaming: Streaming) -> &'static str {
    match streaming {
        Streaming::Off => ":generateContent",
        Streaming::On => ":streamGenerateContent?alt=sse",
    }
}

pub(super) fn encode(request: &Request<'_>, server: &Server) -> Vec<u8> {
    let mut body = Body::new();
    let instruction = request.instruction;
    let has_instruction = !instruction.trim().is_empty();
    body.push_some("systemInstruction", has_instruction.then(|| json!({ "parts": [{ "text": instruction }] })));
    body.push_list("contents", |json| append_contents(json, request, &server.origin(&request.model.id)));
    if !request.tools.is_empty() {
        body.push_list("tools", |json| {
            json.extend_from_slice(br#"{"functionDeclarations":["#);
            append_items(json, request.tools, |json, tool| {
                json.push(b'{');
                append_tool(json, tool, "parametersJsonSchema", &tool.schema);
                json.push(b'}');
            });
            json.extend_from_slice(b"]}");
        });
    }
    let config = generation_config(request);
    body.push_some("generationConfig", (!config.is_empty()).then_some(config));
    body.finish()
}

fn generation_config(request: &Request<'_>) -> Map<String, Json> {
    let Settings { temperature, top_p, top_k, max_tokens, stop, seed, reasoning_effort: _ } = request.settings;
    let mut config = Map::new();
    insert_some(&mut config, "temperature", *temperature);
    insert_some(&mut config, "topP", *top_p);
    insert_some(&mut config, "topK", *top_k);
    insert_some(&mut config, "maxOutputTokens", *max_tokens);
    insert_some(&mut config, "stopSequences", non_empty(stop.iter().map(String::as_str)));
    insert_some(&mut config, "seed", *seed);
    insert_some(&mut config, "thinkingConfig", gemini_thinking(&request.model.id, request.settings));
    if let Some(schema) = request.returns.filter(|_| supports_answer_schema(request)) {
        insert_some(&mut config, "responseMimeType", Some("application/json"));
        insert_some(&mut config, "responseJsonSchema", Some(schema.clone()));
    }
    config
}

/// Returns whether a request can contain the schema of the answer. Models before version 3 reject it together with tools.
pub(super) fn supports_answer_schema(request: &Request<'_>) -> bool {
    request.tools.is_empty() || !is_before_gemini_3(&request.model.id)
}

/// The sender of a message. Results are separate from the user because the provider matches them with the calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    User,
    Model,
    Tools,
}

/// Appends the messages of a request. All but the last one are the same in later requests.
fn append_contents(json: &mut Vec<u8>, request: &Request<'_>, origin: &str) {
    let model_id = &request.model.id;
    let contents = request.contents;
    let sender = |message: &Message| {
        let (sender, parts) = sender_and_parts(message, model_id, origin, AttachmentContents::NONE);
        (!parts.is_empty()).then_some(sender)
    };
    let stable = last_turn(request.messages, sender);
    // What a result looks like depends on the model, too.
    let format = format!("{origin}:{model_id}");
    let format = cache_origin(&format, contents);
    request.messages.encode(stable, Wire::Gemini, &format, json, |json, part| {
        append_values(json, turns(part, model_id, origin, contents));
    });
    append_part(json, |json| append_values(json, turns(request.messages.since(stable), model_id, origin, contents)));
}

fn sender_and_parts(
    message: &Message,
    model_id: &str,
    origin: &str,
    contents: &AttachmentContents,
) -> (Sender, Vec<Json>) {
    match message {
        Message::User { text, attachments } => {
            (Sender::User, attachment_parts(attachments, contents).into_iter().chain(text_part(text)).collect())
        }
        Message::Compacted { summary, .. } => (Sender::User, text_part(summary)),
        Message::Assistant { text, calls, opaque } => {
            let parts = opaque_parts(opaque.as_ref(), calls, origin).unwrap_or_else(|| {
                let mut calls: Vec<Json> = calls.iter().map(function_call).collect();
                // The provider rejects a call of another model, which has no signature, without this one. Only the first of
                // parallel calls has one.
                let signature = (!is_before_gemini_3(model_id)).then_some(FOREIGN_SIGNATURE);
                if let Some(first) = calls.first_mut().and_then(Json::as_object_mut) {
                    insert_some(first, "thoughtSignature", signature);
                }
                text_part(text).into_iter().chain(calls).collect()
            });
            (Sender::Model, parts)
        }
        Message::Tool { call_id, tool, outcome } => {
            (Sender::Tools, vec![function_response(call_id, tool, outcome, model_id)])
        }
    }
}

fn turns(messages: Messages<'_>, model_id: &str, origin: &str, contents: &AttachmentContents) -> Vec<Json> {
    let mut turns: Vec<(Sender, Vec<Json>)> = Vec::new();
    for message in messages {
        let (sender, parts) = sender_and_parts(message, model_id, origin, contents);
        match turns.last_mut().filter(|(last, _)| *last == sender) {
            Some((_, last_parts)) => last_parts.extend(parts),
            // The provider rejects contents without parts.
            None if parts.is_empty() => {}
            None => turns.push((sender, parts)),
        }
    }
    let content = |(sender, parts)| {
        let role = if sender == Sender::Model { "model" } else { "user" };
        json!({ "role": role, "parts": Json::Array(parts) })
    };
    turns.into_iter().map(content).collect()
}

fn text_part(text: &str) -> Vec<Json> {
    if text.is_empty() { Vec::new() } else { vec![json!({ "text": text })] }
}

/// Returns the parts of attachments. They precede the text, as the provider recommends.
fn attachment_parts(attachments: &[Attachment], contents: &AttachmentContents) -> Vec<Json> {
    let part = |part| match part {
        Part::Image { media_type, data } | Part::Document { media_type, data, .. } => {
            json!({ "inlineData": { "mimeType": media_type, "data": data } })
        }
        Part::Text(text) => json!({ "text": text }),
    };
    parts(attachments, contents).into_iter().map(part).collect()
}

fn function_call(call: &ToolCall) -> Json {
    let mut body = Map::new();
    insert_some(&mut body, "id", provider_id(&call.id));
    insert_some(&mut body, "name", Some(wire_name(&call.tool)));
    insert_some(&mut body, "args", Some(arguments_object(&call.arguments)));
    json!({ "functionCall": body })
}

fn function_response(call_id: &str, tool: &str, outcome: &ToolOutcome, model_id: &str) -> Json {
    let media = accepted_media(outcome, model_id);
    let response = match outcome {
        ToolOutcome::Value { value } if media.is_empty() => json!({ "output": *value_without_media(value) }),
        ToolOutcome::Value { value } => json!({ "output": *without_data(value, None) }),
        ToolOutcome::Error { message } => json!({ "error": message }),
        ToolOutcome::Denied { .. } | ToolOutcome::Cancelled => json!({ "error": outcome.text() }),
    };
    let mut body = Map::new();
    insert_some(&mut body, "id", provider_id(call_id));
    insert_some(&mut body, "name", Some(wire_name(tool)));
    insert_some(&mut body, "response", Some(response));
    let part = |media: Media<'_>| json!({ "inlineData": { "mimeType": media.mime_type, "data": media.data } });
    insert_some(&mut body, "parts", non_empty(media.into_iter().map(part)));
    json!({ "functionResponse": body })
}

/// Returns the images and documents of a result, if the model accepts them there. Older models reject the whole request.
fn accepted_media<'o>(outcome: &'o ToolOutcome, model_id: &str) -> Vec<Media<'o>> {
    let media = outcome.media();
    let is_accepted = |media: &Media<'_>| media.mime_type != "image/gif";
    let has_media = model_id.contains("gemini") && !is_before_gemini_3(model_id);
    if has_media && media.iter().all(is_accepted) { media } else { Vec::new() }
}

/// Returns the parts of a reply as they were received, if they are known and contain the given calls.
fn opaque_parts(opaque: Option<&Opaque>, calls: &[ToolCall], origin: &str) -> Option<Vec<Json>> {
    let parts = opaque_data(opaque, Wire::Gemini, origin)?.as_array()?;
    let ids =
        parts.iter().filter_map(|part| part.get("functionCall")).map(|call| call.get("id").and_then(Json::as_str));
    ids.eq(calls.iter().map(|call| provider_id(&call.id))).then(|| parts.clone())
}

/// A parser for replies. Events have the same format as whole replies.
#[derive(Debug, Default)]
pub(super) struct GeminiParser {
    parts: Vec<Json>,
}

impl ReplyParser for GeminiParser {
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        let reply: &Json = &parse(reply)?;
        self.parse(reply, builder)?;
        if builder.finish.is_none() && list(reply, "candidates").is_empty() {
            return Err(WireError::malformed("missing `candidates`"));
        }
        Ok(())
    }

    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        self.parse(&parse(event)?, builder)
    }

    fn finish(self: Box<Self>, _builder: &mut ReplyBuilder<'_>) -> Option<Json> {
        self.parts.iter().any(is_signed).then_some(Json::Array(self.parts))
    }
}

impl GeminiParser {
    fn parse(&mut self, event: &Json, builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        if let Some(error) = WireError::from_reply(event) {
            return Err(error);
        }
        if let Some(usage) = event.get("usageMetadata") {
            let thoughts = number(usage, "/thoughtsTokenCount");
            builder.usage = Usage {
                input_tokens: number(usage, "/promptTokenCount")
                    .saturating_add(number(usage, "/toolUsePromptTokenCount")),
                cached_tokens: number(usage, "/cachedContentTokenCount"),
                output_tokens: number(usage, "/candidatesTokenCount").saturating_add(thoughts),
                reasoning_tokens: thoughts,
                ..Usage::default()
            };
        }
        if event.pointer("/promptFeedback/blockReason").is_some() {
            builder.finish = Some(FinishReason::Filtered);
            builder.is_complete = true;
        }
        let Some(candidate) = list(event, "candidates").first() else { return Ok(()) };
        for part in candidate.get("content").map_or(&[][..], |content| list(content, "parts")) {
            self.parse_part(part, builder);
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Json::as_str).filter(|reason| is_given(reason)) {
            builder.finish = Some(finish_reason(reason));
            builder.is_complete = true;
        }
        Ok(())
    }

    fn parse_part(&mut self, part: &Json, builder: &mut ReplyBuilder<'_>) {
        if let Some(call) = part.get("functionCall") {
            let index = builder.start_call(call.get("id").and_then(Json::as_str), text(call, "name"));
            builder.push_arguments(index, &object_arguments(call.get("args")));
        } else if is_thought(part) {
            builder.push_thought(text(part, "text"));
        } else {
            builder.push_text(text(part, "text"));
        }
        // Pieces of text are joined again, but a signature must stay with its part.
        let is_plain = |part: &Json| part.get("text").is_some_and(Json::is_string) && !is_signed(part);
        if is_plain(part)
            && let Some(last) = self.parts.last_mut().filter(|last| is_plain(last))
            && is_thought(last) == is_thought(part)
            && let Some(Json::String(last_text)) = last.get_mut("text")
        {
            last_text.push_str(text(part, "text"));
        } else {
            self.parts.push(part.clone());
        }
    }
}

fn is_thought(part: &Json) -> bool {
    part.get("thought") == Some(&Json::Bool(true))
}

fn is_signed(part: &Json) -> bool {
    part.get("thoughtSignature").is_some()
}

/// Returns whether a reason is more than a placeholder in a reply that is not complete.
fn is_given(reason: &str) -> bool {
    !matches!(reason, "" | "FINISH_REASON_UNSPECIFIED")
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => FinishReason::Filtered,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => FinishReason::Malformed,
        other => FinishReason::Other(other.to_owned()),
    }
}
