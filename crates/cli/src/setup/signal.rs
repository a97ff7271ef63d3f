//! Stopping by signals.
//!
//! Ctrl-C cancels a run. Every other signal that would end the program suspends it: `patter resume` continues it, so a
//! restart of the machine or a deployment loses no run. In both cases the tools that run are asked to exit, and killed
//! after a grace period. One more signal ends the program and its tools at once.

use super::trace::{new_tracer, report_export};
use crate::error::INTERRUPTED;
use patter::tool::{CancellationToken, end_processes, kill_processes};
use patter::trace::Tracer;
use rustix::process::Signal;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The time that processes have to exit when the program ends.
const GRACE: Duration = Duration::from_secs(3);

/// The time that tasks have to end after that.
const SHUTDOWN: Duration = Duration::from_millis(500);

/// The signals that suspend a run, with their names. By default each of them ends the program.
const SUSPENDING: &[(Signal, &str)] = &[
    (Signal::TERM, "SIGTERM"),
    (Signal::HUP, "SIGHUP"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::VTALARM, "SIGVTALRM"),
    (Signal::PROF, "SIGPROF"),
    (Signal::IO, "SIGIO"),
    (Signal::XCPU, "SIGXCPU"),
    (Signal::ABORT, "SIGABRT"),
    #[cfg(target_os = "linux")]
    (Signal::POWER, "SIGPWR"),
    #[cfg(target_os = "linux")]
    (Signal::STKFLT, "SIGSTKFLT"),
];

/// The signal that stopped the program, with its name.
static STOPPED_BY: OnceLock<(Signal, &str)> = OnceLock::new();

/// Returns a runtime for a command that starts no processes.
pub(crate) fn new_runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// The runtime of the tools of a command. All processes end before it is dropped, and spans are sent.
pub(crate) struct ToolRuntime {
    runtime: Runtime,
    tracer: Option<Tracer>,
}

impl ToolRuntime {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { runtime: new_runtime()?, tracer: None })
    }

    /// Returns a runtime with a tracer, if the user asks for traces.
    pub(super) fn traced() -> io::Result<Self> {
        Ok(Self { runtime: new_runtime()?, tracer: new_tracer()? })
    }

    /// Returns the tracer of what runs.
    pub(crate) fn tracer(&self) -> Option<Tracer> {
        self.tracer.clone()
    }
}

impl Deref for ToolRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

impl Drop for ToolRuntime {
    fn drop(&mut self) {
        let exported = self.runtime.block_on(async {
            let flush = async {
                match &self.tracer {
                    Some(tracer) => Some(tracer.flush().await),
                    None => None,
                }
            };
            tokio::join!(end_processes(GRACE), flush).1
        });
        if let Some(report) = exported {
            // Nobody is left to report an error to.
            let _ = report_export(&report);
        }
        // Dropping a runtime waits until each of its tasks pauses, and for file operations: a server that never stops
        // sending, or a disk that hangs, must not keep the program from exiting.
        if let Ok(empty) = Builder::new_current_thread().build() {
            std::mem::replace(&mut self.runtime, empty).shutdown_timeout(SHUTDOWN);
        }
    }
}

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
    /// Starts a turn, which also stops when Ctrl-C stops the program.
    pub(crate) fn begin(&self, interrupt: &CancellationToken) -> CancellationToken {
        let token = interrupt.child_token();
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

/// The tokens that signals cancel.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    /// Cancelled by every signal that stops the program.
    pub(crate) stop: CancellationToken,
    /// Cancelled by Ctrl-C.
    pub(crate) interrupt: CancellationToken,
    /// Cancelled by the other signals.
    pub(crate) suspend: CancellationToken,
}

impl Signals {
    /// Starts to listen for signals.
    pub(crate) fn listen(runtime: &Runtime, turn: Turn) -> io::Result<Self> {
        let _entered = runtime.enter();
        let signals = Self::default();
        let (sender, mut received) = mpsc::unbounded_channel();
        let is_hangup_ignored = is_ignored(Signal::HUP);
        for (kind, name) in std::iter::once(&(Signal::INT, "SIGINT")).chain(SUSPENDING).copied() {
            // `nohup` ignores it, and means it.
            if kind == Signal::HUP && is_hangup_ignored {
                continue;
            }
            let mut stream = signal(SignalKind::from_raw(kind.as_raw()))?;
            let sender = sender.clone();
            runtime.spawn(async move { while stream.recv().await.is_some() && sender.send((kind, name)).is_ok() {} });
        }
        let tokens = signals.clone();
        runtime.spawn(async move {
            while let Some((kind, name)) = received.recv().await {
                if kind == Signal::INT && turn.interrupt() {
                    continue;
                }
                if tokens.stop.is_cancelled() {
                    kill_processes();
                    std::process::exit(stop_code().into());
                }
                let _ = STOPPED_BY.set((kind, name));
                if kind == Signal::INT {
                    tokens.interrupt.cancel();
                } else {
                    tokens.suspend.cancel();
                }
                tokens.stop.cancel();
            }
        });
        Ok(signals)
    }
}

/// Returns the exit code of a program that was stopped: 128 and the number of the signal.
pub(crate) fn stop_code() -> u8 {
    let number = STOPPED_BY.get().and_then(|(kind, _)| u8::try_from(kind.as_raw()).ok());
    number.map_or(INTERRUPTED, |number| number.saturating_add(128))
}

/// Returns the name of the signal that stopped the program, unless that was Ctrl-C.
pub(crate) fn stop_name() -> Option<&'static str> {
    STOPPED_BY.get().filter(|(kind, _)| *kind != Signal::INT).map(|(_, name)| *name)
}

/// Returns whether the program was started with a signal ignored, where the system tells.
fn is_ignored(kind: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let bit = u32::try_from(kind.as_raw() - 1).ok().and_then(|bit| 1u64.checked_shl(bit));
    bit.is_some_and(|bit| mask & bit != 0)
}
