//! Chat of Ollama.

use super::draft::{Draft, Reading, list, number, text, written};
use super::history::{as_object, filled, own, put, stops, wire_name};
use super::stream::json;
use super::{Streaming, Wire, WireError};
use crate::message::conversation::{Message, Usage};
use crate::message::request::{Finish, OfferedTool, Request, Settings};
use serde_json::{Map, Value as Json, json};

pub(super) fn encode(request: &Request<'_>, streaming: Streaming) -> Map<String, Json> {
    let Settings { temperature, top_p, top_k, max_tokens, stop, seed, reasoning_effort } = request.settings;
    let mut body = Map::new();
    put(&mut body, "model", Some(request.model.id.as_str()));
    put(&mut body, "messages", Some(messages(request)));
    put(&mut body, "tools", filled(request.tools.iter().map(tool).collect()));
    let schema = request.returns.filter(|_| Wire::Ollama.sends_returns(request));
    put(&mut body, "format", schema.cloned());
    let mut options = Map::new();
    put(&mut options, "temperature", *temperature);
    put(&mut options, "top_p", *top_p);
    put(&mut options, "top_k", *top_k);
    put(&mut options, "num_predict", *max_tokens);
    put(&mut options, "stop", stops(stop));
    put(&mut options, "seed", *seed);
    put(&mut body, "options", (!options.is_empty()).then_some(options));
    put(
        &mut body,
        "think",
        reasoning_effort.as_deref().map(|effort| match effort {
            "none" => json!(false),
            effort => json!(effort),
        }),
    );
    put(&mut body, "stream", Some(streaming == Streaming::On));
    body
}

fn tool(tool: &OfferedTool) -> Json {
    let function = json!({ "name": tool.name.as_str(), "description": tool.description, "parameters": *tool.schema });
    json!({ "type": "function", "function": function })
}

fn messages(request: &Request<'_>) -> Vec<Json> {
    let said = !request.instruction.trim().is_empty();
    let system = said.then(|| json!({ "role": "system", "content": request.instruction }));
    system.into_iter().chain(request.messages.iter().map(message)).collect()
}

fn message(message: &Message) -> Json {
    match message {
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls, opaque } => {
            let mut said = Map::new();
            put(&mut said, "role", Some("assistant"));
            put(&mut said, "content", Some(text.as_str()));
            put(&mut said, "thinking", own(opaque.as_ref(), Wire::Ollama).and_then(Json::as_str));
            let call = |call: &crate::message::conversation::ToolCall| json!({ "function": { "name": wire_name(&call.tool), "arguments": as_object(&call.arguments) } });
            put(&mut said, "tool_calls", filled(calls.iter().map(call).collect()));
            Json::Object(said)
        }
        Message::Tool { tool, outcome, .. } => {
            json!({ "role": "tool", "tool_name": wire_name(tool), "content": outcome.text() })
        }
    }
}

/// Reads replies. A piece has the form of a whole.
#[derive(Debug, Default)]
pub(super) struct Ollama {
    /// What models that think are to see again between their calls.
    thoughts: String,
}

impl Reading for Ollama {
    fn whole(&mut self, reply: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        let reply = &json(reply)?;
        self.piece(reply, draft)?;
        if !reply.get("message").is_some_and(Json::is_object) {
            return Err(WireError::malformed("it has no `message`"));
        }
        Ok(())
    }

    fn event(&mut self, event: &[u8], draft: &mut Draft) -> Result<(), WireError> {
        self.piece(&json(event)?, draft)
    }

    fn close(self: Box<Self>, _draft: &mut Draft) -> Option<Json> {
        (!self.thoughts.is_empty()).then_some(Json::String(self.thoughts))
    }
}

impl Ollama {
    fn piece(&mut self, event: &Json, draft: &mut Draft) -> Result<(), WireError> {
        if let Some(error) = WireError::inside(event) {
            return Err(error);
        }
        if let Some(message) = event.get("message") {
            self.thoughts.push_str(text(message, "thinking"));
            draft.thought(text(message, "thinking"));
            draft.text(text(message, "content"));
            for call in list(message, "tool_calls") {
                let function = call.get("function").unwrap_or(&Json::Null);
                let index = draft.call(call.get("id").and_then(Json::as_str), text(function, "name"));
                draft.arguments(index, &written(function.get("arguments")));
            }
        }
        if event.get("done") == Some(&Json::Bool(true)) {
            draft.finish = Some(match text(event, "done_reason") {
                "stop" | "" => Finish::Stop,
                "length" => Finish::Length,
                other => Finish::Other(other.to_owned()),
            });
            draft.usage = Usage {
                input_tokens: number(event, "/prompt_eval_count"),
                output_tokens: number(event, "/eval_count"),
                ..Usage::default()
            };
            draft.end();
        }
        Ok(())
    }
}
