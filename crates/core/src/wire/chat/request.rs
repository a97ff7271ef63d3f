//! Requests.

use super::echo::Echo;
use crate::message::attachment::{Attachment, AttachmentContents};
use crate::message::conversation::{Conversation, Message, Opaque, ToolCall, ToolOutcome};
use crate::message::request::{OfferedTool, Request, Settings};
use crate::message::shared::append_part;
use crate::provider::{OutputLimit, Server, ServerProfile, SystemRole, Wire};
use crate::wire::answer::enforceable;
use crate::wire::attachment::{Part, cache_origin, data_url, parts};
use crate::wire::body::{Body, append, append_tool, append_values};
use crate::wire::effort::{always_reasons, effort as wire_effort, is_openai_reasoning_model};
use crate::wire::framing::Streaming;
use crate::wire::history::{arguments_text, fixed_length_id, text_without_media, wire_name};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// The way in which tools are declared and called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wire) enum ToolStyle {
    /// With `tools` and `tool_calls`.
    Tools,
    /// With the older `functions` and `function_call`.
    Functions,
}

/// A message of a request.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum ChatMessage<'r> {
    System {
        content: &'r str,
    },
    Developer {
        content: &'r str,
    },
    User {
        content: Content<'r>,
    },
    Assistant {
        content: Content<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'r str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<&'r str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'r Json>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ChatCall<'r>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        function_call: Option<FunctionCall<'r>>,
    },
    Tool {
        tool_call_id: Cow<'r, str>,
        content: String,
    },
    Function {
        name: String,
        content: String,
    },
}

/// The content of a message.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'r> {
    None,
    Text(&'r str),
    Parts(Vec<Cow<'r, Json>>),
}

#[derive(Serialize)]
struct ChatCall<'r> {
    id: Cow<'r, str>,
    r#type: &'static str,
    function: FunctionCall<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Cow<'r, Json>>,
}

#[derive(Serialize)]
struct FunctionCall<'r> {
    name: String,
    arguments: &'r str,
}

pub(in crate::wire) fn encode(
    request: &Request<'_>,
    streaming: Streaming,
    style: ToolStyle,
    server: &Server,
) -> Vec<u8> {
    let Settings { temperature, top_p, top_k: _, max_tokens, stop, seed, reasoning_effort: _ } = request.settings;
    let profile = server.profile();
    let mut body = Body::new();
    body.push("model", &request.model.id);
    body.push_list("messages", |json| append_messages(json, request, style, server));
    match style {
        ToolStyle::Tools => {
            let may_be_strict = strict_tools(request, server);
            body.push_tools("tools", request.tools, |json, tool| {
                json.extend_from_slice(br#"{"type":"function","function":"#);
                append_function(json, tool, may_be_strict);
                json.push(b'}');
            });
            let has_tools = !request.tools.is_empty();
            body.push_some("parallel_tool_calls", profile.parallel_calls.filter(|_| has_tools));
        }
        ToolStyle::Functions => {
            body.push_tools("functions", request.tools, |json, tool| append_function(json, tool, false));
        }
    }
    let response_format = request.returns.map(|schema| {
        let strict = strict_answer(schema, server);
        let is_strict = strict.is_some();
        let answer = json!({ "name": "answer", "schema": strict.as_ref().unwrap_or(schema), "strict": is_strict });
        json!({ "type": "json_schema", "json_schema": answer })
    });
    body.push_some("response_format", response_format);
    body.push_some("temperature", *temperature);
    body.push_some("top_p", *top_p);
    let is_completion_limit = match (style, profile.output_limit) {
        // Servers that only support functions predate the name `max_completion_tokens`.
        (ToolStyle::Functions, _) | (ToolStyle::Tools, OutputLimit::MaxTokens) => false,
        (ToolStyle::Tools, OutputLimit::MaxCompletionTokens) => true,
        (ToolStyle::Tools, OutputLimit::ByModel) => is_openai_reasoning_model(&request.model.id),
    };
    body.push_some(if is_completion_limit { "max_completion_tokens" } else { "max_tokens" }, *max_tokens);
    body.push_some("stop", (!stop.is_empty()).then_some(stop));
    body.push_some(profile.seed, *seed);
    body.push_some("reasoning_effort", effort(request, profile));
    if streaming == Streaming::On {
        body.push("stream", &true);
        body.push_some("stream_options", profile.requests_usage.then(|| json!({ "include_usage": true })));
    }
    body.finish()
}

/// Returns the reasoning effort under the name that the server has for it.
fn effort<'r>(request: &Request<'r>, profile: &ServerProfile) -> Option<&'r str> {
    let effort = wire_effort(request.settings)?;
    // These models cannot stop reasoning, so they do the least of it.
    if effort == "none" && always_reasons(&request.model.id) {
        return Some("minimal");
    }
    match profile.efforts.iter().find(|(other, _)| *other == effort) {
        Some((_, instead)) => *instead,
        None => Some(effort),
    }
}

