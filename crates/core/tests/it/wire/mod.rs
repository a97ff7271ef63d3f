//! Protocols of providers: the bytes of requests, and recorded replies from `tests/wire`.

mod requests;
mod attachments;
mod replies;
mod cassettes;
mod vendors;
mod framing;
mod optional_nulls;
mod retry;
mod limit;

use patter_core::message::attachment::AttachmentContents;
use patter_core::message::conversation::{Conversation, Message, ToolCall, ToolOutcome};
use patter_core::message::request::{Delta, OfferedTool, Reply, Request, Settings, SharedSchema};
use patter_core::name::WireName;
use patter_core::provider::ModelRef;
use patter_core::wire::{Wire, WireError};
use serde_json::{Value as Json, json};

/// Everything that a request borrows.
struct RequestParts {
    model: ModelRef,
    instruction: String,
    messages: Conversation,
    tools: Vec<OfferedTool>,
    settings: Settings,
    returns: Option<Json>,
}

impl RequestParts {
    /// Returns a request with two tools and one message.
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
            messages: vec![Message::user("Hello")].into(),
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
            contents: AttachmentContents::NONE,
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
    let name = WireName::from_full_name(name).unwrap();
    let schema = SharedSchema::from(schema);
    let strict_schema = is_strict.then(|| schema.clone());
    OfferedTool { name, description: "Does something.".into(), schema, strict_schema }
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

/// The result of decoding a stream: the deltas, and the reply.
type Decoded = (Vec<Delta>, Result<Reply, WireError>);

/// Decodes a stream in chunks, and asserts that every call after an error returns it again.
fn feed<'b>(wire: Wire, chunks: impl IntoIterator<Item = &'b [u8]>) -> Decoded {
    let parts = RequestParts::new(wire);
    let mut decoder = wire.stream_decoder(&parts.request());
    let mut deltas = Vec::new();
    let mut failed = None;
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

/// Decodes a stream as a whole, byte by byte, and in chunks of seven bytes, and asserts that the results are equal.
fn stream(wire: Wire, bytes: &[u8]) -> Decoded {
    let whole = feed(wire, [bytes]);
    assert_eq!(feed(wire, bytes.chunks(1)), whole);
    assert_eq!(feed(wire, bytes.chunks(7)), whole);
    whole
}

/// Assembles deltas into text, reasoning and calls.
fn assemble(deltas: &[Delta]) -> (String, String, Vec<ToolCall>) {
    let mut text = String::new();
    let mut thoughts = String::new();
    let mut calls = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Text { text: piece } => text.push_str(piece),
            Delta::Thought { text: piece } => thoughts.push_str(piece),
            Delta::Call { index, id, tool } => {
                assert_eq!(*index, calls.len());
                calls.push(call(id, tool, ""));
            }
            Delta::Arguments { index, text } => calls[*index].arguments.push_str(text),
            Delta::Waiting { .. } => panic!("decoders do not wait"),
        }
    }
    (text, thoughts, calls)
}
