//! Attributes as the conventions name them.

use super::span::{Attribute, AttributeValue};
use crate::message::conversation::{ToolOutcome, Usage};
use crate::message::request::{FinishReason, Reply, RequestTemplate, Settings};
use crate::provider::ModelRef;
use crate::run::{FailureKind, RunFailure};
use std::borrow::Cow;

/// A list of attributes that is being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes(pub(super) Vec<Attribute>);

impl Attributes {
    /// Returns the attributes that all spans of a session have.
    pub(super) fn of_session(session: &str) -> Self {
        // The second is what some backends group by.
        Self::default().with("gen_ai.conversation.id", session).with("session.id", session)
    }

    pub(super) fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<AttributeValue>) -> Self {
        self.0.push(Attribute::new(name, value));
        self
    }

    pub(super) fn with_if(self, name: &'static str, value: Option<impl Into<AttributeValue>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the counts of tokens. Details are left out if there are none.
    pub(super) fn with_usage(self, usage: Usage) -> Self {
        let some = |count: u64| Some(count).filter(|count| *count > 0);
        self.with("gen_ai.usage.input_tokens", usage.input_tokens)
            .with("gen_ai.usage.output_tokens", usage.output_tokens)
            .with_if("gen_ai.usage.cache_read.input_tokens", some(usage.cached_tokens))
            .with_if("gen_ai.usage.cache_creation.input_tokens", some(usage.cache_write_tokens))
            .with_if("gen_ai.usage.reasoning.output_tokens", some(usage.reasoning_tokens))
    }

    /// Adds the tokens that a run and everything in it used. Backends add up `gen_ai.usage` of all spans, so that totals
    /// under that name would be counted twice.
    pub(super) fn with_total_usage(self, usage: Usage) -> Self {
        self.with("patter.usage.input_tokens", usage.input_tokens)
            .with("patter.usage.output_tokens", usage.output_tokens)
    }

    /// Adds the provider and the model.
    pub(super) fn with_model(self, template: Option<&RequestTemplate>) -> Self {
        let Some(template) = template else { return self };
        self.with("gen_ai.provider.name", provider_name(&template.model))
            .with("gen_ai.request.model", model_name(&template.model))
    }

    /// Adds the settings of a model that are set.
    pub(super) fn with_settings(self, template: Option<&RequestTemplate>) -> Self {
        let Some(RequestTemplate { settings, returns, .. }) = template else { return self };
        let Settings { temperature, top_p, top_k, max_tokens, stop, seed, reasoning_effort } = settings;
        self.with_if("gen_ai.request.temperature", *temperature)
            .with_if("gen_ai.request.top_p", *top_p)
            .with_if("gen_ai.request.top_k", *top_k)
            .with_if("gen_ai.request.max_tokens", *max_tokens)
            .with_if("gen_ai.request.stop_sequences", Some(stop.clone()).filter(|stop| !stop.is_empty()))
            .with_if("gen_ai.request.seed", *seed)
            .with_if("patter.request.reasoning_effort", reasoning_effort.clone())
            .with("gen_ai.output.type", if returns.is_some() { "json" } else { "text" })
    }
}

/// Returns the name of a model without its provider.
pub(super) fn model_name(model: &str) -> String {
    match model.parse::<ModelRef>() {
        Ok(ModelRef { id, .. }) if !id.is_empty() => id,
        _ => model.to_owned(),
    }
}

/// Returns the name of a provider in the conventions, or its own if they have none.
fn provider_name(model: &str) -> String {
    let Ok(ModelRef { provider, .. }) = model.parse() else { return "unknown".to_owned() };
    provider.profile().telemetry_name.map_or_else(|| provider.name().to_ascii_lowercase(), str::to_owned)
}

/// Returns why a model stopped, in the words of the conventions.
pub(super) fn finish_reason(reply: &Reply) -> String {
    match &reply.finish {
        FinishReason::Stop if !reply.calls.is_empty() => "tool_call".to_owned(),
        FinishReason::Filtered | FinishReason::Refused => "content_filter".to_owned(),
        FinishReason::Malformed => "error".to_owned(),
        finish => finish.name().to_owned(),
    }
}

/// Returns the kind of a failure, for `error.type`.
pub(super) const fn failure_type(failure: &RunFailure) -> &'static str {
    match failure.kind {
        FailureKind::Configuration => "configuration",
        FailureKind::Model => "model",
        FailureKind::Answer => "answer",
        FailureKind::ModelCalls => "model_calls",
        FailureKind::ToolCalls => "tool_calls",
        FailureKind::Tokens => "tokens",
        FailureKind::Cost => "cost",
        FailureKind::Deadline => "deadline",
        FailureKind::Step => "step",
        FailureKind::Store => "store",
    }
}

/// Returns why a call failed, for `error.type`; `None` if it has a result.
pub(super) const fn outcome_error(outcome: &ToolOutcome) -> Option<&'static str> {
    match outcome {
        ToolOutcome::Value { .. } => None,
        ToolOutcome::Error { .. } => Some("tool_error"),
        ToolOutcome::Denied { .. } => Some("denied"),
        ToolOutcome::Cancelled => Some("cancelled"),
    }
}
