//! The sections `[models.PROVIDER]` and `[prices."PROVIDER/MODEL"]` of `patter.toml`.

mod facts;
mod prices;
mod section;

pub use facts::ModelFacts;
pub(super) use prices::prices;
pub use prices::{Dollars, ModelKey, PriceConfig};
pub(super) use section::is_variable;
pub use section::{KeyCommand, KeySource, ProviderConfig, Seconds};

use indexmap::IndexMap;
use patter_core::provider::{KnownModel, ModelRef, Provider, ProviderDeclaration, known_model};
use patter_core::text::nearest;
use section::RawSection;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// The sections `[models.PROVIDER]`: the settings for reaching providers, and the declarations of those that are not part of
/// Patter. The environment overrides addresses.
///
/// ```
/// use patter::project::Config;
/// use patter::provider::{ModelRef, Provider};
/// let text = "[models.OpenAI]\napi = 'responses'\nurl = 'http://localhost:8080/v1'\ntimeout = 60";
/// assert_eq!(Config::parse(text).unwrap().models.get(Provider::OPENAI).timeout.unwrap().as_secs(), 60);
/// assert!(Config::parse("[models.Anthropic]\napi = 'chat'").is_err());
/// Config::parse("[models.mill]\napi = 'chat'\nurl = 'https://llm.example/v1'\nkey = 'MILL_KEY'").unwrap();
/// assert_eq!("mill/large".parse::<ModelRef>().unwrap().provider.name(), "mill");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelsConfig {
    sections: IndexMap<Provider, ProviderConfig>,
    /// The root of the project, where commands run.
    root: Option<PathBuf>,
}

impl ModelsConfig {
    /// Returns the settings of a provider.
    pub fn get(&self, provider: Provider) -> ProviderConfig {
        self.sections.get(&provider).cloned().unwrap_or_default()
    }

    /// Sets the root of the project, where the commands of keys run.
    #[must_use]
    pub fn with_root(mut self, root: Option<&Path>) -> Self {
        self.root = root.map(Path::to_owned);
        self
    }

    /// Returns the folder in which commands run.
    pub fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("."))
    }

    /// Iterates over the commands that print keys, with their providers.
    pub fn key_commands(&self) -> impl Iterator<Item = (Provider, &KeyCommand)> {
        self.sections.iter().filter_map(|(provider, section)| match &section.key {
            Some(KeySource::Command(command)) => Some((*provider, command)),
            Some(KeySource::Variable(_)) | None => None,
        })
    }

    /// Iterates over the providers that have a section, in the order of the file.
    pub fn providers(&self) -> impl Iterator<Item = Provider> {
        self.sections.keys().copied()
    }

    /// Returns what is known about a model: what the project says, and else what Patter knows.
    ///
    /// ```
    /// use patter::project::Config;
    /// let text = "[models.Ollama]\nwindow = 8192\n[models.Ollama.models.'llava']\nimages = true";
    /// let models = Config::parse(text).unwrap().models;
    /// let known = models.known_model(&"Ollama/llava".parse().unwrap()).unwrap();
    /// assert_eq!((known.window, known.images), (Some(8192), true));
    /// assert!(!models.known_model(&"Ollama/llama3.2".parse().unwrap()).unwrap().images);
    /// ```
    pub fn known_model(&self, model: &ModelRef) -> Option<KnownModel> {
        let known = known_model(model);
        let Some(section) = self.sections.get(&model.provider) else { return known };
        let own = section.models.get(&model.id);
        if known.is_none() && own.is_none() && section.facts.is_empty() {
            return None;
        }
        let known = section.facts.applied_to(known.unwrap_or(KnownModel::UNKNOWN));
        Some(own.map_or(known, |own| own.applied_to(known)))
    }

    /// Returns what is known about the attachments that a model reads. A model counts as reading what nobody says it does not.
    pub(crate) fn known_reader(&self, model: &ModelRef) -> Option<KnownModel> {
        let mut known = self.known_model(model)?;
        if known_model(model).is_none() {
            let section = self.sections.get(&model.provider);
            let own = section.and_then(|section| section.models.get(&model.id));
            let says = |fact: fn(&ModelFacts) -> Option<bool>| {
                own.and_then(fact).or_else(|| section.and_then(|section| fact(&section.facts)))
            };
            known.images = says(|facts| facts.images).unwrap_or(true);
            known.documents = says(|facts| facts.documents).unwrap_or(true);
        }
        Some(known)
    }
}

/// Formats the settings in a stable form, as one line for each setting.
impl fmt::Display for ModelsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (provider, section) in &self.sections {
            for (name, value) in section.settings() {
                writeln!(f, "{}.{name} = {value}", provider.name())?;
            }
        }
        Ok(())
    }
}

// Written by hand because a section is checked against its provider, and errors should name the line of the section.
impl<'de> Deserialize<'de> for ModelsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SectionsVisitor)
    }
}

struct SectionsVisitor;

impl<'de> Visitor<'de> for SectionsVisitor {
    type Value = ModelsConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section for each provider")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ModelsConfig, A::Error> {
        let mut sections = IndexMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let section = map.next_value::<RawSection>()?.check().map_err(A::Error::custom)?;
            let provider = provider(&name, &section).map_err(A::Error::custom)?;
            if sections.insert(provider, section).is_some() {
                return Err(A::Error::custom(format!("there are two sections for {}", provider.name())));
            }
        }
        Ok(ModelsConfig { sections, root: None })
    }
}

/// Returns the provider of a section: one that is part of Patter, or the one that the section declares.
fn provider(name: &str, section: &ProviderConfig) -> Result<Provider, String> {
    let known = Provider::ALL.into_iter().find(|provider| Provider::parse(name) == Some(*provider));
    match (known, known.and_then(Provider::endpoint)) {
        (Some(provider), Some(endpoint)) => {
            return match section.api.filter(|wire| !endpoint.wires.contains(wire)) {
                None => Ok(provider),
                Some(wire) => {
                    let provider = provider.name();
                    Err(format!("`{}` is not an API of {provider}; use {}", wire.name(), endpoint.wire_names()))
                }
            };
        }
        (Some(provider), None) => return Err(format!("`{}` needs no settings", provider.name())),
        (None, _) => {}
    }
    let (Some(wire), Some(url)) = (section.api, section.url.as_deref()) else {
        let hint = match nearest(name, Provider::ALL.map(Provider::name)) {
            Some(near) => format!("did you mean `{near}`? To declare a provider, set `api` and `url`"),
            None => "set `api` and `url` to declare it".to_owned(),
        };
        return Err(format!("unknown provider `{name}`; {hint}"));
    };
    let key_variable = match &section.key {
        Some(KeySource::Variable(name)) => Some(name.as_str()),
        Some(KeySource::Command(_)) | None => None,
    };
    let strict = section.quirks.strict != Some(false);
    Provider::declare(&ProviderDeclaration { name, wire, base_url: url, key_variable, strict })
        .map_err(|error| error.to_string())
}
