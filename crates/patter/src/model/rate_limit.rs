//! Respecting the rate limits of a provider: when it asks one request to pause, all requests to it pause.

use crate::http::jittered;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A limiter that delays requests, shared by all models of a provider that use the same key.
#[derive(Debug, Default)]
pub(super) struct RateLimiter {
    block: Mutex<Option<Block>>,
}

/// A period in which no request is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    until: Instant,
    reason: String,
    /// Whether a request of this process met the limit, and others do not know yet.
    is_new: bool,
}

/// A delay before a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delay {
    /// The length, without jitter.
    pub(super) duration: Duration,
    pub(super) reason: String,
}

impl RateLimiter {
    /// Blocks all requests for a time, unless they are blocked for longer already.
    pub(super) fn block(&self, duration: Duration, reason: &str) {
        self.block_as(duration, reason, true);
    }

    /// Does the same because another process met the limit. Hearing of it again changes nothing: the end differs by a moment.
    pub(super) fn block_as_reported(&self, duration: Duration, reason: &str) {
        const MOMENT: Duration = Duration::from_millis(500);
        if self.delay().is_none_or(|delay| delay.duration + MOMENT < duration) {
            self.block_as(duration, reason, false);
        }
    }

    fn block_as(&self, duration: Duration, reason: &str, is_new: bool) {
        let Some(until) = Instant::now().checked_add(duration) else { return };
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        if block.as_ref().is_none_or(|block| block.until < until) {
            *block = Some(Block { until, reason: reason.to_owned(), is_new });
        }
    }

    /// Returns the delay before the next request; `None` if it can be sent now.
    pub(super) fn delay(&self) -> Option<Delay> {
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        let Block { until, reason, .. } = block.clone()?;
        let duration = until.saturating_duration_since(Instant::now());
        if duration.is_zero() {
            *block = None;
            return None;
        }
        Some(Delay { duration, reason })
    }

    /// Returns the delay if others do not know about it, once.
    pub(super) fn take_new(&self) -> Option<Delay> {
        let delay = self.delay()?;
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut block.as_mut()?.is_new).then_some(delay)
    }
}

impl Delay {
    /// Waits a random time longer than necessary, so that waiting requests are not all sent at once.
    pub(super) async fn sleep(&self) {
        tokio::time::sleep(self.duration + jittered(self.duration / 4)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_longest_block_counts_until_it_ends() {
        let limiter = RateLimiter::default();
        assert_eq!(limiter.delay(), None);
        limiter.block(4 * SECOND, "first");
        limiter.block(2 * SECOND, "shorter");
        assert_eq!(limiter.delay(), Some(Delay { duration: 4 * SECOND, reason: "first".to_owned() }));
        tokio::time::advance(3 * SECOND).await;
        assert_eq!(limiter.delay().unwrap().duration, SECOND);
        limiter.block(2 * SECOND, "longer");
        assert_eq!(limiter.delay().unwrap().reason, "longer");
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(limiter.delay(), None);
        limiter.block(Duration::MAX, "forever");
        assert_eq!(limiter.delay(), None, "a time beyond the range of the clock is ignored");
    }

    #[tokio::test(start_paused = true)]
    async fn only_limits_that_were_met_here_are_new() {
        let limiter = RateLimiter::default();
        limiter.block_as_reported(4 * SECOND, "theirs");
        assert_eq!(limiter.delay().unwrap().reason, "theirs");
        assert_eq!(limiter.take_new(), None);
        limiter.block(8 * SECOND, "ours");
        assert_eq!(limiter.take_new(), Some(Delay { duration: 8 * SECOND, reason: "ours".to_owned() }));
        assert_eq!(limiter.take_new(), None, "once");
        limiter.block_as_reported(8 * SECOND, "ours");
        assert_eq!(limiter.delay().unwrap().duration, 8 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn delayed_requests_are_spread() {
        let limiter = RateLimiter::default();
        limiter.block(8 * SECOND, "slow down");
        let start = Instant::now();
        let delays = (0..64).map(|_| async {
            limiter.delay().unwrap().sleep().await;
            start.elapsed()
        });
        let ends = futures_util::future::join_all(delays).await;
        let distinct: std::collections::BTreeSet<_> = ends.iter().map(Duration::as_millis).collect();
        assert!(ends.iter().all(|end| (8 * SECOND..=11 * SECOND).contains(end)), "{ends:?}");
        assert!(distinct.len() > 8, "{distinct:?}");
        assert_eq!(limiter.delay(), None);
    }
}
