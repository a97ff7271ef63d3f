//! Experiments: cases run under one or more arms, judged, kept as they come, and compared.
//!
//! A [`Plan`] says what is run, in an order that is drawn from a seed. A [`Series`] runs it, some jobs at a time, and a
//! [`StoredTrials`] has each run in a store once it has ended, so that an experiment goes on after an interruption. What comes
//! of it is a [`Report`].

mod arm;
mod contrast;
mod gate;
mod judge;
mod junit;
mod stored;
mod plan;
mod command_check;
mod report;
mod recordings;
mod series;
mod summary;

pub use arm::{Arm, Replies};
pub use command_check::Programs;
pub use contrast::{compare_arms, compare_reports, is_enough};
pub use gate::{Gate, GateError, GateResult};
pub use judge::{Judge, JudgeError};
pub use junit::junit;
pub use plan::{Blocks, Job, Plan};
pub use recordings::recorded_replies;
pub use report::{ArmInfo, CaseInfo, JudgeInfo, Report, ReportKind, ToolUse, Trial};
pub use series::{Going, Pace, Series, SeriesEnd};
pub use stored::{KeepError, StoredTrials};
pub use summary::{Summary, summary};
