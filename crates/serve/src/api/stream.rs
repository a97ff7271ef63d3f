//! Streams of turns, whatever the protocol.

use crate::host::{Follower, Host, TurnItem};
use crate::respond::{event_stream, keep_alive};
use axum::body::Bytes;
use axum::response::Response;
use patter_core::serve::ApiError;
use std::collections::VecDeque;
use std::time::Duration;

/// A stream of a protocol.
pub(super) trait TurnStream: Send + 'static {
    /// Returns the first events.
    fn start(&mut self) -> Vec<Bytes>;

    /// Returns the events that follow from the next item of the turn.
    fn advance(&mut self, item: &TurnItem) -> Vec<Bytes>;
}

/// The state of a response that is streamed.
struct Streaming<S> {
    follower: Follower,
    stream: S,
    waiting: VecDeque<Bytes>,
    keep_alive: Duration,
}

/// Streams a turn. An error before it starts is an ordinary response.
pub(super) async fn stream_turn(
    host: &Host,
    mut follower: Follower,
    mut stream: impl TurnStream,
) -> Result<Response, ApiError> {
    follower.first().await?;
    let waiting = stream.start().into();
    let keep_alive = host.settings.limits.keep_alive;
    let events = futures_util::stream::unfold(Streaming { follower, stream, waiting, keep_alive }, next);
    Ok(event_stream(events))
}

async fn next<S: TurnStream>(mut streaming: Streaming<S>) -> Option<(Bytes, Streaming<S>)> {
    loop {
        if let Some(event) = streaming.waiting.pop_front() {
            return Some((event, streaming));
        }
        match tokio::time::timeout(streaming.keep_alive, streaming.follower.next()).await {
            Ok(Some(item)) => streaming.waiting.extend(streaming.stream.advance(&item)),
            Ok(None) => return None,
            Err(_) => return Some((keep_alive(), streaming)),
        }
    }
}
