//! Streaming of replies that are known as a whole.

use super::{ModelError, Sink};
use crate::tool::CancellationToken;
use patter_core::message::request::{Delta, Reply};

/// Tells a reply in small pieces, if someone listens, and returns it, unless nobody waits for it any more.
pub(super) async fn told(
    reply: Reply,
    sink: Option<&Sink<'_>>,
    cancellation: &CancellationToken,
) -> Result<Reply, ModelError> {
    let Some(sink) = sink else {
        return if cancellation.is_cancelled() { Err(ModelError::Cancelled) } else { Ok(reply) };
    };
    let text = reply.text.split_inclusive(char::is_whitespace).map(|piece| Delta::Text { text: piece.to_owned() });
    let calls = reply.calls.iter().enumerate().flat_map(|(index, call)| {
        let begins = Delta::Call { index, id: call.id.clone(), tool: call.tool.clone() };
        [begins, Delta::Arguments { index, text: call.arguments.clone() }]
    });
    for delta in text.chain(calls) {
        // Others get their turn between pieces, among them whoever cancels.
        tokio::task::yield_now().await;
        if cancellation.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        sink(delta);
    }
    Ok(reply)
}
