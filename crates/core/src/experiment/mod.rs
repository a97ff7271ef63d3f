//! Experiments: the plan, the result of each run, and the conclusions drawn from them.
//!
//! A [`Plan`] lists the runs of all cases under all arms, in an order drawn from a seed. Each run yields a [`Trial`]; a
//! [`Report`] holds all of them. [`Gate`]s check the trials of an arm against a threshold, [`compare_arms`] compares arms
//! by the statistics of [`stats`](crate::stats), and [`compare_with_baseline`] compares reports. Running the plan is the
//! business of the crate `patter`.
//!
//! An error of the infrastructure is not an answer: a trial that ends with one neither passed nor failed. It is left out of
//! pass rates and comparisons, and with too many of them an arm is not compared at all ([`ArmErrors`]).

mod info;
mod plan;
mod trial;
mod error;
mod summary;
mod gate;
mod contrast;
mod report;
mod baseline;
mod junit;

pub use baseline::{BaselineCases, compare_with_baseline};
pub use contrast::{compare_arms, is_conclusive, regressions};
pub use error::ArmErrors;
pub use gate::{Gate, GateError, GateMetric, GateResult};
pub use info::{ArmInfo, CaseInfo, JudgeInfo, ReportKind};
pub use junit::junit;
pub use plan::{BlockOrder, Plan, PlannedTrial, leading_blocks};
pub use report::{Completion, Report};
pub use summary::{ArmSummary, summarize};
pub use trial::{ToolUse, Trial, TrialOutcome};
