//! Chat Completions of OpenAI, and of all who speak it.

use super::draft::{Draft, Reading};
use super::history::{as_text, wire_name};
use super::stream::json;
use super::tree::Tree;
use super::{Streaming, WireError};
use crate::message::conversation::{Message, ToolCall, ToolOutcome, Usage};
use crate::message::request::{Finish, OfferedTool, Request, Settings};
use crate::types::dialect::{SchemaView, view};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// How tools are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// With `tools`.
    Tools,
    /// With the older `functions`.
    Functions,
}

/// A request. It is written from what there is, and no schema is copied for it.
#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<Said<'r>>,
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

/// A message.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Said<'r> {
    System {
        content: &'r str,
    },
    User {
        content: &'r str,
    },
    Assistant {
        content: Option<&'r str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'r>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        function_call: Option<Called<'r>>,
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
struct Call<'r> {
    id: &'r str,
    r#type: &'static str,
    function: Called<'r>,
}

#[derive(Serialize)]
struct Called<'r> {
    name: String,
    arguments: &'r str,
}

pub(super) fn encode(request: &Request<'_>, streaming: Streaming, style: Style) -> impl Serialize {
    let Settings { temperature, top_p, top_k: _, max_tokens, stop, seed, reasoning_effort } = request.settings;
    let functions = request.tools.iter().map(|tool| function(tool, style));
    let (tools, functions) = match style {
        Style::Tools => (functions.map(|function| Tool { function }).collect(), Vec::new()),
        Style::Functions => (Vec::new(), functions.collect()),
    };
    // Servers that know only functions are older than the newer name.
    let (newer, older) = if style == Style::Tools { (*max_tokens, None) } else { (None, *max_tokens) };
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
        max_completion_tokens: newer,
        max_tokens: older,
        stop,
        seed: *seed,
        reasoning_effort: reasoning_effort.as_deref(),
        stream: is_streamed.then_some(true),
        stream_options: is_streamed.then(|| json!({ "include_usage": true })),
    }
}

/// Tells whether OpenAI can hold a model to the schema of an answer as it is.
pub(super) fn is_strict(schema: &Json) -> bool {
    view(schema, SchemaView::OpenAiStrict).changes.is_empty()
}

fn function(tool: &OfferedTool, style: Style) -> Function<'_> {
    Function {
        name: tool.name.as_str(),
        description: &tool.description,
        parameters: &tool.schema,
        strict: (tool.is_strict && style == Style::Tools).then_some(true),
    }
}

