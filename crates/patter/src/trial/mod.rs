//! Experiments: cases run under one or more arms, judged, kept as they come, and compared.
//!
//! A [`Plan`] says what is run, in an order that is drawn from a seed. A [`Series`] runs it, some jobs at a time, and a
//! [`KeptTrials`] has each run in a store once it has ended, so that an experiment goes on after an interruption. What comes
//! of it is a [`Report`].

mod arm;
mod contrast;
mod gate;
mod judge;
mod junit;
mod kept;
mod plan;
mod program;
mod record;
mod recorded;
mod series;
mod summary;

pub use arm::{Arm, Replies};
pub use contrast::{compare_arms, compare_reports, is_enough};
pub use gate::{Gate, GateError, GateResult};
pub use judge::{Judge, JudgeError};
pub use junit::junit;
pub use kept::{KeepError, KeptTrials};
pub use plan::{Blocks, Job, Plan};
pub use program::Programs;
pub use record::{ArmInfo, CaseInfo, JudgeInfo, Report, ReportKind, ToolUse, Trial};
pub use recorded::recorded_replies;
pub use series::{Going, Pace, Series, SeriesEnd};
pub use summary::{Summary, summary};
