//! The conversation before a run.

use super::StartError;
use crate::message::conversation::{Conversation, Message, ToolCall, ToolOutcome};
use std::collections::VecDeque;

/// Adds the missing results of a conversation: calls without one are marked as cancelled. What was checked for an earlier
/// run is not checked again, so this takes no longer for a long conversation.
pub(super) fn close_calls(mut conversation: Conversation) -> Result<Conversation, StartError> {
    let begin = conversation.checked();
    let mut closed = Vec::new();
    let mut open: VecDeque<&ToolCall> = VecDeque::new();
    // Where results are missing, except at the end.
    let mut first_gap = None;
    for (index, message) in (begin..).zip(conversation.since(begin)) {
        match message {
            Message::Tool { call_id, .. } => {
                if open.pop_front().is_none_or(|call| call.id != *call_id) {
                    return Err(StartError::Conversation { number: index + 1, id: call_id.clone() });
                }
            }
            Message::User { .. } | Message::Assistant { .. } | Message::Compacted { .. } => {
                if !open.is_empty() {
                    first_gap = first_gap.or(Some(index));
                    closed.extend(open.drain(..).map(cancelled));
                }
                open.extend(message.calls());
            }
        }
        if first_gap.is_some() {
            closed.push(message.clone());
        }
    }
    closed.extend(open.drain(..).map(cancelled));
    conversation.truncate(first_gap.unwrap_or(conversation.len()));
    conversation.extend(closed);
    conversation.mark_checked();
    Ok(conversation)
}

fn cancelled(call: &ToolCall) -> Message {
    Message::Tool { call_id: call.id.clone(), tool: call.tool.clone(), outcome: ToolOutcome::Cancelled }
}
