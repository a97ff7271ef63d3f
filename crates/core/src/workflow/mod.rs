//! Workflows: steps that call agents, tools and other workflows, along the edges of a graph.
//!
//! A [`Plan`] is a workflow that is ready to run. [`Plan::evaluate`] says which calls to make next, given the results so
//! far. It is a function of nothing else, so the order in which results arrive changes nothing, and neither does a stop in
//! between.
//!
//! - A step starts once it is known of every edge that leads to it whether it is taken, and if at least one is. So a step
//!   with several edges waits for what may still come, and for nothing else.
//! - An edge that leads back starts the steps of its cycle once more, after all of them have ended. Edges out of the cycle
//!   count only when it is over.
//!
//! [`findings`] reports workflows that could wait forever, end without a result, or use a value that may be missing.

mod topology;
mod plan;
mod evaluate;
mod value;
mod outcome;
mod step_type;
mod check;
mod check_value;
mod bound;
mod build;

pub use bound::model_call_bound;
pub use build::{build_plan, is_typed};
pub use check::{WorkflowContext, findings};
pub use check_value::placeholder_findings;
pub use evaluate::{Evaluation, Evaluator, StepCall, StepError};
pub use plan::{Accepts, Action, Condition, Plan, PlanEdge, PlanInput, PlanStep};
pub use step_type::Callee;
pub use value::{Fields, render, render_instruction};
