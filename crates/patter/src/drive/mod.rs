//! The driver, which performs the steps of runs and passes the results back to them. It is the only loop that awaits.

mod clock;
mod interrupt;
mod budget;
mod account;
mod listener;
mod tally;
mod approve;
mod journal;
mod driver;
mod call;
mod host;
mod pieces;
mod model_call;
mod compact;
mod step;
mod run_task;
mod compare;

pub use approve::{ApprovalAnswer, Approver, OUTCOME_UNKNOWN, PersonAnswer, RefusingApprover};
pub use budget::Budget;
pub use clock::{milliseconds, now_ms};
pub(crate) use compact::summary_messages;
pub use compare::ReplayCompareError;
pub use driver::{Driver, StreamedReplies};
pub use journal::{Journal, JournalError};
pub use listener::Listener;
pub use patter_core::event::{FailureReport, RunEvent, RunEventKind};
pub use tally::Tally;
