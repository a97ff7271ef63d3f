//! Servers: the one of a provider, and others that are compatible with it but not quite the same.
//!
//! A server is recognised by its host. What it sends is read with tolerance, whoever it is; this is only about requests, and
//! about which data may be sent back to whom.

use super::catalog::Provider;
use std::borrow::Cow;

/// What a server accepts of OpenAI Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerProfile {
    /// The name, which also marks the data that only this server understands.
    pub name: &'static str,
    /// The hosts; each includes its subdomains.
    pub hosts: &'static [&'static str],
    /// The name of the limit on output tokens.
    pub output_limit: OutputLimit,
    /// The name of the seed.
    pub seed: &'static str,
    /// Whether token counts of streamed replies have to be requested. Servers that always send them may reject the request.
    pub requests_usage: bool,
    /// Whether it has models of several vendors, whose data it passes on.
    pub has_several_vendors: bool,
    /// Whether it can enforce schemas.
    pub supports_strict: bool,
    /// Whether some tools of a request may be strict and others not.
    pub allows_mixed_strictness: bool,
    /// Whether a reply may have several calls; `None` leaves that to the server.
    pub parallel_calls: Option<bool>,
    /// The role of the instruction.
    pub system_role: SystemRole,
    /// Whether messages with calls need a `reasoning_content`, even if it is empty.
    pub needs_reasoning: bool,
    /// Whether calls need a signature. The value is for calls without one, such as those of other models.
    pub call_signature: Option<&'static str>,
    /// The length of the ids of calls, which consist of letters and digits, if it is fixed.
    pub call_id_length: Option<usize>,
    /// The reasoning efforts that it does not support, each with the one to send instead, if any.
    pub efforts: &'static [(&'static str, Option<&'static str>)],
}

/// The name of the limit on output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    /// `max_completion_tokens`, which OpenAI's reasoning models require.
    MaxCompletionTokens,
    /// `max_tokens`, which all other models support.
    MaxTokens,
    /// The name that the model requires.
    ByModel,
}

/// The role that an instruction has in Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer`, which OpenAI introduced with its reasoning models.
    Developer,
    /// `user`, for servers whose models have no role for instructions.
    User,
}

/// What a project says about a server. It overrides what is known about the server.
///
/// ```
/// use patter_core::provider::{Provider, Quirks, Server};
/// let quirks = Quirks { strict: Some(false), ..Quirks::default() };
/// let server = Server::new(Provider::OPENAI, "http://localhost:8000/v1").with_quirks(quirks);
/// assert!(!server.profile().supports_strict);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// The name of the limit on output tokens.
    pub output_limit: Option<OutputLimit>,
    /// The role of the instruction.
    pub system_role: Option<SystemRole>,
    /// Whether the server can enforce schemas.
    pub strict: Option<bool>,
    /// Whether a reply may have several calls.
    pub parallel_calls: Option<bool>,
    /// Whether token counts of streamed replies have to be requested.
    pub stream_usage: Option<bool>,
}

/// A server that speaks a protocol.
///
/// ```
/// use patter_core::provider::{Provider, Server};
/// let server = Server::new(Provider::OPENAI, "https://api.mistral.ai/v1");
/// assert_eq!((server.name(), server.profile().seed), ("Mistral", "random_seed"));
/// assert_eq!(Server::new(Provider::OPENAI, "http://localhost:8000/v1").name(), "localhost:8000");
/// assert_eq!(Server::own(Provider::ANTHROPIC).name(), "Anthropic");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    name: Cow<'static, str>,
    profile: ServerProfile,
}

impl OutputLimit {
    /// Finds a limit by the name that it has in requests.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "max_completion_tokens" => Some(Self::MaxCompletionTokens),
            "max_tokens" => Some(Self::MaxTokens),
            _ => None,
        }
    }
}

impl SystemRole {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::System, Self::Developer, Self::User];

    /// Returns the name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
        }
    }
}

impl Server {
    /// Returns the server of a provider itself.
    pub fn own(provider: Provider) -> Self {
        Self::new(provider, provider.endpoint().map_or("", |endpoint| endpoint.base_url))
    }

    /// Returns the server at a base URL of a provider, which is known by its host or else named after it.
    pub fn new(provider: Provider, base_url: &str) -> Self {
        let own = provider.endpoint().map_or("", |endpoint| endpoint.base_url);
        let known = KNOWN.iter().find(|profile| profile.hosts.iter().any(|known| is_host(host(base_url), known)));
        let profile = *known.unwrap_or(&UNKNOWN);
        let name = match known {
            _ if authority(base_url) == authority(own) => Cow::Borrowed(provider.name()),
            Some(profile) => Cow::Borrowed(profile.name),
            None => Cow::Owned(authority(base_url).to_ascii_lowercase()),
        };
        Self { name, profile }
    }

