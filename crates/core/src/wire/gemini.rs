//! `generateContent` of Gemini.

use super::draft::{Draft, Reading, list, number, text, written};
use super::history::{as_object, filled, given_id, own, put, stops, wire_name};
use super::stream::json;
use super::{Streaming, Wire, WireError};
use crate::message::conversation::{Message, Opaque, ToolCall, ToolOutcome, Usage};
use crate::message::request::{Finish, OfferedTool, Request, Settings};
use serde_json::{Map, Value as Json, json};

pub(super) fn path(model_id: &str, streaming: Streaming) -> String {
    let id = model_id.strip_prefix("models/").unwrap_or(model_id);
    let mut path = "/v1beta/models/".to_owned();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path.push_str(match streaming {
        Streaming::Off => ":generateContent",
        Streaming::On => ":streamGenerateContent?alt=sse",
    });
    path
}

pub(super) fn encode(request: &Request<'_>) -> Map<String, Json> {
    let mut body = Map::new();
    let instruction = request.instruction;
    let said = !instruction.trim().is_empty();
    put(&mut body, "systemInstruction", said.then(|| json!({ "parts": [{ "text": instruction }] })));
    put(&mut body, "contents", Some(contents(request.messages)));
    let tools = filled(request.tools.iter().map(tool).collect());
    put(&mut body, "tools", tools.map(|tools| json!([{ "functionDeclarations": tools }])));
    let config = config(request);
    put(&mut body, "generationConfig", (!config.is_empty()).then_some(config));
    body
}

fn config(request: &Request<'_>) -> Map<String, Json> {
    let Settings { temperature, top_p, top_k, max_tokens, stop, seed, reasoning_effort } = request.settings;
    let mut config = Map::new();
    put(&mut config, "temperature", *temperature);
    put(&mut config, "topP", *top_p);
    put(&mut config, "topK", *top_k);
    put(&mut config, "maxOutputTokens", *max_tokens);
    put(&mut config, "stopSequences", stops(stop));
    put(&mut config, "seed", *seed);
    let thinking = reasoning_effort.as_deref().map(|effort| thinking(&request.model.id, effort));
    put(&mut config, "thinkingConfig", thinking);
    if let Some(schema) = request.returns.filter(|_| Wire::Gemini.sends_returns(request)) {
        put(&mut config, "responseMimeType", Some("application/json"));
        put(&mut config, "responseJsonSchema", Some(schema.clone()));
    }
    config
}

/// Tells whether a model is older than the third Gemini, by its name.
pub(super) fn is_older(model_id: &str) -> bool {
    let name = model_id.strip_prefix("models/").unwrap_or(model_id);
    ["gemini-1", "gemini-2"].iter().any(|older| name.starts_with(older))
}

/// Returns how much to think. Models before the third count tokens, with the numbers that the provider itself puts in
/// for these words.
fn thinking(model_id: &str, effort: &str) -> Json {
    let tokens = match effort {
        "none" => Some(0),
        "minimal" | "low" => Some(1024),
        "medium" => Some(8192),
        "high" => Some(24_576),
        _ => None,
    };
    match tokens.filter(|_| is_older(model_id)) {
        Some(tokens) => json!({ "thinkingBudget": tokens }),
        None => json!({ "thinkingLevel": effort }),
    }
}

fn tool(tool: &OfferedTool) -> Json {
    json!({ "name": tool.name.as_str(), "description": tool.description, "parametersJsonSchema": *tool.schema })
}

/// Who speaks in a message. Results have one of their own, as the provider counts them against the calls before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Person,
    Model,
    Results,
}

fn contents(messages: &[Message]) -> Vec<Json> {
    let mut turns: Vec<(Voice, Vec<Json>)> = Vec::new();
    for message in messages {
        let (voice, parts) = match message {
            Message::User { text } => (Voice::Person, text_part(text)),
            Message::Assistant { text, calls, opaque } => {
                let made = || text_part(text).into_iter().chain(calls.iter().map(function_call)).collect();
                (Voice::Model, kept(opaque.as_ref(), calls).unwrap_or_else(made))
            }
            Message::Tool { call_id, tool, outcome } => {
                (Voice::Results, vec![function_response(call_id, tool, outcome)])
            }
        };
        match turns.last_mut().filter(|(last, _)| *last == voice) {
            Some((_, so_far)) => so_far.extend(parts),
            // The provider refuses contents without parts.
            None if parts.is_empty() => {}
            None => turns.push((voice, parts)),
        }
    }
    let said = |(voice, parts)| {
        let role = if voice == Voice::Model { "model" } else { "user" };
        json!({ "role": role, "parts": Json::Array(parts) })
    };
    turns.into_iter().map(said).collect()
}

