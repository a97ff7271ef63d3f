//! What goes to a provider and what comes back, as bytes: requests are written and replies are read here, and sent
//! elsewhere.
//!
//! A [`Wire`] is a protocol. [`Wire::encode`] writes a request, the same bytes for the same request, since providers
//! cache by them; [`Wire::decode`] reads a whole reply, and [`Wire::stream`] one that comes in pieces. Whatever the
//! wire, the same conversation is the same to the one who asks:
//!
//! - Names of tools go as [`WireName`](crate::name::WireName)s and come back as the agent's names. A name that is no
//!   tool of the request is kept as it came.
//! - Calls that come without an id, or with one that the conversation already has, get one that is made up from the
//!   number of messages.
//! - Past arguments that are no JSON never break a request: where a wire has text they go as they are, and where it has
//!   objects, as `{"_raw": "…"}`.
//! - Settings go under the names that the wire has for them; [`Wire::unsupported`] tells which have none. The effort of
//!   thinking goes to Anthropic as adaptive thinking, and to Gemini before the third as a number of tokens.
//! - What a provider wants to have back is kept in order and given back unchanged, only to the wire that it came over,
//!   and only while it has the same calls as the message.
//!
//! ```
//! use patter_core::message::conversation::Message;
//! use patter_core::message::request::{Request, Settings};
//! use patter_core::wire::{Streaming, Wire};
//!
//! let model = "Ollama/llama3.2".parse().unwrap();
//! let messages = [Message::user("Hello")];
//! let settings = Settings::default();
//! let request =
//!     Request { model: &model, instruction: "", messages: &messages, tools: &[], settings: &settings, returns: None };
//! let wire = model.provider.endpoint().unwrap().default_wire().unwrap();
//! assert_eq!(
//!     String::from_utf8(wire.encode(&request, Streaming::Off)).unwrap(),
//!     r#"{"model":"llama3.2","messages":[{"role":"user","content":"Hello"}],"stream":false}"#
//! );
//! let reply = wire.decode(&request, 200, br#"{"message": {"content": "Hi!"}, "done": true}"#).unwrap();
//! assert_eq!(reply.text, "Hi!");
//! ```

mod anthropic;
mod chat;
mod draft;
mod error;
mod frame;
mod gemini;
mod limit;
mod nulls;
mod ollama;
mod history;
mod responses;
mod retry;
mod stream;
mod tree;

pub use crate::provider::Wire;
pub use error::WireError;
pub use limit::{Exhausted, exhausted};
pub use nulls::without_nulls;
pub use retry::{Retry, Verdict, retry_after};
pub use stream::StreamDecoder;

use crate::message::request::{Reply, Request, Settings};
use draft::{Draft, Reading};
use serde::Serialize;

/// Whether a reply comes in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// It comes whole.
    Off,
    /// It comes in pieces.
    On,
}

impl Wire {
    /// Returns where requests go, after the base address.
    pub fn path(self, model_id: &str, streaming: Streaming) -> String {
        match self {
            Wire::Chat | Wire::ChatFunctions => "/chat/completions".to_owned(),
            Wire::Responses => "/responses".to_owned(),
            Wire::Anthropic => "/v1/messages".to_owned(),
            Wire::Gemini => gemini::path(model_id, streaming),
            Wire::Ollama => "/api/chat".to_owned(),
        }
    }

