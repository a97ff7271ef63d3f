//! OpenAI Chat Completions, which compatible servers support too.

use super::borrowed_json::BorrowedJson;
use super::error::WireError;
use super::framing::Streaming;
use super::history::{arguments_text, wire_name};
use super::json::parse;
use super::reply::{ReplyBuilder, ReplyParser};
use crate::message::conversation::{Message, ToolCall, ToolOutcome, Usage};
use crate::message::request::{FinishReason, OfferedTool, Request, Settings};
use crate::types::dialect::{SchemaDialect, adapt};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// The way in which tools are declared and called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolStyle {
    /// With `tools` and `tool_calls`.
    Tools,
    /// With the older `functions` and `function_call`.
    Functions,
}

/// The body of a request. It borrows everything, so that schemas are not copied.
#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<ChatMessage<'r>>,
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
        content: Option<&'r str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ChatCall<'r>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        function_call: Option<FunctionCall<'r>>,
    },
    Tool {
        tool_call_id: &'r str,
        content: String,
    },
    Function {
        name: String,
        content: String,
    },
}

#[derive(Serialize)]
struct ChatCall<'r> {
    id: &'r str,
    r#type: &'static str,
    function: FunctionCall<'r>,
}

#[derive(Serialize)]
struct FunctionCall<'r> {
    name: String,
    arguments: &'r str,
}

pub(super) fn encode(request: &Request<'_>, streaming: Streaming, style: ToolStyle) -> impl Serialize {
    let Settings { temperature, top_p, top_k: _, max_tokens, stop, seed, reasoning_effort } = request.settings;
    let functions = request.tools.iter().map(|tool| function(tool, style));
    let (tools, functions) = match style {
        ToolStyle::Tools => (functions.map(|function| Tool { function }).collect(), Vec::new()),
        ToolStyle::Functions => (Vec::new(), functions.collect()),
    };
    // Servers that only support functions predate the name `max_completion_tokens`.
    let (max_completion_tokens, max_tokens) = match style {
        ToolStyle::Tools => (*max_tokens, None),
        ToolStyle::Functions => (None, *max_tokens),
    };
    let is_streamed = streaming == Streaming::On;
    Body {
        model: &request.model.id,
        messages: messages(request, style),
        tools,
        functions,
        response_format: request.returns.map(|schema| {
            let answer = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
            json!({ "type": "json_schema", "json_schema": answer })
        }),
        temperature: *temperature,
        top_p: *top_p,
        max_completion_tokens,
        max_tokens,
        stop,
        seed: *seed,
        reasoning_effort: reasoning_effort.as_deref(),
        stream: is_streamed.then_some(true),
        stream_options: is_streamed.then(|| json!({ "include_usage": true })),
    }
}

/// Returns whether OpenAI can enforce the schema of an answer without changes to it.
pub(super) fn is_strict(schema: &Json) -> bool {
    adapt(schema, SchemaDialect::OpenAiStrict).changes.is_empty()
}

fn function(tool: &OfferedTool, style: ToolStyle) -> Function<'_> {
    Function {
        name: tool.name.as_str(),
        description: &tool.description,
        parameters: &tool.schema,
        strict: (tool.is_strict && style == ToolStyle::Tools).then_some(true),
    }
}

