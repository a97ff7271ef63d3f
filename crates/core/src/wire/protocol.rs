//! The operations of a wire, dispatched to the module of its protocol.

use super::attachment::{AttachmentRefusal, check_request};
use super::effort::{always_reasons, claude_conflicts};
use super::error::WireError;
use super::framing::{Framing, Streaming};
use super::history::path_segment;
use super::json::is_json;
use super::reply::{ReplyBuilder, ReplyParser};
use super::stream::StreamDecoder;
use super::{anthropic, chat, gemini, ollama, responses};
use crate::message::request::{Reply, Request, Settings};
use crate::provider::{KnownModel, ModelRef, Server, Wire};
use serde_json::Value as Json;

/// The place of the model in a base URL.
const MODEL_PLACEHOLDER: &str = "{model}";

impl Wire {
    /// Returns the path of requests, relative to the base URL.
    pub fn path(self, model_id: &str, streaming: Streaming) -> String {
        match self {
            Wire::Chat | Wire::ChatFunctions => "/chat/completions".to_owned(),
            Wire::Responses => "/responses".to_owned(),
            Wire::Anthropic => "/v1/messages".to_owned(),
            Wire::Gemini => gemini::path(model_id, streaming),
            Wire::Ollama => "/api/chat".to_owned(),
        }
    }

    /// Returns the URL of requests. A base URL that contains `{model}` names the model itself, so only the rest of the path
    /// is appended to it.
    ///
    /// ```
    /// use patter_core::wire::{Streaming, Wire};
    /// let url = |wire: Wire, base| wire.url(base, "m 1", Streaming::Off);
    /// assert_eq!(url(Wire::Chat, "http://h/v1/"), "http://h/v1/chat/completions");
    /// assert_eq!(url(Wire::Chat, "http://h/deployments/{model}"), "http://h/deployments/m%201/chat/completions");
    /// assert_eq!(url(Wire::Gemini, "http://h/models/{model}"), "http://h/models/m%201:generateContent");
    /// ```
    pub fn url(self, base_url: &str, model_id: &str, streaming: Streaming) -> String {
        let base_url = base_url.trim_end_matches('/');
        if !base_url.contains(MODEL_PLACEHOLDER) {
            return format!("{base_url}{}", self.path(model_id, streaming));
        }
        let base_url = base_url.replace(MODEL_PLACEHOLDER, &path_segment(model_id));
        match self {
            Wire::Gemini => format!("{base_url}{}", gemini::method(streaming)),
            _ => format!("{base_url}{}", self.path(model_id, streaming)),
        }
    }

    /// Returns the URL of the list of models, which is where the path of models begins if the base URL names the model.
    ///
    /// ```
    /// use patter_core::wire::Wire;
    /// assert_eq!(Wire::Chat.models_url("http://h/v1"), "http://h/v1/models");
    /// assert_eq!(Wire::Chat.models_url("http://h/openai/deployments/{model}"), "http://h/openai/models");
    /// assert_eq!(Wire::Gemini.models_url("http://h/models/{model}"), "http://h/models");
    /// ```
    pub fn models_url(self, base_url: &str) -> String {
        let Some((before, _)) = base_url.split_once(MODEL_PLACEHOLDER) else {
            return format!("{}{}", base_url.trim_end_matches('/'), self.models_path());
        };
        let list = before.trim_end_matches('/');
        if self == Wire::Gemini {
            return list.to_owned();
        }
        let (parent, _) = list.rsplit_once('/').unwrap_or((list, ""));
        format!("{parent}{}", self.models_path())
    }