    /// Returns where the models are listed, after the base address.
    pub const fn listing(self) -> &'static str {
        match self {
            Wire::Chat | Wire::ChatFunctions | Wire::Responses => "/models",
            Wire::Anthropic => "/v1/models?limit=1",
            Wire::Gemini => "/v1beta/models?pageSize=1",
            Wire::Ollama => "/api/tags",
        }
    }

    /// Writes a request as compact JSON, with keys in a stable order.
    pub fn encode(self, request: &Request<'_>, streaming: Streaming) -> Vec<u8> {
        match self {
            Wire::Chat => written(&chat::encode(request, streaming, chat::Style::Tools)),
            Wire::ChatFunctions => written(&chat::encode(request, streaming, chat::Style::Functions)),
            Wire::Responses => written(&responses::encode(request, streaming)),
            Wire::Anthropic => written(&anthropic::encode(request, streaming)),
            Wire::Gemini => written(&gemini::encode(request)),
            Wire::Ollama => written(&ollama::encode(request, streaming)),
        }
    }

    /// Reads a whole reply to a request.
    pub fn decode(self, request: &Request<'_>, status: u16, body: &[u8]) -> Result<Reply, WireError> {
        if !(200..300).contains(&status) {
            return Err(WireError::of_status(status, body));
        }
        if !stream::is_json(body) && !body.is_empty() {
            return Err(WireError::foreign(body));
        }
        let mut reading = self.reading();
        let mut draft = Draft::new(request);
        reading.whole(body, &mut draft)?;
        let opaque = reading.close(&mut draft);
        Ok(draft.reply(self, opaque))
    }

    /// Reads as much as came of a list of models: whether it can be one.
    pub fn listed(self, body: &[u8]) -> Result<(), WireError> {
        if stream::is_json(body) { Ok(()) } else { Err(WireError::foreign(body)) }
    }

    /// Returns what reads the reply to a request in pieces.
    pub fn stream(self, request: &Request<'_>) -> StreamDecoder {
        StreamDecoder::new(self, self.reading(), Draft::new(request))
    }

    /// Returns which of some settings the wire has no place for: they are not sent.
    ///
    /// ```
    /// use patter_core::{message::request::Settings, wire::Wire};
    /// let settings = Settings { top_k: Some(40), seed: Some(1), ..Settings::default() };
    /// assert_eq!(Wire::Anthropic.unsupported(&settings), ["seed"]);
    /// assert_eq!(Wire::Chat.unsupported(&settings), ["topK"]);
    /// ```
    pub fn unsupported(self, settings: &Settings) -> Vec<&'static str> {
        let refused: &[&str] = match self {
            Wire::Chat | Wire::ChatFunctions => &["topK"],
            Wire::Responses => &["topK", "stop", "seed"],
            Wire::Anthropic => &["seed"],
            Wire::Gemini | Wire::Ollama => &[],
        };
        let Settings { temperature: _, top_p: _, top_k, max_tokens: _, stop, seed, reasoning_effort: _ } = settings;
        let said = [("topK", top_k.is_some()), ("stop", !stop.is_empty()), ("seed", seed.is_some())];
        said.into_iter().filter(|(name, is_said)| *is_said && refused.contains(name)).map(|(name, _)| name).collect()
    }

    /// Tells whether the schema of the answer goes to the provider, so that it can hold the model to it. Anthropic has
    /// no place for it; Ollama could call no tools with it, and Gemini before the third refuses it beside tools.
    pub fn sends_returns(self, request: &Request<'_>) -> bool {
        let can = match self {
            Wire::Chat | Wire::ChatFunctions | Wire::Responses => true,
            Wire::Gemini => request.tools.is_empty() || !gemini::is_older(&request.model.id),
            Wire::Ollama => request.tools.is_empty(),
            Wire::Anthropic => false,
        };
        can && request.returns.is_some()
    }

    fn reading(self) -> Box<dyn Reading> {
        match self {
            Wire::Chat | Wire::ChatFunctions => Box::<chat::Chat>::default(),
            Wire::Responses => Box::<responses::Responses>::default(),
            Wire::Anthropic => Box::<anthropic::Anthropic>::default(),
            Wire::Gemini => Box::<gemini::Gemini>::default(),
            Wire::Ollama => Box::<ollama::Ollama>::default(),
        }
    }

    const fn framing(self) -> frame::Framing {
        match self {
            Wire::Ollama => frame::Framing::Lines,
            _ => frame::Framing::Events,
        }
    }
}

/// Returns a body as JSON. Only keys that are no text could fail to be written, and there are none.
fn written(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}
