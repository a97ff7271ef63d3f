//! The model settings and run limits of an agent.

use super::Agent;
use crate::declare::property;
use crate::message::context::ContextPolicy;
use crate::message::request::Settings;
use crate::provider::price::Cost;
use crate::provider::{ModelRef, ModelRefError};
use crate::types::signature::{Records, Shape, SignatureError, Type};
use patter_gram::Value;
use std::time::Duration;

/// The limits that an agent declares for its runs. The caller decides about limits that are not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeclaredLimits {
    /// The maximum number of model calls.
    pub max_turns: Option<u64>,
    /// The maximum number of tool calls.
    pub max_tool_calls: Option<u64>,
    /// The number of input and output tokens of a run after which the model is not called again.
    pub max_total_tokens: Option<u64>,
    /// The cost of a run after which the model is not called again.
    pub max_cost: Option<Cost>,
    /// The maximum duration of a run.
    pub timeout: Option<Duration>,
}

impl Agent {
    /// Reads the model settings.
    ///
    /// ```
    /// use patter_core::{declare::Agent, gram::parse};
    /// let (tree, _) = parse("[a:Agent {temperature: 0.3, maxTokens: 500, stop: ['END'], timeout: 2m}]");
    /// let agent = Agent::cast(tree.patterns().next().unwrap()).unwrap();
    /// let settings = agent.settings();
    /// assert_eq!((settings.temperature, settings.max_tokens, settings.stop.len()), (Some(0.3), Some(500), 1));
    /// assert_eq!(agent.declared_limits().timeout, Some(std::time::Duration::from_secs(120)));
    /// ```
    pub fn settings(&self) -> Settings {
        Settings {
            temperature: self.number("temperature"),
            top_p: self.number("topP"),
            top_k: self.count("topK"),
            max_tokens: self.count("maxTokens"),
            stop: self.texts("stop"),
            seed: self.count("seed"),
            reasoning_effort: self.value("reasoningEffort").and_then(text_of),
        }
    }

    /// Reads the limits of a run.
    pub fn declared_limits(&self) -> DeclaredLimits {
        DeclaredLimits {
            max_turns: self.count("maxTurns"),
            max_tool_calls: self.count("maxToolCalls"),
            max_total_tokens: self.count("maxTotalTokens"),
            max_cost: self.number("maxCost").and_then(Cost::from_dollars),
            timeout: self.value("timeout").and_then(|value| property::duration(&value)),
        }
    }

    /// Parses the type of the answer, if one is declared.
    pub fn returns(&self, records: &Records) -> Option<Result<Type, SignatureError>> {
        if let Some(signature) = self.signature() {
            // A text is what is returned by default.
            let is_text = signature.returns == Type::new(Shape::Text);
            return (!is_text).then(|| Ok(signature.returns.clone()));
        }
        let text = self.pattern.text("returns")?;
        Some(Type::parse(&text, records))
    }

    /// Parses the type of the input, if one is declared. Otherwise the input is text.
    ///
    /// ```
    /// use patter_core::{declare::Agent, gram::parse, types::signature::{Records, Shape}};
    /// let (tree, _) = parse("[a:Agent {takes: 'Int'}]");
    /// let agent = Agent::cast(tree.patterns().next().unwrap()).unwrap();
    /// assert_eq!(agent.takes(&Records::default()).unwrap().unwrap().shape, Shape::Integer);
    /// ```
    pub fn takes(&self, records: &Records) -> Option<Result<Type, SignatureError>> {
        if let Some(signature) = self.signature() {
            return Some(Ok(Type::new(Shape::Object(signature.parameters.clone()))));
        }
        let text = self.pattern.text("takes")?;
        Some(Type::parse(&text, records))
    }

    fn value(&self, key: &str) -> Option<Value> {
        self.pattern.property(key).and_then(Value::read)
    }

    /// Reads what happens when a conversation outgrows the window of the model.
    pub fn context_policy(&self) -> ContextPolicy {
        match self.value("context").and_then(text_of).as_deref() {
            Some("trim") => ContextPolicy::Trim,
            Some("error") => ContextPolicy::Error,
            _ => ContextPolicy::Compact,
        }
    }

    /// Reads the number of tokens that fit in the window of the model, if the agent says so.
    pub fn context_window(&self) -> Option<u64> {
        self.count("contextWindow")
    }

    /// Parses the models that are called if the agent's model is not available, in order.
    ///
    /// ```
    /// use patter_core::{declare::Agent, gram::parse};
    /// let (tree, _) = parse("[a:Agent {model: 'OpenAI/gpt-5', fallback: ['Anthropic/claude-sonnet-4-5', 'demo']}]");
    /// let agent = Agent::cast(tree.patterns().next().unwrap()).unwrap();
    /// let models: Vec<_> = agent.fallbacks().into_iter().map(|model| model.unwrap().to_string()).collect();
    /// assert_eq!(models, ["Anthropic/claude-sonnet-4-5", "demo"]);
    /// ```
    pub fn fallbacks(&self) -> Vec<Result<ModelRef, ModelRefError>> {
        self.texts("fallback").into_iter().map(|model| model.parse()).collect()
    }

    /// Reads a string or a list of strings.
    fn texts(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(items)) => items.into_iter().filter_map(text_of).collect(),
            _ => Vec::new(),
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.value(key)? {
            Value::Integer(whole) => whole.to_i64().map(|whole| whole as f64),
            Value::Decimal(decimal) => Some(decimal.to_f64()),
            _ => None,
        }
    }

    fn count(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Value::Integer(whole) => whole.to_i64().and_then(|whole| u64::try_from(whole).ok()),
            _ => None,
        }
    }
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) | Value::Symbol(text) => Some(text),
        _ => None,
    }
}
