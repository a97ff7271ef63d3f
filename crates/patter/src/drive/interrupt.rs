//! Waits that end when a run is stopped or its time is up.

use super::clock::now_ms;
use crate::tool::CancellationToken;
use patter_core::run::RunInput;
use std::time::Duration;

/// Why a wait ended early.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interruption {
    Cancelled,
    TimedOut,
}

impl Interruption {
    /// Returns the input that ends the run.
    pub(super) fn into_input(self) -> RunInput {
        match self {
            Interruption::Cancelled => RunInput::Cancelled { at: now_ms() },
            // One millisecond more, in case the clock lags behind the timer: the run must see its deadline as passed.
            Interruption::TimedOut => RunInput::ClockTicked { at: now_ms() + 1 },
        }
    }
}

/// Waits for a future until the run is cancelled or its time is up.
pub(super) async fn interruptible<T>(
    cancellation: &CancellationToken,
    time_left: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, Interruption> {
    let deadline = async {
        match time_left {
            Some(time_left) => tokio::time::sleep(time_left).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(Interruption::Cancelled),
        done = work => Ok(done),
        () = deadline => Err(Interruption::TimedOut),
    }
}
