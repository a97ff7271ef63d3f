//! Models that Patter knows: how much they read and write, what they accept, and what they cost.

use super::catalog::Provider;
use super::model_ref::ModelRef;
use super::price::{Price, Rate, Rates};

/// What is known about a model.
///
/// ```
/// use patter_core::provider::known_model;
/// let known = |model: &str| known_model(&model.parse().unwrap());
/// assert_eq!(known("OpenAI/gpt-4o-mini-2024-07-18").unwrap().window, Some(128_000));
/// assert!(known("OpenRouter/anthropic/claude-sonnet-4.5").unwrap().images);
/// assert_eq!(known("Ollama/llama3.2"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about a model")]
#[non_exhaustive]
pub struct KnownModel {
    /// The largest number of input tokens.
    pub window: Option<u64>,
    /// The largest number of output tokens, including reasoning.
    pub max_output: Option<u64>,
    /// Whether it can call tools.
    pub tools: bool,
    /// Whether it reads images.
    pub images: bool,
    /// Whether it reads documents, such as PDF files.
    pub documents: bool,
    /// Whether the provider can make it follow a schema exactly.
    pub strict: bool,
    /// Whether it reasons before it answers.
    pub reasoning: bool,
}

/// A row of the table of models of a provider.
#[derive(Debug, Clone, Copy)]
pub struct ModelRow {
    /// The name of the model at its provider, without the date of a snapshot.
    pub id: &'static str,
    /// Its list price.
    pub price: Price,
    /// What else is known about it.
    pub facts: KnownModel,
}

/// Returns what is known about a model, looked up by its name and then by its name without a snapshot date. Providers that
/// have models of others, such as `OpenRouter/openai/gpt-5`, are looked up in the tables of those.
pub fn known_model(model: &ModelRef) -> Option<KnownModel> {
    find_row(model).or_else(|| find_row(&vendor_model(&model.id)?)).map(|row| row.facts)
}

/// Finds the row of a model.
pub(super) fn find_row(model: &ModelRef) -> Option<&'static ModelRow> {
    let ids = [Some(model.id.as_str()), strip_snapshot(&model.id)];
    ids.into_iter().flatten().find_map(|id| model.provider.profile().models.iter().find(|row| row.id == id))
}

/// Returns the model of the vendor that an id such as `anthropic/claude-sonnet-4.5` names.
fn vendor_model(id: &str) -> Option<ModelRef> {
    let (vendor, id) = id.split_once('/')?;
    let provider = Provider::parse(vendor)?;
    // Anthropic writes versions with hyphens, and others with dots.
    let id = if provider == Provider::ANTHROPIC { id.replace('.', "-") } else { id.to_owned() };
    Some(ModelRef { provider, id })
}

/// Returns the name of a model without its snapshot suffix: `-2024-07-18`, `-20250929`, `-001` or `-latest`. Any other
/// suffix denotes a different model, which may have a different price.
pub(super) fn strip_snapshot(id: &str) -> Option<&str> {
    ["-0000-00-00", "-00000000", "-000", "-latest"].into_iter().find_map(|pattern| {
        let (rest, suffix) = id.split_at_checked(id.len().checked_sub(pattern.len())?)?;
        let matches = |(found, wanted): (u8, u8)| if wanted == b'0' { found.is_ascii_digit() } else { found == wanted };
        suffix.bytes().zip(pattern.bytes()).all(matches).then_some(rest)
    })
}

impl KnownModel {
    /// A model about which nothing is known but that it can call tools.
    pub const UNKNOWN: Self = Self {
        window: None,
        max_output: None,
        tools: true,
        images: false,
        documents: false,
        strict: false,
        reasoning: false,
    };

    /// Returns the facts about a model with a window and a limit of output, which calls tools.
    pub(super) const fn new(window: u64, max_output: u64) -> Self {
        Self { window: Some(window), max_output: Some(max_output), ..Self::UNKNOWN }
    }

    /// Adds that it reads images.
    pub(super) const fn images(self) -> Self {
        Self { images: true, ..self }
    }

    /// Adds that it reads documents.
    pub(super) const fn documents(self) -> Self {
        Self { documents: true, ..self }
    }

    /// Adds that the provider can enforce schemas.
    pub(super) const fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// Adds that it reasons.
    pub(super) const fn reasoning(self) -> Self {
        Self { reasoning: true, ..self }
    }

    /// Removes tools.
    pub(super) const fn without_tools(self) -> Self {
        Self { tools: false, ..self }
    }
}

impl ModelRow {
    /// Doubles the input price and raises the output price by half for requests with more than `above` input tokens.
    pub(super) const fn long_context(self, above: u64) -> Self {
        let rates = self.price.rates;
        Self { price: Price { rates, long_context: Some((above, rates.long_context())) }, ..self }
    }

    /// Sets the price of input that is written to a cache, in dollars per million tokens.
    pub(super) const fn cache_write(mut self, dollars: f64) -> Self {
        self.price.rates.cache_write = Rate::per_million(dollars);
        self
    }
}

/// Returns a row with the prices of input, cached input and output, in dollars per million tokens.
pub(super) const fn row(id: &'static str, input: f64, cached: f64, output: f64, facts: KnownModel) -> ModelRow {
    let input = Rate::per_million(input);
    let cached = Rate::per_million(cached);
    let output = Rate::per_million(output);
    let rates = Rates { input, cached, cache_write: input, output };
    ModelRow { id, price: Price { rates, long_context: None }, facts }
}