fn messages<'r>(request: &Request<'r>, style: Style) -> Vec<Said<'r>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.instruction.trim().is_empty() {
        messages.push(Said::System { content: request.instruction });
    }
    let outcomes = match style {
        Style::Tools => HashMap::new(),
        Style::Functions => outcomes(request.messages),
    };
    for message in request.messages {
        match (message, style) {
            (Message::User { text }, _) => messages.push(Said::User { content: text }),
            (Message::Assistant { text, calls, .. }, _) if calls.is_empty() => {
                messages.push(Said::Assistant { content: Some(text), tool_calls: Vec::new(), function_call: None });
            }
            (Message::Assistant { text, calls, .. }, Style::Tools) => {
                let tool_calls =
                    calls.iter().map(|call| Call { id: &call.id, r#type: "function", function: called(call) });
                let tool_calls = tool_calls.collect();
                messages.push(Said::Assistant { content: content(text), tool_calls, function_call: None });
            }
            (Message::Tool { call_id, outcome, .. }, Style::Tools) => {
                messages.push(Said::Tool { tool_call_id: call_id, content: outcome.text() });
            }
            (Message::Assistant { text, calls, .. }, Style::Functions) => {
                // A message has place for one call, and its result follows at once.
                for (index, call) in calls.iter().enumerate() {
                    let content = content(if index == 0 { text } else { "" });
                    let function_call = Some(called(call));
                    messages.push(Said::Assistant { content, tool_calls: Vec::new(), function_call });
                    if let Some(outcome) = outcomes.get(call.id.as_str()) {
                        messages.push(Said::Function { name: wire_name(&call.tool), content: outcome.text() });
                    }
                }
            }
            (Message::Tool { .. }, Style::Functions) => {}
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

fn content(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn called(call: &ToolCall) -> Called<'_> {
    Called { name: wire_name(&call.tool), arguments: as_text(call) }
}

/// Reads replies with `tools` and with `functions`, whole or in pieces: a message and a piece of it have one form.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// The call that an index stands for.
    calls: HashMap<u64, Slot>,
    /// The one that came last.
    last: u64,
    /// One that no call has, nor one after it.
    free: u64,
    is_refused: bool,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All of it, in which each call stands once.
    Whole,
    /// A piece, with pieces of calls.
    Piece,
}

impl Form {
    const fn key(self) -> &'static str {
        match self {
            Form::Whole => "message",
            Form::Piece => "delta",
        }
    }
}

/// A call whose name may still be to come.
#[derive(Debug, Default)]
struct Slot {
    id: String,
    /// Which call it is, once it has a name.
    begun: Option<usize>,
    /// Arguments that came before the name.
    early: String,
}

impl Reading for Chat {
    fn whole(&mut self, reply: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        match self.piece(reply, draft)? {
            0 => Err(WireError::malformed("it has no `choices`")),
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        self.piece(event, draft).map(|_| ())
    }

    fn close(self: Box<Self>, draft: &mut Draft) -> Option<Json> {
        let mut unnamed: Vec<_> = self.calls.into_iter().filter(|(_, slot)| slot.begun.is_none()).collect();
        unnamed.sort_by_key(|(index, _)| *index);
        for (_, slot) in unnamed {
            let index = draft.call(Some(&slot.id), "");
            draft.arguments(index, &slot.early);
        }
        if self.is_refused {
            draft.finish = Some(Finish::Refused);
        }
        None
    }
}

impl Chat {
    /// Reads a piece, and returns how many choices it has.
    fn piece(&mut self, bytes: &[u8], draft: &mut Draft) -> Result<usize, WireError> {
        let event = Tree::read(bytes)?;
        if !event.get("error").is_null()
            && let Some(error) = WireError::inside(&json(bytes)?)
        {
            return Err(error);
        }
        let usage = event.get("usage");
        if usage.is_object() {
            draft.usage = Usage {
                input_tokens: usage.get("prompt_tokens").count(),
                cached_tokens: usage.get("prompt_tokens_details").get("cached_tokens").count(),
                output_tokens: usage.get("completion_tokens").count(),
                reasoning_tokens: usage.get("completion_tokens_details").get("reasoning_tokens").count(),
                ..Usage::default()
            };
        }
        let choices = event.get("choices").list();
        let Some(choice) = choices.first() else { return Ok(0) };
        for form in [Form::Whole, Form::Piece] {
            let message = choice.get(form.key());
            if message.is_object() {
                self.message(message, form, draft);
            }
        }
        if let Tree::Text(reason) = choice.get("finish_reason") {
            draft.finish = Some(finish(reason));
            draft.is_complete = true;
        }
        Ok(choices.len())
    }

    fn message(&mut self, message: &Tree<'_>, form: Form, draft: &mut Draft) {
        let thoughts = ["reasoning_content", "reasoning"].map(|key| message.get(key).text());
        draft.thought(thoughts.into_iter().find(|thought| !thought.is_empty()).unwrap_or_default());
        draft.text(message.get("content").text());
        // Some servers have parts here, as there are in requests.
        for part in message.get("content").list() {
            draft.text(part.get("text").text());
        }
        let refusal = message.get("refusal").text();
        if !refusal.is_empty() {
            draft.text(refusal);
            self.is_refused = true;
        }
        let calls = message.get("tool_calls").list();
        for call in calls {
            let id = call.get("id").text();
            let index = if form == Form::Whole { self.free } else { self.index(call, id) };
            self.call(index, id, call.get("function"), draft);
        }
        // Where both are there, they say the same.
        let function = message.get("function_call");
        if function.is_object() && calls.is_empty() {
            self.call(0, "", function, draft);
        }
    }

    /// Returns what a piece of a call is kept under. Only the index is sure, and some servers leave even that out:
    /// there, an id or a name begins another call. Others count all calls as the first, and tell them apart by both.
    fn index(&self, call: &Tree<'_>, id: &str) -> u64 {
        let is_named = !call.get("function").get("name").text().is_empty();
        let Some(index) = call.get("index").whole() else {
            let is_more = id.is_empty() && !is_named && !self.calls.is_empty();
            return if is_more { self.last } else { self.free };
        };
        let is_other = |slot: &Slot| is_named && slot.begun.is_some() && !id.is_empty() && slot.id != id;
        if self.calls.get(&index).is_some_and(is_other) { self.free } else { index }
    }

    fn call(&mut self, index: u64, id: &str, function: &Tree<'_>, draft: &mut Draft) {
        self.last = index;
        self.free = self.free.max(index.saturating_add(1));
        let slot = self.calls.entry(index).or_default();
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        let name = function.get("name").text();
        let arguments = match function.get("arguments") {
            Tree::Text(text) => Cow::Borrowed(&**text),
            object @ Tree::Object(_) => Cow::Owned(serde_json::to_string(object).unwrap_or_default()),
            _ => Cow::Borrowed(""),
        };
        match slot.begun {
            Some(begun) => draft.arguments(begun, &arguments),
            None if name.is_empty() => slot.early.push_str(&arguments),
            None => {
                let begun = draft.call(Some(&slot.id), name);
                slot.begun = Some(begun);
                draft.arguments(begun, &std::mem::take(&mut slot.early));
                draft.arguments(begun, &arguments);
            }
        }
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "tool_calls" | "function_call" => Finish::Stop,
        "length" => Finish::Length,
        "content_filter" => Finish::Filtered,
        other => Finish::Other(other.to_owned()),
    }
}
