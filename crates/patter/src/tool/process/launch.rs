//! What a program does first, so that the commands of its tools can be supervised.
//!
//! ```no_run
//! patter::launch::run_if_launched();
//! patter::launch::forbid_inspection();
//! // The program starts here.
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

/// The argument that tells a program to supervise a command.
#[cfg(target_os = "linux")]
pub(super) const ARGUMENT: &str = "--supervise-command";

/// Whether this program can be started as a supervisor.
static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// Supervises a command if this process was started for that, and does not return then. Call it first in `main`.
///
/// On Linux, a program that calls this starts each command of a tool, and each MCP server, through a copy of itself, which
/// ends everything that the command started: when the command exits, when a call is cancelled, and when the program is
/// killed. Without it, processes that leave the process group of their command survive, and so does a command if the
/// program is killed by `SIGKILL`. On other systems it does nothing.
pub fn run_if_launched() {
    #[cfg(target_os = "linux")]
    {
        if std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT) {
            std::process::exit(super::supervisor::run());
        }
        CAN_SUPERVISE.store(true, Ordering::Relaxed);
    }
}

/// Forbids other processes of the same user to read the memory and the environment of this one, which contain API keys:
/// on Linux, commands could read them from `/proc`. Processes of `root` can still do so, and so can everyone on other
/// systems that allow it. The program leaves no core dumps afterwards, and cannot be traced or debugged.
pub fn forbid_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "other processes of this user can read the memory of this one");
        }
    }
}

/// Returns whether this program can be started as a supervisor.
pub(super) fn can_supervise() -> bool {
    CAN_SUPERVISE.load(Ordering::Relaxed)
}
