//! The list of all providers.

use super::profile::{Backend, Endpoint, Profile};
use super::server::host;
use super::{anthropic, built_in, google, ollama, openai, preset};
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

impl Provider {
    /// OpenAI and compatible servers.
    pub const OPENAI: Self = Self(&openai::PROFILE);
    /// Anthropic.
    pub const ANTHROPIC: Self = Self(&anthropic::PROFILE);
    /// Google, for Gemini.
    pub const GOOGLE: Self = Self(&google::PROFILE);
    /// Ollama.
    pub const OLLAMA: Self = Self(&ollama::PROFILE);
    /// OpenAI models at Azure.
    pub const AZURE: Self = Self(&preset::AZURE);
    /// Gemini at Vertex AI.
    pub const VERTEX: Self = Self(&preset::VERTEX);
    /// Amazon Bedrock, by its API that is compatible with OpenAI.
    pub const BEDROCK: Self = Self(&preset::BEDROCK);
    /// OpenRouter.
    pub const OPENROUTER: Self = Self(&preset::OPENROUTER);
    /// Groq.
    pub const GROQ: Self = Self(&preset::GROQ);
    /// Mistral.
    pub const MISTRAL: Self = Self(&preset::MISTRAL);
    /// DeepSeek.
    pub const DEEPSEEK: Self = Self(&preset::DEEPSEEK);
    /// xAI.
    pub const XAI: Self = Self(&preset::XAI);
    /// Together AI.
    pub const TOGETHER: Self = Self(&preset::TOGETHER);
    /// Fireworks AI.
    pub const FIREWORKS: Self = Self(&preset::FIREWORKS);
    /// Cerebras.
    pub const CEREBRAS: Self = Self(&preset::CEREBRAS);
    /// Moonshot AI.
    pub const MOONSHOT: Self = Self(&preset::MOONSHOT);
    /// Perplexity.
    pub const PERPLEXITY: Self = Self(&preset::PERPLEXITY);
    /// vLLM, a local server.
    pub const VLLM: Self = Self(&preset::VLLM);
    /// LM Studio, a local server.
    pub const LM_STUDIO: Self = Self(&preset::LM_STUDIO);
    /// The server of llama.cpp.
    pub const LLAMA_CPP: Self = Self(&preset::LLAMA_CPP);
    /// The built-in offline model.
    pub const DEMO: Self = Self(&built_in::DEMO);
    /// The built-in model that replies from a script.
    pub const SCRIPTED: Self = Self(&built_in::SCRIPTED);

    /// Every provider that is part of Patter, in the order in which they are listed to users.
    pub const ALL: [Self; 22] = [
        Self::OPENAI,
        Self::ANTHROPIC,
        Self::GOOGLE,
        Self::OLLAMA,
        Self::AZURE,
        Self::VERTEX,
        Self::BEDROCK,
        Self::OPENROUTER,
        Self::GROQ,
        Self::MISTRAL,
        Self::DEEPSEEK,
        Self::XAI,
        Self::TOGETHER,
        Self::FIREWORKS,
        Self::CEREBRAS,
        Self::MOONSHOT,
        Self::PERPLEXITY,
        Self::VLLM,
        Self::LM_STUDIO,
        Self::LLAMA_CPP,
        Self::DEMO,
        Self::SCRIPTED,
    ];

    pub(super) const fn from_profile(profile: &'static Profile) -> Self {
        Self(profile)
    }

    /// Finds a provider by name or alias, ignoring case: one that is part of Patter, or one that was declared.
    pub fn parse(name: &str) -> Option<Self> {
        Self::built_in(name).or_else(|| Self::find_declared(name))
    }

    /// Finds a provider that is part of Patter.
    pub(super) fn built_in(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| {
            let profile = provider.profile();
            let mut names = profile.aliases.iter().chain([&profile.name]);
            names.any(|known| known.eq_ignore_ascii_case(name))
        })
    }

    /// Finds the provider whose key an environment variable contains.
    ///
    /// ```
    /// use patter_core::provider::Provider;
    /// assert_eq!(Provider::with_key_variable("OPENAI_API_KEY"), Some(Provider::OPENAI));
    /// assert_eq!(Provider::with_key_variable("SHOP_TOKEN"), None);
    /// ```
    pub fn with_key_variable(name: &str) -> Option<Self> {
        let has_key = |provider: &Self| provider.endpoint().is_some_and(|it| it.key_variables.contains(&name));
        Self::ALL.into_iter().find(has_key)
    }

    /// Returns whether a URL leads to the provider itself, which its key is meant for.
    ///
    /// ```
    /// use patter_core::provider::Provider;
    /// assert!(Provider::OPENAI.is_at("https://api.openai.com/v1/files"));
    /// assert!(!Provider::OPENAI.is_at("https://api.openai.com.example.net/v1"));
    /// assert!(!Provider::OPENAI.is_at("https://api.openai.com@example.net/v1"));
    /// ```
    pub fn is_at(self, url: &str) -> bool {
        let is_known = |endpoint: &Endpoint| host(url).eq_ignore_ascii_case(host(endpoint.base_url));
        url.starts_with("https://") && !url.contains('\\') && self.endpoint().is_some_and(is_known)
    }

    /// Returns the name, in its usual spelling.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns what Patter knows about the provider.
    pub const fn profile(self) -> &'static Profile {
        self.0
    }

    /// Returns the HTTP API of the provider; `None` for built-in models.
    pub const fn endpoint(self) -> Option<&'static Endpoint> {
        match &self.0.backend {
            Backend::Http(endpoint) => Some(endpoint),
            Backend::BuiltIn(_) => None,
        }
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
