//! The providers that run models: how each is named, reached, paid and spoken to.
//!
//! Everything that is specific to a provider is in its [`Profile`], one file per provider, listed once in
//! [`Provider::ALL`]. The protocols themselves are in [`wire`](crate::wire): several providers share one.

mod usage;
pub mod price;
mod model_ref;
mod openai;
mod anthropic;
mod google;
mod ollama;
mod built_in;

pub use model_ref::{ModelRef, ModelRefError};
pub use usage::Usage;

use crate::types::dialect::SchemaView;
use price::PriceRow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A provider of models.
///
/// ```
/// use patter_core::provider::Provider;
/// assert_eq!(Provider::parse("openai"), Some(Provider::OPENAI));
/// assert_eq!(Provider::parse("gemini").unwrap().name(), "Google");
/// assert_eq!(Provider::parse("nobody"), None);
/// ```
#[derive(Clone, Copy)]
pub struct Provider(&'static Profile);

/// What Patter knows about a provider.
#[derive(Debug)]
pub struct Profile {
    /// The name as it is written.
    pub name: &'static str,
    /// Other names that are accepted, in lower case.
    pub aliases: &'static [&'static str],
    /// How its models are called.
    pub backend: Backend,
    /// The subset of JSON Schema that it accepts; `None` where it accepts everything.
    pub dialect: Option<SchemaView>,
    /// List prices by model.
    pub prices: &'static [PriceRow],
    /// Whether models that have no list price are free.
    pub is_free: bool,
}

/// How the models of a provider are called.
#[derive(Debug)]
pub enum Backend {
    /// Over HTTP.
    Http(Endpoint),
    /// In this process, without a network.
    BuiltIn(BuiltIn),
}

/// A model that is part of Patter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    /// The offline model that matches words in a prompt to tools.
    Demo,
    /// A model that plays a file of exchanges.
    Scripted,
}

/// How a provider is reached over HTTP.
#[derive(Debug)]
pub struct Endpoint {
    /// The protocols that it speaks; the first is the default.
    pub wires: &'static [Wire],
    /// The environment variable that selects another protocol.
    pub wire_variable: Option<&'static str>,
    /// The address that requests start with.
    pub base_url: &'static str,
    /// The environment variable that overrides the address.
    pub base_url_variable: &'static str,
    /// The environment variables that may hold the key, in order of preference. Empty where no key is needed.
    pub key_variables: &'static [&'static str],
    /// The header that carries the key.
    pub key_header: KeyHeader,
    /// Headers that every request carries.
    pub headers: &'static [(&'static str, &'static str)],
    /// The HTTP statuses, beside 401 and 403, by which the provider rejects a wrong key.
    pub rejection_statuses: &'static [u16],
}

/// The header that carries a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// A header of this name, with the key as its value.
    Named(&'static str),
}

/// A protocol for talking to models. Encoding and decoding are in [`wire`](crate::wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI Chat Completions with `tools`.
    Chat,
    /// OpenAI Chat Completions with the older `functions`, for servers that know nothing else.
    ChatFunctions,
    /// OpenAI Responses. Nothing is stored at the provider.
    Responses,
    /// Anthropic Messages. It requires a limit on output tokens: 4096 unless the settings say otherwise.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
    /// Ollama chat.
    Ollama,
}

impl Provider {
    /// OpenAI, and whoever speaks its protocols.
    pub const OPENAI: Self = Self(&openai::PROFILE);
    /// Anthropic.
    pub const ANTHROPIC: Self = Self(&anthropic::PROFILE);
    /// Google, for Gemini.
    pub const GOOGLE: Self = Self(&google::PROFILE);
    /// Ollama.
    pub const OLLAMA: Self = Self(&ollama::PROFILE);
    /// The built-in offline model.
    pub const DEMO: Self = Self(&built_in::DEMO);
    /// A model that plays a file of exchanges.
    pub const SCRIPTED: Self = Self(&built_in::SCRIPTED);

    /// Every provider, in the order in which they are listed to people.
    pub const ALL: [Self; 6] = [Self::OPENAI, Self::ANTHROPIC, Self::GOOGLE, Self::OLLAMA, Self::DEMO, Self::SCRIPTED];

    /// Finds a provider by name or alias, ignoring case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| {
            let Profile { name: own, aliases, .. } = provider.0;
            own.eq_ignore_ascii_case(name) || aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        })
    }

    /// Returns the name as it is written.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns what Patter knows about the provider.
    pub const fn profile(self) -> &'static Profile {
        self.0
    }

    /// Returns how the provider is reached over HTTP; `None` for built-in models.
    pub const fn endpoint(self) -> Option<&'static Endpoint> {
        match &self.0.backend {
            Backend::Http(endpoint) => Some(endpoint),
            Backend::BuiltIn(_) => None,
        }
    }
}

impl Endpoint {
    /// Returns the protocol that is used by default.
    pub fn default_wire(&self) -> Option<Wire> {
        self.wires.first().copied()
    }

    /// Returns whether a status means that the provider rejected the key.
    pub fn is_rejection(&self, status: u16) -> bool {
        matches!(status, 401 | 403) || self.rejection_statuses.contains(&status)
    }
}

impl Wire {
    /// Every protocol.
    pub const ALL: [Self; 6] =
        [Self::Chat, Self::ChatFunctions, Self::Responses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Returns the name, as settings write it and as [`Opaque`](crate::message::conversation::Opaque) data records it.
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

impl PartialEq for Provider {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Provider {}

impl Hash for Provider {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
