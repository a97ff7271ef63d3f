//! The wires: requests byte for byte, and replies as providers write them, from `tests/wire`.

mod framing;
mod limit;
mod nulls;
mod replies;
mod requests;
mod retry;

use patter_core::message::conversation::{Message, ToolCall, ToolOutcome};
use patter_core::message::request::{Delta, OfferedTool, Reply, Request, Settings};
use patter_core::name::WireName;
use patter_core::provider::ModelRef;
use patter_core::wire::{Wire, WireError};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// All that a request refers to.
struct Asked {
    model: ModelRef,
    instruction: String,
    messages: Vec<Message>,
    tools: Vec<OfferedTool>,
    settings: Settings,
    returns: Option<Json>,
}

impl Asked {
    /// Asks with two tools and one message.
    fn new(wire: Wire) -> Self {
        let model = match wire {
            Wire::Chat | Wire::ChatFunctions => "OpenAI/gpt-4o-mini",
            Wire::Responses => "OpenAI/gpt-5.1",
            Wire::Anthropic => "Anthropic/claude-sonnet-4-6",
            Wire::Gemini => "Google/gemini-2.5-flash",
            Wire::Ollama => "Ollama/llama3.2",
        };
        let tools = vec![offered("weather/current", "city", true), offered("sayHello", "personName", false)];
        Self {
            model: model.parse().unwrap(),
            instruction: "Be kind.".into(),
            messages: vec![Message::user("Hello")],
            tools,
            settings: Settings::default(),
            returns: None,
        }
    }

    fn request(&self) -> Request<'_> {
        Request {
            model: &self.model,
            instruction: &self.instruction,
            messages: &self.messages,
            tools: &self.tools,
            settings: &self.settings,
            returns: self.returns.as_ref(),
        }
    }
}

fn offered(name: &str, parameter: &str, is_strict: bool) -> OfferedTool {
    let schema = json!({
        "type": "object",
        "properties": { parameter: { "type": "string" } },
        "required": [parameter],
        "additionalProperties": false,
    });
    let name = WireName::of(name).unwrap();
    OfferedTool { name, description: "It does.".into(), schema: Arc::new(schema), is_strict }
}

fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), tool: tool.into(), arguments: arguments.into() }
}

fn result(call: &ToolCall, outcome: ToolOutcome) -> Message {
    Message::Tool { call_id: call.id.clone(), tool: call.tool.clone(), outcome }
}

fn file(wire: Wire, name: &str) -> Vec<u8> {
    let path = format!("{}/tests/wire/{}/{name}", env!("CARGO_MANIFEST_DIR"), wire.name());
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All that comes of a stream: the pieces, and the end.
type Streamed = (Vec<Delta>, Result<Reply, WireError>);

/// Feeds a stream in pieces, and asserts that after an error there is nothing but the error.
fn feed<'b>(wire: Wire, chunks: impl IntoIterator<Item = &'b [u8]>) -> Streamed {
    let asked = Asked::new(wire);
    let mut decoder = wire.stream(&asked.request());
    let (mut deltas, mut failed) = (Vec::new(), None);
    for chunk in chunks {
        match (decoder.push(chunk), &failed) {
            (Ok(more), None) => deltas.extend(more),
            (Err(error), None) => failed = Some(error),
            (again, Some(error)) => assert_eq!(again.as_ref(), Err(error)),
        }
    }
    let end = decoder.finish();
    if let Some(error) = failed {
        assert_eq!(end, Err(error));
    }
    (deltas, end)
}

/// Feeds a stream whole, in bytes and in sevens, and asserts that it makes no difference.
fn stream(wire: Wire, bytes: &[u8]) -> Streamed {
    let whole = feed(wire, [bytes]);
    assert_eq!(feed(wire, bytes.chunks(1)), whole);
    assert_eq!(feed(wire, bytes.chunks(7)), whole);
    whole
}

/// Puts pieces together: text, thoughts and calls.
fn together(deltas: &[Delta]) -> (String, String, Vec<ToolCall>) {
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text { text: piece } => text.push_str(piece),
            Delta::Thought { text: piece } => thoughts.push_str(piece),
            Delta::Call { index, id, tool } => {
                assert_eq!(*index, calls.len());
                calls.push(call(id, tool, ""));
            }
            Delta::Arguments { index, text } => calls[*index].arguments.push_str(text),
            Delta::Waiting { .. } => panic!("a wire does not wait"),
        }
    }
    (text, thoughts, calls)
}
