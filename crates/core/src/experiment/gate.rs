//! Gates: thresholds that the trials of an arm must meet, such as `pass>=0.95`.

use super::summary::{ArmSummary, summarize};
use super::trial::Trial;
use crate::provider::price::Cost;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A threshold that the trials of an arm must meet.
///
/// ```
/// use patter_core::experiment::{Gate, Trial};
/// let gate: Gate = "pass >= 95%".parse().unwrap();
/// assert_eq!(gate.to_string(), "pass>=0.95");
/// assert!(!gate.judge(&[Trial { passed: false, ..Trial::default() }]).passed);
/// assert_eq!("speed>=1".parse::<Gate>().unwrap_err().to_string(), "unknown metric `speed`");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    metric: GateMetric,
    bound: Bound,
    limit: f64,
}

/// The metric of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateMetric {
    Pass,
    LatencyP50,
    LatencyP95,
    Cost,
    TotalCost,
    Tokens,
    Turns,
    ToolCalls,
}

/// The side of the limit that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtLeast,
    AtMost,
}

/// The result of a gate.
///
/// ```
/// use patter_core::experiment::GateResult;
/// let json = r#"{"gate": "pass>=0.95", "passed": true, "found": 1.0, "why": "pass is 1"}"#;
/// assert!(serde_json::from_str::<GateResult>(json).unwrap().passed);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// The gate.
    pub gate: String,
    /// Whether the gate passed.
    pub passed: bool,
    /// The value found, if known.
    pub found: Option<f64>,
    /// The value found, in words.
    pub why: String,
}

/// An error parsing a gate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GateError {
    /// The bound is missing.
    #[error("`{0}` is not a gate")]
    Form(String),
    /// The metric does not exist.
    #[error("unknown metric `{0}`")]
    Metric(String),
    /// The limit is not a number.
    #[error("`{0}` is not a number")]
    Limit(String),
}

impl GateError {
    /// Returns a hint for fixing the error.
    pub fn hint(&self) -> String {
        match self {
            GateError::Form(_) | GateError::Limit(_) => {
                "write a metric, `>=` or `<=`, and a number, such as `pass>=0.95` or `latency_p95<=2000`".to_owned()
            }
            GateError::Metric(_) => {
                let names: Vec<_> = GateMetric::ALL.iter().map(|metric| metric.name()).collect();
                format!("available metrics: {}", names.join(", "))
            }
        }
    }
}

impl Gate {
    /// The default gate: all trials pass.
    pub const ALL_PASS: Self = Self { metric: GateMetric::Pass, bound: Bound::AtLeast, limit: 1.0 };

    /// Checks the trials of an arm. A gate on an unknown value does not pass.
    pub fn judge(&self, trials: &[Trial]) -> GateResult {
        let found = self.metric.value(&summarize(trials));
        let passed = found.is_some_and(|found| match self.bound {
            Bound::AtLeast => found >= self.limit,
            Bound::AtMost => found <= self.limit,
        });
        let name = self.metric.name();
        let why = found.map_or_else(|| format!("{name} is unknown"), |found| format!("{name} is {}", round(found)));
        GateResult { gate: self.to_string(), passed, found, why }
    }
}

impl GateMetric {
    const ALL: [Self; 8] = [
        Self::Pass,
        Self::LatencyP50,
        Self::LatencyP95,
        Self::Cost,
        Self::TotalCost,
        Self::Tokens,
        Self::Turns,
        Self::ToolCalls,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::LatencyP50 => "latency_p50",
            Self::LatencyP95 => "latency_p95",
            Self::Cost => "cost",
            Self::TotalCost => "total_cost",
            Self::Tokens => "tokens",
            Self::Turns => "turns",
            Self::ToolCalls => "tool_calls",
        }
    }

    fn value(self, summary: &ArmSummary) -> Option<f64> {
        match self {
            Self::Pass => summary.pass_rate,
            Self::LatencyP50 => summary.latency_p50_ms.map(|ms| ms as f64),
            Self::LatencyP95 => summary.latency_p95_ms.map(|ms| ms as f64),
            Self::Cost => summary.cost.map(|cost| cost.dollars() / summary.runs.max(1) as f64),
            Self::TotalCost => summary.cost.map(Cost::dollars),
            Self::Tokens => summary.mean(summary.tokens),
            Self::Turns => summary.mean(summary.model_calls),
            Self::ToolCalls => summary.mean(summary.tool_calls),
        }
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let bounds = [(">=", Bound::AtLeast), ("<=", Bound::AtMost)];
        let split = bounds.into_iter().find_map(|(sign, bound)| Some((text.split_once(sign)?, bound)));
        let ((name, limit), bound) = split.ok_or_else(|| GateError::Form(text.trim().to_owned()))?;
        let name = name.trim();
        let limit = limit.trim();
        let metric = GateMetric::ALL.into_iter().find(|metric| metric.name() == name);
        let metric = metric.ok_or_else(|| GateError::Metric(name.to_owned()))?;
        let (digits, unit) = match limit.strip_suffix('%') {
            Some(digits) => (digits.trim(), 100.0),
            None => (limit.trim_start_matches('$'), 1.0),
        };
        let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| GateError::Limit(limit.to_owned()))?;
        Ok(Self { metric, bound, limit: number / unit })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.bound {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        };
        write!(f, "{}{sign}{}", self.metric.name(), self.limit)
    }
}

/// Rounds a number to the digits worth showing.
fn round(number: f64) -> f64 {
    if number.abs() >= 100.0 { number.round() } else { (number * 10_000.0).round() / 10_000.0 }
}
