//! Keeping to the pace of a provider: what it says to one request counts for all of them.

use crate::http::jittered;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What holds requests back, shared by all models of a provider that have one key.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    hold: Mutex<Option<Hold>>,
}

/// Until when no request is sent, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hold {
    until: Instant,
    because: String,
}

/// A wait that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    /// How long, without what is added by chance.
    pub(super) remaining: Duration,
    pub(super) because: String,
}

impl Pacer {
    /// Holds all requests back. A hold that is there and lasts longer stays.
    pub(super) fn hold(&self, pause: Duration, because: &str) {
        let Some(until) = Instant::now().checked_add(pause) else { return };
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        if hold.as_ref().is_none_or(|hold| hold.until < until) {
            *hold = Some(Hold { until, because: because.to_owned() });
        }
    }

    /// Returns how long to wait before a request; nothing where it can go at once.
    pub(super) fn wait(&self) -> Option<Wait> {
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        let Hold { until, because } = hold.clone()?;
        let remaining = until.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            *hold = None;
            return None;
        }
        Some(Wait { remaining, because })
    }
}

impl Wait {
    /// Waits a little longer than is due, by chance, so that many who wait do not come back at once.
    pub(super) async fn over(&self) {
        tokio::time::sleep(self.remaining + jittered(self.remaining / 4)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_hold_lasts_until_it_is_over() {
        let pacer = Pacer::default();
        assert_eq!(pacer.wait(), None);
        pacer.hold(4 * SECOND, "first");
        pacer.hold(2 * SECOND, "shorter");
        assert_eq!(pacer.wait(), Some(Wait { remaining: 4 * SECOND, because: "first".to_owned() }));
        tokio::time::advance(3 * SECOND).await;
        assert_eq!(pacer.wait().unwrap().remaining, SECOND);
        pacer.hold(2 * SECOND, "longer");
        assert_eq!(pacer.wait().unwrap().because, "longer");
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(pacer.wait(), None);
        pacer.hold(Duration::MAX, "for ever");
        assert_eq!(pacer.wait(), None, "what no clock can tell is not waited for");
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_do_not_come_back_at_once() {
        let pacer = Pacer::default();
        pacer.hold(8 * SECOND, "slow down");
        let begin = Instant::now();
        let waits = (0..64).map(|_| async {
            pacer.wait().unwrap().over().await;
            begin.elapsed()
        });
        let ends = futures_util::future::join_all(waits).await;
        let distinct: std::collections::BTreeSet<_> = ends.iter().map(Duration::as_millis).collect();
        assert!(ends.iter().all(|end| (8 * SECOND..=11 * SECOND).contains(end)), "{ends:?}");
        assert!(distinct.len() > 8, "{distinct:?}");
        assert_eq!(pacer.wait(), None);
    }
}