    const fn models_path(self) -> &'static str {
        match self {
            Wire::Chat | Wire::ChatFunctions | Wire::Responses => "/models",
            Wire::Anthropic => "/v1/models?limit=1000",
            Wire::Gemini => "/v1beta/models?pageSize=1000",
            Wire::Ollama => "/api/tags",
        }
    }

    /// Writes a request to the server of the provider itself.
    pub fn encode(self, request: &Request<'_>, streaming: Streaming) -> Vec<u8> {
        Codec::new(self, Server::own(request.model.provider)).encode(request, streaming)
    }

    /// Parses a whole reply of the server of the provider itself.
    pub fn decode(self, request: &Request<'_>, status: u16, body: &[u8]) -> Result<Reply, WireError> {
        Codec::new(self, Server::own(request.model.provider)).decode(request, status, body)
    }

    /// Returns a decoder for a streamed reply of the server of the provider itself.
    pub fn stream_decoder<'r>(self, request: &Request<'r>) -> StreamDecoder<'r> {
        Codec::new(self, Server::own(request.model.provider)).stream_decoder(request)
    }

    /// Checks that the beginning of a body can be a list of models.
    pub fn check_models(self, body: &[u8]) -> Result<(), WireError> {
        if is_json(body) { Ok(()) } else { Err(WireError::unexpected(body)) }
    }

    /// Reads a list of models: their names, in the order of the list.
    ///
    /// ```
    /// use patter_core::wire::Wire;
    /// assert_eq!(Wire::Chat.parse_models(br#"{"data": [{"id": "a"}, {"id": "b"}]}"#).unwrap(), ["a", "b"]);
    /// assert_eq!(Wire::Gemini.parse_models(br#"{"models": [{"name": "models/g"}]}"#).unwrap(), ["g"]);
    /// assert_eq!(Wire::Ollama.parse_models(br#"{"models": [{"name": "l:1b"}]}"#).unwrap(), ["l:1b"]);
    /// assert!(Wire::Chat.parse_models(b"<html>").is_err());
    /// ```
    pub fn parse_models(self, body: &[u8]) -> Result<Vec<String>, WireError> {
        let body: Json = serde_json::from_slice(body).map_err(|_| WireError::unexpected(body))?;
        // Some servers send the list without an object around it.
        let lists = [body.get("data"), body.get("models"), body.get("publisherModels"), Some(&body)];
        let list = lists.into_iter().flatten().find_map(Json::as_array).into_iter().flatten();
        let name = |model: &Json| {
            let name = model.get("id").or_else(|| model.get("name")).and_then(Json::as_str)?;
            let is_path = self == Wire::Gemini;
            Some(name.rsplit('/').next().filter(|_| is_path).unwrap_or(name).to_owned())
        };
        Ok(list.filter_map(name).collect())
    }

    /// Returns the settings that are set but not supported by the wire. They are not sent.
    ///
    /// ```
    /// use patter_core::{message::request::Settings, wire::Wire};
    /// let settings = Settings { top_k: Some(40), seed: Some(1), ..Settings::default() };
    /// assert_eq!(Wire::Anthropic.unsupported_settings(&settings), ["seed"]);
    /// assert_eq!(Wire::Chat.unsupported_settings(&settings), ["topK"]);
    /// ```
    pub fn unsupported_settings(self, settings: &Settings) -> Vec<&'static str> {
        let unsupported: &[&str] = match self {
            Wire::Chat | Wire::ChatFunctions => &["topK"],
            Wire::Responses => &["topK", "stop", "seed"],
            Wire::Anthropic => &["seed"],
            Wire::Gemini | Wire::Ollama => &[],
        };
        let Settings { temperature: _, top_p: _, top_k, max_tokens: _, stop, seed, reasoning_effort: _ } = settings;
        let settable = [("topK", top_k.is_some()), ("stop", !stop.is_empty()), ("seed", seed.is_some())];
        let names = settable.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name);
        names.filter(|name| unsupported.contains(name)).collect()
    }

    /// Returns the settings that a model does not support as they are, each with what happens instead.
    ///
    /// ```
    /// use patter_core::{message::request::Settings, wire::Wire};
    /// let settings = Settings { reasoning_effort: Some("none".into()), ..Settings::default() };
    /// let model = "Google/gemini-3-pro-preview".parse().unwrap();
    /// let expected = "is sent to Google as the lowest effort: `gemini-3-pro-preview` always reasons";
    /// assert_eq!(Wire::Gemini.adjusted_settings(&model, &settings), [("reasoningEffort", expected.to_owned())]);
    /// ```
    pub fn adjusted_settings(self, model: &ModelRef, settings: &Settings) -> Vec<(&'static str, String)> {
        let provider = model.provider.name();
        let id = &model.id;
        match self {
            Wire::Anthropic => {
                let describe = |setting| {
                    let reason = match setting {
                        "reasoningEffort" if settings.max_tokens.is_some() => {
                            "`maxTokens` leaves no room for reasoning"
                        }
                        "reasoningEffort" => "the model does not reason",
                        _ => "the model does not support it together with `reasoningEffort`",
                    };
                    (setting, format!("is not sent to {provider} for `{id}`: {reason}"))
                };
                claude_conflicts(id, settings).into_iter().map(describe).collect()
            }
            Wire::Gemini | Wire::Chat | Wire::ChatFunctions => {
                let is_none = settings.reasoning_effort.as_deref() == Some("none");
                let text = format!("is sent to {provider} as the lowest effort: `{id}` always reasons");
                (is_none && always_reasons(id)).then_some(("reasoningEffort", text)).into_iter().collect()
            }
            Wire::Responses | Wire::Ollama => Vec::new(),
        }
    }

    /// Returns whether the schema of the answer is sent to the provider, which then enforces it. Anthropic
    /// supports it from Claude 4.5 on and not for all schemas, Ollama cannot call tools with it, and Gemini before version 3 rejects it together with tools.
    pub fn sends_answer_schema(self, request: &Request<'_>) -> bool {
        let is_supported = match self {
            Wire::Chat | Wire::ChatFunctions | Wire::Responses => true,
            Wire::Gemini => gemini::supports_answer_schema(request),
            Wire::Ollama => ollama::supports_answer_schema(request),
            Wire::Anthropic => anthropic::answer_format(request).is_some(),
        };
        is_supported && request.returns.is_some()
    }

    fn reply_parser(self) -> Box<dyn ReplyParser> {
        match self {
            Wire::Chat | Wire::ChatFunctions => Box::<chat::ChatParser>::default(),
            Wire::Responses => Box::<responses::ResponsesParser>::default(),
            Wire::Anthropic => Box::<anthropic::AnthropicParser>::default(),
            Wire::Gemini => Box::<gemini::GeminiParser>::default(),
            Wire::Ollama => Box::<ollama::OllamaParser>::default(),
        }
    }

    const fn framing(self) -> Framing {
        match self {
            Wire::Ollama => Framing::Lines,
            Wire::Chat | Wire::ChatFunctions | Wire::Responses | Wire::Anthropic | Wire::Gemini => Framing::Events,
        }
    }
}

