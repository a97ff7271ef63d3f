//! Stopping by signals.

use crate::error::INTERRUPTED;
use patter::tool::CancellationToken;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Waits for work, or returns nothing when a signal stops the program. Dropping the work cleans up what it started, which
/// would not happen if the signal ended the program at once.
pub(crate) fn until_stopped<T>(
    runtime: &Runtime,
    stop: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    runtime.block_on(stop.run_until_cancelled(work))
}

/// Lets writes beyond the limit of file sizes (`ulimit -f`) fail, where the system would end the program by a signal. The
/// programs of tools are not affected: a handler, unlike an ignored signal, is not inherited.
pub(crate) fn outlive_file_size_limit() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(|_| ())
}

/// The current turn of a conversation. Ctrl-C stops the turn first, and the program only if no turn is running.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<Mutex<Option<CancellationToken>>>);

impl Turn {
    /// Starts a turn, which also stops with the program.
    pub(crate) fn begin(&self, stop: &CancellationToken) -> CancellationToken {
        let token = stop.child_token();
        *self.current() = Some(token.clone());
        token
    }

    /// Stops the turn, and returns whether one was running.
    fn interrupt(&self) -> bool {
        let current = self.current();
        let running = current.as_ref().filter(|turn| !turn.is_cancelled());
        running.inspect(|turn| turn.cancel()).is_some()
    }

    fn current(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a token that is cancelled by Ctrl-C, by SIGTERM, or when the terminal closes. A second signal ends the
/// program at once.
pub(crate) fn stop_signal(runtime: &Runtime, turn: Turn) -> io::Result<CancellationToken> {
    let _entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    runtime.spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => if turn.interrupt() { continue },
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if token.is_cancelled() {
                std::process::exit(INTERRUPTED.into());
            }
            token.cancel();
        }
    });
    Ok(stop)
}
