//! How far a session is.

use patter::session::{Log, WaitingFor};
use serde::{Deserialize, Serialize};

/// How far a session is. Besides the message and the answer, this is all that Restate stores about a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The number of entries in the log of the session.
    pub entries: u64,
    /// What comes next.
    pub state: RunState,
}

/// What comes next in the run of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Another step.
    Running,
    /// Somebody has to answer.
    Waiting {
        /// When the first question expires, in milliseconds from now; `None` if they all wait forever.
        expires_in_ms: Option<u64>,
    },
    /// The run has ended.
    Ended,
}

impl Progress {
    /// Returns how far a session is at a moment, in milliseconds since 1970, if approvals expire after a while.
    pub fn new(log: &Log, now_ms: u64, approval_expiry_ms: u64) -> Self {
        let entries = u64::try_from(log.entry_count()).unwrap_or(u64::MAX);
        let state = match log.open_run() {
            None => RunState::Ended,
            Some(_) if log.is_waiting() => {
                let calls = log.waiting_calls();
                let expiries =
                    calls.iter().filter_map(|waiting| match (waiting.call.expires_at, waiting.waiting_for) {
                        (Some(expires_at), _) => Some(expires_at.saturating_sub(now_ms)),
                        (None, WaitingFor::Approval(_)) => Some(approval_expiry_ms),
                        (None, WaitingFor::Client) => None,
                    });
                RunState::Waiting { expires_in_ms: expiries.min() }
            }
            Some(_) => RunState::Running,
        };
        Self { entries, state }
    }

    /// Returns whether the log has entries that were not there before.
    pub fn is_past(self, entries: u64) -> bool {
        self.entries > entries
    }

    /// Returns whether the step was taken that follows on so many entries, or none can be.
    pub fn is_next_after(self, entries: u64) -> bool {
        self.is_past(entries) || self.state != RunState::Running
    }
}
