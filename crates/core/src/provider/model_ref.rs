//! References to models: `Provider/id`.

use super::catalog::Provider;
use crate::text::nearest;
use std::fmt;
use thiserror::Error;

/// A reference to a model: its provider, and its name there.
///
/// ```
/// use patter_core::provider::{ModelRef, Provider};
/// let model: ModelRef = "openai:gpt-4o-mini".parse().unwrap();
/// assert_eq!((model.provider, model.id.as_str()), (Provider::OPENAI, "gpt-4o-mini"));
/// assert_eq!(model.to_string(), "OpenAI/gpt-4o-mini");
/// assert_eq!("demo".parse::<ModelRef>().unwrap().provider, Provider::DEMO);
/// let error = "OpnAI/x".parse::<ModelRef>().unwrap_err();
/// assert!(error.hint().unwrap().starts_with("did you mean `OpenAI`?"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// The provider.
    pub provider: Provider,
    /// The name at the provider; empty for the demo model.
    pub id: String,
}

/// The reason why a text is not a reference to a model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelRefError {
    /// The provider is missing.
    #[error("`{0}` is missing a provider")]
    MissingProvider(String),
    /// The model is missing.
    #[error("`{0}` is missing a model")]
    MissingModel(String),
    /// The provider is unknown.
    #[error("unknown provider `{0}`")]
    UnknownProvider(String),
}

impl ModelRefError {
    /// Returns what to write instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            ModelRefError::MissingProvider(text) => {
                let id = text.trim_start_matches(['/', ':']);
                let id = if id.is_empty() { "gpt-4o-mini" } else { id };
                Some(format!("write the provider first, as in `{}/{id}`", likely_provider(id).name()))
            }
            ModelRefError::MissingModel(text) => {
                let provider = text.split(['/', ':']).next().and_then(Provider::parse).unwrap_or(Provider::OPENAI);
                Some(match provider == Provider::DEMO {
                    true => "write only `demo`".to_owned(),
                    false => format!("write the model after the provider, as in {}", example(provider)),
                })
            }
            ModelRefError::UnknownProvider(name) => {
                let known = Provider::ALL.into_iter().chain(Provider::declared());
                let names: Vec<&str> = known.map(Provider::name).collect();
                let declare = format!("`[models.{name}]` with `api` and `url` in `patter.toml`");
                Some(match nearest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`? To declare a provider, write {declare}"),
                    None => format!("the providers are {}; to declare another, write {declare}", names.join(", ")),
                })
            }
        }
    }
}

/// Returns an example of a model of a provider.
fn example(provider: Provider) -> String {
    let examples = [
        (Provider::ANTHROPIC, "claude-sonnet-4-5"),
        (Provider::GOOGLE, "gemini-2.5-flash"),
        (Provider::OLLAMA, "llama3.2"),
        (Provider::SCRIPTED, "replies.json"),
    ];
    let id = examples.iter().find(|(known, _)| *known == provider).map_or("gpt-4o-mini", |(_, id)| *id);
    format!("`{}/{id}`", provider.name())
}

/// Returns the provider that a model most likely belongs to.
fn likely_provider(id: &str) -> Provider {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| id.to_ascii_lowercase().starts_with(prefix));
    if starts(&["claude", "sonnet", "opus", "haiku"]) {
        Provider::ANTHROPIC
    } else if starts(&["gemini", "gemma-"]) {
        Provider::GOOGLE
    } else if starts(&["llama", "mistral", "mixtral", "qwen", "phi", "deepseek", "gemma"]) {
        Provider::OLLAMA
    } else {
        Provider::OPENAI
    }
}

impl std::str::FromStr for ModelRef {
    type Err = ModelRefError;

    fn from_str(text: &str) -> Result<Self, ModelRefError> {
        let text = text.trim();
        if text.eq_ignore_ascii_case(Provider::DEMO.name()) {
            return Ok(Self { provider: Provider::DEMO, id: String::new() });
        }
        // Model names may contain both separators, so only the first one splits.
        let Some((provider, id)) = text.split_once(['/', ':']).filter(|(provider, _)| !provider.is_empty()) else {
            return Err(match Provider::parse(text) {
                Some(_) => ModelRefError::MissingModel(text.to_owned()),
                None => ModelRefError::MissingProvider(text.to_owned()),
            });
        };
        if id.trim().is_empty() {
            return Err(ModelRefError::MissingModel(text.to_owned()));
        }
        match Provider::parse(provider) {
            Some(provider) => Ok(Self { provider, id: id.to_owned() }),
            None => Err(ModelRefError::UnknownProvider(provider.to_owned())),
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.provider.name())?;
        if self.id.is_empty() { Ok(()) } else { write!(f, "/{}", self.id) }
    }
}