fn text_part(text: &str) -> Vec<Json> {
    if text.is_empty() { Vec::new() } else { vec![json!({ "text": text })] }
}

fn function_call(call: &ToolCall) -> Json {
    let mut said = Map::new();
    put(&mut said, "id", given_id(&call.id));
    put(&mut said, "name", Some(wire_name(&call.tool)));
    put(&mut said, "args", Some(as_object(&call.arguments)));
    json!({ "functionCall": said })
}

fn function_response(call_id: &str, tool: &str, outcome: &ToolOutcome) -> Json {
    let response = match outcome {
        ToolOutcome::Value { value } => json!({ "output": value }),
        ToolOutcome::Error { message } => json!({ "error": message }),
        ToolOutcome::Denied { .. } | ToolOutcome::Cancelled => json!({ "error": outcome.text() }),
    };
    let mut said = Map::new();
    put(&mut said, "id", given_id(call_id));
    put(&mut said, "name", Some(wire_name(tool)));
    put(&mut said, "response", Some(response));
    json!({ "functionResponse": said })
}

/// Returns the parts of a reply as they came, if there is more in them than the message says.
fn kept(opaque: Option<&Opaque>, calls: &[ToolCall]) -> Option<Vec<Json>> {
    let parts = own(opaque, Wire::Gemini)?.as_array()?;
    let made =
        parts.iter().filter_map(|part| part.get("functionCall")).map(|call| call.get("id").and_then(Json::as_str));
    made.eq(calls.iter().map(|call| given_id(&call.id))).then(|| parts.clone())
}

/// Reads replies. A piece has the form of a whole.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    parts: Vec<Json>,
}

impl Reading for Gemini {
    fn whole(&mut self, reply: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        let reply = &json(reply)?;
        self.piece(reply, draft)?;
        if draft.finish.is_none() && list(reply, "candidates").is_empty() {
            return Err(WireError::malformed("it has no `candidates`"));
        }
        Ok(())
    }

    fn event(&mut self, event: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        self.piece(&json(event)?, draft)
    }

    fn close(self: Box<Self>, _draft: &mut Draft) -> Option<Json> {
        self.parts.iter().any(is_signed).then_some(Json::Array(self.parts))
    }
}

impl Gemini {
    fn piece(&mut self, event: &Json, draft: &mut Draft) -> Result<(), WireError> {
        if let Some(error) = WireError::inside(event) {
            return Err(error);
        }
        if let Some(usage) = event.get("usageMetadata") {
            let thoughts = number(usage, "/thoughtsTokenCount");
            draft.usage = Usage {
                input_tokens: number(usage, "/promptTokenCount"),
                cached_tokens: number(usage, "/cachedContentTokenCount"),
                output_tokens: number(usage, "/candidatesTokenCount").saturating_add(thoughts),
                reasoning_tokens: thoughts,
                ..Usage::default()
            };
        }
        if event.pointer("/promptFeedback/blockReason").is_some() {
            draft.finish = Some(Finish::Filtered);
            draft.is_complete = true;
        }
        let Some(candidate) = list(event, "candidates").first() else { return Ok(()) };
        for part in candidate.get("content").map_or(&[][..], |content| list(content, "parts")) {
            self.part(part, draft);
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Json::as_str) {
            draft.finish = Some(finish(reason));
            draft.is_complete = true;
        }
        Ok(())
    }

    fn part(&mut self, part: &Json, draft: &mut Draft) {
        if let Some(call) = part.get("functionCall") {
            let index = draft.call(call.get("id").and_then(Json::as_str), text(call, "name"));
            draft.arguments(index, &written(call.get("args")));
        } else if is_thought(part) {
            draft.thought(text(part, "text"));
        } else {
            draft.text(text(part, "text"));
        }
        // Pieces of a text become one again; a signature stays with the part that it came with.
        let is_plain = |part: &Json| part.get("text").is_some_and(Json::is_string) && !is_signed(part);
        if is_plain(part)
            && let Some(last) = self.parts.last_mut().filter(|last| is_plain(last))
            && is_thought(last) == is_thought(part)
            && let Some(Json::String(so_far)) = last.get_mut("text")
        {
            so_far.push_str(text(part, "text"));
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

fn finish(reason: &str) -> Finish {
    match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Finish::Filtered,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => Finish::Malformed,
        other => Finish::Other(other.to_owned()),
    }
}
