//! The response object.

use super::id::ResponseId;
use crate::message::conversation::Usage;
use crate::message::request::FinishReason;
use crate::run::{ClientAdditions, ClientTool};
use crate::serve::{ApiError, TurnEnd, TurnOutcome};
use serde_json::{Value as Json, json};

/// What is known about a response before it has an output.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseMeta {
    /// The id.
    pub id: ResponseId,
    /// When it was created, in seconds since 1970.
    pub created_at: u64,
    /// The agent.
    pub model: String,
    /// Whether it is stored, and with it the session.
    pub is_stored: bool,
    /// Whether it does not need the client.
    pub background: bool,
    /// The response that it continues.
    pub previous: Option<ResponseId>,
    /// The tools and the context of the client.
    pub client: ClientAdditions,
    /// The format of the text.
    pub format: Json,
    /// What the client wants to remember.
    pub metadata: Json,
}

/// The state of a response.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Status {
    pub(super) name: &'static str,
    pub(super) completed_at: Option<u64>,
    pub(super) incomplete: Option<&'static str>,
    pub(super) error: Option<Json>,
    pub(super) usage: Option<Usage>,
}

impl Status {
    pub(super) fn in_progress() -> Self {
        Self { name: "in_progress", ..Self::default() }
    }

    /// Returns the state of a response whose turn ended at a time in seconds.
    pub(super) fn ended(end: &TurnEnd, at: u64) -> Self {
        let base = Self { usage: Some(end.usage), ..Self::default() };
        let incomplete = |reason| Self { name: "incomplete", incomplete: Some(reason), ..base.clone() };
        match &end.outcome {
            TurnOutcome::Answered { finish: FinishReason::Length, .. } => incomplete("max_output_tokens"),
            TurnOutcome::Answered { finish: FinishReason::Filtered | FinishReason::Refused, .. } => {
                incomplete("content_filter")
            }
            TurnOutcome::Answered { .. } | TurnOutcome::Waiting(_) => {
                Self { name: "completed", completed_at: Some(at), ..base }
            }
            TurnOutcome::Cancelled => Self { name: "cancelled", ..base },
            TurnOutcome::Failed(_) => Self { error: end.error().as_ref().map(error_json), name: "failed", ..base },
        }
    }

    pub(super) fn failed(error: &ApiError) -> Self {
        Self { name: "failed", error: Some(error_json(error)), ..Self::default() }
    }

    /// Returns the state of a response whose run was interrupted and can be resumed.
    pub(super) fn interrupted() -> Self {
        Self { name: "incomplete", incomplete: Some("interrupted"), ..Self::default() }
    }

    /// Returns the type of the last event of a stream.
    pub(super) fn event(&self) -> &'static str {
        match self.name {
            "completed" => "response.completed",
            "failed" => "response.failed",
            _ => "response.incomplete",
        }
    }
}

impl ResponseMeta {
    /// Returns the format of answers: what the client asked for, or else what the agent returns.
    pub fn format(asked: Option<&Json>, agent: &str, returns: Option<&Json>) -> Json {
        match (asked, returns) {
            (Some(asked), _) => asked.clone(),
            (None, Some(returns)) => {
                let name: String =
                    agent.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
                json!({"type": "json_schema", "name": name, "description": null, "schema": returns, "strict": true})
            }
            (None, None) => json!({"type": "text"}),
        }
    }

    pub(super) fn response(&self, status: &Status, output: &[Json]) -> Json {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        json!({
            "id": self.id.to_string(),
            "object": "response",
            "created_at": self.created_at,
            "completed_at": status.completed_at,
            "status": status.name,
            "background": self.background,
            "incomplete_details": status.incomplete.map(|reason| json!({"reason": reason})),
            "error": status.error,
            "model": self.model,
            "previous_response_id": self.previous.as_ref().map(ToString::to_string),
            "conversation": self.is_stored.then(|| json!({"id": self.id.session})),
            "instructions": text(&self.client.context),
            "output": output,
            "tools": self.client.tools.iter().map(tool).collect::<Vec<_>>(),
            "tool_choice": "auto",
            "parallel_tool_calls": true,
            "text": {"format": self.format},
            "usage": status.usage.map(usage),
            "store": self.is_stored,
            "metadata": self.metadata,
            // What the agent decides has the value that means nothing in particular.
            "truncation": "disabled",
            "top_p": 1.0,
            "temperature": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "top_logprobs": 0,
            "reasoning": null,
            "user": null,
            "max_output_tokens": null,
            "max_tool_calls": null,
            "service_tier": "default",
            "safety_identifier": null,
            "prompt_cache_key": null,
        })
    }
}

fn tool(tool: &ClientTool) -> Json {
    let description = (!tool.description.is_empty()).then_some(&tool.description);
    json!({
        "type": "function",
        "name": tool.name,
        "description": description,
        "parameters": tool.schema,
        "strict": false,
    })
}

fn error_json(error: &ApiError) -> Json {
    json!({"code": error.kind.open_responses_type(), "message": error.message})
}

fn usage(usage: Usage) -> Json {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}
