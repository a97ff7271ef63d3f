//! Streaming replies that are already known.

use super::error::ModelError;
use super::interface::DeltaSink;
use crate::tool::CancellationToken;
use patter_core::message::request::{Delta, Reply};

/// Passes a reply to a sink in small pieces and returns it, unless it is cancelled.
pub(super) async fn stream_reply(
    reply: Reply,
    sink: Option<&DeltaSink<'_>>,
    cancellation: &CancellationToken,
) -> Result<Reply, ModelError> {
    let Some(sink) = sink else {
        return if cancellation.is_cancelled() { Err(ModelError::Cancelled) } else { Ok(reply) };
    };
    let text = reply.text.split_inclusive(char::is_whitespace).map(|piece| Delta::Text { text: piece.to_owned() });
    let calls = reply.calls.iter().enumerate().flat_map(|(index, call)| {
        let start = Delta::Call { index, id: call.id.clone(), tool: call.tool.clone() };
        [start, Delta::Arguments { index, text: call.arguments.clone() }]
    });
    for delta in text.chain(calls) {
        // Let other tasks run between pieces, among them those that cancel.
        tokio::task::yield_now().await;
        if cancellation.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        sink.receive(delta);
    }
    Ok(reply)
}
