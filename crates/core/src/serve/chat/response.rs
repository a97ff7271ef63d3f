//! Responses to requests for chat completions.

use crate::message::conversation::Usage;
use crate::message::request::FinishReason;
use crate::serve::read::set;
use crate::serve::{TurnEnd, TurnOutcome, Waiting};
use serde_json::{Value as Json, json};

/// What all parts of a response have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMeta {
    /// The id of the completion.
    pub id: String,
    /// When it was created, in seconds since 1970.
    pub created: u64,
    /// The agent.
    pub model: String,
    /// The session, if it is stored.
    pub session: Option<String>,
}

/// Returns the list of models: one for each agent, with the time of its file in seconds since 1970.
pub fn model_list<'a>(agents: impl IntoIterator<Item = (&'a str, u64)>) -> Json {
    let models: Vec<_> = agents.into_iter().map(|(name, created)| model(name, created)).collect();
    json!({"object": "list", "data": models})
}

/// Returns an agent as a model.
pub fn model(name: &str, created: u64) -> Json {
    json!({"id": name, "object": "model", "created": created, "owned_by": "patter"})
}

/// Returns the response to a request without streaming. `texts` are what the model said, reply by reply. A turn that failed
/// has no response: see [`TurnEnd::error`].
pub fn completion(meta: &ChatMeta, texts: &[String], end: &TurnEnd) -> Json {
    let content = match &end.outcome {
        // What a program reads is the answer alone.
        TurnOutcome::Answered { text, value: Some(_), .. } => text.clone(),
        _ => texts.iter().cloned().chain(approval_text(end)).collect::<Vec<_>>().join("\n\n"),
    };
    let calls = tool_calls(meta, end);
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !calls.is_empty() {
        if content.is_empty() {
            set(&mut message, "content", Json::Null);
        }
        set(&mut message, "tool_calls", calls);
    }
    let mut response = json!({
        "id": meta.id,
        "object": "chat.completion",
        "created": meta.created,
        "model": meta.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(end)}],
        "usage": usage(end.usage),
    });
    if let Some(patter) = extension(meta, end) {
        set(&mut response, "patter", patter);
    }
    response
}

/// Returns what Patter adds to a response: the session, and the calls that wait for approval.
pub(super) fn extension(meta: &ChatMeta, end: &TurnEnd) -> Option<Json> {
    let session = meta.session.as_ref()?;
    let approvals: Vec<&Waiting> = end.approvals().collect();
    let mut patter = json!({"session": session});
    if !approvals.is_empty() {
        set(&mut patter, "status", "waiting");
        set(&mut patter, "approvals", json!(approvals));
    }
    Some(patter)
}

/// Returns what people read who only see text, if calls wait for approval.
pub(super) fn approval_text(end: &TurnEnd) -> Option<String> {
    let lines: Vec<_> = end.approvals().map(|call| format!("({})", call.line())).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the calls that the client has to make.
pub(super) fn tool_calls(meta: &ChatMeta, end: &TurnEnd) -> Vec<Json> {
    let call = |call: &Waiting| {
        let function = json!({"name": call.tool.replace('/', "__"), "arguments": call.arguments.to_string()});
        json!({"id": call_id(meta.session.as_deref(), &call.call_id), "type": "function", "function": function})
    };
    end.client_calls().map(call).collect()
}

/// Returns the id of a call as clients know it: it says which session waits for the result.
///
/// ```
/// use patter_core::serve::chat::{call_id, split_call_id};
/// assert_eq!(split_call_id(&call_id(Some("monday"), "c1")), Some(("monday", "c1")));
/// assert_eq!(split_call_id("c1"), None);
/// ```
pub fn call_id(session: Option<&str>, call_id: &str) -> String {
    session.map_or_else(|| call_id.to_owned(), |session| format!("{session}:{call_id}"))
}

/// Returns the session and the call of an id that a client sent back.
pub fn split_call_id(id: &str) -> Option<(&str, &str)> {
    id.split_once(':')
}

pub(super) fn finish_reason(end: &TurnEnd) -> &'static str {
    match &end.outcome {
        TurnOutcome::Waiting(_) if end.client_calls().next().is_some() => "tool_calls",
        TurnOutcome::Answered { finish: FinishReason::Length, .. } => "length",
        TurnOutcome::Answered { finish: FinishReason::Filtered | FinishReason::Refused, .. } => "content_filter",
        TurnOutcome::Answered { .. } | TurnOutcome::Waiting(_) | TurnOutcome::Failed(_) | TurnOutcome::Cancelled => {
            "stop"
        }
    }
}

pub(super) fn usage(usage: Usage) -> Json {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}
