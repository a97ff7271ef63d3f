//! Ollama chat.

use super::attachment::{Part, cache_origin, parts};
use super::body::{Body, append, append_tool, append_values};
use super::effort::effort;
use super::error::WireError;
use super::framing::Streaming;
use super::history::{arguments_object, opaque_data, text_without_media, wire_name};
use super::json::{insert_some, list, non_empty, number, parse, text};
use super::reply::{ReplyBuilder, ReplyParser, object_arguments};
use crate::message::attachment::{Attachment, AttachmentContents};
use crate::message::conversation::{Message, ToolCall, Usage};
use crate::message::request::{FinishReason, Request, Settings};
use crate::message::shared::append_part;
use crate::provider::{Server, Wire};
use serde_json::{Map, Value as Json, json};

pub(super) fn encode(request: &Request<'_>, streaming: Streaming, server: &Server) -> Vec<u8> {
    let Settings { temperature, top_p, top_k, max_tokens, stop, seed, reasoning_effort: _ } = request.settings;
    let mut body = Body::new();
    body.push("model", &request.model.id);
    body.push_list("messages", |json| append_messages(json, request, &server.origin(&request.model.id)));
    body.push_tools("tools", request.tools, |json, tool| {
        json.extend_from_slice(br#"{"type":"function","function":{"#);
        append_tool(json, tool, "parameters", &tool.schema);
        json.extend_from_slice(b"}}");
    });
    body.push_some("format", request.returns.filter(|_| supports_answer_schema(request)));
    let mut options = Map::new();
    insert_some(&mut options, "temperature", *temperature);
    insert_some(&mut options, "top_p", *top_p);
    insert_some(&mut options, "top_k", *top_k);
    insert_some(&mut options, "num_predict", *max_tokens);
    insert_some(&mut options, "stop", non_empty(stop.iter().map(String::as_str)));
    insert_some(&mut options, "seed", *seed);
    body.push_some("options", (!options.is_empty()).then_some(options));
    let think = effort(request.settings).map(|effort| match effort {
        "none" => json!(false),
        "minimal" => json!("low"),
        "xhigh" | "max" => json!("high"),
        effort => json!(effort),
    });
    body.push_some("think", think);
    body.push("stream", &(streaming == Streaming::On));
    body.finish()
}

/// Returns whether a request can contain the schema of the answer. Models cannot call tools with it.
pub(super) fn supports_answer_schema(request: &Request<'_>) -> bool {
    request.tools.is_empty()
}

fn append_messages(json: &mut Vec<u8>, request: &Request<'_>, origin: &str) {
    if !request.instruction.trim().is_empty() {
        append(json, &json!({ "role": "system", "content": request.instruction }));
    }
    let messages = request.messages;
    append_part(json, |json| {
        let contents = request.contents;
        messages.encode(messages.len(), Wire::Ollama, &cache_origin(origin, contents), json, |json, part| {
            append_values(json, part.map(|one| message(one, origin, contents)));
        });
    });
}

fn message(message: &Message, origin: &str, contents: &AttachmentContents) -> Json {
    match message {
        Message::User { text, attachments } => user_message(text, attachments, contents),
        Message::Compacted { summary, .. } => json!({ "role": "user", "content": summary }),
        Message::Assistant { text, calls, opaque } => {
            let mut body = Map::new();
            insert_some(&mut body, "role", Some("assistant"));
            insert_some(&mut body, "content", Some(text.as_str()));
            let thinking = opaque_data(opaque.as_ref(), Wire::Ollama, origin).and_then(Json::as_str);
            insert_some(&mut body, "thinking", thinking);
            insert_some(&mut body, "tool_calls", non_empty(calls.iter().map(tool_call)));
            Json::Object(body)
        }
        Message::Tool { tool, outcome, .. } => {
            json!({ "role": "tool", "tool_name": wire_name(tool), "content": text_without_media(outcome) })
        }
    }
}

/// Returns a message of the user. Images are beside its text, and text files are part of it.
fn user_message(text: &str, attachments: &[Attachment], contents: &AttachmentContents) -> Json {
    let mut content = String::new();
    let mut images = Vec::new();
    for part in parts(attachments, contents) {
        match part {
            Part::Image { data, .. } => images.push(data),
            Part::Text(text) => content.push_str(&format!("{text}\n\n")),
            // Requests with documents are refused before.
            Part::Document { name, .. } => content.push_str(&format!("(The document {name} is not included.)\n\n")),
        }
    }
    content.push_str(text);
    let mut message = Map::new();
    insert_some(&mut message, "role", Some("user"));
    insert_some(&mut message, "content", Some(content));
    insert_some(&mut message, "images", non_empty(images.into_iter()));
    Json::Object(message)
}

fn tool_call(call: &ToolCall) -> Json {
    json!({ "function": { "name": wire_name(&call.tool), "arguments": arguments_object(&call.arguments) } })
}

/// A parser for replies. Events have the same format as whole replies.
#[derive(Debug, Default)]
pub(super) struct OllamaParser {
    /// Reasoning, which is sent back to the model between its calls.
    thoughts: String,
}

impl ReplyParser for OllamaParser {
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        let reply: &Json = &parse(reply)?;
        self.parse(reply, builder)?;
        if !reply.get("message").is_some_and(Json::is_object) {
            return Err(WireError::malformed("missing `message`"));
        }
        Ok(())
    }

    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        self.parse(&parse(event)?, builder)
    }

    fn finish(self: Box<Self>, _builder: &mut ReplyBuilder<'_>) -> Option<Json> {
        (!self.thoughts.is_empty()).then_some(Json::String(self.thoughts))
    }
}

impl OllamaParser {
    fn parse(&mut self, event: &Json, builder: &mut ReplyBuilder<'_>) -> Result<(), WireError> {
        if let Some(error) = WireError::from_reply(event) {
            return Err(error);
        }
        if let Some(message) = event.get("message") {
            self.thoughts.push_str(text(message, "thinking"));
            builder.push_thought(text(message, "thinking"));
            builder.push_text(text(message, "content"));
            for call in list(message, "tool_calls") {
                let function = call.get("function").unwrap_or(&Json::Null);
                let index = builder.start_call(call.get("id").and_then(Json::as_str), text(function, "name"));
                builder.push_arguments(index, &object_arguments(function.get("arguments")));
            }
        }
        if event.get("done") == Some(&Json::Bool(true)) {
            builder.finish = Some(match text(event, "done_reason") {
                "stop" | "" => FinishReason::Stop,
                "length" => FinishReason::Length,
                other => FinishReason::Other(other.to_owned()),
            });
            builder.usage = Usage {
                input_tokens: number(event, "/prompt_eval_count"),
                output_tokens: number(event, "/eval_count"),
                ..Usage::default()
            };
            builder.set_done();
        }
        Ok(())
    }
}