/// Returns the schema of an answer as the server can enforce it.
pub(in crate::wire) fn strict_answer(schema: &Json, server: &Server) -> Option<Json> {
    server.profile().supports_strict.then(|| enforceable(schema)).flatten()
}

/// Returns whether tools that can be strict are strict. Some servers reject a mix of those and others.
pub(in crate::wire) fn strict_tools(request: &Request<'_>, server: &Server) -> bool {
    let all_strict = || request.tools.iter().all(|tool| tool.strict_schema.is_some());
    server.profile().supports_strict && (server.profile().allows_mixed_strictness || all_strict())
}

fn append_function(json: &mut Vec<u8>, tool: &OfferedTool, may_be_strict: bool) {
    let strict = tool.strict_schema.as_ref().filter(|_| may_be_strict);
    json.push(b'{');
    append_tool(json, tool, "parameters", strict.unwrap_or(&tool.schema));
    if strict.is_some() {
        json.extend_from_slice(br#","strict":true"#);
    }
    json.push(b'}');
}

fn append_messages(json: &mut Vec<u8>, request: &Request<'_>, style: ToolStyle, server: &Server) {
    if !request.instruction.trim().is_empty() {
        let content = request.instruction;
        let message = match server.profile().system_role {
            SystemRole::System => ChatMessage::System { content },
            SystemRole::Developer => ChatMessage::Developer { content },
            SystemRole::User => ChatMessage::User { content: Content::Text(content) },
        };
        append(json, &message);
    }
    match style {
        ToolStyle::Tools => {
            let origin = server.origin(&request.model.id);
            let profile = server.profile();
            let messages = request.messages;
            let contents = request.contents;
            append_part(json, |json| {
                messages.encode(messages.len(), Wire::Chat, &cache_origin(&origin, contents), json, |json, part| {
                    append_values(json, part.map(|message| message_with_tools(message, &origin, profile, contents)));
                });
            });
        }
        ToolStyle::Functions => {
            append_part(json, |json| append_values(json, messages_with_functions(request.messages, request.contents)));
        }
    }
}

fn message_with_tools<'r>(
    message: &'r Message,
    origin: &str,
    profile: &ServerProfile,
    contents: &AttachmentContents,
) -> ChatMessage<'r> {
    match message {
        Message::User { text, attachments } => user(text, attachments, contents),
        Message::Compacted { summary, .. } => ChatMessage::User { content: Content::Text(summary) },
        Message::Assistant { text, calls, opaque } => assistant(text, calls, opaque.as_ref(), origin, profile),
        Message::Tool { call_id, outcome, .. } => {
            ChatMessage::Tool { tool_call_id: id(call_id, profile), content: text_without_media(outcome) }
        }
    }
}

fn messages_with_functions<'r>(conversation: &'r Conversation, contents: &AttachmentContents) -> Vec<ChatMessage<'r>> {
    let mut messages = Vec::with_capacity(conversation.len());
    let outcomes = outcomes(conversation);
    for message in conversation {
        match message {
            Message::User { text, attachments } => messages.push(user(text, attachments, contents)),
            Message::Compacted { summary, .. } => {
                messages.push(ChatMessage::User { content: Content::Text(summary) });
            }
            Message::Assistant { text, calls, .. } => {
                if calls.is_empty() {
                    messages.push(plain_assistant(Content::Text(text), None));
                }
                // A message can contain one call, which must be followed by its result.
                for (index, call) in calls.iter().enumerate() {
                    let content = non_empty(if index == 0 { text } else { "" });
                    messages.push(plain_assistant(content, Some(function_call(call))));
                    if let Some(outcome) = outcomes.get(call.id.as_str()) {
                        messages.push(ChatMessage::Function {
                            name: wire_name(&call.tool),
                            content: text_without_media(outcome),
                        });
                    }
                }
            }
            Message::Tool { .. } => {}
        }
    }
    messages
}

