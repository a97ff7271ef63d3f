//! What a project says about models.

use patter_core::provider::KnownModel;
use serde::Deserialize;

/// What a project says about the models of a provider, or about one of them. It overrides what Patter knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelFacts {
    /// The largest number of input tokens.
    pub window: Option<u64>,
    /// The largest number of output tokens.
    pub max_output: Option<u64>,
    /// Whether it can call tools.
    pub tools: Option<bool>,
    /// Whether it reads images.
    pub images: Option<bool>,
    /// Whether it reads documents.
    pub documents: Option<bool>,
    /// Whether it reasons.
    pub reasoning: Option<bool>,
}

impl ModelFacts {
    /// Returns whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what is known, with what the project says instead.
    pub fn applied_to(&self, mut known: KnownModel) -> KnownModel {
        known.window = self.window.or(known.window);
        known.max_output = self.max_output.or(known.max_output);
        known.tools = self.tools.unwrap_or(known.tools);
        known.images = self.images.unwrap_or(known.images);
        known.documents = self.documents.unwrap_or(known.documents);
        known.reasoning = self.reasoning.unwrap_or(known.reasoning);
        known
    }

    /// Lists what is said.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Self { window, max_output, tools, images, documents, reasoning } = *self;
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let flag = |value: Option<bool>| value.map(|value| value.to_string());
        let settings = [
            ("window", number(window)),
            ("max-output", number(max_output)),
            ("tools", flag(tools)),
            ("images", flag(images)),
            ("documents", flag(documents)),
            ("reasoning", flag(reasoning)),
        ];
        settings.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}