fn messages<'r>(request: &Request<'r>, style: ToolStyle) -> Vec<ChatMessage<'r>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.instruction.trim().is_empty() {
        messages.push(ChatMessage::System { content: request.instruction });
    }
    let outcomes = match style {
        ToolStyle::Tools => HashMap::new(),
        ToolStyle::Functions => outcomes(request.messages),
    };
    for message in request.messages {
        match (message, style) {
            (Message::User { text }, _) => messages.push(ChatMessage::User { content: text }),
            (Message::Assistant { text, calls, .. }, _) if calls.is_empty() => {
                messages.push(ChatMessage::Assistant {
                    content: Some(text),
                    tool_calls: Vec::new(),
                    function_call: None,
                });
            }
            (Message::Assistant { text, calls, .. }, ToolStyle::Tools) => {
                let tool_calls = calls.iter().map(tool_call).collect();
                messages.push(ChatMessage::Assistant { content: non_empty(text), tool_calls, function_call: None });
            }
            (Message::Tool { call_id, outcome, .. }, ToolStyle::Tools) => {
                messages.push(ChatMessage::Tool { tool_call_id: call_id, content: outcome.text() });
            }
            (Message::Assistant { text, calls, .. }, ToolStyle::Functions) => {
                // A message can contain one call, which must be followed by its result.
                for (index, call) in calls.iter().enumerate() {
                    let content = non_empty(if index == 0 { text } else { "" });
                    let function_call = Some(function_call(call));
                    messages.push(ChatMessage::Assistant { content, tool_calls: Vec::new(), function_call });
                    if let Some(outcome) = outcomes.get(call.id.as_str()) {
                        messages.push(ChatMessage::Function { name: wire_name(&call.tool), content: outcome.text() });
                    }
                }
            }
            (Message::Tool { .. }, ToolStyle::Functions) => {}
        }
    }
    messages
}

fn outcomes(messages: &[Message]) -> HashMap<&str, &ToolOutcome> {
    let outcomes = messages.iter().filter_map(|message| match message {
        Message::Tool { call_id, outcome, .. } => Some((call_id.as_str(), outcome)),
        Message::User { .. } | Message::Assistant { .. } => None,
    });
    outcomes.collect()
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn tool_call(call: &ToolCall) -> ChatCall<'_> {
    ChatCall { id: &call.id, r#type: "function", function: function_call(call) }
}

fn function_call(call: &ToolCall) -> FunctionCall<'_> {
    FunctionCall { name: wire_name(&call.tool), arguments: arguments_text(call) }
}

/// A parser for replies with `tools` and with `functions`, whole or streamed: messages and deltas have the same fields.
#[derive(Debug, Default)]
pub(super) struct ChatParser {
    /// The calls by index.
    calls: HashMap<u64, PendingCall>,
    /// The index of the call that was received last.
    last_index: u64,
    /// An index above those of all calls.
    next_index: u64,
    is_refused: bool,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    /// A whole message, in which each call occurs once.
    Whole,
    /// A piece of a message, with pieces of calls.
    Delta,
}

impl MessageKind {
    const fn key(self) -> &'static str {
        match self {
            MessageKind::Whole => "message",
            MessageKind::Delta => "delta",
        }
    }
}

/// A call whose name may not have been received yet.
#[derive(Debug, Default)]
struct PendingCall {
    id: String,
    /// The index in the reply, once the name is known.
    index: Option<usize>,
    /// Arguments that were received before the name.
    arguments: String,
}

impl ReplyParser for ChatParser {
    fn parse_whole(&mut self, reply: &[u8], builder: &mut ReplyBuilder) -> Result<(), WireError> {
        match self.parse(reply, builder)? {
            0 => Err(WireError::malformed("missing `choices`")),
            _ => Ok(()),
        }
    }

    fn parse_event(&mut self, event: &[u8], builder: &mut ReplyBuilder) -> Result<(), WireError> {
        self.parse(event, builder).map(|_| ())
    }

    fn finish(self: Box<Self>, builder: &mut ReplyBuilder) -> Option<Json> {
        let mut unnamed: Vec<_> = self.calls.into_iter().filter(|(_, call)| call.index.is_none()).collect();
        unnamed.sort_by_key(|(index, _)| *index);
        for (_, call) in unnamed {
            let index = builder.start_call(Some(&call.id), "");
            builder.push_arguments(index, &call.arguments);
        }
        if self.is_refused {
            builder.finish = Some(FinishReason::Refused);
        }
        None
    }
}

