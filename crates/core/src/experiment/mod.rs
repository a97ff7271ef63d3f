//! Experiments: the plan, the result of each run, and the conclusions drawn from them.
//!
//! A [`Plan`] lists the runs of all cases under all arms, in an order drawn from a seed. Each run yields a [`Trial`]; a
//! [`Report`] holds all of them. [`Gate`]s check the trials of an arm against a threshold, and [`compare_arms`] compares
//! arms by the statistics of [`stats`](crate::stats). Running the plan is the business of the crate `patter`.

mod info;
mod plan;
mod trial;
mod summary;
mod gate;
mod report;
mod contrast;
mod junit;

pub use contrast::{compare_arms, compare_reports, is_conclusive};
pub use gate::{Gate, GateError, GateResult};
pub use info::{ArmInfo, CaseInfo, JudgeInfo, ReportKind};
pub use junit::junit;
pub use plan::{BlockOrder, Plan, PlannedTrial};
pub use report::Report;
pub use summary::{ArmSummary, summarize};
pub use trial::{ToolUse, Trial};
