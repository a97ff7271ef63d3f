//! The time that calls wait for a person or a model.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The step in which a time limit is extended.
const STEP: Duration = Duration::from_millis(100);

/// Counts the time that calls wait for a person or a model. It is not the tool's.
#[derive(Clone, Default)]
pub(crate) struct WaitClock(Arc<Mutex<Waits>>);

#[derive(Default)]
struct Waits {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

impl WaitClock {
    /// Counts the time until the value is dropped.
    pub(crate) fn wait(&self) -> impl Drop + use<> {
        struct Wait(WaitClock);
        impl Drop for Wait {
            fn drop(&mut self) {
                let mut waits = self.0.waits();
                waits.open = waits.open.saturating_sub(1);
                if waits.open == 0 {
                    let waited = waits.since.take().map(|since| since.elapsed());
                    waits.total += waited.unwrap_or_default();
                }
            }
        }
        let mut waits = self.waits();
        waits.open += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        Wait(self.clone())
    }

    /// Waits for work with a time limit, which does not include the time that is counted here.
    pub(crate) async fn timeout<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let start = Instant::now();
        let before = self.total();
        let mut next = start + limit;
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                result = &mut work => return Some(result),
                () = sleep_until(next) => {}
            }
            let deadline = start + limit + self.total().saturating_sub(before);
            if Instant::now() >= deadline {
                return None;
            }
            next = deadline.max(Instant::now() + STEP);
        }
    }

    fn total(&self) -> Duration {
        let waits = self.waits();
        waits.total + waits.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
