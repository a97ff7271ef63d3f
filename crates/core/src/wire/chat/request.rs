//! Requests.

use super::echo::Echo;
use crate::message::conversation::{Conversation, Message, Opaque, ToolCall, ToolOutcome};
use crate::message::request::{OfferedTool, Request, Settings};
use crate::provider::{OutputLimit, Server, ServerProfile, Wire};
use crate::types::dialect::{SchemaDialect, adapt};
use crate::wire::effort::{always_reasons, effort as wire_effort, is_openai_reasoning_model};
use crate::wire::framing::Streaming;
use crate::wire::history::{arguments_text, fixed_length_id, text_without_images, wire_name};
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

/// What follows the messages of a request. It borrows everything, so that schemas are not copied.
#[derive(Serialize)]
struct Rest<'r> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<Function<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random_seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Json>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'r> {
    function: Function<'r>,
}

#[derive(Serialize)]
struct Function<'r> {
    name: &'r str,
    description: &'r str,
    parameters: &'r Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// A message of a request.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum ChatMessage<'r> {
    System {
        content: &'r str,
    },
    User {
        content: &'r str,
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

/// The content of a message of the model.
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
    let may_be_strict = style == ToolStyle::Tools && strict_tools(request, server);
    let functions = request.tools.iter().map(|tool| function(tool, may_be_strict));
    let (tools, functions) = match style {
        ToolStyle::Tools => (functions.map(|function| Tool { function }).collect(), Vec::new()),
        ToolStyle::Functions => (Vec::new(), functions.collect()),
    };
    let is_completion_limit = match (style, profile.output_limit) {
        // Servers that only support functions predate the name `max_completion_tokens`.
        (ToolStyle::Functions, _) | (ToolStyle::Tools, OutputLimit::MaxTokens) => false,
        (ToolStyle::Tools, OutputLimit::MaxCompletionTokens) => true,
        (ToolStyle::Tools, OutputLimit::ByModel) => is_openai_reasoning_model(&request.model.id),
    };
    let is_random_seed = profile.seed == "random_seed";
    let is_streamed = streaming == Streaming::On;
    let rest = Rest {
        tools,
        functions,
        response_format: request.returns.map(|schema| {
            let answer = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
            json!({ "type": "json_schema", "json_schema": answer })
        }),
        temperature: *temperature,
        top_p: *top_p,
        max_completion_tokens: max_tokens.filter(|_| is_completion_limit),
        max_tokens: max_tokens.filter(|_| !is_completion_limit),
        stop,
        seed: seed.filter(|_| !is_random_seed),
        random_seed: seed.filter(|_| is_random_seed),
        reasoning_effort: effort(request, profile),
        stream: is_streamed.then_some(true),
        stream_options: (is_streamed && profile.requests_usage).then(|| json!({ "include_usage": true })),
    };
    let mut body = Vec::with_capacity(1024);
    body.extend_from_slice(br#"{"model":"#);
    append(&mut body, &request.model.id);
    body.extend_from_slice(br#","messages":["#);
    append_messages(&mut body, request, style, server);
    body.push(b']');
    // The rest is an object of its own, which continues that of the body.
    let rest_start = body.len();
    append(&mut body, &rest);
    match body.get_mut(rest_start..) {
        Some([b'{', b'}']) => {
            body.remove(rest_start);
        }
        Some([first, ..]) => *first = b',',
        Some([]) | None => {}
    }
    body
}

/// Appends a value as JSON. This could only fail for keys that are not strings, and there are none.
fn append(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let _ = serde_json::to_writer(json, value);
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

/// Returns whether OpenAI can enforce the schema of an answer without changes to it.
pub(in crate::wire) fn is_strict(schema: &Json) -> bool {
    adapt(schema, SchemaDialect::OpenAiStrict).changes.is_empty()
}

/// Returns whether tools that can be strict are strict. Some servers reject a mix of those and others.
pub(in crate::wire) fn strict_tools(request: &Request<'_>, server: &Server) -> bool {
    server.profile().allows_mixed_strictness || request.tools.iter().all(|tool| tool.strict_schema.is_some())
}

fn function(tool: &OfferedTool, may_be_strict: bool) -> Function<'_> {
    let strict = tool.strict_schema.as_ref().filter(|_| may_be_strict);
    Function {
        name: tool.name.as_str(),
        description: &tool.description,
        parameters: strict.unwrap_or(&tool.schema),
        strict: strict.is_some().then_some(true),
    }
}

fn append_messages(body: &mut Vec<u8>, request: &Request<'_>, style: ToolStyle, server: &Server) {
    let has_instruction = !request.instruction.trim().is_empty();
    if has_instruction {
        append(body, &ChatMessage::System { content: request.instruction });
    }
    if has_instruction && !request.messages.is_empty() {
        body.push(b',');
    }
    match style {
        ToolStyle::Tools => {
            let origin = server.origin(&request.model.id);
            let profile = server.profile();
            let format = format!("{}:{origin}", Wire::Chat.name());
            request
                .messages
                .encode(&format, body, |message, body| append(body, &message_with_tools(message, &origin, profile)));
        }
        ToolStyle::Functions => {
            for (index, message) in messages_with_functions(request.messages).iter().enumerate() {
                if index > 0 {
                    body.push(b',');
                }
                append(body, message);
            }
        }
    }
}

fn message_with_tools<'r>(message: &'r Message, origin: &str, profile: &ServerProfile) -> ChatMessage<'r> {
    match message {
        Message::User { text } => ChatMessage::User { content: text },
        Message::Assistant { text, calls, opaque } => assistant(text, calls, opaque.as_ref(), origin, profile),
        Message::Tool { call_id, outcome, .. } => {
            ChatMessage::Tool { tool_call_id: id(call_id, profile), content: text_without_images(outcome) }
        }
    }
}

fn messages_with_functions(conversation: &Conversation) -> Vec<ChatMessage<'_>> {
    let mut messages = Vec::with_capacity(conversation.len());
    let outcomes = outcomes(conversation);
    for message in conversation {
        match message {
            Message::User { text } => messages.push(ChatMessage::User { content: text }),
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
                            content: text_without_images(outcome),
                        });
                    }
                }
            }
            Message::Tool { .. } => {}
        }
    }
    messages
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
        Message::User { .. } | Message::Assistant { .. } => None,
    });
    outcomes.collect()
}

fn non_empty(text: &str) -> Content<'_> {
    if text.is_empty() { Content::None } else { Content::Text(text) }
}

fn function_call(call: &ToolCall) -> FunctionCall<'_> {
    FunctionCall { name: wire_name(&call.tool), arguments: arguments_text(call) }
}