/// Returns a message of the user. One without attachments is a plain text, which all servers accept.
fn user<'r>(text: &'r str, attachments: &[Attachment], contents: &AttachmentContents) -> ChatMessage<'r> {
    if attachments.is_empty() {
        return ChatMessage::User { content: Content::Text(text) };
    }
    let part = |part| match part {
        Part::Image { media_type, data } => {
            json!({ "type": "image_url", "image_url": { "url": data_url(media_type, &data) } })
        }
        Part::Document { name, media_type, data } => {
            json!({ "type": "file", "file": { "filename": name, "file_data": data_url(media_type, &data) } })
        }
        Part::Text(text) => json!({ "type": "text", "text": text }),
    };
    let text = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    let parts = parts(attachments, contents).into_iter().map(part).chain(text).map(Cow::Owned);
    ChatMessage::User { content: Content::Parts(parts.collect()) }
}

/// Returns a message of the model with what the server wants back.
fn assistant<'r>(
    text: &'r str,
    calls: &'r [ToolCall],
    opaque: Option<&'r Opaque>,
    origin: &str,
    profile: &ServerProfile,
) -> ChatMessage<'r> {
    // Reasoning belongs to the calls that follow from it; elsewhere it would only cost tokens.
    let has_reasoning = !calls.is_empty() || profile.needs_reasoning;
    let echo = if has_reasoning { Echo::read(opaque, origin, calls) } else { Echo::default() };
    let content = match echo.content {
        Some(parts) => {
            let text = (!text.is_empty()).then(|| Cow::Owned(json!({ "type": "text", "text": text })));
            Content::Parts(parts.iter().map(Cow::Borrowed).chain(text).collect())
        }
        None if calls.is_empty() => Content::Text(text),
        None => non_empty(text),
    };
    let needs_reasoning = profile.needs_reasoning && !calls.is_empty();
    let tool_calls = calls.iter().enumerate().map(|(index, call)| ChatCall {
        id: id(&call.id, profile),
        r#type: "function",
        function: function_call(call),
        extra_content: echo.call(index).map(Cow::Borrowed).or_else(|| {
            // Only the first of parallel calls has a signature.
            let signature = profile.call_signature.filter(|_| index == 0)?;
            Some(Cow::Owned(json!({ "google": { "thought_signature": signature } })))
        }),
    });
    ChatMessage::Assistant {
        content,
        reasoning_content: echo.reasoning_content.or(needs_reasoning.then_some("")),
        reasoning: echo.reasoning,
        reasoning_details: echo.reasoning_details,
        tool_calls: tool_calls.collect(),
        function_call: None,
    }
}

const fn plain_assistant<'r>(content: Content<'r>, function_call: Option<FunctionCall<'r>>) -> ChatMessage<'r> {
    ChatMessage::Assistant {
        content,
        reasoning_content: None,
        reasoning: None,
        reasoning_details: None,
        tool_calls: Vec::new(),
        function_call,
    }
}

fn id<'r>(id: &'r str, profile: &ServerProfile) -> Cow<'r, str> {
    profile.call_id_length.map_or(Cow::Borrowed(id), |length| fixed_length_id(id, length))
}

fn outcomes(messages: &Conversation) -> HashMap<&str, &ToolOutcome> {
    let outcomes = messages.iter().filter_map(|message| match message {
        Message::Tool { call_id, outcome, .. } => Some((call_id.as_str(), outcome)),
        Message::User { .. } | Message::Assistant { .. } | Message::Compacted { .. } => None,
    });
    outcomes.collect()
}

fn non_empty(text: &str) -> Content<'_> {
    if text.is_empty() { Content::None } else { Content::Text(text) }
}

fn function_call(call: &ToolCall) -> FunctionCall<'_> {
    FunctionCall { name: wire_name(&call.tool), arguments: arguments_text(call) }
}
