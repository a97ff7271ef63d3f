//! The names of protocols.

/// A protocol for talking to models. Encoding and decoding are in [`wire`](crate::wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI Chat Completions with `tools`.
    Chat,
    /// OpenAI Chat Completions with the older `functions`, for servers that do not support `tools`.
    ChatFunctions,
    /// OpenAI Responses. Nothing is stored at the provider.
    Responses,
    /// Anthropic Messages. It requires a limit on output tokens, which defaults to 4096.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
    /// Ollama chat.
    Ollama,
}

impl Wire {
    /// Every protocol.
    pub const ALL: [Self; 6] =
        [Self::Chat, Self::ChatFunctions, Self::Responses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Returns the name, which is used in settings and in [`Opaque`](crate::message::conversation::Opaque) data.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::ChatFunctions => "functions",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Finds a protocol by name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.name() == name)
    }
}
