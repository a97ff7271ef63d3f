//! Responses of OpenAI.

use super::chat::is_strict;
use super::draft::{Draft, Reading, list, number, text};
use super::error::problem;
use super::history::{as_text, filled, own, put, wire_name};
use super::stream::json;
use super::{Streaming, Wire, WireError};
use crate::message::conversation::{Message, Opaque, ToolCall, Usage};
use crate::message::request::{Finish, OfferedTool, Request};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn encode(request: &Request<'_>, streaming: Streaming) -> Map<String, Json> {
    let settings = request.settings;
    let effort = settings.reasoning_effort.as_deref();
    let mut body = Map::new();
    put(&mut body, "model", Some(request.model.id.as_str()));
    let instruction = request.instruction;
    put(&mut body, "instructions", (!instruction.trim().is_empty()).then_some(instruction));
    put(&mut body, "input", Some(request.messages.iter().flat_map(items).collect::<Vec<_>>()));
    put(&mut body, "tools", filled(request.tools.iter().map(tool).collect()));
    put(&mut body, "text", request.returns.map(|schema| {
        json!({ "format": { "type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema) } })
    }));
    put(&mut body, "temperature", settings.temperature);
    put(&mut body, "top_p", settings.top_p);
    put(&mut body, "max_output_tokens", settings.max_tokens);
    put(&mut body, "reasoning", effort.map(|effort| json!({ "effort": effort })));
    put(&mut body, "store", Some(false));
    // What nobody stores must come with the reply to be resent. Models that do not think refuse to be asked for it.
    let thinks = effort.is_some() || thinks(&request.model.id);
    put(&mut body, "include", thinks.then(|| json!(["reasoning.encrypted_content"])));
    put(&mut body, "stream", (streaming == Streaming::On).then_some(true));
    body
}

/// Tells whether a model thinks, by its name: `o3`, `gpt-5.1`, but not `gpt-4o` nor `gpt-5-chat-latest`.
fn thinks(model_id: &str) -> bool {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let is_series = |prefix: &str, least: u32| model_id.strip_prefix(prefix).and_then(number) >= Some(least);
    (is_series("o", 1) || is_series("gpt-", 5)) && !model_id.contains("-chat")
}

fn tool(tool: &OfferedTool) -> Json {
    json!({
        "type": "function",
        "name": tool.name.as_str(),
        "description": tool.description,
        "parameters": *tool.schema,
        "strict": tool.is_strict,
    })
}

fn items(message: &Message) -> Vec<Json> {
    match message {
        Message::User { text } => vec![json!({ "role": "user", "content": text })],
        Message::Assistant { text, calls, opaque } => kept(opaque.as_ref(), calls).unwrap_or_else(|| {
            let said = (!text.is_empty()).then(|| json!({ "role": "assistant", "content": text }));
            said.into_iter().chain(calls.iter().map(call)).collect()
        }),
        Message::Tool { call_id, outcome, .. } => {
            vec![json!({ "type": "function_call_output", "call_id": call_id, "output": outcome.text() })]
        }
    }
}

/// Returns the items of a reply as they came, if there is more in them than the message says.
fn kept(opaque: Option<&Opaque>, calls: &[ToolCall]) -> Option<Vec<Json>> {
    let items = own(opaque, Wire::Responses)?.as_array()?;
    let made = items.iter().filter(|item| text(item, "type") == "function_call").map(|item| text(item, "call_id"));
    made.eq(calls.iter().map(|call| call.id.as_str())).then(|| items.clone())
}

fn call(call: &ToolCall) -> Json {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": wire_name(&call.tool),
        "arguments": as_text(call),
    })
}

/// Reads replies: items, whole or in pieces.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// The items that are complete, by their index.
    items: BTreeMap<u64, Json>,
    calls: HashMap<u64, usize>,
    /// The items whose text came in pieces.
    streamed: HashSet<u64>,
    is_refused: bool,
}

impl Reading for Responses {
    fn whole(&mut self, reply: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        let reply = &json(reply)?;
        if let Some(error) = WireError::inside(reply) {
            return Err(error);
        }
        if !reply.get("output").is_some_and(Json::is_array) {
            return Err(WireError::malformed("it has no `output`"));
        }
        self.end(reply, draft)
    }