/// A protocol as a certain server speaks it.
///
/// ```
/// use patter_core::message::attachment::AttachmentContents;
/// use patter_core::message::conversation::Conversation;
/// use patter_core::message::request::{Request, Settings};
/// use patter_core::provider::{Provider, Server};
/// use patter_core::wire::{Codec, Streaming, Wire};
/// let model = "OpenAI/mistral-small-latest".parse().unwrap();
/// let settings = Settings { max_tokens: Some(9), ..Settings::default() };
/// let messages = Conversation::default();
/// let request = Request {
///     model: &model,
///     instruction: "",
///     messages: &messages,
///     contents: AttachmentContents::NONE,
///     tools: &[],
///     settings: &settings,
///     returns: None,
/// };
/// let codec = Codec::new(Wire::Chat, Server::new(Provider::OPENAI, "https://api.mistral.ai/v1"));
/// assert_eq!(
///     String::from_utf8(codec.encode(&request, Streaming::Off)).unwrap(),
///     r#"{"model":"mistral-small-latest","messages":[],"max_tokens":9}"#
/// );
/// ```
#[derive(Debug, Clone)]
pub struct Codec {
    wire: Wire,
    server: Server,
}

impl Codec {
    /// Returns a codec for a protocol and a server.
    pub const fn new(wire: Wire, server: Server) -> Self {
        Self { wire, server }
    }

    /// Returns the protocol.
    pub const fn wire(&self) -> Wire {
        self.wire
    }

    /// Returns a codec for another protocol of the same server.
    #[must_use]
    pub fn with_wire(self, wire: Wire) -> Self {
        Self { wire, ..self }
    }

    /// Writes a request as compact JSON, with keys in a stable order.
    pub fn encode(&self, request: &Request<'_>, streaming: Streaming) -> Vec<u8> {
        let server = &self.server;
        match self.wire {
            Wire::Chat => chat::encode(request, streaming, chat::ToolStyle::Tools, server),
            Wire::ChatFunctions => chat::encode(request, streaming, chat::ToolStyle::Functions, server),
            Wire::Responses => responses::encode(request, streaming, server),
            Wire::Anthropic => anthropic::encode(request, streaming, server),
            Wire::Gemini => gemini::encode(request, server),
            Wire::Ollama => ollama::encode(request, streaming, server),
        }
    }

    /// Checks that the attachments of a request can be sent to its model, about which this is known.
    pub fn check_attachments(
        &self,
        request: &Request<'_>,
        known: Option<&KnownModel>,
    ) -> Result<(), AttachmentRefusal> {
        check_request(self.wire, request, known)
    }

    /// Parses a whole reply to a request.
    pub fn decode(&self, request: &Request<'_>, status: u16, body: &[u8]) -> Result<Reply, WireError> {
        if !(200..300).contains(&status) {
            return Err(WireError::from_status(status, body));
        }
        if !is_json(body) && !body.is_empty() {
            return Err(WireError::unexpected(body));
        }
        let mut parser = self.wire.reply_parser();
        let mut builder = ReplyBuilder::new(request, &self.server);
        parser.parse_whole(body, &mut builder)?;
        let opaque = parser.finish(&mut builder);
        Ok(builder.build(self.wire, opaque))
    }

    /// Returns a decoder for a streamed reply to a request.
    pub fn stream_decoder<'r>(&self, request: &Request<'r>) -> StreamDecoder<'r> {
        let builder = ReplyBuilder::new(request, &self.server).with_deltas();
        StreamDecoder::new(self.wire, self.wire.framing(), self.wire.reply_parser(), builder)
    }
}