    /// Overrides what is known about the server.
    #[must_use]
    pub fn with_quirks(mut self, quirks: Quirks) -> Self {
        let Quirks { output_limit, system_role, strict, parallel_calls, stream_usage } = quirks;
        let profile = &mut self.profile;
        profile.output_limit = output_limit.unwrap_or(profile.output_limit);
        profile.system_role = system_role.unwrap_or(profile.system_role);
        profile.supports_strict = strict.unwrap_or(profile.supports_strict);
        profile.parallel_calls = parallel_calls.or(profile.parallel_calls);
        profile.requests_usage = stream_usage.unwrap_or(profile.requests_usage);
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the server accepts.
    pub const fn profile(&self) -> &ServerProfile {
        &self.profile
    }

    /// Returns the origin of data that is sent back only to where it came from. If the server has models of several
    /// vendors, the one in the name of the model is a part of it.
    pub fn origin(&self, model_id: &str) -> String {
        match model_id.split_once('/').filter(|_| self.profile.has_several_vendors) {
            Some((vendor, _)) => format!("{}/{vendor}", self.name),
            None => self.name.to_string(),
        }
    }
}

/// Returns the host and port of a URL.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

pub(super) fn host(url: &str) -> &str {
    let authority = authority(url);
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Returns whether a host is a known one or a subdomain of it.
fn is_host(host: &str, known: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == known || host.strip_suffix(known).is_some_and(|rest| rest.ends_with('.'))
}

/// What compatible servers have in common.
const UNKNOWN: ServerProfile = ServerProfile {
    name: "",
    hosts: &[],
    output_limit: OutputLimit::ByModel,
    seed: "seed",
    requests_usage: true,
    has_several_vendors: true,
    supports_strict: true,
    allows_mixed_strictness: false,
    parallel_calls: None,
    system_role: SystemRole::System,
    needs_reasoning: false,
    call_signature: None,
    call_id_length: None,
    efforts: &[],
};

const OPENAI: ServerProfile = ServerProfile {
    name: "OpenAI",
    hosts: &["api.openai.com"],
    output_limit: OutputLimit::MaxCompletionTokens,
    has_several_vendors: false,
    allows_mixed_strictness: true,
    ..UNKNOWN
};

/// Servers that differ, from their public documentation and from reports of their errors.
const KNOWN: &[ServerProfile] = &[
    OPENAI,
    // The names of deployments say nothing about their models.
    ServerProfile {
        name: "Azure",
        hosts: &["openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"],
        ..OPENAI
    },
    ServerProfile {
        name: "Google",
        hosts: &["generativelanguage.googleapis.com", "aiplatform.googleapis.com"],
        call_signature: Some("skip_thought_signature_validator"),
        efforts: &[("xhigh", Some("high")), ("max", Some("high"))],
        has_several_vendors: false,
        ..UNKNOWN
    },
    ServerProfile {
        name: "Mistral",
        hosts: &["api.mistral.ai"],
        output_limit: OutputLimit::MaxTokens,
        seed: "random_seed",
        requests_usage: false,
        call_id_length: Some(9),
        has_several_vendors: false,
        ..UNKNOWN
    },
    ServerProfile {
        name: "DeepSeek",
        hosts: &["api.deepseek.com"],
        output_limit: OutputLimit::MaxTokens,
        needs_reasoning: true,
        has_several_vendors: false,
        ..UNKNOWN
    },
    ServerProfile {
        name: "Cerebras",
        hosts: &["api.cerebras.ai"],
        output_limit: OutputLimit::MaxCompletionTokens,
        ..UNKNOWN
    },
    ServerProfile { name: "Groq", hosts: &["api.groq.com"], output_limit: OutputLimit::MaxCompletionTokens, ..UNKNOWN },
    ServerProfile {
        name: "Moonshot",
        hosts: &["api.moonshot.ai", "api.moonshot.cn"],
        has_several_vendors: false,
        ..UNKNOWN
    },
    ServerProfile { name: "xAI", hosts: &["api.x.ai"], has_several_vendors: false, ..UNKNOWN },
    ServerProfile { name: "Perplexity", hosts: &["api.perplexity.ai"], has_several_vendors: false, ..UNKNOWN },
    ServerProfile { name: "OpenRouter", hosts: &["openrouter.ai"], ..UNKNOWN },
];
