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
/// assert_eq!("OpnAI/x".parse::<ModelRef>().unwrap_err().hint().unwrap(), "did you mean `OpenAI`?");
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
                Some(format!("write the provider first, as in `OpenAI/{id}`"))
            }
            ModelRefError::MissingModel(_) => {
                Some("write the model after the provider, as in `OpenAI/gpt-4o-mini`".to_owned())
            }
            ModelRefError::UnknownProvider(name) => {
                let names = Provider::ALL.map(Provider::name);
                Some(match nearest(name, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the providers are {}", names.join(", ")),
                })
            }
        }
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
            return Err(ModelRefError::MissingProvider(text.to_owned()));
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
