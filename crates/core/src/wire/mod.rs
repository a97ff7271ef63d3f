//! Protocols of providers: requests to bytes, and replies from bytes. Sending them is up to the caller.
//!
//! A [`Wire`] is a protocol, and a [`Codec`] a protocol as a certain server speaks it. [`Codec::encode`] writes a request,
//! always to the same bytes, because providers cache by them. [`Codec::decode`] reads a whole reply, and
//! [`Codec::stream_decoder`] a streamed one. Callers need not know which wire is in use:
//!
//! - Tools are sent by their [`WireName`](crate::name::WireName), and calls name tools as the agent does. A name that is
//!   not a tool of the request is left unchanged.
//! - Calls without an id, or with one that already occurs in the conversation, get an id that is derived from the number
//!   of messages.
//! - Earlier arguments that are not valid JSON never break a request: they are sent unchanged if the wire expects text,
//!   and as `{"_raw": "…"}` if it expects an object.
//! - Settings are sent under the names that the wire has for them; [`Wire::unsupported_settings`] lists those that it
//!   lacks. Reasoning effort becomes adaptive thinking for Anthropic, and a token budget for Claude before version 4.6 and
//!   Gemini before version 3.
//! - Opaque data is sent back in order and unchanged, but only over the wire and to the server that it came from, and only
//!   while it contains the same calls as the message.
//! - What compatible servers send is read with tolerance, whoever they are; what they accept depends on the
//!   [`Server`](crate::provider::Server).
//!
//! ```
//! use patter_core::message::attachment::AttachmentContents;
//! use patter_core::message::conversation::Message;
//! use patter_core::message::request::{Request, Settings};
//! use patter_core::wire::{Streaming, Wire};
//!
//! let model = "Ollama/llama3.2".parse().unwrap();
//! let messages = vec![Message::user("Hello")].into();
//! let settings = Settings::default();
//! let request = Request {
//!     model: &model,
//!     instruction: "",
//!     messages: &messages,
//!     contents: AttachmentContents::NONE,
//!     tools: &[],
//!     settings: &settings,
//!     returns: None,
//! };
//! let wire = model.provider.endpoint().unwrap().default_wire().unwrap();
//! assert_eq!(
//!     String::from_utf8(wire.encode(&request, Streaming::Off)).unwrap(),
//!     r#"{"model":"llama3.2","messages":[{"role":"user","content":"Hello"}],"stream":false}"#
//! );
//! let reply = wire.decode(&request, 200, br#"{"message": {"content": "Hi!"}, "done": true}"#).unwrap();
//! assert_eq!(reply.text, "Hi!");
//! ```

mod error;
mod json;
mod body;
mod borrowed_json;
mod framing;
mod history;
mod effort;
mod answer;
mod reply;
mod attachment;
mod chat;
mod responses;
mod anthropic;
mod gemini;
mod ollama;
mod stream;
mod protocol;
mod optional_nulls;
mod retry;
mod limit;

pub use crate::provider::Wire;
pub use attachment::{AttachmentRefusal, check_attachments};
pub use error::WireError;
pub use framing::Streaming;
pub use limit::{ExhaustedLimit, exhausted_limit, is_limit_header};
pub use optional_nulls::remove_optional_nulls;
pub use protocol::Codec;
pub use retry::{RetryAdvice, ShouldRetry, parse_retry_after, retry_advice, retry_delay};
pub use stream::StreamDecoder;