    fn event(&mut self, event: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        let event = &json(event)?;
        let index = number(event, "/output_index");
        let delta = text(event, "delta");
        match text(event, "type") {
            "response.output_item.added" => self.begin(index, event.get("item").unwrap_or(&Json::Null), draft),
            "response.output_text.delta" => {
                self.streamed.insert(index);
                draft.text(delta);
            }
            "response.refusal.delta" => {
                self.streamed.insert(index);
                self.is_refused = true;
                draft.text(delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => draft.thought(delta),
            "response.function_call_arguments.delta" => {
                if let Some(call) = self.calls.get(&index) {
                    draft.arguments(*call, delta);
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(call) = self.calls.get(&index) {
                    draft.all_arguments(*call, text(event, "arguments"));
                }
            }
            "response.output_item.done" => self.item(index, event.get("item").unwrap_or(&Json::Null), draft),
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.end(event.get("response").unwrap_or(&Json::Null), draft);
            }
            "error" => return Err(failure(event)),
            _ => {}
        }
        Ok(())
    }

    fn close(self: Box<Self>, draft: &mut Draft) -> Option<Json> {
        if self.is_refused {
            draft.finish = Some(Finish::Refused);
        }
        // Thoughts without their content are stored nowhere, so they cannot be referred to.
        let is_lost = |item: &Json| text(item, "type") == "reasoning" && text(item, "encrypted_content").is_empty();
        let items: Vec<Json> = self.items.into_values().filter(|item| !is_lost(item)).collect();
        let is_more = items.iter().any(|item| !matches!(text(item, "type"), "message" | "function_call"));
        is_more.then_some(Json::Array(items))
    }
}

impl Responses {
    /// Begins an item.
    fn begin(&mut self, index: u64, item: &Json, draft: &mut Draft) {
        if text(item, "type") == "function_call" && !self.calls.contains_key(&index) {
            self.calls.insert(index, draft.call(Some(text(item, "call_id")), text(item, "name")));
        }
    }

    /// Takes an item that is complete.
    fn item(&mut self, index: u64, item: &Json, draft: &mut Draft) {
        self.begin(index, item, draft);
        if let Some(call) = self.calls.get(&index) {
            draft.all_arguments(*call, text(item, "arguments"));
        }
        if text(item, "type") == "message" && !self.streamed.contains(&index) {
            for part in list(item, "content") {
                draft.text(text(part, "text"));
                let refusal = text(part, "refusal");
                self.is_refused |= !refusal.is_empty();
                draft.text(refusal);
            }
        }
        self.items.insert(index, item.clone());
    }

    /// Takes the reply at its end.
    fn end(&mut self, reply: &Json, draft: &mut Draft) -> Result<(), WireError> {
        if self.items.is_empty() {
            for (index, item) in (0..).zip(list(reply, "output")) {
                self.item(index, item, draft);
            }
        }
        if let Some(usage) = reply.get("usage").filter(|usage| usage.is_object()) {
            draft.usage = Usage {
                input_tokens: number(usage, "/input_tokens"),
                cached_tokens: number(usage, "/input_tokens_details/cached_tokens"),
                output_tokens: number(usage, "/output_tokens"),
                reasoning_tokens: number(usage, "/output_tokens_details/reasoning_tokens"),
                ..Usage::default()
            };
        }
        let reason = reply.pointer("/incomplete_details/reason").and_then(Json::as_str);
        draft.finish = Some(match (text(reply, "status"), reason) {
            ("failed", _) => return Err(failure(reply)),
            ("incomplete", Some("max_output_tokens")) => Finish::Length,
            ("incomplete", Some("content_filter")) => Finish::Filtered,
            ("incomplete", Some(other)) => Finish::Other(other.to_owned()),
            ("completed" | "", _) => Finish::Stop,
            (other, _) => Finish::Other(other.to_owned()),
        });
        draft.end();
        Ok(())
    }
}

/// Returns why the provider broke off. An event has the error itself, and is of the kind `error` beside.
fn failure(json: &Json) -> WireError {
    let (kind, message) = problem(json).unwrap_or_default();
    WireError::Stream { kind: kind.filter(|kind| !matches!(kind.as_str(), "error" | "failed")), message }
}
