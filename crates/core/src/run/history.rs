//! Conversations that a run begins with.

use super::StartError;
use crate::message::conversation::{Message, ToolCall, ToolOutcome};
use std::collections::VecDeque;

/// Returns a conversation in which each call has its result: calls without one were cancelled.
pub(super) fn closed(conversation: Vec<Message>) -> Result<Vec<Message>, StartError> {
    let mut whole = Vec::with_capacity(conversation.len() + 1);
    let mut open: VecDeque<ToolCall> = VecDeque::new();
    for (index, message) in conversation.into_iter().enumerate() {
        match &message {
            Message::Tool { call_id, .. } => {
                if open.pop_front().is_none_or(|call| call.id != *call_id) {
                    return Err(StartError::Conversation { number: index + 1, id: call_id.clone() });
                }
            }
            Message::User { .. } => whole.extend(open.drain(..).map(cancelled)),
            Message::Assistant { calls, .. } => {
                whole.extend(open.drain(..).map(cancelled));
                open.extend(calls.iter().cloned());
            }
        }
        whole.push(message);
    }
    whole.extend(open.drain(..).map(cancelled));
    Ok(whole)
}

fn cancelled(call: ToolCall) -> Message {
    Message::Tool { call_id: call.id, tool: call.tool, outcome: ToolOutcome::Cancelled }
}
