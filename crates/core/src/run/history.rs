//! The conversation before a run.

use super::StartError;
use crate::message::conversation::{Message, ToolCall, ToolOutcome};
use std::collections::VecDeque;

/// Adds the missing results of a conversation: calls without one are marked as cancelled.
pub(super) fn close_calls(conversation: Vec<Message>) -> Result<Vec<Message>, StartError> {
    let mut closed = Vec::with_capacity(conversation.len() + 1);
    let mut open: VecDeque<ToolCall> = VecDeque::new();
    for (index, message) in conversation.into_iter().enumerate() {
        match &message {
            Message::Tool { call_id, .. } => {
                if open.pop_front().is_none_or(|call| call.id != *call_id) {
                    return Err(StartError::Conversation { number: index + 1, id: call_id.clone() });
                }
            }
            Message::User { .. } => closed.extend(open.drain(..).map(cancelled)),
            Message::Assistant { calls, .. } => {
                closed.extend(open.drain(..).map(cancelled));
                open.extend(calls.iter().cloned());
            }
        }
        closed.push(message);
    }
    closed.extend(open.drain(..).map(cancelled));
    Ok(closed)
}

fn cancelled(call: ToolCall) -> Message {
    Message::Tool { call_id: call.id, tool: call.tool, outcome: ToolOutcome::Cancelled }
}