impl ChatParser {
    /// Parses a reply or an event, and returns the number of its choices.
    fn parse(&mut self, bytes: &[u8], builder: &mut ReplyBuilder) -> Result<usize, WireError> {
        let event: BorrowedJson<'_> = parse(bytes)?;
        if !event.get("error").is_null()
            && let Some(error) = WireError::from_reply(&parse(bytes)?)
        {
            return Err(error);
        }
        let usage = event.get("usage");
        if usage.is_object() {
            builder.usage = Usage {
                input_tokens: usage.get("prompt_tokens").count(),
                cached_tokens: usage.get("prompt_tokens_details").get("cached_tokens").count(),
                output_tokens: usage.get("completion_tokens").count(),
                reasoning_tokens: usage.get("completion_tokens_details").get("reasoning_tokens").count(),
                ..Usage::default()
            };
        }
        let choices = event.get("choices").list();
        let Some(choice) = choices.first() else { return Ok(0) };
        for kind in [MessageKind::Whole, MessageKind::Delta] {
            let message = choice.get(kind.key());
            if message.is_object() {
                self.parse_message(message, kind, builder);
            }
        }
        if let BorrowedJson::Text(reason) = choice.get("finish_reason") {
            builder.finish = Some(finish_reason(reason));
            builder.is_complete = true;
        }
        Ok(choices.len())
    }

    fn parse_message(&mut self, message: &BorrowedJson<'_>, kind: MessageKind, builder: &mut ReplyBuilder) {
        let thoughts = ["reasoning_content", "reasoning"].map(|key| message.get(key).text());
        builder.push_thought(thoughts.into_iter().find(|thought| !thought.is_empty()).unwrap_or_default());
        builder.push_text(message.get("content").text());
        // Some servers send a list of parts, as in requests.
        for part in message.get("content").list() {
            builder.push_text(part.get("text").text());
        }
        let refusal = message.get("refusal").text();
        if !refusal.is_empty() {
            builder.push_text(refusal);
            self.is_refused = true;
        }
        let calls = message.get("tool_calls").list();
        for call in calls {
            let id = call.get("id").text();
            let index = if kind == MessageKind::Whole { self.next_index } else { self.call_index(call, id) };
            self.push_call(index, id, call.get("function"), builder);
        }
        // If both are present, they contain the same call.
        let function = message.get("function_call");
        if function.is_object() && calls.is_empty() {
            self.push_call(0, "", function, builder);
        }
    }

    /// Returns the index under which a piece of a call is stored. Some servers omit the index, so that a new call is only
    /// recognisable by its id or name. Others send the same index for all calls, which then differ in id and name.
    fn call_index(&self, call: &BorrowedJson<'_>, id: &str) -> u64 {
        let is_named = !call.get("function").get("name").text().is_empty();
        let Some(index) = call.get("index").integer() else {
            let is_continuation = id.is_empty() && !is_named && !self.calls.is_empty();
            return if is_continuation { self.last_index } else { self.next_index };
        };
        let is_different = |other: &PendingCall| is_named && other.index.is_some() && !id.is_empty() && other.id != id;
        if self.calls.get(&index).is_some_and(is_different) { self.next_index } else { index }
    }

    fn push_call(&mut self, index: u64, id: &str, function: &BorrowedJson<'_>, builder: &mut ReplyBuilder) {
        self.last_index = index;
        self.next_index = self.next_index.max(index.saturating_add(1));
        let call = self.calls.entry(index).or_default();
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let name = function.get("name").text();
        let arguments = match function.get("arguments") {
            BorrowedJson::Text(text) => Cow::Borrowed(&**text),
            object @ BorrowedJson::Object(_) => Cow::Owned(serde_json::to_string(object).unwrap_or_default()),
            _ => Cow::Borrowed(""),
        };
        match call.index {
            Some(index) => builder.push_arguments(index, &arguments),
            None if name.is_empty() => call.arguments.push_str(&arguments),
            None => {
                let index = builder.start_call(Some(&call.id), name);
                call.index = Some(index);
                builder.push_arguments(index, &std::mem::take(&mut call.arguments));
                builder.push_arguments(index, &arguments);
            }
        }
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "tool_calls" | "function_call" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::Filtered,
        other => FinishReason::Other(other.to_owned()),
    }
}
